//! The quick series: well-known tests on ordinary files, without configuration.
//!
//! An [`Order`] (what was asked) meets a [`Site`] (what a [`Host`] is like) and
//! becomes [`Facts`]: which tests run, with which options, which are left out
//! and why. [`run`] makes one record of it, a test a step. A [`Teller`] turns
//! the events of a run, live or recorded, into lines; [`QuickRun`] into figures.

use std::io;
use std::path::{Path, PathBuf};

use fathom_engine::choice::{self, Chosen, Lack, Wish};
use fathom_engine::{Control, Request};
use fathom_fleet::local::{self, StepRequest};
use fathom_fleet::ssh::SshError;
use fathom_model::{Event, Exit, FailureKind, RunStatus};
use fathom_record::{Header, RecordError, Writer};

use crate::ledger::BytesWritten;

mod baseline;
mod definition;
mod folder;
mod here;
mod host;
mod install;
mod jobs;
mod plan;
mod results;
mod series;
mod there;

pub use baseline::{Baseline, Conditions, DEFAULT_BASELINE, Shelf};
pub use definition::{DEFAULT_GROUP, Group, Series, Test, format_size, known, parse_size};
pub use folder::{SIGNATURE, TAG};
pub use here::Here;
pub use host::{FioFacts, FolderState, Hold, Host, Site};
pub use plan::{FACTS_KEY, FOLDER, Facts, Order, PlannedTest};
pub use results::{Compared, Comparison, QuickRun, TestResult, compare};
pub use series::{Figures, Line, Teller};
pub use there::{RemoteMode, There, run_there};

/// Name of the command in a record's header.
pub const COMMAND: &str = "quick";
/// Time between two samples of a test.
pub const INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Why the series cannot run, or a file of it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QuickError {
    /// A group or baseline file is wrong.
    #[error("{path}: {reason}")]
    Definition {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where there is one.
        reason: String,
    },
    /// There is no such group.
    #[error("there is no group \"{name}\"; known are {known} (a path names a group file)")]
    NoGroup {
        /// As given.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The order makes no sense.
    #[error("{0}")]
    Order(String),
    /// Something given is not what it must be.
    #[error("{0}")]
    Input(String),
    /// Refused so that no data is lost and no figure misleads.
    #[error("{0}")]
    Refused(String),
    /// A folder of the name of ours that does not carry the tag.
    #[error(
        "{0} was not made by this series: it carries no {TAG} of ours. It was not removed and \
             not written to; move it away"
    )]
    NotOurs(PathBuf),
    /// A named test without the files of a full run.
    #[error(
        "Test directory must pre-exist to repeat a specific test: {0} does not hold the files \
             of a full run; run all tests first"
    )]
    NoFullRun(PathBuf),
    /// Something needed is not there.
    #[error("{0}")]
    Missing(String),
    /// A file or folder cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another machine could not be used.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// The record could not be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] local::FleetError),
    /// Stopped before anything ran.
    #[error("interrupted")]
    Interrupted,
    /// The Fathom on the other machine refused.
    #[error("{message}")]
    There {
        /// Exit code, as in [`Exit`].
        exit: Exit,
        /// Its words.
        message: String,
    },
    /// The connection was cut while the series ran.
    #[error("{reason}; what was measured until then is in {record}")]
    Cut {
        /// What happened.
        reason: String,
        /// The record's folder.
        record: PathBuf,
    },
}

impl QuickError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    /// The exit code that fits.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Definition { .. } | Self::NoGroup { .. } | Self::Order(_) | Self::Input(_) => {
                Exit::Input
            }
            Self::File { .. } => Exit::Input,
            Self::Refused(_) | Self::NotOurs(_) => Exit::Refused,
            Self::NoFullRun(_) | Self::Missing(_) | Self::Record(RecordError::NotFound(_)) => {
                Exit::Missing
            }
            Self::Ssh(SshError::NoClient { .. } | SshError::NotConnected { .. }) => Exit::Missing,
            Self::Ssh(SshError::Record(_)) | Self::Record(_) | Self::Run(_) => Exit::Record,
            Self::Ssh(_) | Self::Cut { .. } => Exit::Failed,
            Self::Interrupted => Exit::Interrupted,
            Self::There { exit, .. } => *exit,
        }
    }
}

/// What the caller is told while the series runs.
#[derive(Debug)]
pub enum Notice<'n> {
    /// Something takes a while, or is to be known before the run.
    Text(&'n str),
    /// The run begins; [`Facts::of`] the header says what it will do.
    Begins(&'n Header),
    /// Something happened.
    Event(&'n Event),
}

/// Takes the notices of a run.
pub type Observer<'o> = dyn FnMut(Notice) + 'o;

/// Looks, refuses, installs, and makes ready: everything before the first test.
///
/// # Errors
/// The refusal; nothing has been written but what it names.
fn ready(
    host: &dyn Host,
    order: &Order,
    observer: &mut Observer,
) -> Result<(Site, Facts, Chosen), QuickError> {
    order.check()?;
    let mut site = host.look(order.path.as_deref())?;
    let warnings = site.examine(order)?;
    let mut fio_lack = None;
    if site.fio.is_none() && order.engine != Wish::Native {
        match install(host, order, &site, observer) {
            Ok(with_fio) => site = with_fio,
            Err(error) => fio_lack = Some(error.to_string()),
        }
    }
    let engine = choose(host, order, &site, fio_lack, observer)?;
    let facts = Facts::new(order, &site, engine, warnings);
    if let [only] = &facts.tests[..]
        && let Some(reason) = &only.skipped
    {
        return Err(QuickError::Missing(format!(
            "\"{}\" cannot run here: {reason}",
            only.name
        )));
    }
    Ok((site, facts, engine))
}

/// Brings fio to a host that lacks it; gives the host as it is then.
fn install(
    host: &dyn Host,
    order: &Order,
    site: &Site,
    observer: &mut Observer,
) -> Result<Site, QuickError> {
    let name = &site.environment.hostname;
    if !order.may_install || !site.is_root {
        return Err(install::refusal(name, order.may_install));
    }
    observer(Notice::Text(&format!(
        "fio is missing on {name}: installing it ..."
    )));
    host.install_fio()?;
    let after = host.look(order.path.as_deref())?;
    if after.fio.is_none() {
        return Err(QuickError::Missing(format!(
            "fio is still missing on {name} after installing it"
        )));
    }
    Ok(after)
}

/// The engine for all tests: one that has what every test needs, else one that
/// is there at all; tests that it cannot run are left out.
fn choose(
    host: &dyn Host,
    order: &Order,
    site: &Site,
    fio_lack: Option<String>,
    observer: &mut Observer,
) -> Result<Chosen, QuickError> {
    let whole = |engine: Chosen, must_be: bool| {
        let lacks = if must_be {
            site.lacks(order, engine)
        } else {
            Vec::new()
        };
        Lack::unless_none(FailureKind::EngineMissing, lacks)
    };
    let with = |must_be_whole: bool| {
        choice::choose(
            order.engine,
            || match &fio_lack {
                Some(lack) => Err(Lack::new(FailureKind::FioMissing, lack.as_str())),
                None => whole(Chosen::Fio, must_be_whole),
            },
            || {
                host.has_native()?;
                whole(Chosen::Native, must_be_whole)
            },
        )
    };
    let (chosen, passed_over) = with(true)
        .or_else(|_| with(false))
        .map_err(|none| QuickError::Missing(none.to_string()))?;
    if let Some(lack) = passed_over {
        let text = format!("{lack}: the native engine runs the tests");
        observer(Notice::Text(&text));
    }
    Ok(chosen)
}

/// Runs the series on `host` and records it under `runs_dir`; gives the record's
/// folder and how the run ended.
///
/// # Errors
/// When it is refused, or the record cannot be written. Tests that fail do not
/// end the run: they are rows of the record.
pub fn run(
    host: &dyn Host,
    order: &Order,
    runs_dir: &Path,
    control: &Control,
    observer: &mut Observer,
) -> Result<(PathBuf, RunStatus), QuickError> {
    let (site, facts, chosen) = ready(host, order, observer)?;
    // A folder that is there is held before others rely on it; one that is not is
    // made once nobody stands against the run.
    let is_there = matches!(&site.state, FolderState::Ours { files, .. } if !files.is_empty());
    let held = is_there.then(|| host.prepare(&facts.folder)).transpose()?;
    if control.stop_requests() > 0 || !control.all_are_ready() {
        return Err(QuickError::Interrupted);
    }
    let engine = host.engine(chosen)?;
    let _hold = match held {
        Some(held) => held,
        None => host.prepare(&facts.folder)?,
    };
    let header = Header {
        environment: Some(site.environment),
        facts: facts.to_header(),
        ..Header::new(COMMAND, COMMAND)
    };
    let writer = Writer::create(runs_dir, &header)?;
    let steps = steps(&facts, &writer)?;
    observer(Notice::Begins(&header));
    let ledgers = host.ledgers();
    let mut notes = ledgers.begin([facts.folder.as_path()], COMMAND, Some(writer.dir()));
    let mut moved = BytesWritten::default();
    let mut on_event = |event: &Event| {
        moved.take(event);
        observer(Notice::Event(event));
    };
    let (dir, status) = local::run(
        engine.as_ref(),
        &steps,
        writer,
        host.targets(),
        control,
        &mut on_event,
    )?;
    notes.extend(ledgers.end(COMMAND, &dir, moved.of_jobs()));
    notes.iter().for_each(|note| observer(Notice::Text(note)));
    Ok((dir, status))
}

/// One step a test that runs; its job file lies in the record.
fn steps(facts: &Facts, writer: &Writer) -> Result<Vec<StepRequest>, QuickError> {
    let absolute = |path: PathBuf| {
        std::path::absolute(&path).map_err(|source| QuickError::file(&path, source))
    };
    let jobs_dir = absolute(writer.jobs_dir()?)?;
    let raw_dir = absolute(writer.raw_dir()?)?;
    let mut steps = Vec::new();
    for (place, test) in facts.tests.iter().enumerate() {
        if test.skipped.is_some() {
            continue;
        }
        let number = format!("{:02}", place + 1);
        let job_file = jobs_dir.join(format!("{number}.fio"));
        std::fs::write(&job_file, test.job_file())
            .map_err(|source| QuickError::file(&job_file, source))?;
        steps.push(StepRequest {
            name: test.name.clone(),
            request: Request {
                job_file,
                sections: vec![],
                extra_args: vec![],
                work_dir: facts.folder.clone(),
                raw_dir: raw_dir.join(number),
                interval: INTERVAL,
                deadline: None,
            },
            max_errors: None,
        });
    }
    Ok(steps)
}
