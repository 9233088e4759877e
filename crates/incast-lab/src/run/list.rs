//! The flows of a run without the run: what a rig of real hosts plays, in the columns of `flows.parquet`.

use crate::{results::labels::Labels, run::RunError, scenario::Run};
use incast_sim::FlowSpec;
use std::io::{self, Write};

/// A flow, numbered as `flows.parquet` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Number of the flow at its source.
    pub sequence: u32,
    /// What it is.
    pub flow: FlowSpec,
    /// It starts in the time that is counted.
    pub counted: bool,
}

/// All flows of a run, in the order of `flows.parquet`, and what their classes and hosts are called.
#[derive(Clone, Debug)]
pub struct Flows {
    /// The rows.
    pub rows: Vec<Listed>,
    classes: Vec<Class>,
    labels: Labels,
}

#[derive(Clone, Debug)]
struct Class {
    name: String,
    law: &'static str,
    priority: u8,
}

impl Flows {
    /// Makes the flows as the simulation of this run would.
    ///
    /// # Errors
    /// Hosts open flows during the run, so that they are not known beforehand; or the run's clocks cannot be
    /// synchronised.
    pub fn of(run: &Run) -> Result<Self, RunError> {
        let config = run.config(1)?;
        if config.applications.iter().any(Option::is_some) {
            return Err(RunError::Flows {
                run: run.folder.clone(),
                message: "a workload of kind \"rpc\" opens its flows during the run, when others end; allowed are the \
                          kinds whose flows are known beforehand"
                    .into(),
            });
        }
        let labels = Labels::new(&config.topology);
        let classes = config.classes.iter().map(|class| Class {
            name: class.name.clone(),
            law: class.law.info().name,
            priority: class.priority,
        });
        let classes = classes.collect();
        let mut flows = config.flows;
        // A host numbers its flows as they start, and those that start together in the order of the workloads.
        flows.sort_by_key(|flow| (flow.source, flow.start));
        let counted = run.counted_from..run.counted_until;
        let mut rows: Vec<Listed> = Vec::with_capacity(flows.len());
        for flow in flows {
            let before = rows.last().filter(|row| row.flow.source == flow.source);
            let sequence = before.map_or(0, |row| row.sequence + 1);
            let request = match flow.request {
                FlowSpec::OWN_REQUEST => u64::from(flow.source) << 32 | u64::from(sequence),
                request => request,
            };
            let flow = FlowSpec { request, ..flow };
            rows.push(Listed { sequence, counted: counted.contains(&flow.start), flow });
        }
        Ok(Self { rows, classes, labels })
    }

    /// Names of the hosts.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Writes them as CSV: a row of a run's `flows.parquet` each, with the columns that are known beforehand, and the
    /// row's number before them.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "flow,source,sequence,class,law,priority,request,src,dst,size_bytes,start_ps,counted")?;
        for (row, Listed { sequence, flow, counted }) in self.rows.iter().enumerate() {
            let Some(class) = self.classes.get(usize::from(flow.class)) else { continue };
            let request = match flow.request {
                FlowSpec::NO_REQUEST => String::new(),
                request => request.to_string(),
            };
            writeln!(
                out,
                "{row},{},{sequence},{},{},{},{request},{},{},{},{},{counted}",
                flow.source,
                class.name,
                class.law,
                class.priority,
                self.labels.node(flow.source),
                self.labels.node(flow.destination),
                flow.bytes,
                flow.start.ps(),
            )?;
        }
        Ok(())
    }
}
