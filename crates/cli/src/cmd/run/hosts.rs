//! `fathom run --hosts`: the campaign on several machines, each point on all of
//! them at once.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use fathom_campaign::plan::ResolvedCampaign;
use fathom_campaign::run::{MultiHostCampaign, RunStart};
use fathom_fleet::hosts::HostsJob;
use fathom_flow::progress::Progress;
use fathom_model::Exit;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

use crate::cmd::Global;
use crate::cmd::campaign::Flags;
use crate::cmd::failed;
use crate::cmd::hosts::{self, closing, drive, dry_run, exit_of, records, refuse};
use crate::cmd::planned::sent;
use crate::cmd::screen::{stage, summary};
use crate::{out, signals};

/// No flow of a campaign tells its samples more often.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// More than any campaign's definitions; records and logs do not belong to them.
const FILES_BYTES_MAX: u64 = 64 << 20;

/// Runs the campaign on all machines.
pub fn go(global: &Global, flags: &Flags, begin: RunStart) -> anyhow::Result<Exit> {
    let request = &flags.request;
    let (names, least) = request.hosts.names()?;
    refuse(&[(
        request.options.is_simulated(),
        "a simulation needs no other machines",
    )])?;
    let plan = request.which.plan(&request.overrides())?;
    let runs_dir = request.which.runs_dir(global);
    let together = MultiHostCampaign::look(&plan, &runs_dir, begin, &names, request.retry_failed);
    let together = together.map_err(failed)?;
    let mut variables = request.hosts.variables()?;
    variables.take(&flags.var, &names)?;
    let named = plan.variables();
    hosts::HostVariables::are_named(&flags.var, &named)?;
    let values = variables.sent(&names, &named);
    let job = together.job(
        &plan,
        HostsJob {
            plan: sent(&request.sent(&plan))?,
            files: files(&plan.folder, &runs_dir)?,
            least,
            allow_same_host: request.hosts.allow_same_host,
            variables: values.into_map(),
            // A test after SNIA's specification has an interval of its own.
            interval: plan.settings.interval.min(INTERVAL_MIN),
            ..HostsJob::default()
        },
    );
    if flags.dry_run {
        return dry_run(global, &names, &job);
    }
    let notes = notes(&plan);
    let control = signals::control()?;
    let mut kept = request.kept();
    kept.hosts.hosts.clone_from(&names);
    kept.hosts.variables = variables;
    let kept = serde_json::to_value(kept)?;
    let partial = !request.which.only.is_empty();
    let open = || {
        let header = hosts::header(("", ""), &request.options, &names, &job);
        let writer = together.writer(&plan, &runs_dir, header, kept, partial);
        Ok((writer.map_err(failed)?, notes))
    };
    let (dir, status) = drive(global, &names, &job, &control, open)?;
    show(global, &dir, &names)?;
    Ok(exit_of(status))
}

/// What is to be known before it starts.
fn notes(plan: &ResolvedCampaign) -> Vec<String> {
    let mut notes = plan.notes.clone();
    if plan.settings.guard.is_some() {
        let text = "every series is measured to its end: what the guard of one machine left out would be missing in the sum";
        notes.push(text.to_owned());
    }
    notes
}

/// Shows what came of it: of all together, and how far each machine is.
fn show(global: &Global, dir: &Path, names: &[String]) -> anyhow::Result<()> {
    if global.json {
        return hosts::json(dir, names, "campaign", |record| {
            let progress = Progress::read(record).map_err(failed)?;
            Ok(serde_json::to_value(summary::document(&progress))?)
        });
    }
    let style = out::style(global.color);
    let progress = Progress::read(dir).map_err(failed)?;
    out::text(summary::text(&progress, style));
    out::line("");
    out::text(machines(dir, names, style));
    let doc = fathom_document::read(dir)?;
    out::text(closing(&doc, dir, names, style));
    Ok(())
}

/// How far each machine is with its own part, and with making its device ready.
fn machines(dir: &Path, names: &[String], style: Style) -> String {
    let mut grid = Grid::new([
        words("machine", 0),
        figures("measured", 0),
        figures("failed", 1),
        figures("left out", 1),
        figures("left", 0),
        words("made ready", 0),
    ]);
    for (name, record) in records(dir, names) {
        let Ok(progress) = Progress::read(&record) else {
            grid.line([
                GridCell::new(Tone::Strong, name),
                GridCell::default(),
                GridCell::default(),
                GridCell::default(),
                GridCell::default(),
                GridCell::new(Tone::Doubtful, "never started"),
            ]);
            continue;
        };
        let counts = progress.counts();
        let number = |tone: Tone, n: usize| match n {
            0 => GridCell::from("–"),
            n => GridCell::new(tone, n.to_string()),
        };
        let past = progress.stages().history().stages().last();
        let made = past.and_then(|past| Some((past, past.end.as_ref()?)));
        let ready = made.map(|(past, end)| {
            let (tone, mark, text) = stage::ended(&past.stage, end, 0);
            GridCell::new(tone, format!("{mark} {text}"))
        });
        grid.line([
            GridCell::new(Tone::Strong, name),
            GridCell::from(format!("{} of {}", counts.done, counts.steps)),
            number(Tone::Bad, counts.failed),
            number(Tone::Doubtful, counts.skipped),
            number(Tone::Doubtful, counts.left),
            ready.unwrap_or_default(),
        ]);
    }
    grid.render(style)
}

/// The files of the campaign: all of its folder but runs and logs.
fn files(folder: &Path, runs_dir: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    let runs_dir = fs::canonicalize(runs_dir).ok();
    while let Some(below) = folders.pop() {
        let entries = fs::read_dir(&below).with_context(|| below.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let name = path.strip_prefix(folder).unwrap_or(&path);
            let text = name.to_string_lossy().into_owned();
            let hidden = text.starts_with('.') && text != ".config";
            let is_runs = runs_dir.is_some() && fs::canonicalize(&path).ok() == runs_dir;
            if hidden || is_runs || text == "logs" {
                continue;
            }
            let found = fs::metadata(&path).with_context(|| path.display().to_string())?;
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            bytes += found.len();
            if !found.is_file() || bytes > FILES_BYTES_MAX {
                let what = format!(
                    "{} cannot be sent along: a campaign's folder holds definitions and job files, {} MiB at most",
                    path.display(),
                    FILES_BYTES_MAX >> 20
                );
                return Err(hosts::usage(what));
            }
            let read = fs::read(&path).with_context(|| path.display().to_string())?;
            // What is no text is not one of the campaign's.
            if let Ok(held) = String::from_utf8(read) {
                files.push((text, held));
            }
        }
    }
    files.sort();
    Ok(files)
}
