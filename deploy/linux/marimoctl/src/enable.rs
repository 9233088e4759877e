//! `marimoctl enable`: connections over some routes, or all of the host, use Marimo.

use crate::{
    arguments,
    bpf::registered,
    routes::{DEFAULT, Marimo, NAMES},
};
use hostctl::{
    complain,
    enable::Request,
    failure::{Failure, Outcome, While},
    lock, rollback, say,
    view::root,
};
use std::fs;

/// New connections over some routes, or all of them, use Marimo.
pub fn enable(arguments: &arguments::Enable) -> Outcome {
    let request = Request::new(&arguments.routes, &arguments.table, arguments.watch)?;
    root()?;
    let _lock = lock::hold::<Marimo>()?;
    let given_back = rollback::give_back_due::<Marimo>();
    let registered = registered()?;
    let name = match &arguments.name {
        Some(name) => name.as_str(),
        None => NAMES
            .into_iter()
            .find(|name| registered.iter().any(|known| known == name))
            .ok_or_else(|| Failure::failed("neither bpf_marimo nor tcp_marimo is loaded (marimoctl load, modprobe)"))?,
    };
    if !registered.iter().any(|known| known == name) {
        return Err(Failure::input(format!("--name: found {name:?}, allowed is one of {}", registered.join(", "))));
    }
    let done = request.enable::<Marimo>(name, &registered, || match arguments.default {
        true => fs::write(DEFAULT, name).during(format!("cannot write {DEFAULT}")),
        false => Ok(()),
    })?;
    // All is done before any of it is said: a reader may go away.
    given_back.iter().chain(&done.said).for_each(|line| say!("{line}"));
    if arguments.default {
        say!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    }
    done.warnings.iter().for_each(|line| complain!("{line}"));
    Ok(())
}
