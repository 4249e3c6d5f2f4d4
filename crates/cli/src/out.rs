//! The only place that writes to stdout and stderr.
//!
//! A closed pipe ends output quietly: the reader has seen enough.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to stdout.
pub fn line(text: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Writes a line to stderr.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes an error with its causes to stderr.
pub fn error(error: &anyhow::Error) {
    note(format_args!("fathom: {error:#}"));
}
