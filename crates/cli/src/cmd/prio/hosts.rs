//! `fathom prio --hosts`: the same workloads on a disk of each machine.

use std::path::Path;

use fathom_model::{Exit, RunDocument};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};
use fathom_suites::prio::COMMAND;

use super::outcome;
use super::run::PrioPlan;
use crate::cmd::Global;
use crate::cmd::hosts::{self as shared, HostArgs, HostedPlan, closing, records, refuse};
use crate::out;

/// Runs the plan on all machines.
pub fn run(
    global: &Global,
    plan: &PrioPlan,
    hosts: &HostArgs,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    refuse(&[(
        plan.config.outdir.is_some(),
        "--outdir is for a run on one machine: the results of each are in the record",
    )])?;
    let config = &plan.config;
    let measurements = config.measurements();
    let ids = measurements.map(|(workload, depth)| config.point(workload, depth).id);
    let (names, job) = hosts.job(plan, ids.collect())?;
    let dev = plan.config.dev.file_name().unwrap_or_default();
    let hosted = HostedPlan {
        names: &names,
        job: &job,
        name: &format!("prio-{}", dev.to_string_lossy()),
        command: COMMAND,
        options: &plan.options,
        job_files: Vec::new(),
        notes: Vec::new(),
    };
    let ran = hosted.run(global, dry_run)?;
    ran.show(&|dir| show(global, dir, &names))
}

/// Shows what the machines measured.
pub fn show(global: &Global, dir: &Path, names: &[String]) -> anyhow::Result<()> {
    if global.json {
        return shared::json(dir, names, "prio", |record| {
            let prio = outcome::read(record)?;
            Ok(serde_json::to_value(fathom_report::prio::document(&prio))?)
        });
    }
    let style = out::style(global.color);
    for (name, record) in records(dir, names) {
        out::line(style.paint(Tone::Strong, &format!("=== {name} ===")));
        let prio = outcome::read(&record)?;
        out::line(fathom_report::prio::text(&prio, style));
    }
    let doc = fathom_document::read(dir)?;
    out::text(sums(&doc, style));
    out::text(closing(&doc, dir, names, style));
    Ok(())
}

/// What all machines did together. Latencies and shares of limits stay with each
/// disk, of which they tell something.
fn sums(doc: &RunDocument, style: Style) -> String {
    let mut grid = Grid::new([
        words("all machines", 0),
        figures("machines", 0),
        figures("IOPS", 0),
        figures("bandwidth", 1),
        figures("mean", 2),
        figures("p99", 1),
        words("", 0),
    ]);
    let mut any = false;
    for job in doc.jobs.iter().filter(|job| job.is_sum_of_clients()) {
        for (_, of_dir) in job.directions() {
            any = true;
            let clat = of_dir.clat.as_ref();
            let p99 = clat.and_then(|clat| {
                let found = clat.percentiles_ns.iter().find(|(p, _)| *p == 99.0)?;
                Some(fathom_model::units::latency(found.1 as f64))
            });
            let mean = clat.map(|clat| fathom_model::units::latency(clat.mean_ns));
            let doubts: Vec<&str> = of_dir.kinds().iter().map(|d| d.meaning()).collect();
            grid.line([
                GridCell::from(job.step.clone().unwrap_or_default()),
                GridCell::from(job.clients.unwrap_or(0).to_string()),
                GridCell::new(Tone::Strong, fathom_model::units::count(of_dir.iops)),
                GridCell::from(fathom_model::units::bytes_per_second(of_dir.bw_bytes)),
                GridCell::from(mean.unwrap_or_default()),
                GridCell::from(p99.unwrap_or_default()),
                GridCell::new(Tone::Doubtful, doubts.join(", ")),
            ]);
        }
    }
    match any {
        true => grid.render(style),
        false => String::new(),
    }
}
