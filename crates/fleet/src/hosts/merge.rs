//! One record of what several machines tell: the jobs of all side by side, their
//! intervals as one, and at the end of a step the figures of all.

use std::collections::BTreeMap;

use fathom_model::{Event, EvidenceInterval, Failure, Host, Outcome, Results, Sample};

/// So many intervals a machine may be behind before the others go on in the
/// record without it.
const BEHIND_MAX: u64 = 3;

/// What one machine has told of the step.
#[derive(Debug, Default)]
struct HostStep {
    jobs: Option<Vec<String>>,
    /// Its intervals that have ended, and the samples of those that were not
    /// told yet.
    intervals: u64,
    samples: BTreeMap<u64, Vec<Sample>>,
    /// What it did itself, in the same way.
    evidence: BTreeMap<u64, Vec<EvidenceInterval>>,
    /// End of its last interval, ms since its step began.
    t_ms: u64,
    remaining_ms: Option<u64>,
    results: Option<Results>,
    ended: bool,
    /// When its first I/O was counted, ms since its step began.
    first_ms: Option<u64>,
    began_ms: f64,
}

/// A failure with the machine on which it happened.
pub fn named(label: &str, failure: Failure) -> Failure {
    let subject = match failure.subject.as_deref() {
        None | Some("") => label.to_owned(),
        Some(subject) => format!("{subject} on {label}"),
    };
    failure.about(subject)
}

/// What machines remark, each sentence once.
#[derive(Debug, Default)]
pub struct HostNotes(Vec<(String, Vec<usize>)>);

impl HostNotes {
    /// A machine says it.
    pub fn add(&mut self, place: usize, text: String) {
        match self.0.iter_mut().find(|(note, _)| *note == text) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => self.0.push((text, vec![place])),
        }
    }

    /// It is said of all of them.
    pub fn of_all(&mut self, text: String) {
        self.0.push((text, Vec::new()));
    }

    /// The sentences with the machines that say them; none is left.
    pub fn told(&mut self, labels: &[String]) -> Vec<Event> {
        let text = |(text, places): (String, Vec<usize>)| match places[..] {
            [] => text,
            _ if places.len() == labels.len() => text,
            [one] => format!("{}: {text}", labels[one]),
            [one, ..] => format!("{} and {} more: {text}", labels[one], places.len() - 1),
        };
        let all = std::mem::take(&mut self.0).into_iter();
        all.map(|note| Event::Note { text: text(note) }).collect()
    }
}

/// A step in progress.
#[derive(Debug)]
pub struct StepMerge {
    labels: Vec<String>,
    parts: Vec<HostStep>,
    /// Intervals that were told.
    told: u64,
    announced: Vec<Option<Vec<String>>>,
    notes: HostNotes,
    engine: Option<Option<String>>,
    outcome: Outcome,
}

impl StepMerge {
    /// A step of these machines, of which the false ones take no part any more.
    pub fn new(labels: &[String], there: &[bool]) -> Self {
        let part = |&there: &bool| HostStep {
            ended: !there,
            ..HostStep::default()
        };
        Self {
            labels: labels.to_vec(),
            parts: there.iter().map(part).collect(),
            told: 0,
            announced: Vec::new(),
            notes: HostNotes::default(),
            engine: None,
            outcome: Outcome::Complete,
        }
    }

    /// The step of machine `place` began, in ms since the record's step.
    pub fn began(&mut self, place: usize, began_ms: f64) {
        self.parts[place].began_ms = began_ms;
    }

    /// When a machine's first I/O was counted, in ms since the record's step;
    /// the begin of its step where it told of none.
    pub fn start_ms(&self, place: usize) -> f64 {
        let part = &self.parts[place];
        part.began_ms + part.first_ms.unwrap_or(0) as f64
    }

    /// Takes what a machine tells; gives what goes into the record.
    pub fn take(&mut self, place: usize, event: Event) -> Vec<Event> {
        match event {
            Event::Jobs { names, .. } => self.parts[place].jobs = Some(names),
            Event::Sample(sample) => {
                let part = &mut self.parts[place];
                // A job that was not announced is nobody's.
                let jobs = part.jobs.as_ref().map_or(0, Vec::len);
                if part.jobs.is_some() && sample.job as usize >= jobs {
                    return Vec::new();
                }
                let begin = sample.t_ms.saturating_sub(sample.span_ms);
                part.first_ms.get_or_insert(begin);
                part.samples.entry(part.intervals).or_default().push(sample);
            }
            Event::Evidence(evidence) => {
                let host = Some(self.labels[place].clone());
                let part = &mut self.parts[place];
                let of_interval = part.evidence.entry(part.intervals).or_default();
                of_interval.push(EvidenceInterval { host, ..*evidence });
            }
            Event::Interval { t_ms, remaining_ms } => {
                let part = &mut self.parts[place];
                part.intervals += 1;
                (part.t_ms, part.remaining_ms) = (t_ms, remaining_ms);
            }
            Event::Finished { results } => self.parts[place].results = Some(*results),
            Event::Note { text } => self.notes.add(place, text),
            Event::Failure(failure) => {
                return vec![Event::Failure(named(&self.labels[place], failure))];
            }
            Event::Preparing { what } => {
                let what = format!("{what} ({})", self.labels[place]);
                return vec![Event::Preparing { what }];
            }
            Event::EngineStarted { version, .. } if self.engine.is_some() => {
                if let Some(first) = self.engine.clone().filter(|first| *first != version) {
                    let name = |version: Option<String>| version.unwrap_or_else(|| "?".into());
                    let text = format!(
                        "the machines do not run the same engine: {} and {}",
                        name(first),
                        name(version)
                    );
                    self.notes.of_all(text);
                }
            }
            event @ Event::EngineStarted { .. } => {
                if let Event::EngineStarted { version, .. } = &event {
                    self.engine = Some(version.clone());
                }
                return vec![event];
            }
            _ => {}
        }
        self.advance()
    }

    /// A machine tells no more of this step, which has ended so there.
    pub fn ended(&mut self, place: usize, outcome: Outcome) -> Vec<Event> {
        self.parts[place].ended = true;
        self.outcome = self.outcome.and(outcome);
        self.advance()
    }

    /// How the step has ended so far.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether all machines have told everything.
    pub fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.ended)
    }

    /// Tells the intervals that every machine has ended.
    fn advance(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let known = self
            .parts
            .iter()
            .all(|part| part.ended || part.jobs.is_some());
        if !known {
            return events;
        }
        let most = self
            .parts
            .iter()
            .map(|part| part.intervals)
            .max()
            .unwrap_or(0);
        let running = self.parts.iter().filter(|part| !part.ended);
        let least = running.map(|part| part.intervals).min().unwrap_or(most);
        let until = least.max(most.saturating_sub(BEHIND_MAX));
        if until <= self.told {
            return events;
        }
        self.announce(&mut events);
        while self.told < until {
            self.interval(&mut events);
        }
        events
    }

    fn announce(&mut self, events: &mut Vec<Event>) {
        let jobs: Vec<Option<Vec<String>>> =
            self.parts.iter().map(|part| part.jobs.clone()).collect();
        if jobs == self.announced {
            return;
        }
        let (mut names, mut hosts) = (Vec::new(), Vec::new());
        for (label, jobs) in self.labels.iter().zip(&jobs) {
            for name in jobs.iter().flatten() {
                names.push(name.clone());
                hosts.push(label.clone());
            }
        }
        self.announced = jobs;
        events.push(Event::Jobs { names, hosts });
    }

    /// Tells the next interval: the samples of all, and its end.
    fn interval(&mut self, events: &mut Vec<Event>) {
        let (mut base, mut t_ms) = (0, 0);
        for part in &mut self.parts {
            // Of a machine that fell behind everything up to here.
            let later = part.samples.split_off(&(self.told + 1));
            for mut sample in std::mem::replace(&mut part.samples, later)
                .into_values()
                .flatten()
            {
                sample.job = sample.job.saturating_add(base);
                let began_ms = part.began_ms.max(0.0).round() as u64;
                sample.t_ms = sample.t_ms.saturating_add(began_ms);
                t_ms = t_ms.max(sample.t_ms);
                events.push(Event::Sample(sample));
            }
            let later = part.evidence.split_off(&(self.told + 1));
            let told = std::mem::replace(&mut part.evidence, later);
            for mut evidence in told.into_values().flatten() {
                let began_ms = part.began_ms.max(0.0).round() as u64;
                evidence.t_ms = evidence.t_ms.saturating_add(began_ms);
                events.push(Event::Evidence(Box::new(evidence)));
            }
            let jobs = part.jobs.as_ref().map_or(0, Vec::len);
            base = base.saturating_add(u32::try_from(jobs).unwrap_or(u32::MAX));
        }
        self.told += 1;
        if t_ms == 0 {
            let ends = self
                .parts
                .iter()
                .map(|part| part.t_ms.saturating_add(part.began_ms.max(0.0) as u64));
            t_ms = ends.max().unwrap_or(0);
        }
        let left = self.parts.iter().filter(|part| !part.ended);
        events.push(Event::Interval {
            t_ms,
            remaining_ms: left.filter_map(|part| part.remaining_ms).max(),
        });
    }

    /// The end of the step: the machines, the figures of all, the notes.
    pub fn finish(mut self, hosts: Vec<Host>) -> Vec<Event> {
        let mut events = Vec::new();
        let most = self
            .parts
            .iter()
            .map(|part| part.intervals)
            .max()
            .unwrap_or(0);
        let has_rest = |parts: &[HostStep]| {
            parts
                .iter()
                .any(|it| !(it.samples.is_empty() && it.evidence.is_empty()))
        };
        if has_rest(&self.parts) || self.told < most {
            self.announce(&mut events);
            while self.told < most || has_rest(&self.parts) {
                self.interval(&mut events);
            }
        }
        let mut all: Option<Results> = None;
        for (part, host) in self.parts.into_iter().zip(&hosts) {
            let Some(mut results) = part.results else {
                continue;
            };
            for job in &mut results.jobs {
                job.hostname = Some(host.name.clone());
                for (name, value) in &results.global_options {
                    let option = job.options.entry(name.clone());
                    option.or_insert_with(|| value.clone());
                }
            }
            for disk in &mut results.disks {
                disk.host = Some(host.name.clone());
            }
            results.global_options.clear();
            match &mut all {
                None => all = Some(results),
                Some(all) => {
                    all.jobs.append(&mut results.jobs);
                    all.disks.append(&mut results.disks);
                }
            }
        }
        events.push(Event::Hosts { hosts });
        if let Some(results) = all {
            let results = Box::new(results);
            events.push(Event::Finished { results });
        }
        events.extend(self.notes.told(&self.labels));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::{Direction, FailureKind, JobResult};

    fn merge() -> StepMerge {
        StepMerge::new(&["x".into(), "y".into()], &[true, true])
    }

    fn jobs(names: &[&str]) -> Event {
        Event::Jobs {
            names: names.iter().map(|&name| name.into()).collect(),
            hosts: Vec::new(),
        }
    }

    fn sample(job: u32, t_ms: u64) -> Event {
        Event::Sample(Sample {
            t_ms,
            span_ms: 1000,
            job,
            dir: Direction::Read,
            ios: 1,
            bytes: 4096,
            clat: None,
            lat: None,
        })
    }

    fn interval(t_ms: u64) -> Event {
        Event::Interval {
            t_ms,
            remaining_ms: None,
        }
    }

    fn kinds(events: &[Event]) -> Vec<String> {
        let kind = |event: &Event| match event {
            Event::Jobs { names, hosts } => format!("jobs {} {}", names.join(), hosts.join()),
            Event::Sample(sample) => format!("{}@{}", sample.job, sample.t_ms),
            Event::Interval { t_ms, .. } => format!("interval {t_ms}"),
            other => format!("{other:?}"),
        };
        events.iter().map(kind).collect()
    }

    trait Join {
        fn join(&self) -> String;
    }
    impl Join for Vec<String> {
        fn join(&self) -> String {
            <[String]>::join(self, ",")
        }
    }

    #[test]
    fn intervals_are_told_once_all_machines_have_ended_them() {
        let mut merge = merge();
        merge.began(1, 20.0);
        assert!(merge.take(0, jobs(&["a", "b"])).is_empty());
        assert!(merge.take(0, sample(1, 1000)).is_empty());
        assert!(merge.take(0, interval(1000)).is_empty());
        assert!(merge.take(1, jobs(&["a"])).is_empty());
        assert!(merge.take(1, sample(0, 1001)).is_empty());
        let told = merge.take(1, interval(1001));
        assert_eq!(
            kinds(&told),
            ["jobs a,b,a x,x,y", "1@1000", "2@1021", "interval 1021"]
        );
        assert_eq!(merge.start_ms(1), 21.0);
        // One that says nothing for long is not waited for, and is told later.
        let mut told = Vec::new();
        for second in 2..=5 {
            merge.take(0, sample(0, second * 1000));
            told.extend(merge.take(0, interval(second * 1000)));
        }
        assert_eq!(kinds(&told), ["0@2000", "interval 2000"]);
        merge.take(1, sample(0, 4000));
        assert!(
            merge.take(1, interval(4000)).is_empty(),
            "its second one was told without it"
        );
        assert_eq!(merge.ended(1, Outcome::Complete).len(), 7);
    }

    #[test]
    fn failures_and_figures_carry_their_machine() {
        let mut merge = merge();
        let failure = Failure::new(FailureKind::NoSpace, "full").about("a");
        let told = merge.take(1, Event::Failure(failure));
        assert!(matches!(&told[..], [Event::Failure(f)] if f.subject.as_deref() == Some("a on y")));
        for place in [0, 1] {
            let mut results = Results::default();
            results.jobs.push(JobResult::default());
            results.global_options.insert("bs".into(), "4k".into());
            merge.take(place, Event::Note { text: "n".into() });
            let results = Box::new(results);
            merge.take(place, Event::Finished { results });
            merge.ended(place, Outcome::Complete);
        }
        merge.notes.add(1, "only y".into());
        let host = |name: &str| Host {
            name: name.into(),
            ..Host::default()
        };
        let end = merge.finish(vec![host("x"), host("y")]);
        let [
            Event::Hosts { .. },
            Event::Finished { results },
            Event::Note { text },
            Event::Note { text: of_y },
        ] = &end[..]
        else {
            panic!("{end:?}")
        };
        assert_eq!(results.jobs[1].hostname.as_deref(), Some("y"));
        assert_eq!(results.jobs[1].options["bs"], "4k");
        assert_eq!((text.as_str(), of_y.as_str()), ("n", "y: only y"));
    }
}
