//! The attempts of a run's steps. A step that a kill, a stop or a failure has broken off is
//! done once more, and exactly one attempt counts: the one that came to its end, else the
//! last.

use std::collections::BTreeSet;

use fathom_analysis::step_evidence::StepEvidence;
use fathom_model::{
    DiskUse, Entry, Event, Failure, Host, JobResult, Outcome, Point, RunDocument, StageEnd, Volume,
};
use fathom_record::{Entries, RecordPart};

/// What a step is, however often it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepKey {
    /// The stage that it is part of.
    stage: Option<String>,
    name: String,
    /// Of a point: which measurement.
    repetition: u32,
    /// Two job files may have one name, and each a number of its own. Steps of a stage are
    /// numbered anew in each attempt.
    number: Option<u32>,
}

/// Identifies an attempt within its record: its start, in ms since 1970 UTC, and the number
/// of its step.
pub type AttemptKey = (u64, u32);

/// Which attempts count, while the events of a record are read in order.
#[derive(Debug)]
pub struct Counting {
    attempts: BTreeSet<AttemptKey>,
    /// Whether the one in progress does. What stands before the first step counts.
    counts: bool,
}

impl Counting {
    /// Those of a record, which is read to its end.
    pub fn of(mut entries: Entries) -> Self {
        let mut attempts = Attempts::default();
        while let Some(part) = entries.next_part() {
            // What is damaged is told of by who reads the rest.
            if let Ok(RecordPart::Entry(entry)) = part {
                attempts.take(entry.at_ms, &entry.event);
            }
        }
        Self {
            attempts: attempts.counting(),
            counts: true,
        }
    }

    /// Takes the next entry; says whether it counts.
    pub fn take(&mut self, entry: &Entry) -> bool {
        if let Event::Step { step, .. } = &entry.event {
            self.counts = self.attempts.contains(&(entry.at_ms, *step));
        }
        self.counts
    }
}

/// One attempt, and what it brought.
#[derive(Debug, Default)]
struct Attempt {
    /// `None` of what stands before the first step.
    key: Option<StepKey>,
    began: Option<AttemptKey>,
    is_complete: bool,
    /// How it ended stands in the record.
    is_ended: bool,
    brought: Brought,
}

/// What a step brings to the document of its run.
#[derive(Debug, Default)]
pub struct Brought {
    /// The jobs' figures.
    pub jobs: Vec<JobResult>,
    /// What block devices did.
    pub disks: Vec<DiskUse>,
    /// The machines that had a part in it.
    pub hosts: Vec<Host>,
    /// The volumes under its servers.
    pub volumes: Vec<Volume>,
    /// What was read of the machines.
    pub evidences: Vec<StepEvidence>,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// Whether figures had to be counted from samples.
    pub from_samples: bool,
}

/// All attempts of a run so far.
#[derive(Debug, Default)]
pub struct Attempts {
    all: Vec<Attempt>,
    /// The stage in progress, and where its attempts begin.
    stage: Option<(String, usize)>,
}

impl Attempts {
    /// Takes what says of the next event where steps begin and how they end.
    pub fn take(&mut self, at_ms: u64, event: &Event) {
        match event {
            Event::Step {
                step, name, point, ..
            } => self.begin((at_ms, *step), name, point.as_deref()),
            Event::StepEnded { outcome } => self.end(*outcome == Outcome::Complete),
            Event::Finished { .. } => self.finished(),
            Event::Stage { stage } => self.begin_stage(&stage.id),
            Event::StageEnded { end, .. } => self.end_stage(is_broken(end)),
            Event::Resumed { .. } => self.resume(),
            _ => {}
        }
    }

    /// The attempts that count.
    pub fn counting(&self) -> BTreeSet<AttemptKey> {
        self.all
            .iter()
            .filter_map(|attempt| attempt.began)
            .collect()
    }

    /// A step begins. Attempts of it that were broken off count no longer.
    fn begin(&mut self, began: AttemptKey, name: &str, point: Option<&Point>) {
        let (_, number) = began;
        let key = StepKey {
            stage: self.stage.as_ref().map(|(id, _)| id.clone()),
            name: name.to_owned(),
            repetition: point.map_or(0, |point| point.repetition),
            number: (self.stage.is_none() && point.is_none()).then_some(number),
        };
        let is_broken =
            |attempt: &Attempt| !attempt.is_complete && attempt.key.as_ref() == Some(&key);
        while let Some(place) = self.all.iter().position(is_broken) {
            self.all.remove(place);
            // The stage in progress moves up with what is behind.
            if let Some((_, from)) = &mut self.stage {
                *from -= usize::from(place < *from);
            }
        }
        self.all.push(Attempt {
            key: Some(key),
            began: Some(began),
            ..Attempt::default()
        });
    }

    /// The step in progress has ended.
    fn end(&mut self, is_complete: bool) {
        if let Some(attempt) = self.all.last_mut() {
            (attempt.is_complete, attempt.is_ended) = (is_complete, true);
        }
    }

    /// The engine has reported. Records of older Fathoms say no more of an end.
    fn finished(&mut self) {
        if let Some(attempt) = self.all.last_mut() {
            attempt.is_complete = true;
        }
    }

    fn begin_stage(&mut self, id: &str) {
        self.stage = Some((id.to_owned(), self.all.len()));
    }

    /// The stage in progress has ended. One that was broken off is done anew, with all of
    /// its steps.
    fn end_stage(&mut self, is_broken: bool) {
        let Some((_, from)) = self.stage.take().filter(|_| is_broken) else {
            return;
        };
        for attempt in self.all.iter_mut().skip(from) {
            attempt.is_complete = false;
        }
    }

    /// Another start goes on: what was in progress was broken off.
    fn resume(&mut self) {
        self.end_stage(true);
        if let Some(last) = self.all.last_mut().filter(|last| !last.is_ended) {
            last.is_complete = false;
        }
    }

    /// What the step in progress brings.
    pub fn brought(&mut self) -> &mut Brought {
        if self.all.is_empty() {
            self.all.push(Attempt::default());
        }
        let last = self.all.len() - 1;
        &mut self.all[last].brought
    }

    /// What all that count have brought, in their order.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Brought> {
        self.all.iter_mut().map(|attempt| &mut attempt.brought)
    }

    /// Gives all of it to the document; what the judgement rests on is left.
    pub fn give(self, doc: &mut RunDocument) -> Vec<StepEvidence> {
        let mut evidences = Vec::new();
        for attempt in self.all {
            let mut brought = attempt.brought;
            doc.jobs.append(&mut brought.jobs);
            doc.disks.append(&mut brought.disks);
            doc.hosts.append(&mut brought.hosts);
            doc.volumes.append(&mut brought.volumes);
            evidences.append(&mut brought.evidences);
            for failure in brought.failures {
                if !doc.failures.contains(&failure) {
                    doc.failures.push(failure);
                }
            }
            doc.from_samples |= brought.from_samples;
        }
        evidences
    }
}

/// Whether a stage that ended so is done anew by the next start.
fn is_broken(end: &StageEnd) -> bool {
    matches!(
        end,
        StageEnd::Interrupted { .. } | StageEnd::Failed { .. } | StageEnd::Waits { .. }
    )
}
