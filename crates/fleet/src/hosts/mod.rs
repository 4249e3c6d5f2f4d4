//! Several machines as one run: Fathom runs on each, over ssh or in a pod, all
//! begin every step at one moment, and what they tell becomes one record.
//!
//! - [`run`](fn@run), [`steps`]: the side that drives; [`agent`]: the side that is driven
//! - [`engine`]: one job file after the other on all of them, as an engine
//! - [`machine`]: what the ways to the machines, over ssh or into a pod, have in common
//! - [`wire`]: what the one says to the other; [`clock`]: how their clocks stand
//! - `merge`: one record of what all tell; [`kept`]: the record of each

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::threads;
use fathom_engine::Control;
use fathom_model::{Event, Exit, Failure, FailureKind, Outcome, RunStatus, split_advice};
use fathom_record::{RecordError, Writer};

use crate::local::{FleetError, Session as Record};

pub mod agent;
pub(crate) mod allowance;
pub mod clock;
mod connected;
mod driven_host;
pub mod engine;
pub mod file_parts;
pub mod kept;
pub mod machine;
mod merge;
mod sink;
mod step;
pub mod wire;

use allowance::Allowed;
pub use connected::ConnectedHosts;
use driven_host::{DrivenHost, HostGate, HostPhase};
use file_parts::{plain, write_part};
use kept::HostRecord;
use machine::HostLine;
pub use machine::Machine;
use merge::{HostNotes, StepMerge, named};
pub use sink::HostsSink;
use wire::{ASK_EVERY, READY_WAIT, SILENCE, Say, Wire, Word, now_ms};

/// How often deadlines and requests to end are looked at; lines wake the loop.
const TICK: Duration = Duration::from_millis(20);
/// Between the word and the begin there is at least this much: the slowest way
/// there, a thread that has to wake up, and as much again.
const LEAD: Duration = Duration::from_millis(100);
/// Who has not answered for so long, although it is asked every [`ASK_EVERY`], does
/// not hear that the run was interrupted either.
const MUTE: Duration = Duration::from_secs(7);

/// What is to run: the same command on each machine.
#[derive(Debug, Clone, Default)]
pub struct HostsJob {
    /// Words of its command line behind `fathom`.
    pub args: Vec<Word>,
    /// The plan that is run, where it is not a command line.
    pub plan: serde_json::Value,
    /// Files that it reads: where below the folder of the run, and their text.
    pub files: Vec<(String, String)>,
    /// Values of variables that its job files name, of each machine by its name;
    /// what is not here a machine looks up itself.
    pub variables: BTreeMap<String, BTreeMap<String, String>>,
    /// What names its steps, in their order: [`kept::key`]. A machine may leave
    /// some out.
    pub steps: Vec<String>,
    /// How many machines must take part to the end.
    pub least: usize,
    /// Whether the record of each machine is kept whole, in [`kept::FOLDER`], and
    /// given back to it when the run goes on; else only raw outputs are.
    pub own_records: bool,
    /// Whether one machine may take part under several names.
    pub allow_same_host: bool,
    /// Steps that are done again although a machine has done them.
    pub again: BTreeSet<String>,
    /// Where in the record's time the run begins, ms.
    pub t_ms: u64,
    /// How often each machine tells its samples: it cannot tell more.
    pub interval: Duration,
}

/// Runs the job on all machines and closes the record.
///
/// # Errors
/// When the record cannot be written; the run was stopped then.
pub fn run(
    machines: Vec<Machine>,
    job: &HostsJob,
    writer: Writer,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), FleetError> {
    let raw_dir = writer.raw_dir().ok();
    let mut record = Record::new(writer, None, control, observer, job.t_ms);
    let course = Course {
        record: &mut record,
        raw_dir,
        started: Instant::now(),
        before: 0,
        of: u32::try_from(job.steps.len()).unwrap_or(u32::MAX),
    };
    let status = steps(machines, job, course, control, &mut |_| {});
    record.close(status)
}

/// The run that steps are a part of.
pub struct Course<'c> {
    /// Its record.
    pub record: &'c mut (dyn HostsSink + 'c),
    /// Where raw outputs are kept, in a folder of each machine; `None` where
    /// there is no such folder.
    pub raw_dir: Option<PathBuf>,
    /// When it began.
    pub started: Instant,
    /// Its steps before these.
    pub before: u32,
    /// All its steps.
    pub of: u32,
}

/// Runs the job on all machines as a part of a run; `watch` is shown every event
/// that goes into the record.
pub fn steps(
    machines: Vec<Machine>,
    job: &HostsJob,
    course: Course,
    control: &Control,
    watch: &mut dyn FnMut(&Event),
) -> RunStatus {
    let mut hosts = ConnectedHosts::connect(machines);
    let status = hosts.drive(job, course, control, watch);
    hosts.finish();
    status
}

struct HostsRun<'r, 'c> {
    job: &'r HostsJob,
    course: Course<'c>,
    control: &'r Control,
    watch: &'r mut dyn FnMut(&Event),
    parts: Vec<DrivenHost>,
    /// Whether the machines stay for another run, and whether they have run before.
    stay: bool,
    has_run: bool,
    /// Whether all were ready, and told to begin.
    has_begun: bool,
    /// When the step in progress began, by this machine's clock, ms since 1970.
    step_began_ms: f64,
    merge: Option<StepMerge>,
    /// What was remarked outside of steps.
    notes: HostNotes,
    failed: bool,
    too_few: bool,
    stopped: Option<Instant>,
    /// What is done about machines that were lost.
    leaving: Vec<thread::JoinHandle<()>>,
}

impl HostsRun<'_, '_> {
    /// Tells every machine that was reached what is to run.
    fn send_out(&mut self) {
        for place in 0..self.parts.len() {
            let part = &mut self.parts[place];
            part.begin_anew(self.job.interval);
            if self.job.own_records {
                let dir = self.course.record.dir();
                part.kept = Some(HostRecord::new(dir, &part.label));
            }
            match part.unreached.take() {
                Some(why) => self.lose(place, FailureKind::Unreachable, why),
                None => self.call(place),
            }
        }
    }

    /// Sends a machine its files and the command.
    fn call(&mut self, place: usize) {
        let part = &mut self.parts[place];
        let Some(far) = part.far.take() else {
            return self.lose(place, FailureKind::Lost, "it was lost before".to_owned());
        };
        for (path, text) in &self.job.files {
            far.say(&Say::File {
                path: path.clone(),
                text: text.clone(),
                more: false,
            });
        }
        let kept = part.kept.as_ref();
        let given = kept.map(|kept| kept.give_back(&self.job.again, &mut |say| far.say(&say)));
        let variables = self.job.variables.get(&part.label).cloned();
        far.say(&Say::Job {
            host: part.label.clone(),
            plan: self.job.plan.clone(),
            args: self.job.args.clone(),
            variables: variables.unwrap_or_default(),
        });
        part.far = Some(far);
        if let Some(Err(error)) = given {
            let what = format!("its part of the record cannot be read: {error}");
            self.lose(place, FailureKind::Record, what);
        }
    }

    fn watch(&mut self, lines: &Receiver<HostLine>) {
        while self.parts.iter().any(|part| part.phase != HostPhase::Over) {
            match lines.recv_timeout(TICK) {
                Ok((place, Some(line))) => self.line(place, &line),
                Ok((place, None)) => self.end_of(place),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.poll_stop();
            self.ask();
            self.end_step();
            self.begin_step();
        }
        self.end_step();
    }

    fn event(&mut self, event: Event) {
        (self.watch)(&event);
        // That the record is full is asked for once a turn.
        self.course.record.event(event);
    }

    fn line(&mut self, place: usize, line: &str) {
        let part = &mut self.parts[place];
        // Who was lost or has ended has no more part in the run.
        if part.phase == HostPhase::Over {
            return;
        }
        let Ok(wire) = serde_json::from_str::<Wire>(line) else {
            // Login scripts may print; that is not part of the stream.
            part.stray
                .get_or_insert_with(|| line.trim().chars().take(200).collect());
            return;
        };
        part.heard = Instant::now();
        match part.allowance.take(&wire, line.len()) {
            Allowed::Yes => {}
            Allowed::LeftOut => return,
            Allowed::FirstLeftOut(text) => return self.notes.add(place, text),
            Allowed::TooMuch(what) => {
                if let Some(far) = &mut part.far {
                    far.cut();
                }
                let what = format!(
                    "it was cut off: it sends {what}\n  to do: find out what runs there: it is not what was sent to it"
                );
                return self.lose(place, FailureKind::Mismatch, what);
            }
        }
        match wire {
            Wire::Clock { tag, at_ms } => {
                if let Some((_, asked_ms)) = part.asked.take_if(|(asked, _)| *asked == tag) {
                    part.clock.add(asked_ms, at_ms, now_ms());
                    part.host.clock = part.clock.clock();
                }
            }
            Wire::Header { header } => {
                let kept = part.kept.as_mut();
                let begun = kept.map_or(Ok(()), |kept| kept.begin(&header));
                part.host.hostname = header.environment.as_ref().map(|e| e.hostname.clone());
                part.host.environment = header.environment.map(Box::new);
                self.is_kept(begun);
            }
            Wire::Here { boot, mounts } => self.is_here(place, (boot, mounts)),
            Wire::Gate { step } => self.gate(place, step),
            Wire::Began { at_ms } => self.began(place, at_ms),
            Wire::Text { text } => self.notes.add(place, text),
            Wire::File { path, text, more } => self.keep(place, &path, &text, more),
            Wire::Event { happened } => self.happened(place, *happened),
            Wire::CannotRun => {
                let what = "Fathom does not run there: it is another kind of machine, or its temporary folder ($TMPDIR, else /tmp) is full or forbids to run programs\n  to do: free it, or leave this host out (--min-hosts)";
                self.lose(place, FailureKind::Other, what.to_owned());
            }
            Wire::Refused { exit, message } => {
                let kind = match Exit::from_code(exit) {
                    Some(Exit::Refused) => FailureKind::Refused,
                    _ => FailureKind::Other,
                };
                self.lose(place, kind, message);
            }
        }
    }

    /// A machine says which it is. Under two names it would count twice: that which
    /// stands later in the list takes no part.
    fn is_here(&mut self, place: usize, identity: (String, String)) {
        if self.job.allow_same_host || self.has_begun || self.parts[place].identity.is_some() {
            return;
        }
        let is_same = |part: &DrivenHost| {
            part.phase != HostPhase::Over && part.identity.as_ref() == Some(&identity)
        };
        let same = self.parts.iter().position(is_same);
        self.parts[place].identity = Some(identity);
        if let Some(other) = same {
            let (first, second) = (other.min(place), other.max(place));
            let what = format!(
                "it is the same machine as {}, by its boot id and mount namespace: its figures would count twice",
                self.parts[first].label
            );
            self.lose(second, FailureKind::SameHost, what);
        }
    }

    /// A machine waits for the word.
    fn gate(&mut self, place: usize, step: u32) {
        // What has said nothing of its end has none.
        self.ended(place, Outcome::Interrupted);
        let gate = match step {
            0 => Some(HostGate::Begin),
            _ => self.place_of(step, self.parts[place].step.as_ref()),
        };
        let Some(gate) = gate else {
            let what = "it wants to run a step that is not part of this run".to_owned();
            return self.lose(place, FailureKind::Other, what);
        };
        self.parts[place].phase = HostPhase::AtGate(gate);
        if self.has_begun || self.has_run {
            return;
        }
        let ready = self.parts.iter().filter(|part| part.is_at_gate());
        let what = format!(
            "{} of {} machines are ready",
            ready.count(),
            self.there().count()
        );
        self.event(Event::Preparing { what });
    }

    fn happened(&mut self, place: usize, event: Event) {
        match &event {
            Event::StepEnded { outcome } => self.ended(place, *outcome),
            Event::Ended { .. } => self.ended(place, Outcome::Interrupted),
            _ => {}
        }
        if matches!(&event, Event::Failure(failure) if failure.kind == FailureKind::Refused) {
            self.control.refuse();
        }
        let t_ms = self.elapsed_ms();
        let part = &mut self.parts[place];
        let mut kept = Ok(());
        if let Some(own) = &mut part.kept {
            if matches!(event, Event::Step { .. }) {
                own.at(t_ms);
            }
            kept = match &event {
                Event::Ended { status } => own.finish(*status),
                event => own.event(event),
            };
        }
        match event {
            Event::Ended { status } => {
                part.status = Some(status);
                part.phase = HostPhase::Over;
                self.failed |= status == RunStatus::Failed;
            }
            Event::Step { .. } => part.step = Some(event),
            Event::StepEnded { .. } => {}
            Event::Skipped {
                point,
                reason,
                cause,
            } => self.left_out(place, &point, reason, cause),
            Event::EngineStarted { ref version, .. } => {
                part.host.engine_version.clone_from(version);
                self.merged(place, event);
            }
            event => self.merged(place, event),
        }
        self.is_kept(kept);
    }

    fn merged(&mut self, place: usize, event: Event) {
        let label = &self.parts[place].label;
        let told = match (&mut self.merge, self.parts[place].in_step) {
            (Some(merge), true) => merge.take(place, event),
            // Of checks and stages, which are each machine's own.
            _ => match event {
                Event::Note { text } => {
                    self.notes.add(place, text);
                    Vec::new()
                }
                Event::Failure(failure) => vec![Event::Failure(named(label, failure))],
                Event::Stage { stage } => vec![Event::Preparing {
                    what: format!("{} ({label})", stage.title),
                }],
                Event::Preparing { what } => vec![Event::Preparing {
                    what: format!("{what} ({label})"),
                }],
                _ => Vec::new(),
            },
        };
        told.into_iter().for_each(|event| self.event(event));
    }

    /// The connection of a machine has ended.
    fn end_of(&mut self, place: usize) {
        let part = &mut self.parts[place];
        if part.phase == HostPhase::Over {
            return;
        }
        let code = part.far.as_mut().and_then(|far| far.finish());
        let mut what = match code {
            Some(code) => format!("fathom ended there with status {code} and no word"),
            None => "the connection was lost".to_owned(),
        };
        if let Some(stray) = part.stray.take() {
            what.push_str(&format!(": {stray}"));
        }
        self.lose(place, FailureKind::Lost, what);
    }

    fn lose(&mut self, place: usize, kind: FailureKind, what: String) {
        let part = &mut self.parts[place];
        if part.phase == HostPhase::Over {
            return;
        }
        part.phase = HostPhase::Over;
        // Its input ends: whoever is still there ends by itself. Nobody else waits
        // for that.
        let far = part.far.take();
        self.leaving
            // Where there is no thread to be had it is dropped, which ends it too.
            .extend(far.and_then(|far| threads::spawn("give-up", move || far.give_up()).ok()));
        let part = &mut self.parts[place];
        if self.stopped.is_none() {
            if matches!(kind, FailureKind::Refused | FailureKind::SameHost) {
                self.control.refuse();
            }
            let (what, advice) = split_advice(&what);
            part.host.lost = Some(what.to_owned());
            let mut failure = Failure::new(kind, what).about(part.label.as_str());
            failure.advice = advice.or_else(|| advice_on(kind)).map(str::to_owned);
            self.event(Event::Failure(failure));
        }
        self.ended(place, Outcome::Failed);
        let lost = |part: &&DrivenHost| part.host.lost.is_some();
        let left = self.parts.iter().filter(|part| !lost(part)).count();
        self.too_few |= left < self.job.least;
    }

    /// Passes a request to end on, and keeps deadlines.
    fn poll_stop(&mut self) {
        let asked = self.control.stop_requests();
        // What keeps others from taking part is told too, before the first step.
        let all_told = self.has_begun || self.there().all(DrivenHost::is_at_gate);
        let given_up = (self.too_few && all_told) || !self.course.record.wants_more();
        if self.stopped.is_none() && (asked > 0 || given_up) {
            self.stopped = Some(Instant::now());
            for part in &mut self.parts {
                match &mut part.far {
                    Some(far) if self.stay => far.say(&Say::Enough),
                    Some(far) => far.end_input(),
                    None => {}
                }
            }
        }
        for place in 0..self.parts.len() {
            let part = &self.parts[place];
            if part.phase == HostPhase::Over {
                continue;
            }
            let quiet = part.heard.elapsed();
            let late = self
                .stopped
                .is_some_and(|since| is_late(since.elapsed(), quiet, asked > 0));
            if part.phase == HostPhase::Preparing && part.asked_at.is_none() {
                // One that has not begun has nothing to report.
                if part.began.elapsed() > READY_WAIT || self.stopped.is_some() {
                    let what = format!("it could not begin within {} s", READY_WAIT.as_secs());
                    self.lose(place, FailureKind::Hung, what);
                }
            } else if (self.stopped.is_none() && quiet > SILENCE) || late || asked > 1 {
                let what = format!("it says nothing any more (for {} s)", quiet.as_secs());
                self.lose(place, FailureKind::Lost, what);
            }
        }
    }

    /// Asks for the time: at once until enough is known, then now and again.
    fn ask(&mut self) {
        for part in &mut self.parts {
            let is_there = matches!(part.phase, HostPhase::AtGate(_) | HostPhase::Running);
            let is_due = match part.asked_at {
                None => true,
                Some(at) => {
                    (!part.clock.is_known() && part.asked.is_none()) || at.elapsed() > ASK_EVERY
                }
            };
            if let (true, true, Some(far)) = (is_there, is_due, &part.far) {
                part.tag += 1;
                part.asked = Some((part.tag, now_ms()));
                part.asked_at = Some(Instant::now());
                far.say(&Say::Clock { tag: part.tag });
            }
        }
    }

    fn there(&self) -> impl Iterator<Item = &DrivenHost> {
        self.parts
            .iter()
            .filter(|part| part.phase != HostPhase::Over)
    }

    fn labels(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.label.clone()).collect()
    }

    /// The run's time, ms.
    fn elapsed_ms(&self) -> u64 {
        let elapsed = u64::try_from(self.course.started.elapsed().as_millis());
        self.job.t_ms + elapsed.unwrap_or(u64::MAX)
    }

    /// Keeps a file of a machine's record, in a folder of its name.
    fn keep(&mut self, place: usize, path: &str, text: &str, more: bool) {
        let part = &mut self.parts[place];
        let dir = self.course.record.dir();
        if let Err(error) = part.allowance.file(dir, text.len()) {
            return self.lose(place, FailureKind::Record, error.to_string());
        }
        let done = match (&part.kept, &self.course.raw_dir, below_raw(path)) {
            (Some(kept), ..) => kept.file(path, text, more),
            (None, Some(raw_dir), Some(rest)) => {
                let folder = raw_dir.join(kept::folder_name(&part.label));
                write_part(&folder.join(rest), text, more)
            }
            _ => Ok(()),
        };
        self.is_kept(done.map_err(|source| RecordError::File {
            path: path.into(),
            source,
        }));
    }

    /// Tells what of a machine could not be kept.
    fn is_kept(&mut self, done: Result<(), RecordError>) {
        if let Err(error) = done {
            self.failed = true;
            let what = format!("it cannot be kept: {error}");
            self.event(Event::Failure(Failure::new(FailureKind::Record, what)));
        }
    }

    fn conclude(mut self) -> (RunStatus, Vec<DrivenHost>) {
        for event in self.notes.told(&self.labels()) {
            self.event(event);
        }
        if self.step_began_ms == 0.0 {
            let hosts = self.parts.iter().map(|part| part.host.clone()).collect();
            self.event(Event::Hosts { hosts });
        }
        let lost = self.parts.iter().filter(|part| part.host.lost.is_some());
        let left = self.parts.len() - lost.count();
        if self.too_few && self.job.least < self.parts.len() {
            let (all, least) = (self.parts.len(), self.job.least);
            let text = format!(
                "the run was given up: {left} of {all} machines were left, and {least} had to take part"
            );
            self.event(Event::Note { text });
        }
        for lost in self.leaving.drain(..) {
            // A panic there was about a machine that is lost anyway.
            let _ = lost.join();
        }
        let interrupted = self.control.stop_requests() > 0;
        let cut = |part: &DrivenHost| part.status == Some(RunStatus::Interrupted);
        let status = match () {
            () if interrupted => RunStatus::Interrupted,
            () if self.failed || self.too_few => RunStatus::Failed,
            // By a limit of its own.
            () if self.parts.iter().any(cut) => RunStatus::Interrupted,
            () => RunStatus::Complete,
        };
        (status, self.parts)
    }
}

/// What to do about a machine, where its failure itself does not say.
fn advice_on(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::Hung => Some(
            "look whether that host is overloaded, and how fast the line to it is: the program that is sent has some 20 MiB",
        ),
        FailureKind::Other | FailureKind::Refused => {
            Some("mend that on this host, or leave it out (--min-hosts)")
        }
        _ => None,
    }
}

/// The path of a raw output below `raw/`.
fn below_raw(path: &str) -> Option<PathBuf> {
    let rest = plain(path)?;
    let rest = rest.strip_prefix("raw").ok()?;
    (rest != Path::new("")).then(|| rest.to_owned())
}

/// Whether a machine that was told so long ago to stop, and has been quiet for so
/// long, is waited for no more. Its outputs may be large: whoever sends them is not
/// late. Whoever was silent before the run was interrupted is.
fn is_late(told: Duration, quiet: Duration, is_interrupted: bool) -> bool {
    let was_mute = quiet.saturating_sub(told) > MUTE;
    (is_interrupted && was_mute) || (told > SILENCE * 2 && quiet > SILENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_does_not_wait_for_machines_that_were_silent_before() {
        let s = Duration::from_secs;
        assert!(is_late(s(0), s(8), true), "it has not answered before");
        assert!(!is_late(s(1), s(3), true), "it ends");
        assert!(!is_late(s(20), s(21), true), "it may take its time to end");
        assert!(is_late(s(61), s(62), true));
        assert!(!is_late(s(61), s(2), true), "it sends its outputs");
        assert!(!is_late(s(0), s(8), false), "nobody waits at a terminal");
    }

    #[test]
    fn files_of_another_machine_stay_in_its_folder() {
        assert_eq!(below_raw("raw/fio.out"), Some("fio.out".into()));
        assert_eq!(below_raw("raw/01-a/fio.out"), Some("01-a/fio.out".into()));
        for bad in ["raw", "jobs/a", "/etc/passwd", "raw/../x", "events.jsonl"] {
            assert_eq!(below_raw(bad), None, "{bad}");
        }
    }
}
