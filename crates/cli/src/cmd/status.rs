//! `fathom status`: how far a run is, here or on another host.

use std::path::PathBuf;

use fathom_campaign::run;
use fathom_flow::progress::Progress;
use fathom_model::Exit;
use fathom_record::ListedRun;

use super::campaign::CampaignArgs;
use super::elsewhere::{HostErrand, OtherHost};
use super::failed;
use super::screen::summary;
use super::{ExitError, Global};
use crate::out;

/// Show how far a run is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads the record only: it works while the run goes on, from any terminal, and afterwards.

Examples:
  fathom status                              what runs, else the last of the campaign, else the last
  fathom status 1307                         a run of any command, by a part of its name
  fathom status -C /srv/nvme0 --json | jq '.done, .left_ms'
  fathom status --host root@lab1 -C /srv/nvme0")]
pub struct Args {
    #[command(flatten)]
    pub place: RunPlace,
}

/// Which run, and where.
#[derive(Debug, Clone, clap::Args)]
pub struct RunPlace {
    /// The run: a folder, its name or a part of it [default: what runs, else the campaign's last,
    /// else the last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Folder whose runs are meant: of a campaign, or any other
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    pub host: OtherHost,
}

impl RunPlace {
    /// The record that is meant.
    pub fn record(&self, global: &Global) -> anyhow::Result<PathBuf> {
        let which = CampaignArgs {
            dir: self.dir.clone(),
            only: Vec::new(),
        };
        let runs_dir = which.runs_dir(global);
        let missing = |message: String| ExitError::new(Exit::Missing, message);
        if let Some(name) = &self.run {
            let found = fathom_record::find(&runs_dir, Some(name));
            return Ok(found.map_err(|error| missing(error.to_string()))?);
        }
        let runs = fathom_record::list(&runs_dir);
        let runs = runs.map_err(|error| failed(error.into()))?;
        let is_running = |run: &&ListedRun| matches!(&run.summary, Ok(it) if it.status.is_none());
        if let Some(running) = runs.iter().rev().find(is_running) {
            return Ok(running.dir.clone());
        }
        if let Some(current) = run::current_of(&runs, &self.dir, &runs_dir).map_err(failed)? {
            return Ok(current);
        }
        match runs.last() {
            Some(last) => Ok(last.dir.clone()),
            None => {
                Ok(fathom_record::find(&runs_dir, None)
                    .map_err(|error| missing(error.to_string()))?)
            }
        }
    }
}

/// Shows it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(exit) = args.place.host.run(global, HostErrand::Status)? {
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
