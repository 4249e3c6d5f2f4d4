//! Signals and the trigger file, as requests to a running engine.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use fathom_device::threads;
use fathom_engine::{Control, StepBarrier};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;

/// How often fio itself looks for its trigger file (`DISK_UTIL_MSEC`, diskutil.h).
const TRIGGER_LOOK: Duration = Duration::from_millis(250);

/// The control of a run that is one of several.
static LED: OnceLock<Control> = OnceLock::new();

/// The control that signals stop.
static GIVEN: OnceLock<Control> = OnceLock::new();

/// Whether a step of the run was refused.
pub fn is_refused() -> bool {
    let mut controls = LED.get().into_iter().chain(GIVEN.get());
    controls.any(Control::is_refused)
}

/// From now on [`control`] gives this one, led by `lead`.
pub fn lead(control: Control, lead: Arc<dyn StepBarrier>) {
    // An agent does it once.
    let _ = LED.set(control.with_barrier(lead));
}

/// A file that may not become longer (`ulimit -f`) is an error of whoever writes to it,
/// and not the end of the program; programs that it starts are not affected.
///
/// # Errors
/// When the signal cannot be taken over.
pub fn outlive_file_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot watch for signals")?;
    Ok(())
}

/// A control that SIGINT, SIGTERM and SIGHUP stop (a second one stops harder),
/// and that SIGUSR1 or the [`trigger_file`] ask for a status.
///
/// # Errors
/// When the signals cannot be taken over.
pub fn control() -> anyhow::Result<Control> {
    control_by(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1])
}

/// As [`control`], of a run on another machine: SIGHUP ends this program alone.
///
/// # Errors
/// When the signals cannot be taken over.
pub fn control_until_hangup() -> anyhow::Result<Control> {
    control_by(&[SIGINT, SIGTERM, SIGUSR1])
}

fn control_by(signals: &[i32]) -> anyhow::Result<Control> {
    if let Some(led) = LED.get() {
        return Ok(led.clone());
    }
    let control = Control::default();
    // A command asks for it once.
    let _ = GIVEN.set(control.clone());
    let asked = control.clone();
    let mut signals = Signals::new(signals).context("cannot watch for signals")?;
    threads::spawn("signals", move || {
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => asked.request_status(),
                _ => asked.stop(),
            }
        }
    })?;
    let asked = control.clone();
    threads::spawn("trigger", move || {
        let trigger = trigger_file();
        loop {
            std::thread::sleep(TRIGGER_LOOK);
            if std::fs::remove_file(&trigger).is_ok() {
                asked.request_status();
            }
        }
    })?;
    Ok(control)
}

/// The file whose appearance asks for a status: `fathom-dump-status` in the
/// folder where fio looks for its `fio-dump-status` (`check_status_file` in
/// stat.c): `$TMPDIR`, else `$TEMP`, else /tmp.
pub fn trigger_file() -> PathBuf {
    let folder = ["TMPDIR", "TEMP"].iter().find_map(std::env::var_os);
    folder
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
        .join("fathom-dump-status")
}
