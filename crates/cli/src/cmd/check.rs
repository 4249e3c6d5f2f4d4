//! `fathom check`: whether the job files of a campaign make sense.

use fathom_campaign::check::{Problem, check};
use fathom_campaign::plan::ResolvedCampaign;
use fathom_engine_fio::version::Program;
use fathom_jobfile::{Diagnostic, Severity};
use fathom_model::{Exit, units};
use fathom_prepare::settings::Overrides;
use serde::Serialize;

use super::campaign::{CampaignArgs, exit_error, tell_notes};
use super::job::present;
use super::{ExitError, Global};
use crate::out;

/// Check the job files of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads every job file and reports what is wrong with its place; a problem that many files share
stands once. Nothing is run, and the device need not be there.

Examples:
  fathom check                       in the current folder
  fathom check --with-fio            asks the installed fio, too
  fathom check --json | jq '.problems[].message'

Ends with 0 when all jobs can run, with 3 when some cannot, with 5 when --with-fio finds no fio.")]
pub struct Args {
    #[command(flatten)]
    which: CampaignArgs,
    /// Also ask fio (--parse-only) whether it takes them
    #[arg(long)]
    with_fio: bool,
}

/// What `--json` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'a> {
    /// `fathom.check/1`
    schema: &'static str,
    files: usize,
    errors: usize,
    warnings: usize,
    /// The device (or file) under test, and whether it is there.
    dut: String,
    dut_there: bool,
    /// Version of the fio that was asked.
    fio: Option<String>,
    problems: Vec<CheckedFile<'a>>,
    notes: &'a [String],
}

#[derive(Serialize, schemars::JsonSchema)]
struct CheckedFile<'a> {
    #[serde(flatten)]
    diagnostic: &'a Diagnostic,
    /// How many files have it.
    files: usize,
}

/// Checks the files.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let plan = args.which.plan(&Overrides::default())?;
    let fio = args.with_fio.then(fio).transpose()?;
    let report = check(&plan, &args.which.only, fio.as_ref()).map_err(exit_error)?;
    let problems = &report.problems;
    let of = |severity| {
        problems
            .iter()
            .filter(move |p| p.diagnostic.severity == severity)
    };
    let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
    if global.json {
        out::json(&Document {
            schema: "fathom.check/1",
            files: report.files,
            errors,
            warnings,
            dut: plan.dut.display().to_string(),
            dut_there: report.dut_there,
            fio: fio.and_then(|fio| Some(fio.version().ok()?.to_string())),
            problems: problems.iter().map(CheckedFile::from).collect(),
            notes: &plan.notes,
        })?;
    } else {
        tell_notes(&plan.notes);
        for problem in problems {
            tell(problem);
        }
        if !global.quiet {
            out::line(summary(&plan, report.files, errors, warnings));
            if !report.dut_there {
                let dut = plan.dut.display();
                out::line(format_args!(
                    "{dut} is not there: the files were checked without it"
                ));
            }
        }
    }
    Ok(if errors > 0 {
        Exit::Input
    } else {
        Exit::Success
    })
}

fn fio() -> Result<Program, ExitError> {
    Program::find(None).map_err(|failure| ExitError::new(Exit::Missing, failure))
}

impl<'a> From<&'a Problem> for CheckedFile<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self {
            diagnostic: &problem.diagnostic,
            files: problem.files,
        }
    }
}

fn tell(problem: &Problem) {
    out::text(present::diagnostics(std::slice::from_ref(
        &problem.diagnostic,
    )));
    if problem.files > 1 {
        out::line(format_args!(
            "  … and so in {}",
            units::counted(problem.files - 1, "other file")
        ));
    }
}

fn summary(plan: &ResolvedCampaign, files: usize, errors: usize, warnings: usize) -> String {
    let checked = units::counted(files, "job file");
    match (errors, warnings) {
        (0, 0) if files == 0 && plan.steps.is_empty() => "no job files: nothing is on".to_owned(),
        (0, 0) => format!("{checked}: nothing to complain about"),
        _ => format!(
            "{checked}: {}, {}",
            units::counted(errors, "error"),
            units::counted(warnings, "warning")
        ),
    }
}
