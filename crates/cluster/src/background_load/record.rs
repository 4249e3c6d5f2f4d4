//! A background load in progress, and its record.

use std::path::Path;
use std::time::{Duration, Instant};

use fathom_analysis::rate::latency;
use fathom_fio_output::intervals::Intervals;
use fathom_model::{
    Direction, DirectionResult, Event, Histogram, Host, JobResult, Outcome, Results, Sample,
};
use fathom_record::Writer;

use super::super::error::ClusterError;
use super::{BackgroundLoadSpec, PART};

/// A background load in progress.
#[derive(Debug)]
pub(in super::super) struct BackgroundLoad {
    pub(super) calm: BackgroundLoadSpec,
    pub(super) writer: Writer,
    pub(super) pods: Vec<Pod>,
    pub(super) began: Instant,
    /// Number of the phase, and how many there are.
    pub(super) phase: (u32, u32),
    /// Begin of the phase, ms since the load's record began.
    pub(super) phase_ms: u64,
    /// In some phase it did not keep its rate.
    pub(super) is_behind: bool,
}

/// One of its servers.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) node: String,
    /// A pod that is made again has another one.
    pub(super) uid: String,
    /// How much of fio's output has been read.
    pub(super) read_bytes: usize,
    pub(super) intervals: Intervals,
    /// Time of the document that the phase began with, by the pod's clock.
    pub(super) base_ms: u64,
}

/// What a pod did in a phase.
#[derive(Debug, Default)]
pub(super) struct Did {
    /// By document.
    samples: Vec<Vec<Sample>>,
    runtime_ms: u64,
    options: std::collections::BTreeMap<String, String>,
    version: Option<String>,
}

impl BackgroundLoad {
    /// Its record as `fathom show` takes it: `RUN/calm`.
    pub(super) fn shown(&self) -> String {
        let dir = self.writer.dir();
        let last =
            |dir: Option<&Path>| dir.and_then(Path::file_name).unwrap_or_default().to_owned();
        let path = Path::new(&last(dir.parent())).join(last(Some(dir)));
        path.display().to_string()
    }

    /// Name and id of its pods.
    pub(in super::super) fn servers(&self) -> impl Iterator<Item = (&str, &str)> {
        let pods = self.pods.iter();
        pods.map(|pod| (pod.name.as_str(), pod.uid.as_str()))
    }

    pub(super) fn t_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl BackgroundLoad {
    pub(super) fn write_phase(&mut self, name: &str, all: &[Did]) -> Result<(), ClusterError> {
        self.phase.0 += 1;
        let (step, of) = self.phase;
        let hosts: Vec<Host> = self
            .pods
            .iter()
            .zip(all)
            .map(|(pod, did)| did.host(pod))
            .collect();
        let mut events = vec![
            Event::Step {
                step,
                of,
                name: name.to_owned(),
                point: None,
            },
            Event::Jobs {
                names: vec![PART.to_owned(); self.pods.len()],
                hosts: hosts.iter().map(Host::label).collect(),
            },
        ];
        let documents = all.iter().map(|did| did.samples.len()).max().unwrap_or(0);
        for nth in 0..documents {
            let samples = all.iter().filter_map(|did| did.samples.get(nth)).flatten();
            let samples: Vec<&Sample> = samples.collect();
            let t_ms = samples.iter().map(|sample| sample.t_ms).max();
            events.extend(samples.into_iter().cloned().map(Event::Sample));
            if let Some(t_ms) = t_ms {
                let remaining_ms = None;
                events.push(Event::Interval { t_ms, remaining_ms });
            }
        }
        let jobs = self.pods.iter().zip(all).map(|(pod, did)| did.job(pod));
        let results = Box::new(Results {
            engine_version: all.iter().find_map(|did| did.version.clone()),
            jobs: jobs.collect(),
            ..Results::default()
        });
        let outcome = Outcome::Complete;
        events.extend([
            Event::Hosts { hosts },
            Event::Finished { results },
            Event::StepEnded { outcome },
        ]);
        for event in &events {
            self.writer.append(event)?;
        }
        Ok(())
    }
}

/// What the documents of a phase tell of one server.
pub(super) fn did(load: &mut BackgroundLoad, place: usize, documents: &[Results]) -> Did {
    let phase_ms = load.phase_ms;
    let pod = &mut load.pods[place];
    let mut did = Did::default();
    for results in documents {
        let since_ms = results
            .timestamp_ms
            .unwrap_or(pod.base_ms)
            .saturating_sub(pod.base_ms);
        did.runtime_ms = since_ms;
        did.version.clone_from(&results.engine_version);
        if let Some(job) = results.jobs.first() {
            did.options = results.global_options.clone();
            did.options.extend(job.options.clone());
        }
        let at = Duration::from_millis(phase_ms + since_ms);
        let events = pod.intervals.document(results, at, None).into_iter();
        did.samples.push(
            events
                .filter_map(|event| match event {
                    Event::Sample(sample) => Some(Sample {
                        job: u32::try_from(place).unwrap_or(u32::MAX),
                        ..sample
                    }),
                    _ => None,
                })
                .collect(),
        );
    }
    did
}

impl Did {
    fn ios(&self) -> u64 {
        self.samples.iter().flatten().map(|sample| sample.ios).sum()
    }

    pub(super) fn iops(&self) -> f64 {
        self.ios() as f64 * 1000.0 / self.runtime_ms.max(1) as f64
    }

    fn host(&self, pod: &Pod) -> Host {
        Host {
            name: pod.name.clone(),
            node: Some(pod.node.clone()),
            engine_version: self.version.clone(),
            ..Host::default()
        }
    }

    fn job(&self, pod: &Pod) -> JobResult {
        let mut job = JobResult {
            name: PART.to_owned(),
            hostname: Some(pod.name.clone()),
            runtime_ms: Some(self.runtime_ms),
            options: self.options.clone(),
            ..JobResult::default()
        };
        for dir in [Direction::Read, Direction::Write] {
            if let Some(place) = job.direction_mut(dir) {
                *place = Some(self.direction(dir));
            }
        }
        job
    }

    fn direction(&self, dir: Direction) -> DirectionResult {
        let mut clat = Histogram::new();
        let mut result = DirectionResult {
            runtime_ms: self.runtime_ms,
            ..DirectionResult::default()
        };
        for sample in self
            .samples
            .iter()
            .flatten()
            .filter(|sample| sample.dir == dir)
        {
            result.total_ios += sample.ios;
            result.io_bytes += sample.bytes;
            if let Some(histogram) = &sample.clat {
                clat.merge(histogram);
            }
        }
        let per_second = |count: u64| count as f64 * 1000.0 / self.runtime_ms.max(1) as f64;
        result.iops = per_second(result.total_ios);
        result.bw_bytes = per_second(result.io_bytes);
        result.clat = latency(&clat);
        result
    }
}
