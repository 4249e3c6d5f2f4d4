//! How far the figures of a run can be trusted: gathered from its record, and told.

use std::collections::{BTreeMap, VecDeque};

use fathom_analysis::certainty::{CertaintyCollector, JobCertainty};
use fathom_analysis::hosts::{Overlap, label_of};
use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Certainty, Direction, Event, Host, JobResult, RunDocument, units};
use fathom_record::{Entries, RecordPart, SampleSum};

/// A log of so many closed segments (of 8 MiB) is read once more, sample by sample. In a
/// longer one each segment, half an hour and more, is taken as one interval.
const SEGMENTS_MOST: u32 = 24;
/// Changes of level that are told one by one.
const SHIFTS_TOLD: usize = 5;

/// How far sums over hosts can be trusted, by the name of the job.
pub type SumCertainties = BTreeMap<String, BTreeMap<Direction, JobCertainty>>;

/// What is known of the jobs of one step, by place and direction.
#[derive(Debug, Default)]
struct StepCertainty {
    names: Vec<String>,
    hosts: Vec<String>,
    of: BTreeMap<(u32, Direction), JobCertainty>,
    sums: SumCertainties,
}

/// How far the figures of each step can be trusted, in their order.
#[derive(Debug, Default)]
pub struct StepCertainties {
    names: Vec<String>,
    hosts: Vec<String>,
    collector: CertaintyCollector,
    /// The sums over hosts, where there are several.
    sums: Overlap,
    ended: VecDeque<StepCertainty>,
    /// Whether everything was gathered before.
    is_whole: bool,
}

impl StepCertainties {
    /// Those of a record that is about to be read by its sums.
    pub fn before(entries: &Entries) -> Self {
        let mut all = Self::default();
        if !(1..=SEGMENTS_MOST).contains(&entries.closed_segments()) {
            return all;
        }
        let Ok(mut each) = Entries::open(entries.dir()) else {
            return all;
        };
        while let Some(part) = each.next_part() {
            match part {
                Ok(RecordPart::Entry(entry)) => all.take(&entry.event),
                Ok(RecordPart::Sums(_)) => {}
                // What it adds up to may still be known.
                Err(_) => return Self::default(),
            }
        }
        all.end_step();
        all.is_whole = true;
        all
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        match event {
            _ if self.is_whole => {}
            Event::Step { .. } | Event::Resumed { .. } => self.end_step(),
            Event::Jobs { names, hosts } => {
                self.names.clone_from(names);
                self.hosts.clone_from(hosts);
                self.collector = CertaintyCollector::default();
                self.sums = Overlap::of_intervals();
                self.sums.begin(if hosts.is_empty() { &[] } else { names });
            }
            Event::Sample(sample) => {
                self.collector.add(sample);
                self.sums.add(sample);
            }
            Event::Interval { t_ms, .. } => self.sums.interval(*t_ms),
            _ => {}
        }
    }

    /// Takes what many samples add up to.
    pub fn add_sum(&mut self, sum: &SampleSum) {
        if !self.is_whole {
            self.collector.add_many(&sum.as_sample(), sum.clat.as_ref());
            self.sums.add(&sum.as_sample());
        }
    }

    /// What the sums since the last time add up to ends there.
    pub fn end_sums(&mut self, t_ms: u64) {
        if !self.is_whole {
            self.sums.interval(t_ms);
        }
    }

    /// The step in progress is over.
    pub fn end_step(&mut self) {
        if self.is_whole {
            return;
        }
        let collector = std::mem::take(&mut self.collector);
        self.ended.push_back(StepCertainty {
            names: std::mem::take(&mut self.names),
            hosts: std::mem::take(&mut self.hosts),
            of: collector.finish(),
            sums: std::mem::take(&mut self.sums).certainties(),
        });
    }

    /// Gives the jobs of the step that ended first what is known of them; what is known
    /// of their sums over hosts.
    pub fn give(&mut self, jobs: &mut [JobResult]) -> SumCertainties {
        let Some(step) = self.ended.pop_front() else {
            return SumCertainties::default();
        };
        for ((place, dir), certainty) in step.of {
            let place = place as usize;
            let Some(name) = step.names.get(place) else {
                continue;
            };
            let job = match step.hosts.get(place) {
                // Places agree only when the engine reported exactly the announced jobs.
                None if jobs.len() == step.names.len() => {
                    jobs.get_mut(place).filter(|job| job.name == *name)
                }
                None => None,
                Some(host) => (jobs.iter_mut())
                    .find(|job| job.name == *name && label_of(job).as_ref() == Some(host)),
            };
            if let Some(job) = job {
                give_direction(job, dir, certainty);
            }
        }
        step.sums
    }
}

/// Gives sums over hosts what is known of them. Of a sum that lacks a host nothing is: the
/// samples do not lack it.
pub fn give_totals(totals: &mut [JobResult], hosts: &[Host], known: SumCertainties) {
    if hosts.iter().any(|host| host.lost.is_some()) {
        return;
    }
    for (name, of) in known {
        let is_it = |total: &&mut JobResult| {
            let of = total.name.strip_prefix(ALL_CLIENTS).unwrap_or_default();
            of.strip_prefix(": ").is_none_or(|of| of == name)
        };
        if let Some(total) = totals.iter_mut().find(is_it) {
            for (dir, certainty) in of {
                give_direction(total, dir, certainty);
            }
        }
    }
}

fn give_direction(job: &mut JobResult, dir: Direction, certainty: JobCertainty) {
    let JobCertainty { mut rates, clat } = certainty;
    if let Some((Some(latency), mut clat)) = (dir == Direction::Sync)
        .then_some(&mut job.sync)
        .map(Option::as_mut)
        .zip(clat.clone())
    {
        clat.mean_ns = clat.mean_ns.about(latency.mean_ns);
        latency.certainty = Some(clat);
        return;
    }
    let Some(Some(result)) = job.direction_mut(dir) else {
        return;
    };
    rates.iops = rates.iops.about(result.iops);
    rates.bw_bytes = rates.bw_bytes.about(result.bw_bytes);
    result.certainty = Some(rates);
    if let (Some(latency), Some(mut clat)) = (&mut result.clat, clat) {
        clat.mean_ns = clat.mean_ns.about(latency.mean_ns);
        latency.certainty = Some(clat);
    }
}

/// ` ± 1.2 %` of a rate; nothing where no interval is told.
pub fn share(value: f64, certainty: Option<Certainty>) -> String {
    let half = certainty.and_then(|certainty| certainty.half_width());
    match half.filter(|half| half.is_finite() && value > 0.0) {
        Some(half) => format!(" ± {:.1} %", 100.0 * half / value),
        None => String::new(),
    }
}

/// Why figures have no ±, a sentence each.
pub fn sentences(doc: &RunDocument) -> Vec<String> {
    let mut shifts = Vec::new();
    let (mut short, mut enough) = (0, 0);
    let mut figures = 0;
    for job in &doc.jobs {
        for (dir, result) in job.directions() {
            let Some(rates) = result.certainty else {
                continue;
            };
            figures += 1;
            let clat = result
                .clat
                .as_ref()
                .and_then(|clat| clat.certainty.as_ref());
            let both = [Some(rates.iops), clat.map(|clat| clat.mean_ns)];
            let lacking = both
                .into_iter()
                .flatten()
                .filter_map(|certainty| match certainty {
                    Certainty::TooShort { enough_ms, .. } => Some(enough_ms),
                    _ => None,
                });
            if let Some(enough_ms) = lacking.max() {
                short += 1;
                enough = enough.max(enough_ms);
            }
            if let Certainty::LevelShift { at_ms, from, to } = rates.iops {
                shifts.push(format!(
                    "{} {}: the level shifted after {}, from {} to {} IOPS: a mean over both is the rate of neither, and no ± is told",
                    job.title(&doc.hosts),
                    dir.name(),
                    units::duration(at_ms),
                    units::count(from),
                    units::count(to),
                ));
            }
        }
    }
    let more = shifts.len().saturating_sub(SHIFTS_TOLD);
    shifts.truncate(SHIFTS_TOLD);
    if more > 0 {
        shifts.push(format!("the level of {more} further rates shifted"));
    }
    if short > 0 {
        let which = match short == figures {
            true => String::new(),
            false => format!(" of {short} of {figures} directions"),
        };
        // Where nothing ran for a whole interval nothing says how long it takes.
        let enough = match enough {
            0 => String::new(),
            ms => format!("; about {} would do", units::duration(rounded(ms))),
        };
        shifts.push(format!(
            "too short to say how far the figures{which} can be trusted: fewer than 12 independent intervals{enough}"
        ));
    }
    shifts
}

/// A time to two digits: it is an estimate.
fn rounded(ms: u64) -> u64 {
    let unit = match ms {
        0..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        _ => 600_000,
    };
    ms.div_ceil(unit).saturating_mul(unit)
}
