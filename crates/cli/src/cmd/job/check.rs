//! `fathom job check`: everything that is wrong with a job file, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_engine_fio::inventory;
use fathom_engine_fio::version::Program;

use fathom_jobfile::resolve::{self, PathUse};
use fathom_jobfile::variables::variable;
use fathom_jobfile::{Diagnostic, JobFile, Severity};
use fathom_model::{Exit, Origin, units};

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

/// Which I/O engines the fio of this machine can load: it names more than it can.
#[derive(Default)]
struct LoadableEngines(BTreeMap<String, bool>);

impl LoadableEngines {
    /// Each job whose I/O engine neither engine has here, at its place. Where fio is not
    /// installed, nobody knows what another one has.
    fn missing(&mut self, file: &JobFile) -> Vec<Diagnostic> {
        let Ok(fio) = Program::find(None) else {
            return Vec::new();
        };
        let jobs = file.jobs();
        let named = jobs.iter().filter_map(|job| job.option("ioengine"));
        let mut found: Vec<Diagnostic> = Vec::new();
        for option in named {
            let (Some(engine), Origin::File { path, line, column }) =
                (option.value.as_deref(), &option.origin)
            else {
                continue;
            };
            let twice = |other: &Diagnostic| (other.line, &other.path) == (*line, path);
            if self.has(&fio, engine) || found.iter().any(twice) {
                continue;
            }
            let message = format!("neither the fio here nor the native engine has '{engine}'");
            found.push(Diagnostic {
                severity: Severity::Error,
                path: path.clone(),
                line: *line,
                column: *column,
                message,
                suggestion: None,
                text: line_of(path, *line),
                width: "ioengine=".len() as u32 + engine.chars().count() as u32,
            });
        }
        found
    }

    fn has(&mut self, fio: &Program, engine: &str) -> bool {
        // A library of the user's own is for fio to judge when it runs.
        if engine.starts_with("external:") || engine.contains('/') {
            return true;
        }
        if fathom_engine_native::io_engines().any(|known| known == engine) {
            return true;
        }
        let asked = || inventory::options(fio, engine).map_or(true, |options| options.is_some());
        *self.0.entry(engine.to_owned()).or_insert_with(asked)
    }
}

pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut diagnostics = Vec::new();
    let mut layouts = Vec::new();
    let mut engines = LoadableEngines::default();
    for path in &args.files {
        match JobFile::read(path, &variable) {
            Ok(checked) => {
                let fails = |it: &Diagnostic| it.severity != Severity::Warning;
                if !checked.diagnostics.iter().any(fails) {
                    layouts.extend(laid_out(&checked.file));
                }
                diagnostics.extend(engines.missing(&checked.file));
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

/// A line of a file, to show; empty where it cannot be read again.
fn line_of(path: &Path, line: u32) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().nth((line as usize).saturating_sub(1));
    line.unwrap_or_default().to_owned()
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
    let files = units::counted(files, "job file");
    match (errors, warnings) {
        (0, 0) => format!("{files}: nothing to complain about"),
        (0, _) => format!("{files}: {}", units::counted(warnings, "warning")),
        (_, 0) => format!("{files}: {}", units::counted(errors, "error")),
        _ => format!(
            "{files}: {}, {}",
            units::counted(errors, "error"),
            units::counted(warnings, "warning")
        ),
    }
}
