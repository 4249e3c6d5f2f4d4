//! `fathom prio restore`: puts switches back that a killed run has left.

use fathom_device::command::Live;
use fathom_device::switches::Switches;
use fathom_device::{Hold, Node, Sys, identity};
use fathom_model::Exit;
use fathom_record::{Leftover, SwitchFile, leftovers};

use crate::cmd::quick::xdg;
use crate::cmd::{ExitError, Global};
use crate::out;

/// Put the switches of devices back that a killed run has left
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run of fathom prio notes how it found the switches and the pages of limits before it touches
them, and puts them back at its end, after a failure and after Ctrl-C. After a kill or a power cut
this command does it, for every device with such a note; so does the next run on the device.

Examples:
  fathom prio restore")]
pub struct Args {}

/// Puts back what there is to be put back.
pub fn run(global: &Global, _: &Args) -> anyhow::Result<Exit> {
    let Some(folder) = xdg::switches_dir() else {
        return Ok(Exit::Success);
    };
    let files = leftovers(&folder)?;
    if files.is_empty() && !global.quiet {
        out::note("there is nothing to put back");
    }
    let mut exit = Exit::Success;
    for file in files {
        let Some(leftover) = file.read()? else {
            continue;
        };
        if let Err(error) = put_back(&file, &leftover) {
            out::error(&error);
            exit = Exit::Failed;
        } else if !global.quiet {
            out::note(format_args!("{}: as it was", name(&leftover)));
        }
    }
    Ok(exit)
}

fn name(leftover: &Leftover) -> String {
    let device = &leftover.device;
    let serial = device.serial.as_deref().unwrap_or("no serial number");
    format!("{} ({serial})", leftover.path.display())
}

/// The device of a note under its name of today: by its serial number where it
/// has one.
fn node_of(sys: &Sys, leftover: &Leftover) -> Option<Node> {
    let device = &leftover.device;
    let same = |node: &Node| {
        let now = identity::block_device(sys, node);
        match device.serial {
            Some(_) => now.serial == device.serial && now.model == device.model,
            None => now.name == device.name && now.capacity_bytes == device.capacity_bytes,
        }
    };
    sys.disks().into_iter().find(same)
}

/// Puts one device back and takes the note away.
fn put_back(file: &SwitchFile, leftover: &Leftover) -> anyhow::Result<()> {
    let who = name(leftover);
    let fail = |exit: Exit, message: String| Err(ExitError { exit, message }.into());
    let sys = Sys::live();
    let Some(node) = node_of(&sys, leftover) else {
        let what = format!(
            "{who} is not here\n  to do: attach it and run this again, or remove {}",
            file.path().display()
        );
        return fail(Exit::Missing, what);
    };
    let dev = node.dev_path();
    let _hold = Hold::of([dev.as_path()]).map_err(|refusal| ExitError {
        exit: Exit::Refused,
        message: refusal.to_string(),
    })?;
    finish(&switches(&node, leftover, &Live), file, &leftover.found)
}

/// The switches of a device that has a note.
pub fn switches<'i>(
    node: &Node,
    leftover: &Leftover,
    issue: &'i dyn fathom_device::command::Issue,
) -> Switches<'i> {
    let folder = xdg::switches_dir().unwrap_or_default();
    let ata = leftover.found.pages.iter().any(|page| page.file.is_some());
    Switches::new(node.clone(), ata, folder, issue)
}

/// Puts back what was found and takes the note away.
pub fn finish(
    switches: &Switches,
    file: &SwitchFile,
    found: &fathom_model::SwitchState,
) -> anyhow::Result<()> {
    let failed = switches.put_back(found);
    if failed.is_empty() {
        return Ok(file.remove()?);
    }
    let reasons: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let message = format!(
        "not everything could be put back as it was:\n  {}\n  to do: fathom prio restore, once \
         this is mended",
        reasons.join("\n  ")
    );
    let exit = Exit::Failed;
    Err(ExitError { exit, message }.into())
}
