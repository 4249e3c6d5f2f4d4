//! `fathom quick --hosts`: the series on several machines, each test on all of
//! them at once.

use std::path::{Path, PathBuf};
use std::thread;

use fathom_device::threads::{self, NoThread};
use fathom_fleet::hosts::HostsJob;
use fathom_fleet::ssh::{SshError, SshSession, open_all};
use fathom_model::{Exit, RunDocument};
use fathom_record::Record;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};
use fathom_suites::quick::{
    Baseline, COMMAND, INTERVAL, QuickError, QuickRequest, QuickRun, RemoteMode, SshHost,
};

use super::run::{CleanedHost, CleanupDocument, QuickPlan, baselines, clean};
use super::{Global, SeriesArgs, WantedTests, failed, summary};
use crate::cmd::hosts::{self, HostedPlan, closing, records, refuse};
use crate::{out, signals};

/// Runs the command on all machines.
pub fn run(global: &Global, args: &SeriesArgs) -> anyhow::Result<Exit> {
    let (names, _) = args.hosts.names()?;
    refuse(&[
        (
            args.remote_mode != RemoteMode::Auto,
            "--remote-mode is for one machine: to several fathom sends itself",
        ),
        (args.events, "--events is for one machine"),
    ])?;
    match words_of(args)?.order().map_err(failed)? {
        WantedTests::Cleanup(path) => cleanup(global, &names, path.as_deref()),
        WantedTests::Run(order) => series(global, args, *order),
    }
}

/// The words as they stand behind a target: each machine is "here".
fn words_of(args: &SeriesArgs) -> anyhow::Result<SeriesArgs> {
    let mut args = args.clone();
    let first = args.target.replace("here".to_owned());
    if first.as_deref() == Some("here") {
        return Ok(args);
    }
    if let Some(third) = &args.test {
        return Err(hosts::usage(format!(
            "with --hosts: a path and a test are all that can be named, and not {third:?} too"
        )));
    }
    let second = args.path.take();
    args.test = second.map(|word| word.display().to_string());
    args.path = first.map(PathBuf::from);
    Ok(args)
}

fn series(global: &Global, args: &SeriesArgs, order: QuickRequest) -> anyhow::Result<Exit> {
    order.check().map_err(failed)?;
    let baselines = baselines(&args.baseline_names())?;
    let is_wanted = |name: &String| order.only.as_ref().is_none_or(|only| only == name);
    let steps = order.group.tests().map(|test| test.name.clone());
    let steps = steps.filter(is_wanted).collect();
    let options = order.options.clone();
    let plan = QuickPlan {
        order: QuickRequest {
            // Nothing is installed on several machines at once.
            may_install: false,
            ..order
        },
        baselines: Vec::new(),
    };
    let (names, job) = args.hosts.job(&plan, steps)?;
    let hosted = HostedPlan {
        names: &names,
        job: &HostsJob {
            interval: INTERVAL,
            ..job
        },
        name: COMMAND,
        command: COMMAND,
        options: &options,
        job_files: Vec::new(),
        notes: Vec::new(),
    };
    let ran = hosted.run(global, args.run.dry_run)?;
    ran.show(&|dir| show(global, dir, &names, &baselines))
}

/// Shows what the machines measured.
pub fn show(
    global: &Global,
    dir: &Path,
    names: &[String],
    baselines: &[Baseline],
) -> anyhow::Result<()> {
    if global.json {
        return hosts::json(dir, names, COMMAND, |record| {
            summary::value(record, baselines)
        });
    }
    let runs = records(dir, names)
        .into_iter()
        .map(|(name, record)| {
            let run = QuickRun::of(&Record::open(&record)?).map_err(failed)?;
            Ok((name, run))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let doc = fathom_document::read(dir)?;
    let style = out::style(global.color);
    out::text(tests(&doc, &runs, baselines, style));
    out::text(closing(&doc, dir, names, style));
    Ok(())
}

/// A line for each test: what all did together, which did least and most, and
/// how each stands against the baseline of one.
fn tests(
    doc: &RunDocument,
    runs: &[(String, QuickRun)],
    baselines: &[Baseline],
    style: Style,
) -> String {
    let Some((_, first)) = runs.first() else {
        return String::new();
    };
    let mut grid = Grid::new([
        words("test", 0),
        figures("IOPS of all", 0),
        figures("machines", 1),
        figures("least", 0),
        figures("most", 0),
        figures("of baseline", 2),
        words("", 0),
    ]);
    let mut series = None;
    for test in &first.tests {
        if test.series != series {
            series.clone_from(&test.series);
            grid.heading(series.as_deref().unwrap_or_default());
        }
        grid.line(line(doc, runs, &test.name, baselines));
    }
    grid.render(style)
}

fn line(
    doc: &RunDocument,
    runs: &[(String, QuickRun)],
    name: &str,
    baselines: &[Baseline],
) -> [GridCell; 7] {
    let sum = doc.jobs.iter().find(|job| {
        // One test alone is a step without a name.
        job.is_sum_of_clients() && job.step.as_deref().is_none_or(|step| step == name)
    });
    let mut good: Vec<(u64, &str)> = Vec::new();
    let mut percents = Vec::new();
    for (host, run) in runs {
        let found = run.test(name).and_then(|test| test.figures.as_ref());
        let Some(iops) = found.and_then(|figures| figures.good_iops()) else {
            continue;
        };
        good.push((iops, host));
        let used = summary::usable(run, baselines).0;
        let first = used.first();
        percents.extend(first.and_then(|baseline| baseline.percent(name, iops)));
    }
    good.sort_unstable();
    let all: Option<f64> = sum.map(|sum| sum.directions().map(|(_, dir)| dir.iops).sum());
    // Of one machine there is no sum: it is that machine's.
    let all = all.or_else(|| match good[..] {
        [(only, _)] if runs.len() == 1 => Some(only as f64),
        _ => None,
    });
    let named = |one: Option<&(u64, &str)>| {
        one.map_or_else(String::new, |(iops, host)| format!("{iops} {host}"))
    };
    let percent = match summary::range(percents) {
        range if range.is_empty() => range,
        range => format!("{range}%"),
    };
    let mut doubts: Vec<&str> = sum
        .into_iter()
        .flat_map(|sum| sum.directions())
        .flat_map(|(_, dir)| dir.kinds().into_iter().map(short))
        .filter(|doubt| !doubt.is_empty())
        .collect();
    doubts.dedup();
    let tone = match good.len() == runs.len() {
        true => Tone::Plain,
        false => Tone::Doubtful,
    };
    [
        GridCell::from(name.to_owned()),
        GridCell::new(
            Tone::Strong,
            all.map_or_else(String::new, |iops| format!("{iops:.0}")),
        ),
        GridCell::new(tone, format!("{} of {}", good.len(), runs.len())),
        GridCell::from(named(good.first())),
        GridCell::from(named(good.last())),
        GridCell::from(percent),
        GridCell::new(Tone::Doubtful, doubts.join(", ")),
    ]
}

/// What a doubt about a sum is called in a table; the sentence stands below it.
fn short(doubt: fathom_model::ReasonKind) -> &'static str {
    use fathom_model::ReasonKind;
    match doubt {
        ReasonKind::Apart => "not side by side",
        ReasonKind::SlowHost => "one is slow",
        ReasonKind::HostsMissing => "too few",
        ReasonKind::Short => "short",
        ReasonKind::CachedReads => "cache",
        _ => "",
    }
}

/// Removes the test files of all machines.
fn cleanup(global: &Global, names: &[String], path: Option<&Path>) -> anyhow::Result<Exit> {
    let one = |session: Result<SshSession, SshError>| clean(&SshHost::new(session?), path);
    let one = &one;
    let control = signals::control()?;
    hosts::may_have_open(names.len())?;
    let sessions = open_all(names, &control);
    let done: Vec<Result<(PathBuf, bool), QuickError>> = thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|session| threads::spawn_scoped(scope, "cleanup", move || one(session)))
            .collect();
        let joined = threads.into_iter().map(|thread| Ok(thread?.join()));
        joined
            .map(|done: Result<_, NoThread>| {
                let broken = |_| Err(QuickError::Missing("it broke off".into()));
                done.map_err(SshError::from)?.unwrap_or_else(broken)
            })
            .collect()
    });
    if control.stop_requests() > 0 {
        return Err(failed(QuickError::Interrupted));
    }
    let mut exit = Exit::Success;
    let mut parts = Vec::new();
    for (name, done) in names.iter().zip(done) {
        match done {
            Ok((folder, removed)) => {
                let folder = folder.display().to_string();
                if !global.json && !global.quiet {
                    out::line(match removed {
                        true => format!("{name}: removed \"{folder}\""),
                        false => format!("{name}: there is no \"{folder}\""),
                    });
                }
                parts.push(CleanedHost {
                    host: name.clone(),
                    folder: Some(folder),
                    removed: Some(removed),
                    error: None,
                });
            }
            Err(error) => {
                exit = Exit::Failed;
                out::note(format_args!("fathom: {name}: {error}"));
                parts.push(CleanedHost {
                    host: name.clone(),
                    error: Some(error.to_string()),
                    ..CleanedHost::default()
                });
            }
        }
    }
    if global.json {
        out::json(&CleanupDocument {
            parts: Some(parts),
            ..CleanupDocument::default()
        })?;
    }
    Ok(exit)
}
