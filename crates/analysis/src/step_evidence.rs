//! What is known of a step beside its figures: what the machines did, and how the I/O
//! went over time.

use std::collections::BTreeMap;

use fathom_model::{Direction, Event, EvidenceInterval, EvidenceSum, Sample};

use crate::verdict::course::TrackCourse;

/// Rows that a track keeps; of a longer step each is a mean over several intervals.
const ROWS: usize = 512;

/// A stretch of time of one job and direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackRow {
    /// Its end, ms since the run's start.
    pub t_ms: u64,
    /// Its length.
    pub span_ms: u64,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How one job went in one direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepTrack {
    rows: Vec<TrackRow>,
    /// Intervals in each row; the last row may have fewer.
    each: u32,
    in_last: u32,
    /// Times without I/O between two with some, and the longest of them.
    stalls: Vec<u64>,
    end_ms: u64,
}

impl StepTrack {
    fn add(&mut self, sample: &Sample) {
        if sample.ios == 0 || sample.span_ms == 0 {
            return;
        }
        let begin_ms = sample.t_ms.saturating_sub(sample.span_ms);
        // Less than half an interval is how exactly intervals are told.
        let gap_ms = begin_ms.saturating_sub(self.end_ms);
        if self.end_ms > 0 && gap_ms * 2 >= sample.span_ms && self.stalls.len() < ROWS {
            self.stalls.push(gap_ms);
        }
        self.end_ms = self.end_ms.max(sample.t_ms);
        self.each = self.each.max(1);
        let row = TrackRow {
            t_ms: sample.t_ms,
            span_ms: sample.span_ms,
            ios: sample.ios,
            bytes: sample.bytes,
        };
        match self.rows.last_mut().filter(|_| self.in_last < self.each) {
            Some(last) => {
                last.add(row);
                self.in_last += 1;
            }
            None => {
                self.rows.push(row);
                self.in_last = 1;
            }
        }
        if self.rows.len() > ROWS {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let pairs = self.rows.chunks(2).map(|pair| {
            let mut first = pair[0];
            pair.iter().skip(1).for_each(|second| first.add(*second));
            first
        });
        self.rows = pairs.collect();
        self.each = self.each.saturating_mul(2);
        self.in_last = self.each;
    }

    /// In the order of time; times without I/O are not among them.
    #[must_use]
    pub fn rows(&self) -> &[TrackRow] {
        &self.rows
    }

    /// The lengths of times without I/O between two with some, in ms.
    #[must_use]
    pub fn stalls_ms(&self) -> &[u64] {
        &self.stalls
    }
}

impl TrackRow {
    fn add(&mut self, later: Self) {
        self.t_ms = later.t_ms;
        self.span_ms += later.span_ms;
        self.ios = self.ios.saturating_add(later.ios);
        self.bytes = self.bytes.saturating_add(later.bytes);
    }

    /// I/Os per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.ios as f64 * 1000.0 / self.span_ms.max(1) as f64
    }
}

/// What one machine did while its jobs measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineEvidence {
    /// From the first I/O that is in a figure on; of a run without a ramp and without
    /// files to lay out from the start of the engine.
    pub sum: EvidenceSum,
    /// What samples had told before that, in I/Os and bytes of all directions.
    pub told_before: (u64, u64),
    told: (u64, u64),
    has_begun: bool,
}

/// The evidence of a step while its events go by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepEvidence {
    /// The step, where the run has several.
    pub step: Option<String>,
    machines: BTreeMap<Option<String>, MachineEvidence>,
    tracks: BTreeMap<(u32, Direction), StepTrack>,
    courses: BTreeMap<(u32, Direction), TrackCourse>,
    names: Vec<String>,
    hosts: Vec<String>,
    /// The engine did something before the jobs: what it did is in no figure.
    prepares: bool,
}

impl StepEvidence {
    /// Of the step with this name.
    #[must_use]
    pub fn of(step: Option<String>) -> Self {
        Self {
            step,
            ..Self::default()
        }
    }

    /// Takes the next event of the step.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Preparing { .. } | Event::LayingOut { .. } => self.prepares = true,
            Event::Jobs { names, hosts } => {
                (self.names, self.hosts) = (names.clone(), hosts.clone());
                self.tracks.clear();
            }
            Event::Sample(sample) => self.sample(sample),
            Event::Evidence(evidence) => self.evidence(evidence),
            _ => {}
        }
    }

    /// Takes a sample, or what several come to.
    pub fn sample(&mut self, sample: &Sample) {
        let track = self.tracks.entry((sample.job, sample.dir)).or_default();
        track.add(sample);
        let machine = self
            .machines
            .entry(self.hosts.get(sample.job as usize).cloned());
        let machine = machine.or_default();
        machine.told.0 = machine.told.0.saturating_add(sample.ios);
        machine.told.1 = machine.told.1.saturating_add(sample.bytes);
    }

    fn evidence(&mut self, evidence: &EvidenceInterval) {
        let machine = self.machines.entry(evidence.host.clone()).or_default();
        machine.sum.add(evidence);
        if machine.has_begun || evidence.is_first() {
            return;
        }
        let measures = machine.told.0 > 0;
        self.prepares |= !measures;
        // The interval in which a ramp ends has I/O of the ramp, too.
        if self.prepares {
            machine.sum = machine.sum.from_here();
            machine.told_before = machine.told;
        }
        machine.has_begun = measures;
    }

    /// Takes what the readings of many intervals come to.
    pub fn evidence_sum(&mut self, sum: &EvidenceSum) {
        let machine = self.machines.entry(sum.host.clone()).or_default();
        machine.sum.merge(sum);
        machine.has_begun = true;
    }

    /// What the machine of this label did; `None` for one of which nothing was read.
    #[must_use]
    pub fn machine(&self, label: Option<&str>) -> Option<&MachineEvidence> {
        let machine = self.machines.get(&label.map(str::to_owned))?;
        (machine.sum.span_ms > 0).then_some(machine)
    }

    /// The evidence of a step that is over, in little memory.
    #[must_use]
    pub fn closed(mut self) -> Self {
        let tracks = std::mem::take(&mut self.tracks).into_iter();
        self.courses = tracks
            .map(|(of, track)| (of, TrackCourse::of(&track)))
            .collect();
        self
    }

    /// How a job went in a step that is over: the `place`-th of those with this name on
    /// this machine.
    #[must_use]
    pub fn course(
        &self,
        name: &str,
        label: Option<&str>,
        place: usize,
        dir: Direction,
    ) -> Option<&TrackCourse> {
        let jobs = self.names.iter().enumerate();
        let mut its = jobs.filter(|(at, known)| {
            *known == name && self.hosts.get(*at).map(String::as_str) == label
        });
        let job = u32::try_from(its.nth(place)?.0).ok()?;
        self.courses.get(&(job, dir))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_ms: u64, ios: u64) -> Sample {
        Sample {
            t_ms,
            span_ms: 1000,
            job: 0,
            dir: Direction::Read,
            ios,
            bytes: ios * 4096,
            clat: None,
            lat: None,
        }
    }

    fn evidence(t_ms: u64, reads: u64) -> Event {
        Event::Evidence(Box::new(EvidenceInterval {
            t_ms,
            span_ms: t_ms.min(1000),
            counts: [("sda.read_ios".to_owned(), reads)].into(),
            ..EvidenceInterval::default()
        }))
    }

    fn of(events: &[Event]) -> StepEvidence {
        let mut step = StepEvidence::default();
        let names = vec!["r".to_owned()];
        let hosts = Vec::new();
        step.take(&Event::Jobs { names, hosts });
        events.iter().for_each(|event| step.take(event));
        step
    }

    #[test]
    fn a_run_without_a_ramp_is_counted_from_its_start() {
        let step = of(&[
            evidence(0, 0),
            Event::Sample(sample(1000, 90)),
            evidence(1000, 100),
            Event::Sample(sample(2000, 90)),
            evidence(2000, 100),
        ]);
        let machine = step.machine(None).unwrap();
        assert_eq!(machine.sum.count("sda.read_ios"), Some(200));
        assert_eq!(machine.told_before, (0, 0));
        assert_eq!(step.machine(Some("elsewhere")), None);
    }

    #[test]
    fn what_a_ramp_did_is_not_counted() {
        let step = of(&[
            evidence(0, 0),
            evidence(1000, 500),
            Event::Sample(sample(2000, 40)),
            evidence(2000, 100),
            Event::Sample(sample(3000, 90)),
            evidence(3000, 90),
        ]);
        let machine = step.machine(None).unwrap();
        assert_eq!(machine.sum.count("sda.read_ios"), Some(90));
        assert_eq!(machine.told_before.0, 40);
    }

    #[test]
    fn times_without_io_are_told_by_their_length() {
        let mut all = vec![sample(1000, 5), sample(2000, 5), sample(3000, 0)];
        all.extend([sample(5000, 5), sample(6100, 5)]);
        let events: Vec<Event> = all.into_iter().map(Event::Sample).collect();
        let step = of(&events).closed();
        let course = step.course("r", None, 0, Direction::Read).unwrap();
        assert_eq!(course.stalls_ms, [2000]);
        assert_eq!(step.course("r", None, 1, Direction::Read), None);
    }

    #[test]
    fn a_day_takes_no_more_memory_than_a_minute() {
        let events: Vec<Event> = (1..=86_400)
            .map(|s| Event::Sample(sample(s * 1000, s)))
            .collect();
        let step = of(&events);
        let track = &step.tracks[&(0, Direction::Read)];
        assert!((ROWS / 2..=ROWS).contains(&track.rows().len()));
        let all: u64 = track.rows().iter().map(|row| row.ios).sum();
        assert_eq!(all, 86_400 * 86_401 / 2);
        assert_eq!(track.rows().last().unwrap().t_ms, 86_400_000);
    }
}
