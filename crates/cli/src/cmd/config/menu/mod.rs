//! `fathom config menu`: the menu in the terminal.
//!
//! [`state`] and [`dialog`] turn keys into a state, [`draw`] shows it; only this
//! file knows a terminal and files.

use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use fathom_campaign::folder::{self, Folder};
use fathom_model::Exit;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{ConfigSession, ExitError, read};
use crate::out;
use draw::MenuStyle;
use state::{Effect, Menu, SaveTarget};

mod dialog;
mod draw;
mod input;
mod state;
#[cfg(test)]
mod tests;

/// How long a signal may wait until it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Configure in a menu, full screen
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys: arrows or h j k l, Enter opens, Space changes, y n set, / searches, ? explains,
s saves, o loads, a shows what cannot be set now, r goes back to the default, q ends.

Examples:
  fathom config menu
  NO_COLOR=1 fathom config menu -C nightly")]
pub struct Args {}

/// Whether the menu can be shown at all.
///
/// # Errors
/// When it cannot: with what to do instead.
pub fn needs_terminal() -> Result<(), ExitError> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if is_terminal && !is_dumb {
        return Ok(());
    }
    let what = match is_terminal {
        false => "the menu needs a terminal",
        true => {
            "the menu needs a terminal that can move its cursor, and TERM says that this one cannot"
        }
    };
    let message = format!("{what}; `fathom config --help` lists the commands that need none");
    Err(ExitError::new(Exit::Usage, message))
}

/// Shows the menu until it is ended.
///
/// # Errors
/// When there is no terminal, or it cannot be used.
pub fn run(session: ConfigSession) -> anyhow::Result<Exit> {
    let folder = session.folder;
    let path = folder.file(folder::CONFIG);
    let saved = match session.existed {
        true => Some(read(&path)?),
        false => None,
    };
    let color = out::style(session.global.color).color;
    let mut menu = Menu::new(session.config, saved);
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .context("cannot watch for signals")?;
    }
    let exit = {
        let mut screen = Screen::open()?;
        work(
            &mut screen.terminal,
            &mut menu,
            folder,
            MenuStyle { color },
            &ended,
        )
    };
    if menu.is_changed() && menu.has_file() && matches!(exit, Ok(Exit::Interrupted)) {
        out::note("fathom: interrupted; the changes were not saved");
    }
    exit
}

/// The terminal in full-screen mode; as it was once this is dropped, also by a
/// panic.
struct Screen {
    /// Never dropped: it would complain on stderr of a terminal that is gone, and
    /// stderr may be that terminal.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    fn open() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("cannot use the terminal")?;
        let terminal = ManuallyDrop::new(terminal);
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

fn work(
    terminal: &mut DefaultTerminal,
    menu: &mut Menu,
    folder: &Folder,
    look: MenuStyle,
    ended: &AtomicBool,
) -> anyhow::Result<Exit> {
    loop {
        terminal
            .draw(|frame| draw::draw(frame, menu, look))
            .context("cannot write to the terminal")?;
        if !wait_for_event(ended)? {
            return Ok(Exit::Interrupted);
        }
        let effect = match event::read().context("cannot read from the terminal")? {
            Event::Key(key) if key.kind != KeyEventKind::Release => menu.key(key),
            _ => None,
        };
        match effect {
            Some(Effect::Quit) => return Ok(Exit::Success),
            Some(Effect::Interrupt) => return Ok(Exit::Interrupted),
            Some(Effect::Load(path)) => load(menu, folder, &path),
            Some(Effect::Save { path, text, target }) => {
                let is_saved = save(menu, folder, &path, text, target);
                if is_saved && target == SaveTarget::ConfigThenQuit {
                    return Ok(Exit::Success);
                }
            }
            None => {}
        }
    }
}

/// Waits for an event; `false` when the menu is to end without one.
fn wait_for_event(ended: &AtomicBool) -> anyhow::Result<bool> {
    let mut wait = Duration::ZERO;
    loop {
        // Before crossterm looks: it reads the end of a terminal that is gone for
        // ever, and nobody need send a SIGHUP.
        if is_hung_up(wait)? || ended.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if event::poll(Duration::ZERO).context("cannot read from the terminal")? {
            return Ok(true);
        }
        wait = LOOK;
    }
}

/// Whether the terminal is gone; waits for a key, so long at most.
fn is_hung_up(wait: Duration) -> anyhow::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).context("a time too long to wait")?;
    match poll(&mut fds, Some(&wait)) {
        // A signal: the caller looks what it said.
        Ok(_) | Err(Errno::INTR) => {
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            Ok(fds[0].revents().intersects(gone))
        }
        Err(error) => Err(error).context("cannot wait for the terminal"),
    }
}

fn load(menu: &mut Menu, folder: &Folder, path: &Path) {
    let path = folder.file(path);
    let text = read(&path).map_err(|error| error.to_string());
    menu.load(&path.display().to_string(), text);
}

fn save(menu: &mut Menu, folder: &Folder, path: &Path, text: String, target: SaveTarget) -> bool {
    let path = folder.file(path);
    let written = super::save(&path, &text, target != SaveTarget::Elsewhere);
    let written = written.map_err(|error| format!("{error:#}"));
    let is_saved = written.is_ok();
    menu.saved(&path.display().to_string(), target, text, written);
    is_saved
}
