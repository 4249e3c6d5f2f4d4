//! `fathom quick here|HOST`: runs the series, or cleans up.

use std::path::{Path, PathBuf};

use fathom_campaign::quick::{
    self, Baseline, Here, Host, Notice, Order, QuickError, RemoteMode, There,
};
use fathom_engine::Control;
use fathom_engine::fio::guard;
use fathom_fleet::ssh::Session;
use fathom_model::{Exit, RunStatus};

use super::screen::{Screen, To};
use super::{Global, SeriesArgs, Wanted, events, failed, shelf, summary};
use crate::out;

/// Runs the command.
pub fn run(global: &Global, args: &SeriesArgs) -> anyhow::Result<Exit> {
    let target = args.target.as_deref().unwrap_or("here");
    if args.events {
        return events::run(global, args);
    }
    refuse_folder(target).map_err(failed)?;
    match args.order().map_err(failed)? {
        Wanted::Cleanup(path) => cleanup(global, target, path.as_deref()),
        Wanted::Run(order) => series(global, args, target, &order),
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
fn tell_folder(global: &Global, target: &str, order: &Order) -> Result<(), QuickError> {
    if order.path.is_some() || global.quiet || target != "here" {
        return Ok(());
    }
    let folder = here().folder(None)?;
    out::note(format_args!(
        "No folder was named: the test files go into {}. 'fathom quick here .' takes the current folder.",
        folder.display()
    ));
    Ok(())
}

fn series(global: &Global, args: &SeriesArgs, target: &str, order: &Order) -> anyhow::Result<Exit> {
    order.check().map_err(failed)?;
    tell_folder(global, target, order).map_err(failed)?;
    let baselines = baselines(args)?;
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
    let mut observer = |notice: Notice| screen.notice(&notice);
    let control = crate::signals::control()?;
    let ran = if target == "here" {
        quick::run(&here(), order, &global.runs, &control, &mut observer)
    } else {
        there(
            target,
            args.remote_mode.into(),
            order,
            &global.runs,
            &control,
            &mut observer,
        )
    };
    let (dir, status) = match ran {
        Ok(ran) => ran,
        // A cut connection: what was measured is shown, then the reason.
        Err(QuickError::Cut { reason, record }) => {
            summary::show(global, &record, &baselines)?;
            return Err(failed(QuickError::Cut { reason, record }));
        }
        Err(error) => return Err(failed(error)),
    };
    summary::show(global, &dir, &baselines)?;
    Ok(match status {
        RunStatus::Complete => Exit::Success,
        RunStatus::Failed | RunStatus::Running => Exit::Failed,
        RunStatus::Interrupted => Exit::Interrupted,
    })
}

/// The baselines that are asked for.
pub fn baselines(args: &SeriesArgs) -> anyhow::Result<Vec<Baseline>> {
    if args.no_baseline {
        return Ok(vec![]);
    }
    let shelf = shelf();
    let default = [quick::DEFAULT_BASELINE.to_owned()];
    let names = if args.baseline.is_empty() {
        &default[..]
    } else {
        &args.baseline
    };
    names
        .iter()
        .map(|name| shelf.find(name).map_err(failed))
        .collect()
}

/// Runs on another machine.
fn there(
    target: &str,
    mode: RemoteMode,
    order: &Order,
    runs_dir: &Path,
    control: &Control,
    observer: &mut quick::Observer,
) -> Result<(PathBuf, RunStatus), QuickError> {
    let session = connect(target, control)?;
    let ran = quick::run_there(&session, mode, order, runs_dir, control, observer);
    or_interrupted(ran, control)
}

/// A line cut by the person's own Ctrl-C is no fault of the connection.
fn or_interrupted<T>(done: Result<T, QuickError>, control: &Control) -> Result<T, QuickError> {
    match done {
        Err(QuickError::Ssh(_)) if control.stop_requests() > 0 => Err(QuickError::Interrupted),
        done => done,
    }
}

/// This machine; the guard of its fio is this program again (see `main`).
pub fn here() -> Here {
    Here::new(guard::Place::Process)
}

fn connect(target: &str, control: &Control) -> Result<Session, QuickError> {
    match Session::open(target, control) {
        Err(_) if control.stop_requests() > 0 => Err(QuickError::Interrupted),
        opened => Ok(opened?),
    }
}

fn cleanup(global: &Global, target: &str, path: Option<&Path>) -> anyhow::Result<Exit> {
    let (folder, removed) = if target == "here" {
        clean(&here(), path)
    } else {
        let control = crate::signals::control()?;
        connect(target, &control).and_then(|session| {
            let cleaned = clean(&There::new(&session), path);
            or_interrupted(cleaned, &control)
        })
    }
    .map_err(failed)?;
    if global.json {
        out::json(&serde_json::json!({
            "schema": "fathom.quick-cleanup/1",
            "folder": folder,
            "removed": removed,
        }))?;
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
pub fn clean(host: &dyn Host, path: Option<&Path>) -> Result<(PathBuf, bool), QuickError> {
    let folder = host.folder(path)?;
    let removed = host.clean(&folder)?;
    Ok((folder, removed))
}
