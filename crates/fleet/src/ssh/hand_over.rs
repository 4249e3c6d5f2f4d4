//! A command that is handed over to another machine, as if it had been called
//! there: what it prints is printed here.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fathom_engine::Control;
use fathom_engine::bounded::TEXT_BYTES_MAX;
use fathom_engine::jobfile::shell_quote;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::SshError;
use super::client::{self, End, From, Messages};
use super::session::{
    ANSWER_WAIT, ATTENDED_WAIT, CONNECT_WAIT, MORE_PATH, SSH_FAILED, bounds, ssh,
};

/// What the far side prints first: from there on it is the command that is waited
/// for, and no longer the connection.
const THERE: &str = "fathom-is-there";
/// More than any answer: the document of a campaign of which everything failed.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// What a screen that is drawn again four times a second may need.
const SCREEN_BYTES_PER_S: u64 = 256 << 10;

/// A command that another machine is to run.
#[derive(Debug)]
pub struct Errand<'e> {
    /// Its words.
    pub command: &'e [String],
    /// Whether it gets a terminal there.
    pub terminal: bool,
    /// Whether it goes on until somebody ends it; else it answers and ends.
    pub follows: bool,
}

/// Runs a command on `target` and prints what it prints, until it ends or `stop`
/// is asked to.
///
/// # Errors
/// When ssh cannot be started, the connection does not come about, no answer
/// comes in time or one that does not end; when `stop` was asked.
pub fn hand_over(
    target: &str,
    errand: &Errand,
    stop: &Control,
    print: &mut dyn Write,
) -> Result<std::process::ExitStatus, SshError> {
    let program = ssh();
    let quoted: Vec<String> = errand
        .command
        .iter()
        .map(|word| shell_quote(word))
        .collect();
    // One word for the shell there, whichever it is: the rest is sh's.
    let script = format!(
        "PATH=$PATH:{MORE_PATH}; export PATH; echo {THERE}; exec {}",
        quoted.join(" ")
    );
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    bounds(&mut command);
    command
        .arg(if errand.terminal { "-t" } else { "-T" })
        .args(["--", target, &format!("sh -c {}", shell_quote(&script))]);
    let mut command = client::heard(command);
    if errand.terminal {
        command.stdin(Stdio::inherit());
    }
    let asks = client::has_terminal();
    let mut screen = Screen::new(errand.follows, asks, print);
    // ssh makes the terminal raw, and one that is killed leaves it so.
    let stdin = std::io::stdin();
    let modes = tcgetattr(&stdin).ok().filter(|_| errand.terminal);
    let end = client::run(command, !asks, stop, &mut screen);
    let end = end.map_err(|source| SshError::NoClient {
        command: program.join(" "),
        source,
    })?;
    if let (Some(modes), false) = (modes, matches!(end, End::Exited(_))) {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
    }
    screen.flush();
    let target = target.to_owned();
    match end {
        End::Exited(status) if status.code() == Some(SSH_FAILED) => {
            Err(SshError::NotConnected { target })
        }
        End::Exited(status) => Ok(status),
        End::Stopped => Err(SshError::Interrupted { target }),
        End::Late(limit) => Err(SshError::Late {
            target,
            seconds: limit.as_secs(),
        }),
        End::TooMuch => Err(SshError::TooMuch { target }),
    }
}

/// Prints what comes, as far as it is bounded.
struct Screen<'p> {
    print: &'p mut dyn Write,
    messages: Messages,
    follows: bool,
    connect_wait: Duration,
    began: Instant,
    /// Since when the command runs there.
    there: Option<Instant>,
    /// What came before that: login scripts may print.
    before: Vec<u8>,
    printed: usize,
}

impl<'p> Screen<'p> {
    fn new(follows: bool, asks: bool, print: &'p mut dyn Write) -> Self {
        Self {
            print,
            messages: Messages::default(),
            follows,
            connect_wait: if asks { ATTENDED_WAIT } else { CONNECT_WAIT },
            began: Instant::now(),
            there: None,
            before: Vec::new(),
            printed: 0,
        }
    }

    fn print(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let room = match (self.follows, self.there) {
            (true, Some(since)) => {
                let grown = SCREEN_BYTES_PER_S.saturating_mul(since.elapsed().as_secs());
                TEXT_BYTES_MAX.saturating_add(usize::try_from(grown).unwrap_or(usize::MAX))
            }
            _ => ANSWER_BYTES_MAX,
        };
        self.printed = self.printed.saturating_add(bytes.len());
        if self.printed > room {
            return ControlFlow::Break(());
        }
        // Who reads it may have gone: then nothing more is wanted.
        let done = self
            .print
            .write_all(bytes)
            .and_then(|()| self.print.flush());
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Prints what came of a connection whose command never began.
    fn flush(&mut self) {
        let before = std::mem::take(&mut self.before);
        let _ = self.print(&before);
    }
}

impl client::Listener for Screen<'_> {
    fn take(&mut self, from: From, bytes: &[u8]) -> ControlFlow<()> {
        match (from, self.there) {
            (From::Stderr, _) => self.messages.take(bytes),
            (From::Stdout, Some(_)) => return self.print(bytes),
            (From::Stdout, None) => {
                self.before.extend_from_slice(bytes);
                if self.before.len() > TEXT_BYTES_MAX {
                    self.before.clear();
                    return ControlFlow::Break(());
                }
                let mut parts = self.before.windows(THERE.len());
                let Some(at) = parts.position(|part| part == THERE.as_bytes()) else {
                    return ControlFlow::Continue(());
                };
                // A terminal there ends lines with \r\n.
                let mut ends = self.before[at..].iter();
                let Some(length) = ends.position(|&byte| byte == b'\n') else {
                    return ControlFlow::Continue(());
                };
                let mut login = std::mem::take(&mut self.before);
                let rest = login.split_off(at + length + 1);
                login.truncate(at);
                self.there = Some(Instant::now());
                self.print(&login)?;
                return self.print(&rest);
            }
        }
        ControlFlow::Continue(())
    }

    fn limit(&self) -> Option<Duration> {
        match self.there {
            None => Some(self.connect_wait),
            Some(_) if self.follows => None,
            Some(since) => Some(since.duration_since(self.began) + ANSWER_WAIT),
        }
    }
}
