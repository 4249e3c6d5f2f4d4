//! What is known of a step beside its figures: what the machines did, and how the I/O
//! went over time.

use std::collections::BTreeMap;

use fathom_model::{Direction, Event, EvidenceInterval, EvidenceSum, Sample};

use crate::verdict::course::TrackCourse;

/// Rows that a track keeps, and times without I/O; of a longer step each row is a mean
/// over several intervals.
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
    /// Of which a row is made next.
    open: TrackRow,
    /// Of a row: that of the longest interval, or more where there are many.
    length_ms: u64,
    /// The longest interval.
    interval_ms: u64,
    stalls: Vec<u64>,
    end_ms: u64,
}

impl StepTrack {
    fn add(&mut self, sample: &Sample) {
        self.stall(sample, sample.span_ms);
        self.row(TrackRow::of(sample));
    }

    /// What lies before a sample, or before what many of at most so many ms add up to.
    fn stall(&mut self, sample: &Sample, interval_ms: u64) {
        self.interval_ms = self.interval_ms.max(interval_ms);
        let stall_ms = sample.stall_after(self.end_ms, self.interval_ms);
        self.stalled(stall_ms.as_slice());
        if sample.ios > 0 {
            self.end_ms = self.end_ms.max(sample.t_ms);
        }
    }

    fn stalled(&mut self, stalls_ms: &[u64]) {
        let room = ROWS.saturating_sub(self.stalls.len());
        self.stalls.extend(stalls_ms.iter().take(room));
    }

    fn row(&mut self, row: TrackRow) {
        if row.ios == 0 || row.span_ms == 0 {
            return;
        }
        self.length_ms = self.length_ms.max(row.span_ms);
        self.open.add(row);
        // Intervals are not exact.
        if self.open.span_ms.saturating_mul(4) < self.length_ms.saturating_mul(3) {
            return;
        }
        self.rows.push(std::mem::take(&mut self.open));
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
        self.length_ms = self.length_ms.saturating_mul(2);
    }

    /// In the order of time; times without I/O are not among them, nor is the last part of
    /// a row.
    pub fn rows(&self) -> &[TrackRow] {
        &self.rows
    }

    /// The lengths of times without I/O between two with some, in ms.
    pub fn stalls_ms(&self) -> &[u64] {
        &self.stalls
    }
}

impl TrackRow {
    fn of(sample: &Sample) -> Self {
        Self {
            t_ms: sample.t_ms,
            span_ms: sample.span_ms,
            ios: sample.ios,
            bytes: sample.bytes,
        }
    }

    fn add(&mut self, later: Self) {
        self.t_ms = later.t_ms;
        self.span_ms += later.span_ms;
        self.ios = self.ios.saturating_add(later.ios);
        self.bytes = self.bytes.saturating_add(later.bytes);
    }

    /// I/Os per second.
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

    /// Takes a sample.
    pub fn sample(&mut self, sample: &Sample) {
        self.track(sample).add(sample);
        self.tell(sample);
    }

    /// Takes what samples of at most `interval_ms` add up to: `whole`, pieces of it in the
    /// order of time (none where they are not known), and the times without I/O in it, in ms.
    pub fn stretch(
        &mut self,
        whole: &Sample,
        interval_ms: u64,
        pieces: &[TrackRow],
        stalls_ms: &[u64],
    ) {
        let track = self.track(whole);
        track.stall(whole, interval_ms);
        track.stalled(stalls_ms);
        let longest_ms = pieces.iter().map(|piece| piece.span_ms).max();
        track.length_ms = track.length_ms.max(longest_ms.unwrap_or(0));
        match pieces {
            [] => track.row(TrackRow::of(whole)),
            pieces => pieces.iter().for_each(|piece| track.row(*piece)),
        }
        self.tell(whole);
    }

    fn track(&mut self, sample: &Sample) -> &mut StepTrack {
        self.tracks.entry((sample.job, sample.dir)).or_default()
    }

    /// Counts what samples tell of a machine.
    fn tell(&mut self, sample: &Sample) {
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
    fn a_short_last_sample_that_is_dated_late_is_no_stall() {
        let last = Sample {
            span_ms: 104,
            ..sample(2165, 5)
        };
        let events = [sample(1000, 5), sample(2000, 5), last.clone()].map(Event::Sample);
        assert!(of(&events).track(&sample(0, 0)).stalls_ms().is_empty());
        let late = Sample { t_ms: 2700, ..last };
        let events = [sample(1000, 5), sample(2000, 5), late].map(Event::Sample);
        assert_eq!(of(&events).track(&sample(0, 0)).stalls_ms(), [596]);
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
        assert_eq!(all + track.open.ios, 86_400 * 86_401 / 2);
        assert!(86_400_000 - track.rows().last().unwrap().t_ms < track.length_ms);
    }
}
