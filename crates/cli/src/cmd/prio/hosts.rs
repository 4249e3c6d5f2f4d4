//! `fathom prio --hosts`: the same workloads on a disk of each machine.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use fathom_device::cdl::Kind;
use fathom_fleet::hosts::Job;
use fathom_fleet::hosts::wire::Word;
use fathom_model::{Exit, RunDocument};
use fathom_record::Writer;
use fathom_report::Style;
use fathom_report::grid::{Cell, Grid, figures, words};
use fathom_report::style::Tone;

use super::asked::{Depths, Options, Split};
use super::outcome;
use super::ready::fail;
use super::run::COMMAND;
use crate::cmd::Global;
use crate::cmd::hosts::{self, closing, drive, exit_of, records, refuse};
use crate::cmd::prio::pages;
use crate::{out, signals};

/// Where each machine's results stand until they are collected.
const OUTDIR: &str = "out";

/// Runs the command on all machines.
pub fn run(global: &Global, options: &Options) -> anyhow::Result<Exit> {
    let (names, least) = options.hosts.names()?;
    refuse(&[(
        options.outdir.is_some(),
        "--outdir is for a run on one machine: the results of each are in the record",
    )])?;
    let job = job(options, least)?;
    let control = signals::control()?;
    let dev = options.dev.clone().unwrap_or_default();
    let dev = dev.file_name().unwrap_or_default().to_string_lossy();
    let begin = || {
        let header = hosts::header(&format!("prio-{dev}"), COMMAND, &names, &job);
        let writer = Writer::create(&global.runs, &header);
        let writer = writer.map_err(|error| fail(Exit::Record, error.to_string()))?;
        Ok((writer, Vec::new()))
    };
    let (dir, status) = drive(global, &names, &job, &control, begin)?;
    show(global, &dir, &names)?;
    Ok(exit_of(status))
}

/// Shows what the machines measured.
pub fn show(global: &Global, dir: &Path, names: &[String]) -> anyhow::Result<()> {
    if global.json {
        return hosts::json(dir, names, "prio", |record| {
            Ok(fathom_report::prio::document(&outcome::read(record)?))
        });
    }
    let style = out::style(global.color);
    for (name, record) in records(dir, names) {
        out::line(style.paint(Tone::Strong, &format!("=== {name} ===")));
        let prio = outcome::read(&record)?;
        out::line(fathom_report::prio::text(&prio, style));
    }
    let doc = fathom_report::read(dir)?;
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
            let doubts: Vec<&str> = of_dir.doubts.iter().map(|d| d.meaning()).collect();
            grid.line([
                Cell::from(job.step.clone().unwrap_or_default()),
                Cell::from(job.clients.unwrap_or(0).to_string()),
                Cell::new(Tone::Strong, fathom_model::units::count(of_dir.iops)),
                Cell::from(fathom_model::units::bytes_per_second(of_dir.bw_bytes)),
                Cell::from(mean.unwrap_or_default()),
                Cell::from(p99.unwrap_or_default()),
                Cell::new(Tone::Doubtful, doubts.join(", ")),
            ]);
        }
    }
    match any {
        true => grid.render(style),
        false => String::new(),
    }
}

/// What each machine is to do: the same command, with the pages sent along and
/// its results kept where they can be collected.
fn job(options: &Options, least: usize) -> anyhow::Result<Job> {
    let mut words = vec![Word::text(COMMAND)];
    let mut files = Vec::new();
    let mut option =
        |name: &str, value: String| words.push(Word::text(format!("--{name}={value}")));
    let dev = options.dev.clone().unwrap_or_default();
    option("dev", dev.display().to_string());
    option("bs", options.bs.to_string());
    option("ramptime", options.ramptime.to_string());
    option("runtime", options.runtime.to_string());
    let Depths(depths) = &options.qds;
    let depths_text: Vec<String> = depths.iter().map(u32::to_string).collect();
    option("qds", depths_text.join(" "));
    option("rw", options.rw.name().to_owned());
    option("engine", options.engine.name().to_owned());
    if let Some(percentage) = options.percentage {
        option("percentage", percentage.to_string());
    }
    if let Some(dld) = options.dld {
        option("dld", dld.to_string());
    }
    if let Some(Split(list)) = &options.dldsplit {
        let parts: Vec<String> = list.iter().map(|(dld, p)| format!("{dld}/{p}")).collect();
        option("dldsplit", parts.join(","));
    }
    for confirmed in &options.destroy {
        option("destroy", confirmed.clone());
    }
    if let Some(fio) = &options.fio {
        option("fio", fio.display().to_string());
    }
    let flags = [
        ("--baseline", options.baseline),
        ("--ncq-prio", options.ncq_prio),
        ("--cdl-single", options.cdl_single),
        ("--cdl-multi", options.cdl_multi),
    ];
    let given = flags.into_iter().filter(|(_, given)| *given);
    words.extend(given.map(|(flag, _)| Word::text(flag)));
    for (kind, name, file) in [
        (Kind::T2a, "--t2a", &options.t2a),
        (Kind::T2b, "--t2b", &options.t2b),
    ] {
        let Some(path) = file else { continue };
        // What is wrong with it is told here, with the name it has here.
        pages::read(path)?;
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let sent = format!("{kind}.cdl");
        files.push((sent.clone(), text));
        words.extend([Word::text(name), Word::File(sent)]);
    }
    words.extend([Word::text("--outdir"), Word::File(OUTDIR.to_owned())]);
    let workloads = options.workloads()?;
    let each = workloads.iter().flat_map(|workload| {
        let ids = depths
            .iter()
            .map(|&depth| options.point(workload, depth).id);
        ids.collect::<Vec<_>>()
    });
    Ok(Job {
        steps: each.collect(),
        args: words,
        files,
        least,
        allow_same_host: options.hosts.allow_same_host,
        own_records: true,
        ..Job::default()
    })
}
