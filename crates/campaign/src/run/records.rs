//! The record that a campaign goes on with, and the files in it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_analysis::snia::{Setup, WriteCache};
use fathom_engine::select::Selected;
use fathom_engine::sim::SIMULATED;
use fathom_model::Environment;
use fathom_record::{Entries, Header, RecordError, Writer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Begin, PLAN_FILE, RunError, identity};
use crate::plan::{Plan, Step};
use crate::snia::Snia;

/// Name of the command in a record's header.
pub const COMMAND: &str = "run";
/// Key of the [`Facts`] in it.
const FACTS: &str = "campaign";
/// The configuration in a campaign's folder.
const CONFIG: &str = ".config";
/// Its copy in the record.
const CONFIG_COPY: &str = "config";

/// What a record's header says of its campaign.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Facts {
    /// The campaign's folder, without links.
    folder: PathBuf,
    dut: PathBuf,
    engine: String,
}

impl Facts {
    fn of(plan: &Plan, engine: &str) -> Self {
        Self {
            folder: real(&plan.folder),
            dut: plan.dut.clone(),
            engine: engine.to_owned(),
        }
    }

    fn read(header: &Header) -> Option<Self> {
        serde_json::from_value(header.facts.get(FACTS)?.clone()).ok()
    }
}

/// A folder without links and dots, as far as it exists.
pub(crate) fn real(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    fs::canonicalize(&absolute).unwrap_or(absolute)
}

/// The current record of the campaign in `folder`: the last one under
/// `runs_dir` that was made by `run` for it. Records below the campaign's own
/// folder are its own, also when it has been moved.
///
/// # Errors
/// When the records cannot be read, or a later one that may be meant.
pub fn current(folder: &Path, runs_dir: &Path) -> Result<Option<PathBuf>, RunError> {
    let folder = real(folder);
    let within = real(runs_dir).starts_with(&folder);
    for run in fathom_record::list(runs_dir)?.iter().rev() {
        let dir = runs_dir.join(&run.id);
        let is_campaign = dir.join(PLAN_FILE).exists();
        if run.command.as_ref().map_or(!is_campaign, |c| c != COMMAND) {
            continue;
        }
        if let Err(error) = &run.summary {
            return Err(not_another(&dir, error));
        }
        let facts = Facts::read(&Entries::open(&dir)?.header);
        if facts.is_some_and(|facts| within || facts.folder == folder) {
            return Ok(Some(dir));
        }
    }
    Ok(None)
}

/// Who asks for the last run of a kind is not given an older one when it may be
/// one that cannot be read.
pub(crate) fn not_another(dir: &Path, unreadable: &RecordError) -> RunError {
    RunError::Refused(format!(
        "the run that is meant may be one that cannot be read: {unreadable}\n  to do: name the run, or move {} out of the folder of runs",
        dir.display()
    ))
}

/// The engine that measured a campaign's record.
#[must_use]
pub fn engine_of(header: &Header) -> Option<String> {
    Some(Facts::read(header)?.engine)
}

/// The record to go on with, as was asked.
///
/// # Errors
/// When one was asked for and there is none.
pub(super) fn to_go_on_with(
    plan: &Plan,
    runs_dir: &Path,
    begin: Begin,
) -> Result<Option<PathBuf>, RunError> {
    if begin == Begin::Again {
        return Ok(None);
    }
    let found = current(&plan.folder, runs_dir)?;
    if found.is_none() && begin == Begin::Resume {
        return Err(RunError::Missing(format!(
            "there is nothing to resume: no run of this campaign under {}\n  to do: fathom run",
            runs_dir.display()
        )));
    }
    Ok(found)
}

/// Whether a run may go on in the record with this header, which the engine
/// `before` made: the same device, by the same engine.
///
/// # Errors
/// The difference, and what to do.
pub(crate) fn must_fit(
    dut: &Path,
    before: Option<&str>,
    header: &Header,
    selected: &Selected,
    environment: &Environment,
) -> Result<(), RunError> {
    let refused = |difference: String| {
        RunError::Refused(format!(
            "this record cannot go on: {difference}\n  to do: --again starts a new record"
        ))
    };
    let engine = selected.engine().name();
    if let Some(before) = before.filter(|&before| before != engine) {
        return Err(refused(format!(
            "its figures are of the engine {before}, now {engine} would measure, and both in one record cannot be compared"
        )));
    }
    if selected.is_simulated() {
        return Ok(());
    }
    let before = identity::dut(header.environment.as_ref(), dut);
    let now = identity::dut(Some(environment), dut);
    let difference = match (before, now) {
        (Some(before), Some(now)) => identity::difference(before, now),
        (None, _) => Some(format!(
            "it is not of {}, which is to be measured now",
            dut.display()
        )),
        (_, None) => None,
    };
    difference.map_or(Ok(()), |difference| Err(refused(difference)))
}

/// Whether a record's tests after SNIA's specification are those of today: rounds
/// of two set-ups are none of one test.
///
/// # Errors
/// That they are not, and what to do.
pub(super) fn must_be_same_tests(header: &Header, now: &[Snia]) -> Result<(), RunError> {
    let kept = header
        .facts
        .get(crate::snia::FACTS)
        .cloned()
        .unwrap_or_default();
    let kept: Vec<Setup> = serde_json::from_value(kept).unwrap_or_default();
    // The cache was set since.
    let plain = |setup: &Setup| Setup {
        write_cache: WriteCache::default(),
        ..setup.clone()
    };
    let before = kept.iter().map(plain);
    if before.eq(now.iter().map(|script| plain(&script.setup))) {
        return Ok(());
    }
    Err(RunError::Refused(
        "this campaign's record cannot go on: the configuration of its SNIA tests has changed\n  \
         to do: --again starts a new record"
            .to_owned(),
    ))
}

/// Begins a new record.
///
/// # Errors
/// When it cannot be written.
pub(super) fn create(
    plan: &Plan,
    runs_dir: &Path,
    selected: &Selected,
    environment: &Environment,
    snia: Option<Value>,
) -> Result<Writer, RunError> {
    let folder = real(&plan.folder);
    let name = folder.file_name().unwrap_or(OsStr::new("campaign"));
    let mark = if selected.is_simulated() {
        SIMULATED
    } else {
        ""
    };
    let mut header = Header::new(&format!("{}{mark}", name.to_string_lossy()), COMMAND);
    header.environment = Some(environment.clone());
    add_facts(&mut header, plan, selected.engine().name());
    if let Some(setups) = snia {
        header.facts.insert(crate::snia::FACTS.to_owned(), setups);
    }
    let command: Vec<_> = std::env::args_os()
        .map(|arg| Value::from(arg.to_string_lossy()))
        .collect();
    header
        .facts
        .insert("command".to_owned(), Value::from(command));
    let writer = Writer::create(runs_dir, &header)?;
    keep_config(plan, writer.dir());
    Ok(writer)
}

/// Says in a record's header of which campaign it is.
pub(super) fn add_facts(header: &mut Header, plan: &Plan, engine: &str) {
    let facts = Facts::of(plan, engine);
    header.facts.insert(FACTS.to_owned(), json!(facts));
}

/// Keeps a copy of the configuration in the record.
pub(super) fn keep_config(plan: &Plan, dir: &Path) {
    // A plan need not come from a configuration.
    let _ = fs::copy(plan.folder.join(CONFIG), dir.join(CONFIG_COPY));
}

/// The path of a job file in the record, by its name there.
pub(crate) fn job_path(name: &str, ending: &str) -> PathBuf {
    Path::new("jobs").join(format!("{name}.{ending}"))
}

/// The ending of the job files of stages.
pub(crate) const JOB_ENDING: &str = "fio";

/// The ending of a step's job file.
pub(crate) fn ending(step: &Step) -> &str {
    let ending = step.job_file.extension().and_then(OsStr::to_str);
    ending.unwrap_or(JOB_ENDING)
}

/// Texts of the job files in a record; the last one is remembered, because
/// repetitions have the same.
#[derive(Debug, Default)]
pub(super) struct Texts {
    dir: Option<PathBuf>,
    known: HashMap<PathBuf, String>,
}

/// How many versions of a job file a record can hold.
const VERSIONS_MAX: u32 = 1000;

impl Texts {
    pub(super) fn of(record: Option<&Path>) -> Self {
        Self {
            dir: record.map(Path::to_owned),
            known: HashMap::new(),
        }
    }

    /// Whether the job file of this name holds this text.
    pub(super) fn is(&mut self, name: &str, step: &Step, text: &str) -> bool {
        let Some(dir) = &self.dir else { return false };
        let path = dir.join(job_path(name, ending(step)));
        if self.known.len() > 16 {
            self.known.clear();
        }
        let known = self
            .known
            .entry(path)
            .or_insert_with_key(|path| fs::read_to_string(path).unwrap_or_default());
        known == text
    }
}

/// The name under which a text is kept as a job file in the record: the id of
/// its point or stage, or, when another text has that already, the id with a
/// number.
pub(crate) fn job_name(dir: &Path, id: &str, ending: &str, text: &str) -> String {
    let mut name = id.to_owned();
    for version in 2..VERSIONS_MAX {
        match fs::read(dir.join(job_path(&name, ending))) {
            Ok(kept) if kept != text.as_bytes() => name = format!("{id}.{version}"),
            _ => break,
        }
    }
    name
}

/// The files of a step: its job file as it is kept in the record, and a new
/// folder for the engine's outputs, both absolute, because fio runs in another
/// folder than this process may.
///
/// # Errors
/// The path that cannot be written, and why.
pub(crate) fn step_files(
    dir: &Path,
    name: &str,
    (id, repetition): (&str, u32),
    ending: &str,
    text: &str,
) -> Result<(PathBuf, PathBuf), (PathBuf, io::Error)> {
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let job_file = dir.join(job_path(name, ending));
    if let Err(source) = keep_job(&job_file, text) {
        return Err((job_file, source));
    }
    match raw_dir(dir, id, repetition) {
        Ok(raw_dir) => Ok((absolute(job_file), absolute(raw_dir))),
        Err(source) => Err((dir.join("raw"), source)),
    }
}

/// Keeps a job file in the record, once.
///
/// # Errors
/// When it cannot be written.
fn keep_job(path: &Path, text: &str) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// A folder for the engine's own outputs of a step, that no earlier attempt used.
///
/// # Errors
/// When it cannot be made.
fn raw_dir(dir: &Path, id: &str, repetition: u32) -> io::Result<PathBuf> {
    let mut name = id.to_owned();
    if repetition > 1 {
        name = format!("{name}.r{repetition}");
    }
    let first = dir.join("raw").join(&name);
    if let Some(above) = first.parent() {
        fs::create_dir_all(above)?;
    }
    let mut path = first.clone();
    let mut attempt = 1u32;
    loop {
        match fs::create_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < VERSIONS_MAX => {
                attempt += 1;
                path = dir.join("raw").join(format!("{name}.try{attempt}"));
            }
            Err(e) => return Err(e),
            Ok(()) => return Ok(path),
        }
    }
}
