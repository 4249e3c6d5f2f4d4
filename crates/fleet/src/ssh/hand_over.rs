//! A command that is handed over to another machine, as if it had been called
//! there: what it prints is printed here. A run goes on there when the connection is
//! lost.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fathom_device::bounded::TEXT_BYTES_MAX;
use fathom_engine::Control;
use fathom_jobfile::shell_quote;
use fathom_model::text;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::client::{self, ClientEnd, From, Messages};
use super::session::{
    ANSWER_WAIT, ATTENDED_WAIT, CONNECT_WAIT, MORE_PATH, SSH_FAILED, bounds, ssh,
};
use super::{SshError, SshSession};

/// What the far side prints first: from there on it is the command that is waited
/// for, and no longer the connection.
const THERE: &str = "fathom-is-there";
/// More than any answer: the document of a campaign of which everything failed.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// What a screen that is drawn again four times a second may need.
const SCREEN_BYTES_PER_S: u64 = 256 << 10;
/// How long a run may take to end once it was asked to.
const REPORT_WAIT: Duration = Duration::from_secs(60);
/// Requests to stop that a run is told of: with the first it ends what is under way,
/// with the second it breaks that off. One more ends the waiting here.
const STOPS: u8 = 2;

/// Runs a command, and asks it to stop for each line that comes. When no more can come,
/// because the connection is gone, it goes on.
const RUN_ON: &str = "exec 3<&0; \"$@\" </dev/null 3<&- & p=$!; \
    while read x; do kill -INT $p; done <&3 >/dev/null 2>&1 & w=$!; \
    exec 3<&-; wait $p; rc=$?; kill $w 2>/dev/null; exit $rc";

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
    let mut screen = BoundedOutput::new(errand, asks, print);
    // ssh makes the terminal raw, and one that is killed leaves it so.
    let stdin = std::io::stdin();
    let modes = tcgetattr(&stdin).ok().filter(|_| errand.terminal);
    let end = client::run(command, !asks, stop, &mut screen);
    let end = end.map_err(|source| SshError::NoClient {
        command: program.join(" "),
        source,
    })?;
    if let (Some(modes), false) = (modes, matches!(end, ClientEnd::Exited(_))) {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
    }
    screen.flush();
    let target = target.to_owned();
    match end {
        ClientEnd::Exited(status) if status.code() == Some(SSH_FAILED) => {
            Err(SshError::NotConnected { target })
        }
        ClientEnd::Exited(status) => Ok(status),
        ClientEnd::Stopped => Err(SshError::Interrupted { target }),
        ClientEnd::Late(limit) => Err(SshError::Late {
            target,
            seconds: limit.as_secs(),
        }),
        ClientEnd::TooMuch => Err(SshError::TooMuch { target }),
    }
}

/// Runs a command on `target` and prints what it prints, until it ends. It is told what
/// `stop` is asked. When the connection is lost it goes on.
///
/// # Errors
/// When the connection does not come about or is lost, or the run does not end when
/// told to.
pub fn run_on(
    target: &str,
    command: &[String],
    stop: &Control,
    print: &mut dyn Write,
) -> Result<std::process::ExitStatus, SshError> {
    let session = SshSession::open(target, stop)?;
    let local = |what| move |source| SshError::Local { what, source };
    let (orders, teller) = std::io::pipe().map_err(local("a pipe"))?;
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut client = client::heard(session.command(RUN_ON, &words));
    client.stdin(orders);
    let errand = Errand {
        command,
        terminal: false,
        follows: true,
    };
    let mut output = BoundedOutput::new(&errand, false, print);
    output.there = Some(output.began);
    let mut run = RunOutput {
        output,
        teller,
        told: 0,
        told_at: None,
    };
    // Ctrl-C must reach the run as a request, and not cut the line to it.
    let end = client::run(client, true, stop, &mut run);
    let end = end.map_err(local("ssh"))?;
    run.output.flush();
    let target = target.to_owned();
    match end {
        ClientEnd::Exited(status) if status.code() != Some(SSH_FAILED) => Ok(status),
        ClientEnd::Exited(_) | ClientEnd::Late(_) => Err(session.lose()),
        ClientEnd::Stopped => Err(SshError::Interrupted { target }),
        ClientEnd::TooMuch => Err(SshError::TooMuch { target }),
    }
}

/// Prints what a run says, and tells it what it is asked.
struct RunOutput<'p> {
    output: BoundedOutput<'p>,
    teller: std::io::PipeWriter,
    told: u8,
    /// When it was told first.
    told_at: Option<Duration>,
}

impl client::Listener for RunOutput<'_> {
    fn take(&mut self, from: From, bytes: &[u8]) -> ControlFlow<()> {
        self.output.take(from, bytes)
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.told_at? + REPORT_WAIT)
    }

    fn is_over(&mut self, requests: u8) -> bool {
        while self.told < requests.min(STOPS) {
            self.told += 1;
            self.told_at.get_or_insert(self.output.began.elapsed());
            // That nobody hears it any more the client's end will tell.
            let _ = self.teller.write_all(b"\n");
        }
        requests > STOPS
    }
}

/// Prints what comes, as far as it is bounded. What is drawn on a terminal of its own
/// passes as it is; of all else foreign words are shown, never obeyed.
struct BoundedOutput<'p> {
    print: &'p mut dyn Write,
    messages: Messages,
    is_raw: bool,
    /// A line that has not ended.
    line: Vec<u8>,
    follows: bool,
    connect_wait: Duration,
    began: Instant,
    /// Since when the command runs there.
    there: Option<Instant>,
    /// What came before that: login scripts may print.
    before: Vec<u8>,
    printed: usize,
}

impl<'p> BoundedOutput<'p> {
    fn new(errand: &Errand, asks: bool, print: &'p mut dyn Write) -> Self {
        Self {
            print,
            messages: Messages::default(),
            is_raw: errand.terminal,
            line: Vec::new(),
            follows: errand.follows,
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
        if self.is_raw {
            return self.put(bytes);
        }
        self.line.extend_from_slice(bytes);
        let whole = self.line.iter().rposition(|&byte| byte == b'\n');
        let whole = whole.map_or(0, |at| at + 1);
        let rest = self.line.split_off(whole);
        let lines = std::mem::replace(&mut self.line, rest);
        self.put(text::lines(&String::from_utf8_lossy(&lines)).as_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let done = self.print.write_all(bytes);
        // Who reads it may have gone: then nothing more is wanted.
        match done.and_then(|()| self.print.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Prints what came of a connection whose command never began, and the last line
    /// where it does not end.
    fn flush(&mut self) {
        let before = std::mem::take(&mut self.before);
        let _ = self.print(&before);
        let line = std::mem::take(&mut self.line);
        let _ = self.put(text::lines(&String::from_utf8_lossy(&line)).as_bytes());
    }
}

impl client::Listener for BoundedOutput<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_prints_is_shown_and_not_obeyed() {
        let errand = Errand {
            command: &[],
            terminal: false,
            follows: false,
        };
        let mut printed = Vec::new();
        let mut output = BoundedOutput::new(&errand, false, &mut printed);
        for bytes in [&b"caf\xc3"[..], b"\xa9 \x1b]0;own", b"ed\x07\nlast\x1b[2J"] {
            assert!(output.print(bytes).is_continue());
        }
        output.flush();
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(
            printed,
            "caf\u{e9} \u{fffd}]0;owned\u{fffd}\nlast\u{fffd}[2J"
        );
    }
}
