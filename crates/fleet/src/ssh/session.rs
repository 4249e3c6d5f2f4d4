//! One connection to a host, authenticated once and shared by every command.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fathom_device::Scratch;
use fathom_device::scratch::PREFIX;
use fathom_engine::Control;
use fathom_jobfile::shell_quote;

use super::SshError;
use super::client::{self, ClientEnd, LastWords, ScriptAnswer};
use super::crowd::is_turned_away;

/// Folders where fio and system programs stand on hosts whose non-login PATH
/// lacks them: FreeBSD packages, pkgsrc, OpenCSW and OmniOS extra.
pub(super) const MORE_PATH: &str =
    "/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin:/opt/local/bin:/opt/csw/bin:/opt/ooce/bin";
/// How long ssh may take to reach a host and to agree on keys, in s.
const CONNECT_S: u32 = 20;
/// How long a connection may take in all that nobody is asked anything about.
pub(super) const CONNECT_WAIT: Duration = Duration::from_secs(60);
/// How long one may take for which somebody types a password or looks at a key.
pub(super) const ATTENDED_WAIT: Duration = Duration::from_secs(300);
/// How long a script may take to answer. A dead mount there answers never.
pub const ANSWER_WAIT: Duration = Duration::from_secs(120);
/// How long the end of a connection may take.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
/// ssh's own exit status when the connection fails (ssh(1), EXIT STATUS).
pub(crate) const SSH_FAILED: i32 = 255;

/// What a script on the other side answered.
#[derive(Debug, Clone)]
pub struct ScriptOutput {
    /// Exit status; `None` when a signal ended ssh here.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
}

/// The ssh command: `ssh`, or the words of FATHOM_SSH.
pub(super) fn ssh() -> Vec<String> {
    let words = std::env::var("FATHOM_SSH").unwrap_or_default();
    let program: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    match program.is_empty() {
        true => vec!["ssh".to_owned()],
        false => program,
    }
}

/// What bounds every connection: how long it may take to come about, and how
/// soon it is noticed that it is dead.
pub(super) fn bounds(command: &mut Command) {
    for option in [
        format!("ConnectTimeout={CONNECT_S}"),
        "ServerAliveInterval=15".to_owned(),
        "ServerAliveCountMax=3".to_owned(),
    ] {
        command.arg("-o").arg(option);
    }
}

/// An authenticated connection to one host.
#[derive(Debug)]
pub struct SshSession {
    target: String,
    program: Vec<String>,
    /// Private folder of the control socket; short, since a socket's path ends
    /// at about 100 bytes (unix(7), sun_path).
    control: Scratch,
    lost: Cell<bool>,
    /// Whose request to stop ends every wait for the host.
    stop: Control,
}

impl SshSession {
    /// Connects to `target` (what ssh takes: `user@host`, an alias of its
    /// configuration, `ssh://…`). ssh may ask for a password or a new host key
    /// on the terminal. The environment's FATHOM_SSH replaces the command `ssh`
    /// (words separated by blanks).
    ///
    /// # Errors
    /// When ssh cannot be started or the connection does not come about.
    pub fn open(target: &str, stop: &Control) -> Result<Self, SshError> {
        let session = Self::new(target, ssh(), stop)?;
        let mut command = session.command("exit 0", &[]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let mut words = ScriptAnswer::within(ATTENDED_WAIT);
        // Whom ssh asks must be in the terminal's own process group.
        let apart = !client::has_terminal();
        match session.run(command, apart, &mut words)? {
            Some(0) => Ok(session),
            _ => Err(SshError::NotConnected {
                target: target.to_owned(),
            }),
        }
    }

    /// As [`SshSession::open`], but ssh asks nothing: a host key that is not known,
    /// or a password, is an error.
    ///
    /// # Errors
    /// As [`SshSession::open`].
    pub fn open_unattended(target: &str, stop: &Control) -> Result<Self, SshError> {
        let mut program = ssh();
        let options = [
            "BatchMode=yes",
            // Runs on several machines wait for each other: a dead network is
            // noticed within 15 s.
            "ServerAliveInterval=5",
        ];
        for option in options {
            program.extend(["-o", option].map(str::to_owned));
        }
        let session = Self::new(target, program, stop)?;
        let mut command = session.command("exit 0", &[]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let mut words = LastWords::within(CONNECT_WAIT);
        match session.run(command, true, &mut words)? {
            Some(0) => Ok(session),
            _ => Err(SshError::Unattended {
                target: target.to_owned(),
                said: words.line().unwrap_or("ssh does not say why".to_owned()),
                turned_away: is_turned_away(&words.text()),
            }),
        }
    }

    fn new(target: &str, program: Vec<String>, stop: &Control) -> Result<Self, SshError> {
        let short = Path::new("/tmp");
        let control = match short.is_dir() {
            true => Scratch::within(short, PREFIX),
            false => Scratch::new(),
        };
        let control = control.map_err(|source| SshError::Local {
            what: "a folder for the connection",
            source,
        })?;
        Ok(Self {
            target: target.to_owned(),
            program,
            control,
            lost: Cell::new(false),
            stop: stop.clone(),
        })
    }

    /// Runs the client; gives its exit status.
    fn run(
        &self,
        command: Command,
        apart: bool,
        listener: &mut dyn client::Listener,
    ) -> Result<Option<i32>, SshError> {
        let end = client::run(command, apart, &self.stop, listener);
        let target = self.target.clone();
        match end.map_err(|source| self.no_client(source))? {
            ClientEnd::Exited(status) => Ok(status.code()),
            ClientEnd::Stopped => Err(SshError::Interrupted { target }),
            ClientEnd::Late(limit) => Err(SshError::Late {
                target,
                seconds: limit.as_secs(),
            }),
            ClientEnd::TooMuch => Err(SshError::TooMuch { target }),
        }
    }

    /// The host as given.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The name of the folder of what is sent over this connection, there.
    pub(crate) fn folder_name(&self) -> String {
        let name = self.control.path().file_name().unwrap_or_default();
        // The other machine may be this one.
        format!("{}-sent", name.to_string_lossy())
    }

    /// Whose request to stop ends every wait for it.
    pub(crate) fn stop(&self) -> &Control {
        &self.stop
    }

    /// Whether the connection was found to be gone.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Runs a POSIX sh script there and waits for it. `$1`… are `args`. Its
    /// stderr goes to this process's.
    ///
    /// # Errors
    /// When the connection is gone, ssh does not start, there is no answer within
    /// [`ANSWER_WAIT`], or one that is longer than any.
    pub fn output(&self, script: &str, args: &[&str]) -> Result<ScriptOutput, SshError> {
        self.output_within(ANSWER_WAIT, script, args)
    }

    /// As [`SshSession::output`], of what may take so long.
    ///
    /// # Errors
    /// As [`SshSession::output`].
    pub fn output_within(
        &self,
        limit: Duration,
        script: &str,
        args: &[&str],
    ) -> Result<ScriptOutput, SshError> {
        self.refuse_when_lost()?;
        let mut answer = ScriptAnswer::within(limit);
        let command = client::heard(self.command(script, args));
        let code = self.run(command, true, &mut answer)?;
        if code == Some(SSH_FAILED) {
            return Err(self.lose());
        }
        Ok(ScriptOutput {
            code,
            stdout: String::from_utf8_lossy(&answer.stdout).into_owned(),
        })
    }

    /// Runs a POSIX sh script there if that can be done, and says nothing of it.
    pub(crate) fn attempt(&self, script: &str, args: &[&str]) {
        let command = client::heard(self.command(script, args));
        // What keeps it from running has been told before.
        let _ = self.run(command, true, &mut ScriptAnswer::within(ANSWER_WAIT));
    }

    /// Starts a POSIX sh script there, all three of its files piped. The client runs
    /// in a process group of its own: Ctrl-C must reach the other side as a
    /// request to end, not cut the line to it. The script should end when its
    /// stdin does.
    ///
    /// # Errors
    /// When the connection is known to be gone or ssh does not start.
    pub fn spawn(&self, script: &str, args: &[&str]) -> Result<Child, SshError> {
        self.refuse_when_lost()?;
        self.command(script, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| self.no_client(source))
    }

    /// Notes that the connection is gone; gives the error that says so.
    pub fn lose(&self) -> SshError {
        self.lost.set(true);
        SshError::Lost {
            target: self.target.clone(),
        }
    }

    fn refuse_when_lost(&self) -> Result<(), SshError> {
        if self.is_lost() {
            Err(self.lose())
        } else {
            Ok(())
        }
    }

    fn ssh(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        let socket = self.control.path().join("c");
        // ControlPersist: the connection outlives its first command, and is gone
        // a minute after its last one even when this process is killed.
        for option in [
            "ControlMaster=auto".to_owned(),
            format!("ControlPath={}", socket.display()),
            "ControlPersist=60".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        bounds(&mut command);
        command
    }

    pub(super) fn command(&self, script: &str, args: &[&str]) -> Command {
        // The login shell there may be any (csh, fish): it only has to read
        // single quotes and start sh.
        let mut line = format!(
            "exec sh -c {} sh",
            shell_quote(&format!(
                "PATH=$PATH:{MORE_PATH} LC_ALL=C; export PATH LC_ALL; {script}"
            ))
        );
        for arg in args {
            line.push(' ');
            line.push_str(&shell_quote(arg));
        }
        let mut command = self.ssh();
        command.args(["-T", "--"]).arg(&self.target).arg(line);
        command
    }

    fn no_client(&self, source: io::Error) -> SshError {
        SshError::NoClient {
            command: self.program.join(" "),
            source,
        }
    }
}

impl Drop for SshSession {
    fn drop(&mut self) {
        if !self.control.path().join("c").exists() {
            return;
        }
        let mut close = self.ssh();
        close.args(["-q", "-O", "exit", "--"]).arg(&self.target);
        // Without an exit the connection ends by itself (ControlPersist).
        let mut words = LastWords::within(CLOSE_WAIT);
        let _ = client::run(client::heard(close), true, &Control::default(), &mut words);
    }
}

/// Ends a script's input, which asks it to end.
pub(super) fn close_stdin(child: &mut Child) {
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.flush();
    }
}
