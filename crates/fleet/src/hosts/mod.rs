//! Several machines as one run: Fathom runs on each, over ssh or in a pod, all
//! begin every step at one moment, and what they tell becomes one record.
//!
//! - [`run`](fn@run), [`steps`]: the side that drives; [`agent`]: the side that is driven
//! - [`machine`]: the ways to the machines
//! - [`wire`]: what the one says to the other; [`clock`]: how their clocks stand
//! - `merge`: one record of what all tell

use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use fathom_engine::Control;
use fathom_model::{Event, Failure, FailureKind, Host, RunStatus};
use fathom_record::Writer;

use crate::local::{FleetError, Session as Record};
use crate::ssh::carry::Wire;

pub mod agent;
pub mod clock;
pub mod machine;
mod merge;
pub mod wire;

use clock::Estimate;
use machine::{Connection, Lines, Told};
pub use machine::{Machine, connect};
use merge::Merge;
use wire::{ASK_EVERY, SILENCE, Say, now_ms};

/// How often deadlines and requests to end are looked at; lines wake the loop.
const TICK: Duration = Duration::from_millis(20);
/// Between the word and the begin there is at least this much: the slowest way
/// there, a thread that has to wake up, and as much again.
const LEAD: Duration = Duration::from_millis(100);
/// How long a machine may take from the connection until it could begin. A
/// program of some 20 MiB over a slow line takes a minute.
const READY_WAIT: Duration = Duration::from_secs(300);

/// What is to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Arguments of the command on each machine, without files.
    pub args: Vec<String>,
    /// Files that are arguments too: name and text.
    pub files: Vec<(String, String)>,
    /// What stands behind the files: options of the engine's own.
    pub behind: Vec<String>,
    /// Names of the steps, in order.
    pub steps: Vec<String>,
    /// How many machines must take part to the end.
    pub least: usize,
}

/// Where a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program is sent, or its checks are made.
    Preparing,
    /// It waits for the word.
    AtGate,
    /// It runs a step.
    Running,
    /// It has ended.
    Over,
}

struct Part {
    label: String,
    host: Host,
    far: Option<Box<dyn Connection>>,
    phase: Phase,
    clock: Estimate,
    /// The question that is open: its tag, and when it was asked.
    asked: Option<(u32, f64)>,
    asked_at: Option<Instant>,
    tag: u32,
    heard: Instant,
    status: Option<RunStatus>,
    /// The first line that was none of Fathom's.
    stray: Option<String>,
}

impl Part {
    fn new(name: &str) -> Self {
        Self {
            host: Host {
                name: name.to_owned(),
                ..Host::default()
            },
            label: name.to_owned(),
            far: None,
            phase: Phase::Preparing,
            clock: Estimate::default(),
            asked: None,
            asked_at: None,
            tag: 0,
            heard: Instant::now(),
            status: None,
            stray: None,
        }
    }
}

/// Runs the job on all machines and closes the record.
///
/// # Errors
/// When the record cannot be written; the run was stopped then.
pub fn run(
    machines: Vec<Machine>,
    job: &Job,
    writer: Writer,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), FleetError> {
    let raw_dir = writer.raw_dir().ok();
    let mut record = Record::new(writer, observer, 0);
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
pub struct Course<'c, 'o> {
    /// Its record.
    pub record: &'c mut Record<'o>,
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
    job: &Job,
    course: Course,
    control: &Control,
    watch: &mut dyn FnMut(&Event),
) -> RunStatus {
    let mut drive = Drive {
        job,
        course,
        control,
        watch,
        parts: Vec::new(),
        step: 0,
        step_began_ms: 0.0,
        merge: None,
        failed: false,
        too_few: false,
        stopped: None,
        leaving: Vec::new(),
    };
    let lines = drive.send_out(machines);
    drive.watch(&lines);
    // Who still says something is heard no more, and must not wait to be.
    drop(lines);
    drive.conclude()
}

struct Drive<'r, 'o> {
    job: &'r Job,
    course: Course<'r, 'o>,
    control: &'r Control,
    watch: &'r mut dyn FnMut(&Event),
    parts: Vec<Part>,
    /// The step in progress, counted from 1; 0 before the first.
    step: u32,
    /// When it began, by this machine's clock, ms since 1970.
    step_began_ms: f64,
    merge: Option<Merge>,
    failed: bool,
    too_few: bool,
    stopped: Option<Instant>,
    /// What is done about machines that were lost.
    leaving: Vec<thread::JoinHandle<()>>,
}

impl Drive<'_, '_> {
    /// Starts the agent on every machine that can be reached.
    fn send_out(&mut self, machines: Vec<Machine>) -> Receiver<Told> {
        let (to, lines) = mpsc::sync_channel(256);
        self.parts = machines
            .iter()
            .map(|machine| Part::new(&machine.name))
            .collect();
        for (place, machine) in machines.into_iter().enumerate() {
            let to = to.clone();
            match (machine.begin)(Lines { place, to }) {
                Ok(far) => {
                    let say = Say::Job {
                        args: self.job.args.clone(),
                        files: self.job.files.clone(),
                        behind: self.job.behind.clone(),
                    };
                    far.say(&say);
                    self.parts[place].far = Some(far);
                }
                Err(error) => self.lose(place, FailureKind::Unreachable, error),
            }
        }
        lines
    }

    fn watch(&mut self, lines: &Receiver<Told>) {
        while self.parts.iter().any(|part| part.phase != Phase::Over) {
            match lines.recv_timeout(TICK) {
                Ok((place, Some(line))) => self.line(place, &line),
                Ok((place, None)) => self.end_of(place),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.obey();
            self.ask();
            self.end_step();
            self.begin_step();
        }
        self.end_step();
    }

    fn event(&mut self, event: Event) {
        use fathom_engine::Sink as _;
        (self.watch)(&event);
        // That the record is full is asked for once a turn.
        let _ = self.course.record.event(event);
    }

    fn line(&mut self, place: usize, line: &str) {
        let part = &mut self.parts[place];
        part.heard = Instant::now();
        let Ok(wire) = serde_json::from_str::<Wire>(line) else {
            // Login scripts may print; that is not part of the stream.
            part.stray
                .get_or_insert_with(|| line.trim().chars().take(200).collect());
            return;
        };
        match wire {
            Wire::Clock { tag, at_ms } => {
                if let Some((_, asked_ms)) = part.asked.take_if(|(asked, _)| *asked == tag) {
                    part.clock.add(asked_ms, at_ms, now_ms());
                    part.host.clock = part.clock.clock();
                }
            }
            Wire::Header { header } => {
                part.host.hostname = header.environment.as_ref().map(|e| e.hostname.clone());
                part.host.environment = header.environment.map(Box::new);
            }
            Wire::Gate { .. } => {
                let was_running = part.phase == Phase::Running;
                part.phase = Phase::AtGate;
                if was_running {
                    self.ended(place);
                }
                self.tell_ready();
            }
            Wire::Began { at_ms } => self.began(place, at_ms),
            Wire::Text { text } => {
                let text = format!("{}: {text}", part.label);
                self.event(Event::Note { text });
            }
            Wire::File { path, text } => self.keep(place, &path, &text),
            Wire::Event { happened } => self.happened(place, *happened),
            Wire::CannotRun => {
                let what = "Fathom does not run there: it is another kind of machine, or its temporary folder ($TMPDIR, else /tmp) is full or forbids to run programs";
                self.lose(place, FailureKind::Other, what.to_owned());
            }
            Wire::Refused { message, .. } => {
                self.lose(place, FailureKind::Other, message);
            }
        }
    }

    /// How many are ready, while the first step is waited for.
    fn tell_ready(&mut self) {
        if self.step > 0 {
            return;
        }
        let ready = self.parts.iter().filter(|part| part.phase == Phase::AtGate);
        let what = format!(
            "{} of {} machines are ready",
            ready.count(),
            self.there().count()
        );
        self.event(Event::Preparing { what });
    }

    fn happened(&mut self, place: usize, event: Event) {
        let part = &mut self.parts[place];
        match event {
            Event::Ended { status } => {
                part.status = Some(status);
                let was_running = part.phase == Phase::Running;
                part.phase = Phase::Over;
                if was_running {
                    self.ended(place);
                }
                self.failed |= status == RunStatus::Failed;
            }
            Event::EngineStarted { ref version, .. } => {
                part.host.engine_version.clone_from(version);
                self.merged(place, event);
            }
            event => self.merged(place, event),
        }
    }

    fn merged(&mut self, place: usize, event: Event) {
        let told = match &mut self.merge {
            Some(merge) => merge.take(place, event),
            // Before the first step: notes of the checks.
            None => match event {
                Event::Note { text } => {
                    let text = format!("{}: {text}", self.parts[place].label);
                    vec![Event::Note { text }]
                }
                event => vec![event],
            },
        };
        told.into_iter().for_each(|event| self.event(event));
    }

    fn began(&mut self, place: usize, at_ms: f64) {
        let began_ms = self.parts[place].clock.here_ms(at_ms) - self.step_began_ms;
        if let Some(merge) = &mut self.merge {
            merge.began(place, began_ms);
        }
    }

    /// A machine has ended its part of the step.
    fn ended(&mut self, place: usize) {
        let end_ms = now_ms() - self.step_began_ms;
        self.parts[place].host.end_ms = Some(end_ms);
        let told = match &mut self.merge {
            Some(merge) => merge.ended(place),
            None => Vec::new(),
        };
        told.into_iter().for_each(|event| self.event(event));
    }

    /// The connection of a machine has ended.
    fn end_of(&mut self, place: usize) {
        let part = &mut self.parts[place];
        if part.phase == Phase::Over {
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
        if part.phase == Phase::Over {
            return;
        }
        let was_running = part.phase == Phase::Running;
        part.phase = Phase::Over;
        // Its input ends: whoever is still there ends by itself. Nobody else waits
        // for that.
        let far = part.far.take();
        self.leaving
            .extend(far.map(|far| thread::spawn(move || far.give_up())));
        let part = &mut self.parts[place];
        if self.stopped.is_none() {
            part.host.lost = Some(what.clone());
            let failure = Failure::new(kind, what).about(part.label.as_str());
            self.event(Event::Failure(failure));
        }
        if was_running {
            self.ended(place);
        }
        let lost = |part: &&Part| part.host.lost.is_some();
        let left = self.parts.iter().filter(|part| !lost(part)).count();
        self.too_few |= left < self.job.least;
    }

    /// Passes a request to end on, and keeps deadlines.
    fn obey(&mut self) {
        let asked = self.control.stop_requests();
        // What keeps others from taking part is told too, before the first step.
        let all_told = self.step > 0 || self.there().all(|part| part.phase == Phase::AtGate);
        let given_up = (self.too_few && all_told) || !self.course.record.is_recorded();
        if self.stopped.is_none() && (asked > 0 || given_up) {
            self.stopped = Some(Instant::now());
            for part in &mut self.parts {
                if let Some(far) = &mut part.far {
                    far.end_input();
                }
            }
        }
        for place in 0..self.parts.len() {
            let part = &self.parts[place];
            if part.phase == Phase::Over {
                continue;
            }
            let quiet = part.heard.elapsed();
            let late = self
                .stopped
                .is_some_and(|since| since.elapsed() > SILENCE * 2);
            if part.phase == Phase::Preparing && part.asked_at.is_none() {
                if quiet > READY_WAIT || late || asked > 1 {
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
            let is_there = matches!(part.phase, Phase::AtGate | Phase::Running);
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

    fn there(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.phase != Phase::Over)
    }

    /// Gives the word once every machine waits for it.
    fn begin_step(&mut self) {
        let ready = |part: &Part| part.phase == Phase::AtGate && part.clock.is_known();
        let is_open = self.merge.is_none() && self.stopped.is_none() && !self.too_few;
        if !is_open || self.there().next().is_none() || !self.there().all(ready) {
            return;
        }
        self.step += 1;
        let name = self.job.steps.get(self.step as usize - 1);
        let slowest = self.there().filter_map(|part| part.clock.clock());
        let slowest_ms = slowest
            .map(|clock| clock.error_ms * 4.0)
            .fold(0.0, f64::max);
        let begin_ms = now_ms() + LEAD.as_secs_f64() * 1000.0 + slowest_ms;
        self.step_began_ms = begin_ms;
        let wait_ms = (begin_ms - now_ms()).max(0.0);
        let t_ms = self.course.started.elapsed() + Duration::from_secs_f64(wait_ms / 1000.0);
        self.course
            .record
            .at(u64::try_from(t_ms.as_millis()).unwrap_or(u64::MAX));
        self.event(Event::Step {
            step: self.course.before + self.step,
            of: self.course.of,
            name: name.cloned().unwrap_or_default(),
            point: None,
        });
        let labels: Vec<String> = self.parts.iter().map(|part| part.label.clone()).collect();
        let there: Vec<bool> = self
            .parts
            .iter()
            .map(|part| part.phase != Phase::Over)
            .collect();
        self.merge = Some(Merge::new(&labels, &there));
        for part in self
            .parts
            .iter_mut()
            .filter(|part| part.phase != Phase::Over)
        {
            part.phase = Phase::Running;
            (part.host.start_ms, part.host.end_ms) = (None, None);
            if let Some(far) = &part.far {
                let at_ms = part.clock.there_ms(begin_ms);
                far.say(&Say::Go { at_ms });
            }
        }
    }

    /// Writes what a step brought once all machines have ended it.
    fn end_step(&mut self) {
        if !self.merge.as_ref().is_some_and(Merge::is_over) {
            return;
        }
        let Some(merge) = self.merge.take() else {
            return;
        };
        let mut hosts = Vec::new();
        for (place, part) in self.parts.iter_mut().enumerate() {
            if part.host.end_ms.is_some() {
                part.host.start_ms = Some(merge.start_ms(place));
            }
            hosts.push(part.host.clone());
        }
        merge
            .finish(hosts)
            .into_iter()
            .for_each(|event| self.event(event));
    }

    /// Keeps a file of a machine's record, in a folder of its name.
    fn keep(&mut self, place: usize, path: &str, text: &str) {
        let Some(rest) = below_raw(path) else { return };
        let Some(raw_dir) = &self.course.raw_dir else {
            return;
        };
        let name: String = self.parts[place]
            .label
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || "._-@".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let name = name.trim_start_matches('.');
        let kept = raw_dir.join(name).join(rest);
        let folder = kept.parent().unwrap_or(raw_dir);
        if let Err(error) = fs::create_dir_all(folder).and_then(|()| fs::write(&kept, text)) {
            let what = format!("it cannot be kept: {error}");
            let failure = Failure::new(FailureKind::Record, what);
            self.failed = true;
            self.event(Event::Failure(failure.about(kept.display().to_string())));
        }
    }

    fn conclude(mut self) -> RunStatus {
        if self.step == 0 {
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
        // Each takes its time to remove what was sent; all of them at once.
        let fars = self.parts.iter_mut().filter_map(|part| part.far.take());
        thread::scope(|scope| {
            for mut far in fars {
                scope.spawn(move || far.finish());
            }
        });
        for lost in self.leaving.drain(..) {
            // A panic there was about a machine that is lost anyway.
            let _ = lost.join();
        }
        let interrupted = self.control.stop_requests() > 0;
        match () {
            () if interrupted => RunStatus::Interrupted,
            () if self.failed || self.too_few => RunStatus::Failed,
            () => RunStatus::Complete,
        }
    }
}

/// The path of a raw output below `raw/`. It comes from another machine: only
/// plain names are taken, and a folder of theirs.
fn below_raw(path: &str) -> Option<PathBuf> {
    let rest = Path::new(path).strip_prefix("raw").ok()?;
    let mut parts = rest.components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    (is_plain && (1..=2).contains(&rest.components().count())).then(|| rest.to_owned())
}

/// Writes a line to a machine.
pub(crate) fn write_line(to: &mut impl Write, say: &Say) {
    // Strings and numbers: there is nothing that JSON cannot hold. Who cannot
    // be written to is found out by its silence.
    if let Ok(line) = serde_json::to_string(say) {
        let _ = writeln!(to, "{line}").and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_machine_stay_in_its_folder() {
        assert_eq!(below_raw("raw/fio.out"), Some("fio.out".into()));
        assert_eq!(below_raw("raw/01-a/fio.out"), Some("01-a/fio.out".into()));
        for bad in [
            "raw",
            "jobs/a",
            "/etc/passwd",
            "raw/../x",
            "raw/a/b/c",
            "events.jsonl",
        ] {
            assert_eq!(below_raw(bad), None, "{bad}");
        }
    }
}
