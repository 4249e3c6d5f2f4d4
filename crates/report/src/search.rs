//! What a search for a load tried, as a graph.

use fathom_analysis::find::{FindAnswer, FindGoal, ProbeResult};
use fathom_model::units;

use crate::graphs::x_axis;
use fathom_sheet::chart::palette::{Dash, Ink, Marker};
use fathom_sheet::chart::{
    Chart, ChartAxis, Ends, Layer, Note, NoteKind, Panel, Quantity, Scale, Shape, Theme,
};

/// What is drawn of a search.
#[derive(Debug, Clone)]
pub struct SearchGraph<'s> {
    /// What was searched, in words.
    pub title: String,
    /// The option that makes the load: `iodepth`, `numjobs`, `rate_iops`.
    pub over: &'s str,
    /// What counts.
    pub goal: FindGoal,
    /// What the latency is: `p99`, `p99 of reads`.
    pub figure: String,
    /// What was measured, the least load first; of a knee the means of each load.
    pub probes: &'s [ProbeResult],
    /// What was found.
    pub answer: Option<FindAnswer>,
}

/// So much load as one number.
fn load(load: Option<f64>, jobs: Option<u32>) -> Option<f64> {
    Some(load? * f64::from(jobs.unwrap_or(1)))
}

impl SearchGraph<'_> {
    /// The graph; `None` where no load was tried.
    pub fn chart(&self) -> Option<Chart> {
        let at = |probe: &ProbeResult| load(probe.probe.load, probe.probe.jobs);
        let is_led = |probe: &&ProbeResult| probe.iops > 0.0;
        let probes: Vec<_> = (self.probes.iter().filter(is_led))
            .filter_map(|probe| Some((at(probe)?, probe)))
            .collect();
        let xs: Vec<u64> = probes.iter().map(|(x, _)| x.round() as u64).collect();
        xs.first()?;
        let has_jobs = self.probes.iter().any(|probe| probe.probe.jobs.is_some());
        let x = match (self.over, has_jobs) {
            ("rate_iops", _) => ChartAxis {
                title: "Offered I/Os per second".to_owned(),
                quantity: Quantity::Rate,
                scale: Scale::Linear,
                ends: Ends::Values,
            },
            (_, true) => ChartAxis {
                title: "I/Os under way, of all jobs".to_owned(),
                ..x_axis("iodepth", &xs)
            },
            (over, false) => x_axis(over, &xs),
        };
        let mut panels = vec![self.limited(&probes, &x)];
        // Of rates that are offered it is what was asked for.
        if self.over != "rate_iops" {
            panels.insert(0, throughput(&probes, &x));
        }
        let panel = if self.goal == FindGoal::Knee {
            0
        } else {
            panels.len() - 1
        };
        panels[panel].notes.extend(self.note(&probes));
        Some(Chart {
            title: self.title.clone(),
            panels,
            ..Chart::default()
        })
    }

    /// What has the limit, over the load.
    fn limited(&self, probes: &[(f64, &ProbeResult)], x: &ChartAxis) -> Panel {
        let (quantity, scale) = match self.goal {
            FindGoal::Cpu { .. } => (Quantity::Percent, Scale::Linear),
            _ => (Quantity::Latency, Scale::Log10),
        };
        let y = ChartAxis {
            title: self.figure.clone(),
            quantity,
            scale,
            ends: Ends::Ticks,
        };
        let mut panel = Panel::new(x.clone(), y);
        let of = |wanted: &dyn Fn(&ProbeResult) -> bool| -> Vec<(f64, f64)> {
            let fitting = probes.iter().filter(|(_, probe)| wanted(probe));
            fitting
                .filter_map(|(x, probe)| Some((*x, self.value(probe)?)))
                .collect()
        };
        let ink = Ink::of_place(0);
        let Some(limit) = self.goal.limit() else {
            panel
                .layers
                .push(layer(None, Shape::Curve(of(&|_| true)), ink));
            return panel;
        };
        let ends = probes.first().zip(probes.last());
        let line = ends.map_or_else(Vec::new, |(first, last)| {
            vec![(first.0, limit), (last.0, limit)]
        });
        let bound = Ink {
            color: Theme::LIGHT.bad,
            dash: Dash::Dashed,
            ..ink
        };
        let ring = Ink {
            marker: Marker::Ring,
            ..ink
        };
        let whole = Shape::Points(of(&|probe| !probe.is_early));
        let early = Shape::Points(of(&|probe| probe.is_early));
        panel.layers = vec![
            layer(Some("limit"), Shape::Line(line), bound),
            layer(Some("probe"), whole, ink),
            layer(Some("probe that was clear early"), early, ring),
        ];
        panel.layers.retain(|layer| match &layer.shape {
            Shape::Points(points) => !points.is_empty(),
            _ => true,
        });
        panel
    }

    fn value(&self, probe: &ProbeResult) -> Option<f64> {
        match self.goal {
            FindGoal::Cpu { .. } => probe.cpu_percent,
            _ => probe.latency_ns,
        }
    }

    /// The name of the point that is the answer.
    fn note(&self, probes: &[(f64, &ProbeResult)]) -> Option<Note> {
        let answer = self.answer?;
        let at = load(answer.load, answer.jobs)?;
        // The last look at it was the one that went on to its end.
        let (_, probe) = probes
            .iter()
            .rfind(|(x, probe)| *x == at && !probe.is_early)?;
        let (head, y) = match self.goal {
            FindGoal::Knee => ("enough", probe.iops),
            _ => ("the most that keeps the limit", self.value(probe)?),
        };
        let jobs = answer.jobs;
        let jobs = jobs.map_or_else(String::new, |jobs| format!(" × {jobs} jobs"));
        let iops = units::count(answer.iops);
        Some(Note {
            at: (at, y),
            lines: vec![
                head.to_owned(),
                match self.over {
                    "rate_iops" => format!("{iops} IOPS"),
                    over => format!("{over}={:.0}{jobs}: {iops} IOPS", answer.load?),
                },
            ],
            kind: NoteKind::Leader,
            hollow: false,
            color: None,
        })
    }
}

/// I/Os per second over the load.
fn throughput(probes: &[(f64, &ProbeResult)], x: &ChartAxis) -> Panel {
    let y = ChartAxis {
        title: "IOPS".to_owned(),
        quantity: Quantity::Rate,
        scale: Scale::Linear,
        ends: Ends::Ticks,
    };
    let mut panel = Panel::new(x.clone(), y);
    let points = probes.iter().map(|(x, probe)| (*x, probe.iops));
    let shape = Shape::Curve(points.collect());
    panel.layers.push(layer(None, shape, Ink::of_place(0)));
    panel
}

fn layer(name: Option<&str>, shape: Shape, ink: Ink) -> Layer {
    Layer {
        name: name.map(str::to_owned),
        shape,
        ink,
    }
}

#[cfg(test)]
mod tests {
    use fathom_analysis::find::{FindEnd, LoadProbe};

    use super::*;
    use fathom_sheet::chart::Size;

    fn probe(load: f64, iops: f64, latency_ns: f64, is_early: bool) -> ProbeResult {
        ProbeResult {
            probe: LoadProbe {
                load: Some(load),
                jobs: None,
                is_long: true,
                is_whole: !is_early,
            },
            iops,
            latency_ns: Some(latency_ns),
            cpu_percent: None,
            seconds: 10.0,
            is_early,
        }
    }

    fn answer(load: f64, iops: f64) -> FindAnswer {
        FindAnswer {
            load: Some(load),
            jobs: None,
            iops,
            iops_error: None,
            latency_ns: None,
            cpu_percent: None,
            too_much: None,
            ended_by: FindEnd::Objective,
        }
    }

    fn svg(graph: &SearchGraph<'_>) -> String {
        graph.chart().unwrap().svg(&Theme::LIGHT, Size::default())
    }

    #[test]
    fn a_knee_is_named_on_its_curve() {
        let probes = [1.0, 2.0, 4.0, 8.0].map(|depth: f64| {
            let iops = 1000.0 * depth.min(4.0);
            probe(depth, iops, depth / iops * 1e9, false)
        });
        let drawn = svg(&SearchGraph {
            title: "knee".into(),
            over: "iodepth",
            goal: FindGoal::Knee,
            figure: "Mean latency".into(),
            probes: &probes,
            answer: Some(answer(4.0, 4000.0)),
        });
        for told in ["enough", "iodepth=4: 4k IOPS", "Mean latency", "I/O depth"] {
            assert!(drawn.contains(told), "{told}: {drawn}");
        }
    }

    #[test]
    fn a_limit_is_drawn_with_the_probes_beside_it() {
        let probes = [
            probe(1000.0, 1000.0, 2e5, false),
            probe(3000.0, 2900.0, 9e6, true),
            probe(2000.0, 2000.0, 9e5, false),
        ];
        let graph = SearchGraph {
            title: "p99 ≤ 1 ms".into(),
            over: "rate_iops",
            goal: FindGoal::Latency { limit_ns: 1e6 },
            figure: "p99".into(),
            probes: &probes,
            answer: Some(answer(2000.0, 2000.0)),
        };
        let drawn = svg(&graph);
        for told in [
            "limit",
            "clear early",
            "the most that keeps the limit",
            "2k IOPS",
        ] {
            assert!(drawn.contains(told), "{told}: {drawn}");
        }
        let nothing = SearchGraph {
            probes: &[],
            ..graph
        };
        assert!(nothing.chart().is_none());
    }
}
