//! The quick series: well-known tests on ordinary files, without configuration.
//!
//! A [`QuickRequest`] (what was asked) meets a [`Site`] (what a [`QuickHost`] is like) and
//! becomes [`SeriesFacts`]: which tests run, with which options, which are left out
//! and why. [`run`] makes one record of it, a test a step. A [`Teller`] turns
//! the events of a run, live or recorded, into lines; [`QuickRun`] into figures.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use fathom_engine::Control;
use fathom_engine_fio::version::Program;
use fathom_engines::EngineName;
use fathom_engines::choice::{self, Chosen, MissingCapability};
use fathom_fleet::ssh::SshError;
use fathom_model::{Event, Exit, FailureKind, RunStatus};
use fathom_record::{Entries, Header, RecordError};

use fathom_flow::error::RunError;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{Checked, Ending, Finish, Flow, JobStep, Jobs, KeptPlan, Ready};

mod baseline;
mod definition;
mod folder;
mod host;
mod install;
mod jobs;
mod local_host;
mod plan;
mod results;
mod series;
mod ssh_host;
mod within;

pub use baseline::{Baseline, Conditions, DEFAULT_BASELINE, Shelf};
pub use definition::{DEFAULT_GROUP, QuickTest, SeriesGroup, TestSeries, known};
pub use folder::{SIGNATURE, TAG};
pub use host::{FioFacts, FolderState, QuickHost, Site};
pub use jobs::StepIops;
pub use local_host::LocalHost;
pub use plan::{FACTS_KEY, FOLDER, PlannedTest, QuickRequest, SeriesFacts};
pub use results::{QuickRun, TestResult};
pub use series::{SeriesLine, Teller, TestFigures};
pub use ssh_host::{RemoteMode, SshHost, run_there};
pub use within::{SeriesFolders, tasks};

/// Name of the command in a record's header.
pub const COMMAND: &str = "quick";
/// Why it is not simulated.
pub const NOT_SIMULATED: &str =
    "a quick series measures a file system, and a simulated device has none";
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
    Run(RunError),
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
            Self::Record(RecordError::Busy { .. }) => Exit::Refused,
            Self::Ssh(SshError::Record(_)) | Self::Record(_) => Exit::Record,
            Self::Run(error) => error.exit(),
            Self::Ssh(_) | Self::Cut { .. } => Exit::Failed,
            Self::Interrupted => Exit::Interrupted,
            Self::There { exit, .. } => *exit,
        }
    }
}

impl From<QuickError> for RunError {
    fn from(error: QuickError) -> Self {
        let exit = error.exit();
        match (error, exit) {
            (QuickError::Run(error), _) => error,
            (
                QuickError::Record(error) | QuickError::Ssh(SshError::Record(error)),
                Exit::Record,
            ) => Self::Record(error),
            (QuickError::Interrupted, _) => Self::Interrupted,
            (error, Exit::Input | Exit::Usage) => Self::Input(error.to_string()),
            (error, Exit::Refused) => Self::Refused(error.to_string().into()),
            (error, Exit::Missing) => Self::Missing(error.to_string()),
            (error, _) => Self::Failed(error.to_string()),
        }
    }
}

impl From<RunError> for QuickError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted => Self::Interrupted,
            error => Self::Run(error),
        }
    }
}

/// What the caller is told while the series runs.
#[derive(Debug)]
pub enum Notice<'n> {
    /// Something takes a while, or is to be known before the run.
    Text(&'n str),
    /// The run begins; [`SeriesFacts::of`] the header says what it will do.
    Begins(&'n Header),
    /// Something happened.
    Event(&'n Event),
}

/// Takes the notices of a run.
pub type Observer<'o> = dyn FnMut(Notice) + 'o;

/// Where a series is recorded.
#[derive(Debug)]
pub struct SeriesPlace<'p> {
    /// The folder of records.
    pub runs_dir: &'p Path,
    /// The record to go on with; `None`: a new one.
    pub record: Option<PathBuf>,
    /// What it keeps of the plan.
    pub kept: KeptPlan,
}

impl<'p> SeriesPlace<'p> {
    /// A new record without a plan: of a series that is not of this machine's.
    pub fn new(runs_dir: &'p Path) -> Self {
        Self {
            runs_dir,
            record: None,
            kept: KeptPlan::Nothing,
        }
    }
}

/// A series that may run: everything has been looked at, and of the host nothing
/// changed but a missing fio.
pub struct PlannedSeries<'h> {
    host: &'h dyn QuickHost,
    order: &'h QuickRequest,
    site: Site,
    facts: SeriesFacts,
    chosen: Chosen,
    script: Jobs,
}

impl<'h> PlannedSeries<'h> {
    /// Looks, refuses, installs, and chooses the engine.
    ///
    /// # Errors
    /// The refusal; nothing has been written.
    pub fn new(
        host: &'h dyn QuickHost,
        order: &'h QuickRequest,
        observer: &mut Observer,
    ) -> Result<Self, QuickError> {
        order.check()?;
        let mut site = host.look(order.path.as_deref())?;
        let warnings = site.examine(order)?;
        let mut fio_lack = None;
        if site.fio.is_none() && order.options.engine() != EngineName::Native {
            match install(host, order, &site, observer) {
                Ok(with_fio) => site = with_fio,
                // The user named this fio: do not fall back to another engine.
                Err(error) if is_fio_named(host, order) => return Err(error),
                Err(error) => fio_lack = Some(error.to_string()),
            }
        }
        let chosen = choose(host, order, &site, fio_lack, observer)?;
        let facts = SeriesFacts::new(order, &site, chosen, warnings);
        if let [only] = &facts.tests[..]
            && let Some(reason) = &only.skipped
        {
            return Err(QuickError::Missing(format!(
                "\"{}\" cannot run here: {reason}",
                only.name
            )));
        }
        Ok(Self {
            script: steps(&facts),
            host,
            order,
            site,
            facts,
            chosen,
        })
    }

    /// What it will do.
    pub fn facts(&self) -> &SeriesFacts {
        &self.facts
    }

    /// As the executor runs it.
    ///
    /// # Errors
    /// When the engine is gone, or the record is of another series.
    pub fn ready(&self, place: SeriesPlace<'_>) -> Result<Ready<'_>, QuickError> {
        let flow = Flow {
            script: &self.script,
            command: COMMAND,
            name: COMMAND,
            device: None,
            work_dir: self.facts.folder.clone(),
            options: self.order.options.clone(),
            engine_needs: Vec::new(),
            interval: INTERVAL,
            runs_dir: place.runs_dir.to_owned(),
            record: place.record,
            ledgers: Ledgers::of_user(),
            facts: self.facts.to_header(),
            kept: place.kept,
        };
        let checked = Checked {
            selected: self.host.engine(self.chosen)?,
            is_here: self.host.is_here(),
            environment: self.site.environment.clone(),
            written: vec![self.facts.folder.clone()],
            notes: Vec::new(),
            layouts: Vec::new(),
            refusal: None,
        };
        Ok(flow.checked(checked)?)
    }
}

/// Whether a certain fio is asked for, by an option or, on this machine, by `FATHOM_FIO`.
fn is_fio_named(host: &dyn QuickHost, order: &QuickRequest) -> bool {
    let fio = order.options.fio.as_deref();
    fio.is_some() || (host.is_here() && Program::is_named(None))
}

/// Brings fio to a host that lacks it; gives the host as it is then.
fn install(
    host: &dyn QuickHost,
    order: &QuickRequest,
    site: &Site,
    observer: &mut Observer,
) -> Result<Site, QuickError> {
    let name = &site.environment.hostname;
    if is_fio_named(host, order) {
        let named = order.options.fio.as_deref();
        let lack = match Program::find(named).and_then(|fio| fio.version()) {
            Err(failure) if host.is_here() => failure.to_string(),
            _ => {
                let fio = named.unwrap_or(Path::new("fio")).display();
                format!("{fio} is not a working fio on {name}")
            }
        };
        return Err(QuickError::Missing(lack));
    }
    if !order.may_install || !site.is_root {
        return Err(install::refusal(name, order.may_install));
    }
    if order.dry_run {
        let what = format!("fio is missing on {name}, and a dry run does not install it");
        return Err(QuickError::Missing(what));
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
    host: &dyn QuickHost,
    order: &QuickRequest,
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
        MissingCapability::unless_none(FailureKind::EngineMissing, lacks)
    };
    let with = |must_be_whole: bool| {
        choice::choose(
            order.options.engine(),
            || match &fio_lack {
                Some(lack) => Err(MissingCapability::new(
                    FailureKind::FioMissing,
                    lack.as_str(),
                )),
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

/// Runs the series on `host`, and records it.
///
/// # Errors
/// When it is refused, or the record cannot be written. Tests that fail do not
/// end the run: they are rows of the record.
pub fn run(
    host: &dyn QuickHost,
    order: &QuickRequest,
    place: SeriesPlace<'_>,
    control: &Control,
    observer: &mut Observer,
) -> Result<Finish, QuickError> {
    let planned = PlannedSeries::new(host, order, observer)?;
    let PlannedSeries { site, facts, .. } = &planned;
    if place.record.is_none() {
        fathom_record::check_folder(place.runs_dir)?;
    }
    // A folder that is there is held before others rely on it; one that is not is
    // made once nobody stands against the run.
    let is_there = matches!(&site.state, FolderState::Ours { files, .. } if !files.is_empty());
    let held = is_there
        .then(|| host.prepare(&facts.folder, facts.nocow))
        .transpose()?;
    if control.stop_requests() > 0 {
        return Err(QuickError::Interrupted);
    }
    let mut header = Header {
        environment: Some(site.environment.clone()),
        facts: facts.to_header(),
        ..Header::new(COMMAND, COMMAND)
    };
    if let Some(dir) = &place.record {
        header = Entries::open(dir)?.header;
    }
    let mut ready = planned.ready(place)?;
    if let (true, Some(dir)) = (ready.is_done(), ready.record()) {
        return Ok(nothing_left(dir, observer));
    }
    ready.hold(control)?;
    let _hold = match held {
        Some(held) => held,
        None => host.prepare(&facts.folder, facts.nocow)?,
    };
    let observer = RefCell::new(observer);
    let tell = |notice: Notice| (observer.borrow_mut())(notice);
    let mut in_step = false;
    let finish = ready.run(
        control,
        &mut |_| tell(Notice::Begins(&header)),
        &mut |event| {
            match event {
                Event::Step { .. } => in_step = true,
                Event::StepEnded { .. } => in_step = false,
                // What limits and ledgers have to say of the whole run.
                Event::Note { text } if !in_step => tell(Notice::Text(text)),
                _ => {}
            }
            tell(Notice::Event(event));
        },
    );
    Ok(finish?)
}

fn nothing_left(dir: &Path, observer: &mut Observer) -> Finish {
    let text = format!("Nothing is left to do in {}.", dir.display());
    observer(Notice::Text(&text));
    Finish {
        dir: dir.to_owned(),
        status: RunStatus::Complete,
        ending: Some(Ending::Complete),
        stopped: None,
        waits: None,
        refused: false,
        no_room: 0,
        spent: None,
    }
}

/// One step a test that runs.
fn steps(facts: &SeriesFacts) -> Jobs {
    let tests = (1..).zip(&facts.tests);
    let run: Vec<_> = tests.filter(|(_, test)| test.skipped.is_none()).collect();
    let of = u32::try_from(run.len()).unwrap_or(u32::MAX);
    let step = |(number, (place, test)): (u32, (u32, &PlannedTest))| JobStep {
        job_file: PathBuf::from(format!("{place:02}.fio")),
        raw: PathBuf::from(format!("{place:02}")),
        work_dir: Some(facts.folder.clone()),
        interval: INTERVAL,
        ..JobStep::new((number, of), &test.name, test.job_file(), &[test.spec()])
    };
    Jobs((1..).zip(run).map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_series_keeps_its_exit_code_in_a_plan() {
        let lost = || SshError::Lost {
            target: "lab".into(),
        };
        let full = || RecordError::File {
            path: "r".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        let errors = [
            (QuickError::Input("x".into()), Exit::Input),
            (QuickError::Refused("x".into()), Exit::Refused),
            (QuickError::Missing("x".into()), Exit::Missing),
            (QuickError::Record(full()), Exit::Record),
            (QuickError::Ssh(SshError::Record(full())), Exit::Record),
            (QuickError::Ssh(lost()), Exit::Failed),
            (QuickError::Interrupted, Exit::Interrupted),
            (QuickError::Run(RunError::Record(full())), Exit::Record),
            (
                QuickError::Run(RunError::Refused("x".into())),
                Exit::Refused,
            ),
        ];
        for (error, exit) in errors {
            assert_eq!(error.exit(), exit, "{error:?}");
            let told = format!("{error:?}");
            assert_eq!(RunError::from(error).exit(), exit, "{told}");
        }
    }
}
