//! `fathom compare`: whether one run, or several of the same, are faster than others.

use std::path::{Path, PathBuf};

use fathom_model::Exit;
use fathom_record::{Entries, RunSummary, Tag};
use fathom_report::compare::{
    self, CompareCondition, CompareDocument, CompareRequest, ComparedRun, margin,
};
use fathom_report::gate::Gate;
use serde::{Deserialize, Serialize};

use super::{ExitError, Global, quick, show, write_named};
use crate::out;

/// Earlier runs that are looked at for how runs of the same differ.
const EARLIER_MOST: usize = 20;
/// Both sides are the same within this share, unless another is asked for: what is less
/// is worth nobody's change.
const MARGIN: &str = "2%";

/// Compare runs: what differs, and whether one side is faster
///
/// Any records, of any command. Repetitions of either side tell how runs of the same differ from
/// one another, without which no difference can be told: three of each side at the least, best
/// measured in turn. A run alone is taken with earlier ones of the same jobs, machine and device.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures are faster, slower, the same within the margin, or it cannot be told: then how many more
repetitions would probably tell. The chance of any false difference in a table is 5 %.

Examples:
  fathom compare BEFORE AFTER
  fathom compare A1 A2 A3 --with B1 B2 B3
  fathom compare --tag kernel=6.1 --with-tag kernel=6.9
  fathom compare baseline:HDD --with B1 B2 B3 B4 B5
  fathom compare A1 A2 A3 --with B1 B2 B3 --markdown > comment.md
  fathom compare A1 A2 A3 --with B1 B2 B3 --html compare.html
  fathom compare A1 A2 A3 --with B1 B2 B3 --fail-if 'slower > 5%'   exit code 7 where it holds")]
pub struct Args {
    /// Record folders, or their names or parts of them: two runs, or repetitions of one side; or
    /// baseline:NAME
    #[arg(value_name = "RUN")]
    side: Vec<String>,
    /// Repetitions of the other side
    #[arg(long, value_name = "RUN", num_args = 1..)]
    with: Vec<String>,
    /// Repetitions of the other side: all runs that have this tag (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    with_tag: Vec<Tag>,
    #[command(flatten)]
    how: HowToCompare,
}

/// How runs are compared and shown.
#[derive(Debug, Clone, clap::Args)]
pub struct HowToCompare {
    /// Both sides are the same when they differ by less than this
    #[arg(long, value_name = "PERCENT", default_value = MARGIN, value_parser = margin)]
    margin: f64,
    /// Print Markdown, for a comment or a merge request
    #[arg(long)]
    markdown: bool,
    /// Write an HTML page there
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    gate: GateArgs,
}

/// A condition that ends a command with exit code 7.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize)]
pub struct GateArgs {
    /// End with exit code 7 when this holds for any figure: 'slower > 5%', 'slower', 'faster',
    /// 'cannot_tell'; also when it cannot be judged
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<CompareCondition>,
    /// Let --fail-if pass what cannot be judged, unless nothing at all could be compared
    #[arg(long, requires = "fail_if")]
    #[serde(default)]
    allow_inconclusive: bool,
}

impl GateArgs {
    /// The conditions; `None`: there is no gate.
    pub fn conditions(&self) -> Option<&[CompareCondition]> {
        (!self.fail_if.is_empty()).then_some(&self.fail_if)
    }

    /// The exit code of what a gate came to.
    pub fn exit(&self, gate: Option<&Gate>) -> Exit {
        match gate.is_none_or(|gate| gate.passes(self.allow_inconclusive)) {
            true => Exit::Success,
            false => Exit::ConditionFailed,
        }
    }
}

/// What stands before the name of a baseline.
const BASELINE: &str = "baseline:";

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (mut a, mut b) = (args.side.clone(), args.with.clone());
    a.extend(tagged(global, &global.tag)?);
    b.extend(tagged(global, &args.with_tag)?);
    let (a, b) = match (&a[..], &b[..]) {
        ([a, b], []) => (vec![a.clone()], vec![b.clone()]),
        (_, []) | ([], _) => {
            return Err(ExitError::new(
                Exit::Usage,
                "two runs are compared, or the repetitions of two sides: \
                 fathom compare A1 A2 A3 --with B1 B2 B3",
            )
            .into());
        }
        (a, b) => (a.to_vec(), b.to_vec()),
    };
    sides(global, &a, &b, &args.how)
}

/// The runs that have all of these tags, oldest first.
///
/// # Errors
/// There is none.
pub fn tagged(global: &Global, tags: &[Tag]) -> anyhow::Result<Vec<String>> {
    if tags.is_empty() {
        return Ok(Vec::new());
    }
    let has = |id: &String| {
        let entries = Entries::open(&global.runs.join(id));
        entries.is_ok_and(|entries| entries.has_tags(tags))
    };
    let all = fathom_record::list(&global.runs)?;
    let found: Vec<String> = all.into_iter().map(|run| run.id).filter(has).collect();
    if found.is_empty() {
        let message = format!("no run under {} has these tags", global.runs.display());
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    Ok(found)
}

/// Compares runs that are named, and shows it.
pub fn sides(
    global: &Global,
    a: &[String],
    b: &[String],
    how: &HowToCompare,
) -> anyhow::Result<Exit> {
    let find = |names: &[String]| -> anyhow::Result<Vec<PathBuf>> {
        let runs = names.iter().filter(|name| !name.starts_with(BASELINE));
        runs.map(|name| show::find(global, Some(name))).collect()
    };
    let dirs = [find(a)?, find(b)?];
    distinct(&dirs)?;
    let has_baseline = a.iter().chain(b).any(|name| name.starts_with(BASELINE));
    let read = |names: &[String], dirs: &[PathBuf]| -> anyhow::Result<Vec<ComparedRun>> {
        let mut runs = Vec::new();
        for name in names.iter().filter_map(|name| name.strip_prefix(BASELINE)) {
            let found = quick::shelf().find(name).map_err(quick::failed)?;
            runs.push(compare::of_baseline(
                &format!("{BASELINE}{}", found.name),
                &found.iops,
            ));
        }
        for dir in dirs {
            let run = compared(dir)?;
            runs.push(match has_baseline {
                true => compare::as_baseline(&run),
                false => run,
            });
        }
        Ok(runs)
    };
    let mut request = CompareRequest {
        a: read(a, &dirs[0])?,
        b: read(b, &dirs[1])?,
        earlier: Vec::new(),
        margin: how.margin,
    };
    if !has_baseline {
        add_earlier(global, &mut request, &dirs.concat())?;
    }
    let mut doc = compare::comparison(&request);
    let conditions = how.gate.conditions();
    doc.gate = conditions.map(|conditions| Gate::of_comparison(conditions, &doc));
    show_comparison(global, how, &doc, &request)?;
    Ok(how.gate.exit(doc.gate.as_ref()))
}

/// The comparison of two runs in these folders.
///
/// # Errors
/// When one cannot be read.
pub fn of_two(global: &Global, a: &Path, b: &Path) -> anyhow::Result<CompareRequest> {
    let mut request = CompareRequest {
        a: vec![compared(a)?],
        b: vec![compared(b)?],
        earlier: Vec::new(),
        margin: margin(MARGIN).map_err(anyhow::Error::msg)?,
    };
    add_earlier(global, &mut request, &[a.to_owned(), b.to_owned()])?;
    Ok(request)
}

/// Has runs of before say how much figures differ by themselves, where there are too few.
fn add_earlier(
    global: &Global,
    request: &mut CompareRequest,
    dirs: &[PathBuf],
) -> anyhow::Result<()> {
    if request.a.len() + request.b.len() < fathom_analysis::compare::RUNS_LEAST {
        request.earlier = earlier(global, request, dirs)?;
    }
    Ok(())
}

/// A run against itself differs by nothing, which is no finding.
fn distinct(dirs: &[Vec<PathBuf>; 2]) -> anyhow::Result<()> {
    let mut all: Vec<PathBuf> = Vec::new();
    for dir in dirs.iter().flatten() {
        let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        if all.contains(&real) {
            let message = format!("{} is named twice", dir.display());
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        all.push(real);
    }
    Ok(())
}

/// Reads a run.
pub fn compared(dir: &Path) -> anyhow::Result<ComparedRun> {
    let entries = Entries::summed(dir)?;
    let started_ms = entries.header.started_ms;
    Ok(ComparedRun {
        doc: fathom_document::read_entries(entries),
        started_ms,
        dir: Some(dir.to_owned()),
    })
}

/// Runs that were made before and are like those of one side.
fn earlier(
    global: &Global,
    request: &CompareRequest,
    dirs: &[PathBuf],
) -> anyhow::Result<Vec<ComparedRun>> {
    let named: Vec<PathBuf> = dirs
        .iter()
        .filter_map(|dir| dir.canonicalize().ok())
        .collect();
    let same_name = |run: &RunSummary| {
        let mut sides = request.a.iter().chain(&request.b);
        sides.any(|side| side.doc.name == run.name && side.doc.command == run.command)
    };
    let mut found = Vec::new();
    for listed in fathom_record::list(&global.runs)?.into_iter().rev() {
        let dir = global.runs.join(&listed.id);
        let is_candidate = listed.summary.as_ref().is_ok_and(same_name);
        if !is_candidate || dir.canonicalize().is_ok_and(|dir| named.contains(&dir)) {
            continue;
        }
        // One that cannot be read tells nothing.
        let Ok(run) = compared(&dir) else { continue };
        let mut sides = request.a.iter().chain(&request.b);
        if sides.any(|side| compare::is_alike(&side.doc, &run.doc)) {
            found.push(run);
        }
        if found.len() == EARLIER_MOST {
            break;
        }
    }
    Ok(found)
}

fn show_comparison(
    global: &Global,
    how: &HowToCompare,
    doc: &CompareDocument,
    request: &CompareRequest,
) -> anyhow::Result<()> {
    if let Some(file) = &how.html {
        write_named(file, compare::html(doc, request)?)?;
    }
    if global.json {
        out::json(doc)?;
    } else if how.markdown {
        out::text(compare::markdown(doc));
    } else {
        out::text(compare::text(doc, out::style(global.color)));
    }
    Ok(())
}
