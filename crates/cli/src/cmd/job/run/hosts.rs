//! `--hosts`: the jobs on several machines at once, over ssh.

use fathom_fleet::hosts::Job;
use fathom_fleet::hosts::wire::Word;
use fathom_model::Exit;
use fathom_record::Writer;

use super::plan::Plan;
use super::{Args, COMMAND, record_error, show_report};
use crate::cmd::Global;
use crate::cmd::hosts::{
    self, HostVariables, drive, dry_run, exit_of, least, listed, refuse, usage,
};
use crate::engine::EngineOrSim;
use crate::signals;

/// Runs the command on all machines.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (names, mut variables) = listed(&args.clients.hosts)?;
    variables.take(&args.clients.var, &names)?;
    let least = least(&names, args.clients.min_clients, "--min-clients")?;
    refuse(&[(
        args.output_format.is_some(),
        "--output-format is for a run on one machine: each has its own output in the record",
    )])?;
    if args.engine == EngineOrSim::Sim {
        return Err(usage("a simulation needs no other machines"));
    }
    let plan = Plan::elsewhere(args, &variables)?;
    let named = plan.variables();
    HostVariables::are_named(&args.clients.var, &named)?;
    let mut job = job(args, &plan, least);
    job.variables = variables.sent(&names, &named).into_map();
    if args.dry_run {
        return dry_run(global, &names, &job);
    }
    let control = signals::control()?;
    let first = plan.steps.first().map_or("job", |step| step.name.as_str());
    let name = args.name.as_deref().unwrap_or(first);
    let begin = || {
        let header = hosts::header(name, COMMAND, &names, &job);
        let writer = Writer::create(&global.runs, &header).map_err(record_error)?;
        let jobs_dir = writer.jobs_dir().map_err(record_error)?;
        for step in &plan.steps {
            let path = jobs_dir.join(&step.file_name);
            std::fs::write(&path, &step.text)
                .map_err(|e| record_error(format!("{}: {e}", path.display())))?;
        }
        Ok((writer, plan.notes.clone()))
    };
    let (dir, status) = drive(global, &names, &job, &control, begin)?;
    show_report(global, &dir)?;
    Ok(exit_of(status))
}

/// What each machine is to do: the same command, without what belongs here.
fn job(args: &Args, plan: &Plan, least: usize) -> Job {
    let mut words: Vec<Word> = ["job", "run"].map(Word::text).to_vec();
    let mut option =
        |name: &str, value: String| words.push(Word::text(format!("--{name}={value}")));
    option("engine", args.engine.name().to_owned());
    option("interval", format!("{}us", args.interval.as_micros()));
    if let Some(timeout) = args.timeout {
        option("timeout", format!("{}us", timeout.as_micros()));
    }
    if let Some(most) = args.max_errors {
        option("max-errors", most.to_string());
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
    if args.strict {
        words.push(Word::text("--strict"));
    }
    let steps = plan.steps.iter();
    let files: Vec<(String, String)> = steps
        .enumerate()
        .map(|(nth, step)| (format!("{nth}/{}", step.file_name), step.text.clone()))
        .collect();
    words.extend(files.iter().map(|(path, _)| Word::File(path.clone())));
    if !plan.passed.is_empty() {
        words.push(Word::text("--"));
        words.extend(plan.passed.iter().map(Word::text));
    }
    Job {
        args: words,
        files,
        steps: plan.steps.iter().map(|step| step.name.clone()).collect(),
        least,
        allow_same_host: args.clients.allow_same_host,
        interval: args.interval,
        ..Job::default()
    }
}
