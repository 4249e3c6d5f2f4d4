//! The life of a run, of every kind: only shown, found done, or run before somebody's eyes
//! and told.

use std::path::Path;

use fathom_engine::Control;
use fathom_flow::error::RunError;
use fathom_flow::{Ending, Finish, Ready};
use fathom_model::Exit;

use super::failed;
use super::screen::{Observer, OnStart, observed};
use super::{Global, dry};
use crate::{out, signals};

/// A run that has come to its end, now or before.
pub struct Ended<'a> {
    /// Its record.
    pub dir: &'a Path,
    /// What its script makes of it.
    pub ending: Option<&'a Ending>,
    /// What came of this start; `None`: nothing was left to do.
    pub finish: Option<&'a Finish>,
    /// Somebody has asked it to stop.
    pub by_hand: bool,
}

impl Ended<'_> {
    /// The exit code that it has by itself.
    pub fn exit(&self) -> Exit {
        self.finish.map_or(Exit::Success, Finish::exit)
    }
}

/// A run that was looked at: what it is, nothing of it begun.
pub trait Prepared: Sized {
    /// The record to go on with.
    fn record(&self) -> Option<&Path>;
    /// Whether an earlier start has done all of it.
    fn is_done(&self) -> bool;
    /// How an earlier start came to the end.
    fn ending(&self) -> Option<Ending>;

    /// Shows what would be done, also when it would be refused; ends as the run would.
    ///
    /// # Errors
    /// The refusal.
    fn show(&self, global: &Global) -> anyhow::Result<Exit>;

    /// Runs it.
    ///
    /// # Errors
    /// Why it does not begin, or that its record cannot be written.
    fn run(
        self,
        control: &Control,
        begun: OnStart<'_>,
        observer: Observer<'_>,
    ) -> Result<Finish, RunError>;
}

impl Prepared for Ready<'_> {
    fn record(&self) -> Option<&Path> {
        Ready::record(self)
    }

    fn is_done(&self) -> bool {
        Ready::is_done(self)
    }

    fn ending(&self) -> Option<Ending> {
        Ready::ending(self)
    }

    fn show(&self, global: &Global) -> anyhow::Result<Exit> {
        dry::show(global, self)
    }

    fn run(
        self,
        control: &Control,
        begun: OnStart<'_>,
        observer: Observer<'_>,
    ) -> Result<Finish, RunError> {
        Ready::run(self, control, begun, observer)
    }
}

/// What a kind of run does in its own way.
pub trait Driven<R: Prepared> {
    /// Shows what would be done, also when it would be refused; ends as the run would.
    ///
    /// # Errors
    /// The refusal.
    fn dry_run(&self, global: &Global, ready: &R) -> anyhow::Result<Exit> {
        ready.show(global)
    }

    /// Whether an earlier start has come to the end.
    fn is_over(&self, ready: &R) -> bool {
        ready.is_done()
    }

    /// Says that nothing is left to do in a record.
    fn nothing_left(&self, global: &Global, _ready: &R, dir: &Path) {
        if !global.quiet {
            out::note(format_args!("Nothing is left to do in {}.", dir.display()));
        }
    }

    /// Prints the plan before the run begins.
    ///
    /// # Errors
    /// Why it must not begin.
    fn plan(&self, _global: &Global, _ready: &R) -> anyhow::Result<()> {
        Ok(())
    }

    /// Runs it and shows its progress; `None`: it was interrupted before it began.
    ///
    /// # Errors
    /// Why it does not begin, or that its record cannot be written.
    fn run(&self, global: &Global, ready: R, control: &Control) -> anyhow::Result<Option<Finish>> {
        begun(observed(global, |begun, observer| {
            ready.run(control, begun, observer)
        }))
    }

    /// Shows what came of it.
    ///
    /// # Errors
    /// That its record cannot be read.
    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit>;
}

/// The result of a run; `None`: it was interrupted before it began.
///
/// # Errors
/// Why it did not begin.
pub fn begun(finish: Result<Finish, RunError>) -> anyhow::Result<Option<Finish>> {
    match finish {
        Err(RunError::Interrupted) => Ok(None),
        finish => Ok(Some(finish.map_err(failed)?)),
    }
}

/// Takes a run that was looked at through its life.
///
/// # Errors
/// Why it does not begin, or did not come to its end.
pub fn drive<R: Prepared>(
    global: &Global,
    ready: R,
    dry_run: bool,
    kind: &dyn Driven<R>,
) -> anyhow::Result<Exit> {
    if dry_run {
        return kind.dry_run(global, &ready);
    }
    if let (true, Some(dir)) = (kind.is_over(&ready), ready.record()) {
        let ending = ready.ending();
        if !matches!(ending, Some(Ending::Failed(_))) {
            kind.nothing_left(global, &ready, dir);
        }
        let ended = Ended {
            dir,
            ending: ending.as_ref(),
            finish: None,
            by_hand: false,
        };
        return kind.conclude(global, &ended);
    }
    kind.plan(global, &ready)?;
    // Taken over before anything starts: an early Ctrl-C leaves no engine behind.
    let control = signals::control()?;
    match kind.run(global, ready, &control)? {
        None => Ok(Exit::Interrupted),
        Some(finish) => kind.conclude(
            global,
            &Ended {
                dir: &finish.dir,
                ending: finish.ending.as_ref(),
                finish: Some(&finish),
                by_hand: control.stop_requests() > 0,
            },
        ),
    }
}
