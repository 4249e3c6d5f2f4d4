//! The record that a campaign goes on with, and the files in it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_analysis::snia::{CacheSetting, Setup};
use fathom_flow::error::RunError;
use fathom_flow::file_names::{ending, job_path};
use fathom_flow::past::{COMMAND, not_another, real};
use fathom_flow::plan_log::Head;
use fathom_record::{Entries, Header, ListedRun};
use fathom_suites::snia::Snia;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::RunStart;
use crate::plan::{CampaignStep, ResolvedCampaign};

/// Key of the [`CampaignFacts`] in it.
const FACTS: &str = "campaign";
/// The configuration in a campaign's folder.
const CONFIG: &str = ".config";
/// Its copy in the record.
const CONFIG_COPY: &str = "config";

/// What a record's header says of its campaign.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CampaignFacts {
    /// The campaign's folder, without links.
    folder: PathBuf,
    dut: PathBuf,
    engine: String,
}

impl CampaignFacts {
    fn of(plan: &ResolvedCampaign, engine: &str) -> Self {
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

/// The current record of the campaign in `folder`: the last one under
/// `runs_dir` that was made by `run` for it. Records below the campaign's own
/// folder are its own, also when it has been moved.
///
/// # Errors
/// When the records cannot be read, or a later one that may be meant.
pub fn current(folder: &Path, runs_dir: &Path) -> Result<Option<PathBuf>, RunError> {
    current_of(&fathom_record::list(runs_dir)?, folder, runs_dir)
}

/// As [`current`], of the runs that were listed there.
///
/// # Errors
/// As there.
pub fn current_of(
    runs: &[ListedRun],
    folder: &Path,
    runs_dir: &Path,
) -> Result<Option<PathBuf>, RunError> {
    let folder = real(folder);
    let within = real(runs_dir).starts_with(&folder);
    for run in runs.iter().rev() {
        let dir = runs_dir.join(&run.id);
        let of_campaign = |head: Head| !head.folder.as_os_str().is_empty();
        let is_campaign = || match Head::read(&dir) {
            Ok(head) => head.is_some_and(of_campaign),
            Err(_) => true,
        };
        if run
            .command
            .as_ref()
            .map_or_else(|| !is_campaign(), |c| c != COMMAND)
        {
            continue;
        }
        if let Err(error) = &run.summary {
            return Err(not_another(&dir, error));
        }
        let facts = CampaignFacts::read(&Entries::open(&dir)?.header);
        if facts.is_some_and(|facts| within || facts.folder == folder) {
            return Ok(Some(dir));
        }
    }
    Ok(None)
}

/// The engine that measured a campaign's record.
pub fn engine_of(header: &Header) -> Option<String> {
    Some(CampaignFacts::read(header)?.engine)
}

/// The record to go on with, as was asked.
///
/// # Errors
/// When one was asked for and there is none.
pub(super) fn to_go_on_with(
    plan: &ResolvedCampaign,
    runs_dir: &Path,
    begin: RunStart,
) -> Result<Option<PathBuf>, RunError> {
    if begin == RunStart::Again {
        return Ok(None);
    }
    let found = current(&plan.folder, runs_dir)?;
    if found.is_none() && begin == RunStart::Resume {
        return Err(RunError::Missing(format!(
            "there is nothing to resume: no run of this campaign under {}\n  to do: fathom run",
            runs_dir.display()
        )));
    }
    Ok(found)
}

/// Whether a record's tests after SNIA's specification are those of today: rounds
/// of two set-ups are none of one test.
///
/// # Errors
/// That they are not, and what to do.
pub(super) fn must_be_same_tests(header: &Header, now: &[Snia]) -> Result<(), RunError> {
    let kept = header
        .facts
        .get(fathom_suites::snia::FACTS)
        .cloned()
        .unwrap_or_default();
    let kept: Vec<Setup> = serde_json::from_value(kept).unwrap_or_default();
    // The cache was set since.
    let plain = |setup: &Setup| Setup {
        write_cache: CacheSetting::default(),
        ..setup.clone()
    };
    let before = kept.iter().map(plain);
    if before.eq(now.iter().map(|script| plain(&script.setup))) {
        return Ok(());
    }
    Err(RunError::Refused(
        "this campaign's record cannot go on: the configuration of its SNIA tests has changed\n  \
         to do: --again starts a new record"
            .to_owned()
            .into(),
    ))
}

/// The name of a campaign's runs: its folder's.
pub(super) fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(OsStr::new("campaign"));
    name.to_string_lossy().into_owned()
}

/// What a record's header says of its campaign.
pub(super) fn facts(plan: &ResolvedCampaign, engine: &str, snia: &[Snia]) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert(FACTS.to_owned(), json!(CampaignFacts::of(plan, engine)));
    if !snia.is_empty() {
        let setups: Vec<_> = snia.iter().map(|script| &script.setup).collect();
        facts.insert(fathom_suites::snia::FACTS.to_owned(), json!(setups));
    }
    let command = std::env::args_os().map(|arg| Value::from(arg.to_string_lossy()));
    facts.insert("command".to_owned(), command.collect());
    facts
}

/// Keeps a copy of the configuration in the record.
pub(super) fn keep_config(plan: &ResolvedCampaign, dir: &Path) {
    // A plan need not come from a configuration.
    let _ = fs::copy(plan.folder.join(CONFIG), dir.join(CONFIG_COPY));
}

/// Whether a step's job file of this name in a record holds this text.
pub(super) fn holds(record: Option<&Path>, name: &str, step: &CampaignStep, text: &str) -> bool {
    let path = record.map(|dir| dir.join(job_path(name, ending(&step.job_file))));
    path.is_some_and(|path| fs::read(path).is_ok_and(|kept| kept == text.as_bytes()))
}
