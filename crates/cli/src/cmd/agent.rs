//! `fathom agent`: what runs on each machine of a run on several; started by the
//! Fathom that drives them, never by a person. It runs the very command that was
//! called there; that this is one of several is known to its [`Control`] alone.
//!
//! [`Control`]: fathom_engine::Control

use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use fathom_device::scratch::{boot_id, namespace};
use fathom_device::{Scratch, Sys};
use fathom_engine::StepBarrier;
use fathom_fleet::hosts::agent::{DriverLine, one_at_a_time};
use fathom_fleet::hosts::file_parts::{plain, write_part};
use fathom_fleet::hosts::wire::{RUNS, Say, Wire, Word};
use fathom_jobfile::variables::give;
use fathom_model::{Exit, RunStatus};

use super::kinds;
use super::planned::Start;
use super::{Cli, ExitError, Global, dispatch, exit_for};
use crate::{out, signals, wire};

/// Run what the Fathom at the other end of the line says
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job run a.fio --hosts bench1,bench2   starts one on each of them, and ends it")]
pub struct Args {}

/// Runs the command.
pub fn run(_: &Global, _: &Args) -> anyhow::Result<Exit> {
    let control = signals::control()?;
    let send = one_at_a_time(wire::send);
    let kill = || {
        // What is left below ends when this process does: see engine::guard.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    };
    let line = DriverLine::open(std::io::stdin(), control.clone(), send.clone(), kill)?;
    let line = Arc::new(line);
    signals::lead(control, Arc::clone(&line) as Arc<dyn StepBarrier>);
    // stdout is the other side's, and so is whoever reads stderr.
    out::silence();
    let sys = Sys::live();
    if let (Some(boot), Some(mounts)) = (boot_id(&sys), namespace(&sys, "mnt")) {
        send(&Wire::Here { boot, mounts });
    }
    // Over ssh it lies in the folder that is removed whatever happens.
    let scratch = Scratch::new()?;
    let folder = scratch.path().join("run");
    let mut last = None;
    loop {
        std::fs::create_dir(&folder)?;
        let Some(done) = command(&line, &folder).transpose() else {
            return Ok(last.unwrap_or(Exit::Interrupted));
        };
        match &done {
            Ok(exit) => line.end(match exit {
                Exit::Success => RunStatus::Complete,
                Exit::Interrupted => RunStatus::Interrupted,
                _ => RunStatus::Failed,
            }),
            Err(error) => send(&Wire::Refused {
                exit: exit_for(error).code(),
                message: format!("{error:#}"),
            }),
        }
        match done {
            Ok(exit) => last = Some(exit),
            Err(error) => return Ok(exit_for(&error)),
        }
        std::fs::remove_dir_all(&folder)?;
    }
}

/// Takes the files, then the command line, and runs it; `None`: nothing more is to run.
fn command(line: &DriverLine, folder: &Path) -> anyhow::Result<Option<Exit>> {
    let usage = |message: String| ExitError::new(Exit::Usage, message);
    let (host, args, plan) = loop {
        match line.job() {
            Some(Say::File { path, text, more }) => {
                let name = plain(&path).ok_or_else(|| usage(format!("a file named {path:?}")))?;
                write_part(&folder.join(name), &text, more)?;
            }
            Some(Say::Job {
                host,
                args,
                variables,
                plan,
            }) => {
                let given = variables.into_iter();
                give(given.map(|(name, value)| (name, Some(value))).collect());
                break (host, args, plan);
            }
            _ => return Ok(None),
        }
    };
    let runs = folder.join(RUNS);
    if !plan.is_null() {
        let mut request = kinds::read(plan).map_err(|e| usage(e.to_string()))?;
        request.be_on(&host, folder)?;
        let global = Global::of_agent(runs);
        return request.run(&global, Start::default()).map(Some);
    }
    let runs = runs.display().to_string();
    let mut words = ["fathom", "--quiet", "--runs"].map(str::to_owned).to_vec();
    words.push(runs);
    words.extend(args.into_iter().map(|word| match word {
        Word::Text(text) => text,
        Word::File(path) => folder.join(path).display().to_string(),
    }));
    let cli = Cli::try_parse_from(words).map_err(|error| usage(error.to_string()))?;
    dispatch(&cli).map(Some)
}
