//! Applications that open flows during a run.

use crate::common::{self, delivered, flow, ideal, star, took, unlimited};
use incast_sim::{
    Config, FlowSpec, Outcome,
    application::{Application, FlowInfo},
};
use incast_units::Time;

const REQUEST: u64 = 100;
const THINK: Time = Time::from_us(3);

/// Asks the server, waits for the whole answer, thinks, and asks again.
#[derive(Debug)]
struct Client {
    server: u32,
    left: u32,
}

impl Client {
    fn ask(&mut self, at: Time, open: &mut dyn FnMut(FlowSpec)) {
        if self.left > 0 {
            self.left -= 1;
            let request = FlowSpec::OWN_REQUEST;
            open(FlowSpec { start: at, request, ..flow(u32::MAX, self.server, REQUEST) });
        }
    }
}

impl Application for Client {
    fn on_start(&mut self, open: &mut dyn FnMut(FlowSpec)) {
        self.ask(Time::from_us(1), open);
    }
    fn on_received(&mut self, now: Time, flow: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        assert_eq!((flow.source, flow.class), (self.server, 0));
        self.ask(now + THINK, open);
    }
    fn on_acked(&mut self, _now: Time, flow: &FlowInfo, _open: &mut dyn FnMut(FlowSpec)) {
        assert_eq!((flow.destination, flow.bytes), (self.server, REQUEST));
    }
}

/// Answers each request at once.
#[derive(Debug)]
struct Server {
    answer: u64,
}

impl Application for Server {
    fn on_start(&mut self, _open: &mut dyn FnMut(FlowSpec)) {}
    fn on_received(&mut self, now: Time, request: &FlowInfo, open: &mut dyn FnMut(FlowSpec)) {
        assert_eq!(request.bytes, REQUEST);
        let group = u64::from(request.source) << 32 | u64::from(request.sequence);
        open(FlowSpec { start: now, request: group, ..flow(u32::MAX, request.source, self.answer) });
    }
    fn on_acked(&mut self, _now: Time, flow: &FlowInfo, _open: &mut dyn FnMut(FlowSpec)) {
        assert_eq!(flow.bytes, self.answer);
    }
}

fn closed_loop(clients: u32, rounds: u32, threads: usize) -> Outcome {
    let mut config: Config = unlimited(star(clients + 1));
    let client = |_| -> Option<Box<dyn Application>> { Some(Box::new(Client { server: clients, left: rounds })) };
    config.applications = (0..clients).map(client).collect();
    config.applications.push(Some(Box::new(Server { answer: 20_000 })));
    config.threads = threads;
    common::run(config)
}

#[test]
fn a_closed_loop_opens_flows_during_the_run() {
    let outcome = closed_loop(1, 50, 1);
    delivered(&outcome);
    let (requests, answers) = outcome.flows.split_at(50);
    assert_eq!((requests.len(), answers.len()), (50, 50));
    let mut start = Time::from_us(1);
    for (round, (request, answer)) in requests.iter().zip(answers).enumerate() {
        assert_eq!((request.source, request.destination, request.bytes), (0, 1, REQUEST));
        assert_eq!((answer.source, answer.destination, answer.bytes), (1, 0, 20_000));
        assert_eq!((request.request, answer.request), (round as u64, round as u64));
        assert_eq!(request.start, start);
        assert_eq!(Some(answer.start), request.delivered);
        // The answer waits for the request's acknowledgement, which the server sends first.
        let ack = Time::from_ps((18 + 20 + 32 + 20) * 80);
        assert_eq!((took(request), took(answer)), (ideal(request), ideal(answer) + ack));
        start = answer.delivered.expect("it was delivered") + THINK;
    }
}

#[test]
fn closed_loops_do_not_depend_on_threads() {
    let one = closed_loop(7, 20, 1);
    delivered(&one);
    assert_eq!(one.flows.len(), 2 * 7 * 20);
    for threads in [2, 4] {
        assert_eq!(closed_loop(7, 20, threads).digest, one.digest);
    }
}

#[test]
fn what_an_application_would_start_after_the_end_is_not_lost_silently() {
    let mut config = unlimited(star(2));
    config.applications = vec![Some(Box::new(Client { server: 1, left: 1000 })), Some(Box::new(Server { answer: 1 }))];
    config.end = Time::from_us(100);
    let outcome = common::run(config);
    assert!(!outcome.complete);
    assert_eq!(outcome.ended_at, Time::from_us(100));
    assert!(outcome.flows.len() > 10);
}
