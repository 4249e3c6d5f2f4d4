//! What each machine of a run did over time: a line for each, so that the one
//! that differs is seen among them.

use std::collections::BTreeMap;

use fathom_analysis::rate::Rates;
use fathom_model::Sample;

use super::time::panel;
use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::reduce::CurveReducer;
use fathom_sheet::chart::{Layer, Panel, Quantity, Scale, Shape};

/// Machines that are named; more names would be longer than the graph.
const NAMED: usize = 14;

/// The machines of a step while its samples are read.
#[derive(Default)]
pub(super) struct Hosts {
    /// Where each job runs, by its place; empty on one machine.
    of_job: Vec<String>,
    open: BTreeMap<String, OpenHostInterval>,
    curves: BTreeMap<String, HostCurves>,
}

/// All directions of one machine in the interval that has not been closed.
#[derive(Default)]
struct OpenHostInterval {
    t_ms: u64,
    rates: Rates,
}

#[derive(Default)]
struct HostCurves {
    iops: CurveReducer,
    bw_bytes: CurveReducer,
}

impl Hosts {
    /// The jobs that samples refer to by place.
    pub fn begin(&mut self, of_job: &[String]) {
        self.of_job = of_job.to_vec();
    }

    /// Adds what a job did in an interval.
    pub fn add(&mut self, sample: &Sample) {
        if let Some(host) = self.of_job.get(sample.job as usize) {
            let open = self.open.entry(host.clone()).or_default();
            open.t_ms = sample.t_ms;
            open.rates.entry(sample.dir).or_default().add_counts(sample);
        }
    }

    /// The interval has ended; the step began at `begin_ms`.
    pub fn close(&mut self, begin_ms: u64) {
        for (host, open) in std::mem::take(&mut self.open) {
            let time = open.t_ms.saturating_sub(begin_ms) as f64;
            let curves = self.curves.entry(host).or_default();
            let rates = open.rates.values();
            curves
                .iops
                .add(time, rates.clone().map(|rate| rate.iops).sum());
            curves
                .bw_bytes
                .add(time, rates.map(|rate| rate.bw_bytes).sum());
        }
    }

    /// Rates below each other; none of one machine.
    pub fn panels(&self) -> Vec<Panel> {
        if self.curves.len() < 2 {
            return Vec::new();
        }
        let mut iops = panel("IOPS", Quantity::Rate, Scale::Linear);
        let mut bw = panel("Bandwidth", Quantity::BytesPerSecond, Scale::Linear);
        for (place, (host, curves)) in self.curves.iter().enumerate() {
            for (panel, stream) in [(&mut iops, &curves.iops), (&mut bw, &curves.bw_bytes)] {
                panel.layers.push(Layer {
                    name: (place < NAMED).then(|| host.clone()),
                    shape: Shape::Line(stream.points()),
                    ink: Ink::of_place(place),
                });
            }
        }
        vec![iops, bw]
    }
}
