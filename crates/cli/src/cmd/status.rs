//! `fathom status`: how far a campaign is, here or on another host.

use std::path::PathBuf;

use fathom_campaign::run::{self, Progress};
use fathom_fleet::ssh::{self, Errand, SshError};
use fathom_model::Exit;

use super::campaign::Which;
use super::run::{failed, summary};
use super::{ExitError, Global, watch};
use crate::{out, signals};

/// Show how far a campaign is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads the record only: it works while the campaign runs, from any terminal, and afterwards.

Examples:
  fathom status                              the campaign of the current folder
  fathom status -C /srv/nvme0 --json | jq '.done, .left_ms'
  fathom status --host root@lab1 -C /srv/nvme0")]
pub struct Args {
    #[command(flatten)]
    pub place: Place,
}

/// Which run, and where.
#[derive(Debug, Clone, clap::Args)]
pub struct Place {
    /// The run: a folder, or its name among the runs [default: the campaign's last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Folder of the campaign
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Ask the Fathom on this host, over ssh
    #[arg(long, value_name = "USER@HOST")]
    host: Option<String>,
    /// The Fathom there
    #[arg(long, value_name = "PATH", default_value = "fathom", requires = "host")]
    program: String,
}

impl Place {
    /// The record that is meant.
    pub fn record(&self, global: &Global) -> anyhow::Result<PathBuf> {
        let which = Which {
            dir: self.dir.clone(),
            only: Vec::new(),
        };
        let runs_dir = which.runs_dir(global);
        let missing = |message: String| ExitError {
            exit: Exit::Missing,
            message,
        };
        if let Some(name) = &self.run {
            let found = fathom_record::find(&runs_dir, Some(name));
            return Ok(found.map_err(|error| missing(error.to_string()))?);
        }
        let current = run::current(&self.dir, &runs_dir).map_err(failed)?;
        let none = || {
            missing(format!(
                "no campaign has been run in {}: there is no record of one under {}\n  to do: fathom run",
                self.dir.display(),
                runs_dir.display()
            ))
        };
        Ok(current.ok_or_else(none)?)
    }

    /// Lets the Fathom on the host do it, when there is one.
    pub fn elsewhere(&self, global: &Global, verb: &str) -> anyhow::Result<Option<Exit>> {
        let Some(host) = &self.host else {
            return Ok(None);
        };
        let mut words = vec![self.program.clone(), verb.to_owned()];
        words.push("-C".to_owned());
        words.push(self.dir.display().to_string());
        words.push("--runs".to_owned());
        words.push(global.runs.display().to_string());
        words.extend(self.run.clone());
        for (flag, is_on) in [("--json", global.json), ("--quiet", global.quiet)] {
            if is_on {
                words.push(flag.to_owned());
            }
        }
        let terminal = !global.json && out::style(global.color).width.is_some();
        let errand = Errand {
            command: &words,
            terminal,
            follows: verb == watch::VERB,
        };
        let control = signals::control()?;
        let mut stdout = out::handed_over();
        let done = ssh::hand_over(host, &errand, &control, &mut stdout);
        let status = done.map_err(|error| ExitError {
            exit: match error {
                SshError::Interrupted { .. } => Exit::Interrupted,
                _ => Exit::Missing,
            },
            message: error.to_string(),
        })?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        // 126 and 127 are sh's: it found no such program (POSIX, 2.8.2).
        if matches!(code, Some(126 | 127)) {
            return Err(ExitError {
                exit: Exit::Missing,
                message: format!(
                    "there is no {} on {host}\n  to do: install Fathom there, or name it with --program",
                    self.program
                ),
            }
            .into());
        }
        Ok(Some(code.and_then(Exit::from_code).unwrap_or(Exit::Failed)))
    }
}

/// Shows it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(exit) = args.place.elsewhere(global, "status")? {
        return Ok(exit);
    }
    let dir = args.place.record(global)?;
    let progress = Progress::read(&dir).map_err(failed)?;
    if global.json {
        out::json(&summary::document(&progress))?;
    } else {
        out::text(summary::text(&progress, out::style(global.color)));
    }
    Ok(Exit::Success)
}
