//! The only place that writes to stdout and stderr.
//!
//! A closed pipe ends output quietly: the reader has seen enough. Anything else
//! that keeps a result from being written (a full disk) makes the command fail.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use fathom_model::text as foreign;
use fathom_sheet::style::{Style, on_terminal};
use indicatif::ProgressBar;
use serde::Serialize;

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set; CLICOLOR_FORCE overrides both
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What ended the output to stdout.
static STOPPED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether nobody is to read what a command says.
static SILENT: AtomicBool = AtomicBool::new(false);

/// The lines that stay in place at the end of the terminal, while there are any.
static IN_PLACE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on everything that is written stands above these lines.
pub fn keep_in_place(lines: Option<ProgressBar>) {
    if let Ok(mut in_place) = IN_PLACE.lock() {
        *in_place = lines;
    }
}

/// Writes above the lines that stay in place.
fn above_lines(write: impl FnOnce()) {
    let lines = IN_PLACE.lock().ok().and_then(|lines| lines.clone());
    match lines {
        Some(lines) => {
            lines.suspend(write);
            park();
        }
        None => write(),
    }
}

/// From now on only [`wire`] says something.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether nobody is to read what a command says.
pub fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// Whether somebody looks at stdout.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes what another program wrote, or is to read, to stdout: byte by byte,
/// but not what a terminal would obey to a terminal.
pub fn bytes(bytes: &[u8]) {
    match is_terminal() {
        true => text(String::from_utf8_lossy(bytes)),
        false => told(bytes),
    }
}

fn told(bytes: &[u8]) {
    if !is_silent() {
        to_stdout(bytes);
    }
}

/// Writes a line to stdout for a program at its other end, also when silenced.
pub fn wire(line: &str) {
    to_stdout(format!("{line}\n").as_bytes());
}

/// Where the output of a command goes that another machine runs.
pub fn handed_over() -> impl io::Write {
    io::stdout()
}

fn to_stdout(bytes: &[u8]) {
    // A poisoned lock: some thread has panicked, and its message says more.
    let Ok(mut stopped) = STOPPED.lock() else {
        return;
    };
    if stopped.is_some() {
        return;
    }
    let mut write = || {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        *stopped = written.err();
    };
    match is_terminal() {
        true => above_lines(write),
        false => write(),
    }
}

/// Writes text to stdout. Foreign words in it are shown, never obeyed.
pub fn text(text: impl Display) {
    told(on_terminal(&text.to_string()).as_bytes());
}

/// Writes a line to stdout.
pub fn line(line: impl Display) {
    text(format_args!("{line}\n"));
}

/// Writes the one JSON document of a command to stdout.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json(document: &impl Serialize) -> anyhow::Result<()> {
    HAS_DOCUMENT.store(true, Ordering::Relaxed);
    let text = serde_json::to_string_pretty(document).context("cannot write JSON")?;
    line(foreign::json(&text));
    Ok(())
}

/// Whether a document was written to stdout: a second one would make neither readable.
pub fn has_document() -> bool {
    HAS_DOCUMENT.load(Ordering::Relaxed)
}

static HAS_DOCUMENT: AtomicBool = AtomicBool::new(false);

/// Writes a JSON document as one line to stdout.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json_line(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(document).context("cannot write JSON")?;
    line(foreign::json(&text));
    Ok(())
}

/// Whether nobody reads stdout any more, or it cannot be written: more output
/// would be in vain.
pub fn is_stopped() -> bool {
    STOPPED.lock().is_ok_and(|stopped| stopped.is_some())
}

/// Ends output: an error if stdout could not be written for another reason
/// than that its reader has left.
///
/// # Errors
/// What the system said.
pub fn end() -> anyhow::Result<()> {
    let stopped = STOPPED.lock().ok().and_then(|mut stopped| stopped.take());
    match stopped {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to stdout"))
        }
        _ => Ok(()),
    }
}

/// Writes a line to stderr. Foreign words in it are shown, never obeyed.
pub fn note(text: impl Display) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let text = text.to_string();
    above_lines(|| {
        let _ = writeln!(io::stderr().lock(), "{}", on_terminal(&text));
    });
}

/// Brings the cursor of a terminal to the begin of its line.
///
/// indicatif leaves it at the right edge. The `^C` that the terminal echoes
/// would stand on the next line then, and taking the lines away would miss the
/// first of them.
pub fn park() {
    let _ = io::stderr().lock().write_all(b"\r");
}

/// Writes an error with its causes to stderr.
pub fn error(error: &anyhow::Error) {
    note(format_args!("fathom: {error:#}"));
}

/// Writes what clap says of the command line, or the help that was asked for,
/// and gives the exit code. File names that came in by a pattern are foreign,
/// too; clap would write them as they are.
pub fn usage(error: &clap::Error) -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if error.use_stderr() && words.any(|word| word.to_string_lossy().contains(foreign::is_hidden)) {
        note(error.render().to_string().trim_end());
    } else {
        // With its colours; what keeps it from being written cannot be said either.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// How tables on stdout are to look.
pub fn style(color: ColorChoice) -> Style {
    style_of(color, io::stdout().is_terminal().then(io::stdout))
}

/// How progress on stderr is to look; without a width it is no terminal.
pub fn progress_style(color: ColorChoice) -> Style {
    style_of(color, io::stderr().is_terminal().then(io::stderr))
}

/// Columns and lines of the terminal that shows progress, as they are now.
pub fn progress_size() -> Option<(u16, u16)> {
    let terminal = io::stderr();
    terminal.is_terminal().then(|| size(terminal))
}

fn style_of(color: ColorChoice, terminal: Option<impl std::os::fd::AsFd>) -> Style {
    Style {
        color: wants_color(color, terminal.is_some(), &|name| std::env::var(name).ok()),
        width: terminal.map(|terminal| size(terminal).0),
    }
}

/// The terminal's columns and lines; 80 and 24 where it does not tell, as serial
/// consoles do not.
fn size(terminal: impl std::os::fd::AsFd) -> (u16, u16) {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// <https://no-color.org> and <https://bixense.com/clicolors>: variables count
/// when they are set and not empty; the command line overrides them.
fn wants_color(color: ColorChoice, terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> bool {
    let set = |name| env(name).filter(|value| !value.is_empty());
    match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto if set("CLICOLOR").as_deref() == Some("0") => false,
        ColorChoice::Auto => terminal && set("TERM").as_deref() != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_command_line_then_the_environment_then_the_terminal() {
        let env = |pairs: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = pairs.iter().find(|(key, _)| *key == name)?;
                Some(found.1.to_owned())
            }
        };
        let auto = |terminal, pairs| wants_color(ColorChoice::Auto, terminal, &env(pairs));
        assert!(auto(true, &[]) && !auto(false, &[]));
        assert!(!auto(true, &[("NO_COLOR", "1")]));
        assert!(
            auto(true, &[("NO_COLOR", "")]),
            "set but empty does not count"
        );
        assert!(auto(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!auto(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!auto(true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!auto(true, &[("TERM", "dumb")]) && !auto(true, &[("CLICOLOR", "0")]));
        let no_color = env(&[("NO_COLOR", "1")]);
        assert!(wants_color(ColorChoice::Always, false, &no_color));
        assert!(!wants_color(ColorChoice::Never, true, &no_color));
    }
}
