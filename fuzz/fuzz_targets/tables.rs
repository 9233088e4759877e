//! Files that scenarios name: distributions of sizes, traces, topologies. The first line says which.
#![no_main]

use incast_lab::workload::{
    distribution::{Distribution, Interpolation, Table},
    trace,
};
use incast_sim::{engine::random::Stream, topology::file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let Some((kind, text)) = input.split_once('\n') else { return };
    match kind {
        "distribution" => {
            if let Ok(table) = Table::parse(text) {
                for interpolation in [Interpolation::Linear, Interpolation::Step] {
                    let max = 1 << 30;
                    let sizes = Distribution::Table { table: table.clone(), interpolation, max };
                    assert!((0.0..=max as f64).contains(&sizes.mean()), "{sizes:?}");
                    assert!((1..=max).contains(&sizes.sample(&mut Stream::new(0, 0, 0))));
                    assert!(!sizes.spread(1.0).is_empty());
                }
            }
        }
        "trace" => {
            let _ = trace::read_csv(text.as_bytes());
        }
        "topology" => {
            let _ = file::parse(text);
        }
        _ => {}
    }
});
