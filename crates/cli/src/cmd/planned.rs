//! What runs were asked for: as it is kept in records, for `resume`, and sent to other machines.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use clap::Args;
use fathom_flow::RunOptions;
use fathom_model::Exit;
use fathom_sheet::answer::RunAnswer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Global;
use super::hosts::{HostArgs, usage};
use super::job::request::JobPlan;

/// Field that names the kind of run.
pub const KIND: &str = "kind";

/// How a run is started.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The record to go on with; `None`: a new one.
    pub record: Option<PathBuf>,
    /// It is only shown.
    pub dry_run: bool,
}

impl Start {
    /// A new run, or what it would do.
    pub fn new(dry_run: bool) -> Self {
        Self {
            record: None,
            dry_run,
        }
    }
}

/// The arguments of a command that runs something.
pub trait KindArgs: Args + 'static {
    /// Calls it.
    ///
    /// # Errors
    /// Why it does not run, or did not come to its end.
    fn run(&self, global: &Global) -> anyhow::Result<Exit>;
}

/// What a run was asked for.
pub trait RunRequest: Debug {
    /// What every run can be told.
    fn options(&mut self) -> &mut RunOptions;

    /// Runs it, into a new record or the one to go on with.
    ///
    /// # Errors
    /// Why it does not begin, or did not come to its end.
    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit>;

    /// The jobs that it runs, where others decide what comes next of them.
    fn job(&self) -> Option<&JobPlan> {
        None
    }

    /// Makes it the request of a machine that another Fathom drives and calls `host`; what it
    /// makes goes into this `folder`.
    ///
    /// # Errors
    /// When it needs the current folder, and that is gone.
    fn be_on(&mut self, _host: &str, _folder: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// Confirms the devices that its own text confirms: that text is the user's word for every
    /// start.
    fn confirm_as_written(&mut self) {}

    /// What its record was made to answer.
    fn answer(&self, _record: &Path) -> Option<RunAnswer> {
        None
    }
}

/// A kind of request, by its name in records and on the line to other machines.
pub trait RequestKind: RunRequest + Clone + Serialize + DeserializeOwned + 'static {
    const NAME: &'static str;
}

/// A request as other machines are sent it.
///
/// # Errors
/// When a path in it is not UTF-8, which JSON cannot hold.
pub fn sent<R: RequestKind>(request: &R) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(request)?;
    value[KIND] = R::NAME.into();
    Ok(value)
}

/// A request as it is kept in a record: devices must be named again.
///
/// # Errors
/// As [`sent`]. Paths on the command line have been checked before, so it is the current
/// folder's.
pub fn kept<R: RequestKind>(request: &R) -> anyhow::Result<Value> {
    let mut request = request.clone();
    request.options().destroy.clear();
    sent(&request).map_err(|error| match std::env::current_dir() {
        Ok(here) if here.to_str().is_none() => usage(format!(
            "{}: the path of this folder is not UTF-8, and a record cannot hold it\n  to do: rename it, or run from another",
            here.display()
        )),
        _ => error.into(),
    })
}

/// Refuses to go on with a request on other machines than those of its record.
///
/// # Errors
/// Which those are.
pub fn must_be_on(request: &dyn RunRequest, hosts: &HostArgs) -> anyhow::Result<()> {
    match request.job().and_then(|job| job.hosts.as_ref()) {
        Some(own) => own.must_be(hosts),
        None if hosts.is_given() => Err(usage(
            "the record is of this machine alone\n  to do: leave out --hosts",
        )),
        None => Ok(()),
    }
}
