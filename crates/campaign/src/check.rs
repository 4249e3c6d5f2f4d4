//! Whether the job files in a campaign's folder make sense.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fathom_engine_fio::parse_only;
use fathom_engine_fio::version::Program;
use fathom_jobfile::variables::variable;
use fathom_jobfile::{Diagnostic, JobFile, Severity};

use crate::folder::file;
use crate::plan::ResolvedCampaign;
use crate::{CampaignError, Only, generate};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Job files of the plan that are there and were read.
    pub files: usize,
    /// What is wrong with them; one problem of many files stands once.
    pub problems: Vec<Problem>,
    /// Whether the device (or file) under test is there.
    pub dut_there: bool,
}

/// What is wrong, and in how many files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// In the first of them.
    pub diagnostic: Diagnostic,
    /// How many files have it.
    pub files: usize,
}

/// Reads every job file of a plan as it lies in the folder: with Fathom's own
/// parser, and with `fio` where one is given. The device under test need not
/// be there.
///
/// # Errors
/// When the folder cannot be read, or fio cannot be run.
pub fn check(
    plan: &ResolvedCampaign,
    only: &[Only],
    fio: Option<&Program>,
) -> Result<CheckReport, CampaignError> {
    let mut problems = Problems::default();
    let mut there = Vec::new();
    for (name, wanted) in in_order(plan, only) {
        let path = file(&plan.folder, Path::new(&name));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                if text != wanted {
                    let message = "is not what the configuration gives (an older configuration, \
                                   or changed by hand): `fathom gen` makes it anew";
                    problems.add(whole(&path, Severity::Error, message));
                }
                for diagnostic in JobFile::parse(&text, &path, &variable).diagnostics {
                    problems.add(diagnostic);
                }
                there.push(path);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = "is missing: `fathom gen` makes it";
                problems.add(whole(&path, Severity::Error, message));
            }
            Err(error) => {
                let message = format!("cannot be read: {error}");
                problems.add(whole(&path, Severity::Error, &message));
            }
        }
    }
    for path in generate::left_over(plan, only)? {
        let message = "is left over from another configuration: `fathom gen` removes it";
        problems.add(whole(&path, Severity::Warning, message));
    }
    if let Some(fio) = fio {
        let refused = parse_only::refused(fio, &there);
        for (path, words) in refused.map_err(|error| CampaignError::io(&fio.path, error))? {
            for words in words {
                problems.add(whole(&path, Severity::Error, &format!("fio: {words}")));
            }
        }
    }
    Ok(CheckReport {
        files: there.len(),
        problems: problems.list,
        dut_there: plan.dut.exists(),
    })
}

/// The job files in the order in which they are used.
fn in_order<'p>(plan: &'p ResolvedCampaign, only: &[Only]) -> Vec<(String, Cow<'p, str>)> {
    let mut files = generate::job_files(plan, only);
    let mut ordered = Vec::new();
    let once = |step: &&crate::plan::CampaignStep| step.point.repetition == 1;
    for step in plan.steps.iter().filter(once) {
        ordered.extend(files.remove_entry(step.job_file.to_string_lossy().as_ref()));
    }
    // What is left prepares the device.
    files.into_iter().chain(ordered).collect()
}

fn whole(path: &Path, severity: Severity, message: &str) -> Diagnostic {
    Diagnostic {
        severity,
        path: path.to_owned(),
        line: 0,
        column: 0,
        message: message.to_owned(),
        suggestion: None,
        text: String::new(),
        width: 0,
    }
}

/// Problems that hundreds of files made from one template share stand once.
#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
    places: HashMap<(u32, u32, String), (usize, PathBuf)>,
}

impl Problems {
    fn add(&mut self, mut diagnostic: Diagnostic) {
        // A run goes on with a mistake; a check is asked whether there is one.
        if diagnostic.severity == Severity::Mistake {
            diagnostic.severity = Severity::Error;
        }
        let key = (
            diagnostic.line,
            diagnostic.column,
            diagnostic.message.clone(),
        );
        match self.places.get_mut(&key) {
            Some((at, last)) => {
                if *last != diagnostic.path {
                    self.list[*at].files += 1;
                    *last = diagnostic.path;
                }
            }
            None => {
                let place = (self.list.len(), diagnostic.path.clone());
                self.places.insert(key, place);
                self.list.push(Problem {
                    diagnostic,
                    files: 1,
                });
            }
        }
    }
}
