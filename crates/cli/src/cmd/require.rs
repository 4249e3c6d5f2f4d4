//! `--require`: of everything that measures, whether its figures are true enough.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::ArgMatches;
use fathom_analysis::verdict;
use fathom_model::{Exit, VerdictLevel};

use super::Global;
use super::measuring::innermost;
use crate::out;

/// Id and name of the option.
const REQUIRE: &str = "require";

/// What is asked of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RequiredVerdict {
    /// Every figure is valid
    Valid,
    /// No figure is invalid
    Suspect,
}

impl RequiredVerdict {
    fn worst(self) -> VerdictLevel {
        match self {
            Self::Valid => VerdictLevel::Valid,
            Self::Suspect => VerdictLevel::Suspect,
        }
    }
}

/// The option, in the definition of a command. Its value is [`Requirement`]'s.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct RequireArg {
    /// End with exit code 7 unless every figure is valid, or none is invalid
    #[arg(id = REQUIRE, long = REQUIRE, value_name = "VERDICT")]
    _require: Option<RequiredVerdict>,
}

/// What is asked of this command's figures, and the records that it has made.
#[derive(Debug, Clone, Default)]
pub struct Requirement {
    required: Option<RequiredVerdict>,
    records: Arc<Mutex<Vec<PathBuf>>>,
}

impl Requirement {
    /// What this command line asks for.
    pub fn of(matches: &ArgMatches) -> Self {
        let own = |at: &ArgMatches| at.try_get_one(REQUIRE).ok().flatten().copied();
        Self {
            required: innermost(matches, &own),
            ..Self::default()
        }
    }

    /// The records that this command has made so far.
    pub fn records(&self) -> Vec<PathBuf> {
        let records = self.records.lock();
        records.unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// This command measures into a record.
    pub fn note(&self, record: &Path) {
        let mut records = self.records.lock().unwrap_or_else(|e| e.into_inner());
        if !records.iter().any(|known| known == record) {
            records.push(record.to_owned());
        }
    }
}

/// The exit code of a command that did everything it was asked to: says which figures do
/// not hold.
///
/// # Errors
/// When a record cannot be read.
pub fn check(global: &Global) -> anyhow::Result<Exit> {
    let Some(required) = global.requirement.required else {
        return Ok(Exit::Success);
    };
    let mut exit = Exit::Success;
    for record in global.requirement.records() {
        let doc = fathom_document::read(&record)?;
        let results = verdict::results(&doc);
        if results
            .iter()
            .all(|job| job.directions().all(|(_, it)| it.verdict.is_none()))
        {
            out::note(format_args!(
                "fathom: {}: there are no figures to require anything of",
                doc.id
            ));
            exit = Exit::ConditionFailed;
        }
        for job in results {
            for (dir, result) in job.directions() {
                let Some(verdict) = result.verdict.as_ref() else {
                    continue;
                };
                if verdict.level <= required.worst() {
                    continue;
                }
                exit = Exit::ConditionFailed;
                let step = job
                    .step
                    .as_ref()
                    .map_or_else(String::new, |step| format!("{step}: "));
                let level = verdict.level.name();
                for reason in verdict.against().filter(|it| it.level > required.worst()) {
                    out::note(format_args!(
                        "fathom: {step}{} {}: {level}: {}\n  to do: {}",
                        job.name,
                        dir.name(),
                        reason.sentence,
                        reason.to_do
                    ));
                }
            }
        }
    }
    Ok(exit)
}
