//! Ctrl-C and its like, as requests to a running engine.

use anyhow::Context;
use fathom_engine::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A control that SIGINT, SIGTERM and SIGHUP stop; a second one stops harder.
///
/// # Errors
/// When the signals cannot be taken over.
pub fn control() -> anyhow::Result<Control> {
    let control = Control::default();
    let stopped = control.clone();
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            stopped.stop();
        }
    });
    Ok(control)
}
