//! A command of the user's, before or after something that is measured.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fathom_engine::Control;
use fathom_jobfile::variables;
use fathom_model::{Event, Stage, StageEnd, StageKind};
use fathom_record::{CommandUndo, UndoFile, UndoNote, now_ms};

use super::{Act, ActionContext, ActionResult, Task, Undo, Work, undo};

/// How often a command is looked at, and how long it may take to end when told to.
const LOOK: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(2);

/// A command for the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Its name in the run.
    pub name: String,
    /// The command.
    pub command: String,
    /// What takes it back at the end of the run.
    pub undo: Option<String>,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// Where both are run.
    pub folder: PathBuf,
}

impl ShellCommand {
    /// As what a script asks for: what is undone at the end is done again when the run
    /// goes on.
    pub fn task(self) -> Task {
        // They are kept with the run.
        let texts = std::iter::once(&self.command).chain(&self.undo);
        texts.for_each(|text| drop(variables::of_command(text)));
        let kind = match self.undo {
            Some(_) => StageKind::Switch,
            None => StageKind::Command,
        };
        Task {
            stage: Stage {
                id: self.name.clone(),
                kind,
                title: self.command.clone(),
                round: None,
            },
            work: Work::Act(std::rc::Rc::new(self)),
        }
    }

    fn start(&self, record: &std::path::Path) -> std::io::Result<Child> {
        let raw = record.join("raw");
        std::fs::create_dir_all(&raw)?;
        let output = File::create(raw.join(format!("{}.out", self.name.replace('/', "-"))))?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command]).current_dir(&self.folder);
        variables::set_given(&mut shell);
        shell
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        // What it starts ends with it.
        shell.process_group(0);
        shell.spawn()
    }
}

impl Act for ShellCommand {
    fn commands(&self) -> Vec<String> {
        let undo = self.undo.iter().map(|undo| format!("# at the end: {undo}"));
        std::iter::once(self.command.clone()).chain(undo).collect()
    }

    fn undo(&self) -> Result<Option<Undo>, String> {
        /// Several may be noted in one ms.
        static NOTED: AtomicU32 = AtomicU32::new(0);
        let Some(command) = &self.undo else {
            return Ok(None);
        };
        let folder = undo::folder().ok_or("HOME is not set: there is no place to note the undo")?;
        let (pid, nth) = (std::process::id(), NOTED.fetch_add(1, Ordering::Relaxed));
        let at_ms = now_ms();
        Ok(Some(Undo {
            file: UndoFile::named(&folder, &format!("command-{at_ms}-{pid}-{nth}")),
            note: UndoNote::Command(CommandUndo {
                command: command.clone(),
                folder: self.folder.clone(),
                variables: variables::of_command(command),
                undoes: self.command.clone(),
                at_ms,
                pid,
            }),
        }))
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let ended = |end| ActionResult::Ended { end, deed: None };
        if doing.selected.is_simulated() {
            let reason = "nothing is done to the machine of a simulation".to_owned();
            return ended(StageEnd::Skipped { reason });
        }
        let failed = |why: String| StageEnd::Failed {
            reason: format!("'{}' {why}", self.command),
        };
        let mut child = match self.start(doing.record) {
            Ok(child) => child,
            Err(error) => return ended(failed(format!("cannot be started: {error}"))),
        };
        let what = self.command.clone();
        (doing.tell)(Event::Preparing { what });
        match ShellEnd::await_of(&mut child, self.timeout, doing.control) {
            ShellEnd::Ended(status) if status.success() => ended(StageEnd::Done),
            ShellEnd::Ended(status) => ended(failed(format!("ended with {status}"))),
            ShellEnd::TooLong => ended(failed("took longer than its timeout".to_owned())),
            ShellEnd::Stopped => ActionResult::Interrupted { deed: None },
        }
    }
}

/// How a command that leads a process group of its own came to its end.
#[derive(Debug)]
pub enum ShellEnd {
    /// By itself.
    Ended(ExitStatus),
    /// It was ended after its time.
    TooLong,
    /// It was ended because a stop was asked for.
    Stopped,
}

impl ShellEnd {
    /// Waits for a command, and ends it and what it has started when it is to end.
    pub fn await_of(child: &mut Child, timeout: Option<Duration>, control: &Control) -> Self {
        let started = Instant::now();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Self::Ended(status);
            }
            let is_late = timeout.is_some_and(|timeout| started.elapsed() > timeout);
            if is_late || control.stop_requests() > 0 {
                end(child);
                return if is_late {
                    Self::TooLong
                } else {
                    Self::Stopped
                };
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Ends a command and all that it has started.
fn end(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    // What has ended needs no signal.
    let _ = kill_process_group(group, Signal::TERM);
    let told = Instant::now();
    while told.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}
