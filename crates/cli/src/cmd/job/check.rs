//! `fathom job check`: everything that is wrong with a job file, and where.

use std::path::{Path, PathBuf};

use fathom_engine::jobfile::{Diagnostic, JobFile, Severity, variable};
use fathom_engine::resolve::{self, PathUse};
use fathom_model::Exit;

use super::present;
use crate::cmd::Global;
use crate::out;

/// Report everything that is wrong in job files, each with its place
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job check nightly.fio
  fathom job check --strict jobs/*.fio     unknown and doubtful options are errors, too
  fathom job check --json nightly.fio | jq '.diagnostics[].message'

Ends with 0 when the jobs can run, with 3 when they cannot.")]
pub struct Args {
    /// Job files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take warnings (unknown options among them) as errors
    #[arg(long)]
    strict: bool,
}

/// What `--json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'a> {
    schema: &'static str,
    files: &'a [PathBuf],
    errors: usize,
    warnings: usize,
    diagnostics: &'a [Diagnostic],
    /// What a run from here would lay out first.
    layouts: &'a [String],
}

/// What a run from the current folder would lay out first; nothing of what cannot
/// be told.
fn laid_out(file: &JobFile) -> Vec<String> {
    let uses = std::env::current_dir().map(|here| resolve::all(&file.jobs(), &here));
    let uses = uses.ok().and_then(Result::ok).unwrap_or_default();
    uses.iter().filter_map(PathUse::layout).collect()
}

pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut diagnostics = Vec::new();
    let mut layouts = Vec::new();
    for path in &args.files {
        match JobFile::read(path, &variable) {
            Ok(checked) => {
                let fails = |it: &Diagnostic| it.severity != Severity::Warning;
                if !checked.diagnostics.iter().any(fails) {
                    layouts.extend(laid_out(&checked.file));
                }
                diagnostics.extend(checked.diagnostics);
            }
            Err(error) => diagnostics.push(unreadable(path, &error)),
        }
    }
    for diagnostic in &mut diagnostics {
        if args.strict || diagnostic.severity == Severity::Mistake {
            diagnostic.severity = Severity::Error;
        }
    }
    let count = |severity| {
        diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if global.json {
        out::json(&Document {
            schema: "fathom.job-check/1",
            files: &args.files,
            errors,
            warnings,
            diagnostics: &diagnostics,
            layouts: &layouts,
        })?;
    } else {
        if !diagnostics.is_empty() {
            out::line(present::diagnostics(&diagnostics));
        }
        if !global.quiet {
            layouts.iter().for_each(out::line);
            out::line(summary(args.files.len(), errors, warnings));
        }
    }
    Ok(if errors > 0 {
        Exit::Input
    } else {
        Exit::Success
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        path: path.to_owned(),
        line: 0,
        column: 0,
        message: format!("cannot be read: {error}"),
        suggestion: None,
        text: String::new(),
        width: 0,
    }
}

fn summary(files: usize, errors: usize, warnings: usize) -> String {
    let files = present::count(files, "job file");
    match (errors, warnings) {
        (0, 0) => format!("{files}: nothing to complain about"),
        (0, _) => format!("{files}: {}", present::count(warnings, "warning")),
        (_, 0) => format!("{files}: {}", present::count(errors, "error")),
        _ => format!(
            "{files}: {}, {}",
            present::count(errors, "error"),
            present::count(warnings, "warning")
        ),
    }
}
