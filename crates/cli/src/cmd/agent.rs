//! `fathom agent`: what runs on each machine of a run on several; started by the
//! Fathom that drives them, never by a person.

use std::fs;

use clap::Parser;
use fathom_fleet::hosts::agent::{Line, one_at_a_time};
use fathom_fleet::hosts::wire::Say;
use fathom_fleet::ssh::carry::Wire;
use fathom_model::Exit;
use tempfile::TempDir;

use super::{Cli, Command, ExitError, Global, exit_for, job};
use crate::{signals, wire};

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
        // What is left below ends when this process does: see engine::fio::guard.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    };
    let line = Line::open(std::io::stdin(), control.clone(), send.clone(), kill);
    let Some(Say::Job {
        args,
        files,
        behind,
    }) = line.job()
    else {
        return Ok(Exit::Interrupted);
    };
    let done = with_files(&args, &files, &behind, |cli| match &cli.command {
        Command::Job(args) => job::driven(&cli.global, args, &line, &send, &control),
        _ => Err(ExitError {
            exit: Exit::Usage,
            message: "this command does not run on several machines".to_owned(),
        }
        .into()),
    });
    if let Err(error) = &done {
        send(&Wire::Refused {
            exit: exit_for(error).code(),
            message: format!("{error:#}"),
        });
        return Ok(exit_for(error));
    }
    done
}

/// Reads the command line behind which the files stand, in a folder that is
/// removed at the end.
fn with_files(
    args: &[String],
    files: &[(String, String)],
    behind: &[String],
    run: impl FnOnce(&Cli) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let dir = TempDir::with_prefix("fathom-")?;
    let mut words = vec![
        "fathom".to_owned(),
        "--runs".to_owned(),
        // Nothing of a run stays on the machine.
        dir.path().join("runs").display().to_string(),
    ];
    words.extend(args.iter().cloned());
    for (nth, (name, text)) in files.iter().enumerate() {
        let folder = dir.path().join(nth.to_string());
        fs::create_dir(&folder)?;
        // A name that leads elsewhere is cut to its last part.
        let name = std::path::Path::new(name)
            .file_name()
            .unwrap_or("job".as_ref());
        let path = folder.join(name);
        fs::write(&path, text)?;
        words.push(path.display().to_string());
    }
    if !behind.is_empty() {
        words.push("--".to_owned());
        words.extend(behind.iter().cloned());
    }
    let cli = Cli::try_parse_from(words).map_err(|error| ExitError {
        exit: Exit::Usage,
        message: error.to_string(),
    })?;
    run(&cli)
}
