//! `fathom quick here|HOST`: runs the series, or cleans up.

use std::path::{Path, PathBuf};

use fathom_engine::Control;
use fathom_fleet::ssh::SshSession;
use fathom_flow::RunOptions;
use fathom_flow::{Finish, KeptPlan};
use fathom_model::{Exit, RunStatus};
use fathom_suites::quick::{
    self, Baseline, LocalHost, Notice, PlannedSeries, QuickError, QuickHost, QuickRequest,
    RemoteMode, SeriesPlace, SshHost,
};
use serde::{Deserialize, Serialize};

use super::screen::{Screen, To, skipped};
use super::{Global, SeriesArgs, WantedTests, events, failed, shelf, summary};
use crate::cmd::dry;
use crate::cmd::hosts::refuse;
use crate::cmd::planned::Start;
use crate::cmd::planned::{self, RequestKind, RunRequest};
use crate::out;

/// Runs the command.
pub fn run(global: &Global, args: &SeriesArgs) -> anyhow::Result<Exit> {
    let target = args.target.as_deref().unwrap_or("here");
    if args.events {
        return events::run(global, args);
    }
    refuse_folder(target).map_err(failed)?;
    match args.order().map_err(failed)? {
        WantedTests::Cleanup(path) => cleanup(global, target, path.as_deref()),
        WantedTests::Run(order) => series(global, args, target, *order),
    }
}

/// A folder in the place of the host: ssh would ask a machine of that name.
fn refuse_folder(target: &str) -> Result<(), QuickError> {
    let is_path = target.contains('/') && !target.contains("://");
    if target == "here" || !(is_path || Path::new(target).is_dir()) {
        return Ok(());
    }
    Err(QuickError::Order(format!(
        "'{target}' is a folder, and a host belongs here\n  to do: fathom quick here {target}; for \
         a host of this name fathom quick USER@{target} PATH"
    )))
}

/// Says which folder is taken where none was named, before anything is done.
fn tell_folder(global: &Global, target: &str, order: &QuickRequest) -> Result<(), QuickError> {
    if order.path.is_some() || global.quiet || target != "here" {
        return Ok(());
    }
    let folder = LocalHost::default().folder(None)?;
    out::note(format_args!(
        "No folder was named: the test files go into {}. 'fathom quick here .' takes the current folder.",
        folder.display()
    ));
    Ok(())
}

fn series(
    global: &Global,
    args: &SeriesArgs,
    target: &str,
    order: QuickRequest,
) -> anyhow::Result<Exit> {
    refuse(&[(
        target == "here" && args.remote_mode != RemoteMode::Auto,
        "--remote-mode is for a series on another machine",
    )])?;
    order.check().map_err(failed)?;
    tell_folder(global, target, &order).map_err(failed)?;
    let plan = QuickPlan {
        baselines: args.baseline_names(),
        order,
    };
    if target == "here" {
        return Box::new(plan).run(global, Start::new(args.run.dry_run));
    }
    let mode = args.remote_mode;
    let (order, runs_dir) = (&plan.order, &global.runs);
    plan.observed(global, |control, observer| {
        there(target, mode, order, runs_dir, control, observer)
    })
}

/// What a record keeps of a series on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuickPlan {
    pub order: QuickRequest,
    /// The baselines that figures are compared with.
    pub baselines: Vec<String>,
}

impl RequestKind for QuickPlan {
    const NAME: &'static str = "quick";
}

impl RunRequest for QuickPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.order.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        self.order.dry_run = start.dry_run;
        let mut kept = (*self).clone();
        let path = kept.order.path.map(std::path::absolute).transpose()?;
        kept.order.path = path;
        let kept = planned::kept(&kept)?;
        let place = SeriesPlace {
            runs_dir: &global.runs,
            record: start.record,
            kept: KeptPlan::Config(kept),
        };
        if start.dry_run {
            baselines(&self.baselines)?;
            return dry_run_of(global, &self.order, place);
        }
        let order = &self.order;
        self.observed(global, |control, observer| {
            quick::run(&order.here(), order, place, control, observer)
        })
    }
}

impl QuickPlan {
    /// Runs it before somebody's eyes, and shows what came of it.
    fn observed(
        &self,
        global: &Global,
        run: impl FnOnce(&Control, &mut quick::Observer) -> Result<Finish, QuickError>,
    ) -> anyhow::Result<Exit> {
        let baselines = baselines(&self.baselines)?;
        let to = match (global.quiet, global.json) {
            (true, _) => To::Nowhere,
            (false, true) => To::Stderr,
            (false, false) => To::Stdout,
        };
        let style = match to {
            To::Stdout => out::style(global.color),
            _ => out::progress_style(global.color),
        };
        let mut screen = Screen::new(to, style, baselines.clone());
        let control = crate::signals::control()?;
        let finish = match run(&control, &mut |notice| {
            match &notice {
                Notice::Begins(header) => global.metrics.begin_with("", "", header),
                Notice::Event(event) => global.metrics.take(event),
                Notice::Text(_) => {}
            }
            screen.notice(&notice);
        }) {
            Ok(ran) => ran,
            // A cut connection: what was measured is shown, then the reason.
            Err(QuickError::Cut { reason, record }) => {
                summary::show(global, &record, &baselines)?;
                return Err(failed(QuickError::Cut { reason, record }));
            }
            Err(error) => return Err(failed(error)),
        };
        global.requirement.note(&finish.dir);
        summary::show(global, &finish.dir, &baselines)?;
        Ok(match finish.status {
            RunStatus::Complete => Exit::Success,
            RunStatus::Interrupted if finish.stopped.is_none() => Exit::Interrupted,
            _ => Exit::Failed,
        })
    }
}

/// Shows what a run on this machine would do.
fn dry_run_of(
    global: &Global,
    order: &QuickRequest,
    place: SeriesPlace<'_>,
) -> anyhow::Result<Exit> {
    let mut tell = |notice: Notice| {
        if let Notice::Text(text) = notice {
            out::note(text);
        }
    };
    let host = order.here();
    let series = PlannedSeries::new(&host, order, &mut tell).map_err(failed)?;
    for warning in &series.facts().warnings {
        out::note(format_args!("warning: {warning}"));
    }
    for test in &series.facts().tests {
        if let Some(reason) = &test.skipped {
            out::note(format_args!("{}: {}", test.name, skipped(reason)));
        }
    }
    dry::show(global, &series.ready(place).map_err(failed)?)
}

/// The baselines of these names.
pub fn baselines(names: &[String]) -> anyhow::Result<Vec<Baseline>> {
    let shelf = shelf();
    let find = |name: &String| shelf.find(name).map_err(failed);
    names.iter().map(find).collect()
}

/// Runs on another machine.
fn there(
    target: &str,
    mode: RemoteMode,
    order: &QuickRequest,
    runs_dir: &Path,
    control: &Control,
    observer: &mut quick::Observer,
) -> Result<Finish, QuickError> {
    let session = connect(target, control)?;
    let ran = quick::run_there(session, mode, order, runs_dir, control, observer);
    or_interrupted(ran, control)
}

/// A line cut by the person's own Ctrl-C is no fault of the connection.
fn or_interrupted<T>(done: Result<T, QuickError>, control: &Control) -> Result<T, QuickError> {
    match done {
        Err(QuickError::Ssh(_)) if control.stop_requests() > 0 => Err(QuickError::Interrupted),
        done => done,
    }
}

fn connect(target: &str, control: &Control) -> Result<SshSession, QuickError> {
    match SshSession::open(target, control) {
        Err(_) if control.stop_requests() > 0 => Err(QuickError::Interrupted),
        opened => Ok(opened?),
    }
}

/// What `--cleanup --json` prints: of one machine the folder, of several a part each.
#[derive(Serialize, schemars::JsonSchema)]
pub struct CleanupDocument {
    pub schema: &'static str,
    /// The folder of the test files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<CleanedHost>>,
}

impl Default for CleanupDocument {
    fn default() -> Self {
        Self {
            schema: "fathom.quick-cleanup/1",
            folder: None,
            removed: None,
            parts: None,
        }
    }
}

/// One of several machines: its folder, or why it could not be cleaned.
#[derive(Default, Serialize, schemars::JsonSchema)]
pub struct CleanedHost {
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn cleanup(global: &Global, target: &str, path: Option<&Path>) -> anyhow::Result<Exit> {
    let (folder, removed) = if target == "here" {
        clean(&LocalHost::default(), path)
    } else {
        let control = crate::signals::control()?;
        connect(target, &control).and_then(|session| {
            let cleaned = clean(&SshHost::new(session), path);
            or_interrupted(cleaned, &control)
        })
    }
    .map_err(failed)?;
    if global.json {
        out::json(&CleanupDocument {
            folder: Some(folder.display().to_string()),
            removed: Some(removed),
            ..CleanupDocument::default()
        })?;
    } else if !global.quiet {
        let folder = folder.display();
        let place = if target == "here" {
            String::new()
        } else {
            format!(" on {target}")
        };
        out::line(if removed {
            format!("Removed \"{folder}\"{place}.")
        } else {
            format!("Nothing to clean up: there is no \"{folder}\"{place}.")
        });
    }
    Ok(Exit::Success)
}

/// Removes the folder of the test files; gives it, and whether it was there.
pub fn clean(host: &dyn QuickHost, path: Option<&Path>) -> Result<(PathBuf, bool), QuickError> {
    let folder = host.folder(path)?;
    let removed = host.clean(&folder)?;
    Ok((folder, removed))
}
