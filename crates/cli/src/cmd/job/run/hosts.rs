//! `--hosts`: the jobs on several machines at once, over ssh.

use fathom_fleet::hosts::HostsJob;
use fathom_model::Exit;

use super::plan::Plan;
use super::{Args, COMMAND, show_report};
use crate::cmd::Global;
use crate::cmd::hosts::{HostVariables, HostedPlan, least, listed, refuse, usage};
use crate::cmd::planned::sent;

/// Runs the command on all machines.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (names, mut variables) = listed(&args.clients.hosts)?;
    variables.take(&args.clients.var, &names)?;
    let least = least(&names, args.clients.min_clients, "--min-clients")?;
    refuse(&[
        (
            !args.output_format.is_empty(),
            "--output-format is for a run on one machine: each has its own output in the record",
        ),
        (
            args.clients.remote_config.is_some(),
            "--remote-config is for --client: it names a job file of fio's servers",
        ),
    ])?;
    if args.run.options.is_simulated() {
        return Err(usage("a simulation needs no other machines"));
    }
    let plan = Plan::elsewhere(args, &variables)?;
    let named = plan.variables();
    HostVariables::are_named(&args.clients.var, &named)?;
    let kept = plan.kept(args, None)?;
    let job = HostsJob {
        plan: sent(&kept)?,
        steps: plan.steps.iter().map(|step| step.name.clone()).collect(),
        least,
        allow_same_host: args.clients.allow_same_host,
        interval: args.interval,
        variables: variables.sent(&names, &named).into_map(),
        ..HostsJob::default()
    };
    let texts = plan.steps.iter();
    let texts = texts.map(|step| (step.file_name.clone(), step.text.clone()));
    let hosted = HostedPlan {
        names: &names,
        job: &job,
        name: &kept.name,
        command: COMMAND,
        options: &kept.options,
        job_files: texts.collect(),
        notes: plan.notes.clone(),
    };
    let ran = hosted.run(global, args.run.dry_run)?;
    ran.show(&|dir| show_report(global, dir))
}
