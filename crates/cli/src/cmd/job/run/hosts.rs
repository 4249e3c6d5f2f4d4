//! `--hosts`: the jobs on several machines at once, over ssh.

use std::path::{Path, PathBuf};

use fathom_engine::jobfile::shell_quote;
use fathom_fleet::hosts::{self, Job};
use fathom_model::{Event, Exit};
use serde_json::json;

use super::plan::Plan;
use super::{Args, create_record, exit_of, record_error, show_report};
use crate::cmd::{ExitError, Global};
use crate::engine::EngineOrSim;
use crate::live::{Live, LiveOptions};
use crate::{out, signals};

/// Longest host file that is read.
const HOST_FILE_BYTES_MAX: u64 = 256 << 10;

/// Runs the command on all machines.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let names = names(&args.clients.hosts)?;
    let least = args.clients.min_clients.map_or(names.len(), |n| n as usize);
    let wrong = if least > names.len() {
        Some(format!(
            "--min-clients {least}: there are {} hosts",
            names.len()
        ))
    } else if args.output_format.is_some() {
        Some(
            "--output-format is for a run on one machine: each has its own output in the record"
                .to_owned(),
        )
    } else if args.engine == EngineOrSim::Sim {
        Some("a simulation needs no other machines".to_owned())
    } else {
        None
    };
    if let Some(message) = wrong {
        let exit = Exit::Usage;
        return Err(ExitError { exit, message }.into());
    }
    let plan = Plan::make(args, &args.files, None)?;
    let job = job(args, &plan, least);
    if args.dry_run {
        return dry_run(global, &names, &job);
    }
    let control = signals::control()?;
    let mut live = Live::new(LiveOptions::new(global.quiet, global.color));
    live.observe(&Event::Preparing {
        what: format!("connecting to {} machines", names.len()),
    });
    let machines = hosts::connect(&names);
    let first = plan.steps.first().map_or("job", |step| step.name.as_str());
    let name = args.name.as_deref().unwrap_or(first);
    let mut writer = create_record(global, name, &[])?;
    let dir = writer.dir().to_owned();
    let jobs_dir = writer.jobs_dir().map_err(record_error)?;
    for step in &plan.steps {
        let path = jobs_dir.join(&step.file_name);
        std::fs::write(&path, &step.text)
            .map_err(|e| record_error(format!("{}: {e}", path.display())))?;
    }
    for text in plan.notes {
        let note = Event::Note { text };
        writer.append(&note).map_err(record_error)?;
        live.observe(&note);
    }
    let done = hosts::run(machines, &job, writer, &control, &mut |event| {
        live.observe(event)
    });
    live.finish();
    show_report(global, &dir)?;
    exit_of(done)
}

/// The machines that `--hosts` names, each once.
pub fn names(values: &[String]) -> anyhow::Result<Vec<String>> {
    let wrong = |message: String| ExitError {
        exit: Exit::Usage,
        message,
    };
    let mut names: Vec<String> = Vec::new();
    for value in values {
        let path = Path::new(value);
        let found = match path.is_file() {
            true => of_file(path).map_err(wrong)?,
            false => vec![value.trim().to_owned()],
        };
        for name in found {
            let is_name = |c: char| !c.is_whitespace() && !c.is_control();
            if name.is_empty() || name.starts_with('-') || !name.chars().all(is_name) {
                return Err(wrong(format!("--hosts: {name:?} is no host")).into());
            }
            if names.contains(&name) {
                return Err(wrong(format!("--hosts: {name} is named twice")).into());
            }
            names.push(name);
        }
    }
    Ok(names)
}

fn of_file(path: &Path) -> Result<Vec<String>, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    if path.metadata().map_err(failed)?.len() > HOST_FILE_BYTES_MAX {
        return Err(format!("{shown} is too long for a host file"));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let lines = text.lines().map(str::trim);
    let names: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    match names.is_empty() {
        true => Err(format!("{shown} names no host")),
        false => Ok(names),
    }
}

/// What each machine is to do: the same command, without what belongs here.
fn job(args: &Args, plan: &Plan, least: usize) -> Job {
    let mut words: Vec<String> = ["job", "run"].map(str::to_owned).to_vec();
    let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
    option("engine", args.engine.name().to_owned());
    option("interval", format!("{}us", args.interval.as_micros()));
    if let Some(timeout) = args.timeout {
        option("timeout", format!("{}us", timeout.as_micros()));
    }
    for confirmed in &args.destroy {
        option("destroy", confirmed.clone());
    }
    if let Some(fio) = &args.fio {
        option("fio", fio.display().to_string());
    }
    for section in &plan.sections {
        option("section", section.clone());
    }
    Job {
        args: words,
        files: plan
            .steps
            .iter()
            .map(|step| (step.file_name.clone(), step.text.clone()))
            .collect(),
        behind: plan.passed.clone(),
        steps: plan.steps.iter().map(|step| step.name.clone()).collect(),
        least,
    }
}

fn dry_run(global: &Global, names: &[String], job: &Job) -> anyhow::Result<Exit> {
    let files: Vec<PathBuf> = job.files.iter().map(|(name, _)| name.into()).collect();
    let files = files.iter().map(|path| path.display().to_string());
    let words: Vec<String> = std::iter::once("fathom".to_owned())
        .chain(job.args.iter().cloned())
        .chain(files)
        .collect();
    if global.json {
        out::json(&json!({
            "schema": "fathom.dry-run/1",
            "hosts": names,
            "steps": job.files.iter().map(|(name, text)| json!({
                "name": name, "command": words, "job_file": text,
            })).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Success);
    }
    let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
    for name in names {
        out::line(format_args!("ssh {name} {}", quoted.join(" ")));
    }
    for (name, text) in &job.files {
        out::line(format_args!("# {name}:"));
        for line in text.lines() {
            out::line(format_args!("#   {line}"));
        }
    }
    Ok(Exit::Success)
}
