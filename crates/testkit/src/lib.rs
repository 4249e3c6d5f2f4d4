//! What tests need of a machine: loop devices ([`LoopDevice`]), zram ([`Zram`]),
//! limits on their I/O ([`Throttle`]), small file
//! systems ([`SmallFs`]), a file system with faults ([`FaultFs`]), an sshd
//! ([`Sshd`]), machines in network namespaces ([`Lab`]), a terminal ([`Tmux`]), a machine with emulated disks ([`Guest`]),
//! PyPI's kconfiglib ([`kconfiglib`](fn@kconfiglib)), a newer fio
//! ([`newer_fio`](fn@newer_fio)), axe-core ([`axe_core`](fn@axe_core)), a Prometheus
//! ([`prometheus`](fn@prometheus)), pandas and others ([`readers`](fn@readers)), programs without some system
//! calls ([`deny`](fn@deny)), the program under test in a folder of its own ([`ProgramUnderTest`]), turns where tests
//! share a machine ([`exclusive`](fn@exclusive), [`free_port`]), and a way to skip with a reason ([`skip`]).
//! For tests only; knows no other crate.
//!
//! Everything here is undone when it is dropped, also when a test panics. What
//! a machine cannot do is an `Err` with the reason in words:
//!
//! ```no_run
//! # fn fio_survives_a_broken_disk() {
//! let disk = match fathom_testkit::LoopDevice::new(64 << 20) {
//!     Ok(disk) => disk,
//!     Err(reason) => return fathom_testkit::skip("fio_survives_a_broken_disk", &reason),
//! };
//! # let _ = disk;
//! # }
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

mod browser;
mod children;
mod compile;
mod deny;
mod devices;
mod exclusive;
mod faultfs;
mod fetched;
mod guest;
mod kconfiglib;
mod lab;
mod program;
mod sshd;
mod throttle;
mod tmux;

pub use browser::Browser;
pub use children::{await_that, meet, signal, signal_until_it_ends, stat_fields};
pub use deny::deny;
pub use devices::{LoopDevice, Mounted, SmallFs, data};
pub use exclusive::{Exclusive, exclusive, free_port, shared};
pub use faultfs::{FaultFs, FaultOp, Served};
pub use fetched::{axe_core, fio_sources, newer_fio, prometheus, readers};
pub use guest::{Guest, GuestAnswer, GuestPlan, GuestTurn, SharedGuest};
pub use kconfiglib::kconfiglib;
pub use lab::Lab;
pub use program::ProgramUnderTest;
pub use sshd::Sshd;
pub use throttle::{Throttle, Zram};
pub use tmux::Tmux;

/// Says that a test was skipped and why: on stderr, and as a line of the file
/// that `FATHOM_SKIP_LOG` names, from which CI judges whether that was right.
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os("FATHOM_SKIP_LOG") {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("FATHOM_SKIP_LOG names a file that can be written");
    }
}

/// What a test needs; without it, the test returns and says why it was skipped.
#[macro_export]
macro_rules! require {
    ($needed:expr) => {
        match $needed {
            Ok(needed) => needed,
            Err(reason) => return $crate::skip($crate::this_function!(), &reason),
        }
    };
}

/// Whether `make test-long` runs the tests: those that take minutes and cover what rarely
/// changes, and every row of a table of which `make test` takes a part.
pub fn is_long() -> bool {
    std::env::var_os("FATHOM_TEST_LONG").is_some()
}

/// What a test needs that only `make test-long` runs.
///
/// # Errors
/// When that is not what runs.
pub fn long() -> Result<(), String> {
    match is_long() {
        true => Ok(()),
        false => Err("make test-long runs it".to_owned()),
    }
}

/// The name of the function in which this stands.
#[macro_export]
macro_rules! this_function {
    () => {{
        fn here() {}
        let path = std::any::type_name_of_val(&here);
        path.trim_end_matches("::here")
            .rsplit("::")
            .next()
            .unwrap_or(path)
    }};
}

/// The program of this name in `PATH` or where administrators' programs lie.
///
/// # Errors
/// When it is in none of them.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("the program {name} is not installed"))
}

/// Whether this process is root.
///
/// # Errors
/// When it is not.
pub fn root() -> Result<(), String> {
    match run("id", &["-u"])?.trim() {
        "0" => Ok(()),
        _ => Err("this needs root".to_owned()),
    }
}

/// Runs a program to its end and gives what it wrote to stdout.
///
/// # Errors
/// When it is not there or fails, with what it said.
pub fn run(name: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program(name)?)
        .args(args)
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} {}: {}", args.join(" "), said.trim()))
}

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}
