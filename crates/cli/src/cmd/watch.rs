//! `fathom watch`: follows what runs in another terminal.

use std::time::Duration;

use fathom_flow::progress::Progress;
use fathom_model::{Exit, RunStatus};

use super::Global;
use super::elsewhere::HostErrand;
use super::failed;
use super::screen::Screen;
use super::screen::summary;
use super::status::RunPlace;
use crate::live::LiveOptions;
use crate::out;

/// How often the record is looked at: a run writes to it once a second.
const LOOK: Duration = Duration::from_millis(250);

/// Follow what runs in another terminal
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads the record only, and ends with the run; Ctrl-C ends the watching, not the run. At the end
stands what fathom status shows.

Examples:
  fathom watch                               what runs, else the last of the campaign, else the last
  fathom watch --host root@lab1 -C /srv/nvme0")]
pub struct Args {
    #[command(flatten)]
    place: RunPlace,
}

/// Follows it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(exit) = args.place.host.run(global, HostErrand::Watch)? {
        return Ok(exit);
    }
    let dir = args.place.record(global)?;
    let (mut progress, mut entries) = Progress::open(&dir).map_err(failed)?;
    // What has been so far is no news.
    progress
        .follow_up(&mut entries, &mut |_, _, _| {})
        .map_err(failed)?;
    let mut screen = Screen::new(LiveOptions::new(global.quiet, global.color), progress);
    while screen.progress().status() == RunStatus::Running {
        screen.draw();
        std::thread::sleep(LOOK);
        screen.follow_up(&mut entries).map_err(failed)?;
    }
    screen.finish();
    if global.json {
        out::json(&summary::document(screen.progress()))?;
    } else {
        out::text(summary::text(screen.progress(), out::style(global.color)));
    }
    Ok(Exit::Success)
}
