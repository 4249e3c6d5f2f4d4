//! One connection to a host, authenticated once and shared by every command.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fathom_device::Scratch;
use fathom_device::scratch::PREFIX;
use fathom_engine::jobfile::shell_quote;

use super::SshError;
use super::crowd::is_turned_away;

/// Folders where fio and system programs stand on hosts whose non-login PATH
/// lacks them: FreeBSD packages, pkgsrc, OpenCSW and OmniOS extra.
const MORE_PATH: &str =
    "/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin:/opt/local/bin:/opt/csw/bin:/opt/ooce/bin";
/// How long a connection may take that nobody waits for at a terminal, in s.
const CONNECT_S: u32 = 20;
/// ssh's own exit status when the connection fails (ssh(1), EXIT STATUS).
pub(crate) const SSH_FAILED: i32 = 255;

/// What a script on the other side answered.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit status; `None` when a signal ended ssh here.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
}

/// The ssh command: `ssh`, or the words of FATHOM_SSH.
fn ssh() -> Vec<String> {
    let words = std::env::var("FATHOM_SSH").unwrap_or_default();
    let program: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    match program.is_empty() {
        true => vec!["ssh".to_owned()],
        false => program,
    }
}

/// Runs a command on `target` with this process's stdin, stdout and stderr, on a
/// terminal there when `terminal`, and waits for it.
///
/// # Errors
/// When ssh cannot be started or the connection does not come about.
pub fn hand_over(
    target: &str,
    command: &[String],
    terminal: bool,
) -> Result<std::process::ExitStatus, SshError> {
    let program = ssh();
    let quoted: Vec<String> = command.iter().map(|word| shell_quote(word)).collect();
    // One word for the shell there, whichever it is: the rest is sh's.
    let script = format!(
        "PATH=$PATH:{MORE_PATH}; export PATH; exec {}",
        quoted.join(" ")
    );
    let status = Command::new(&program[0])
        .args(&program[1..])
        .arg(if terminal { "-t" } else { "-T" })
        .args(["--", target, &format!("sh -c {}", shell_quote(&script))])
        .status()
        .map_err(|source| SshError::NoClient {
            command: program.join(" "),
            source,
        })?;
    if status.code() == Some(SSH_FAILED) {
        return Err(SshError::NotConnected {
            target: target.to_owned(),
        });
    }
    Ok(status)
}

/// An authenticated connection to one host.
#[derive(Debug)]
pub struct Session {
    target: String,
    program: Vec<String>,
    /// Private folder of the control socket; short, since a socket's path ends
    /// at about 100 bytes (unix(7), sun_path).
    control: Scratch,
    lost: Cell<bool>,
}

impl Session {
    /// Connects to `target` (what ssh takes: `user@host`, an alias of its
    /// configuration, `ssh://…`). ssh may ask for a password or a new host key
    /// on the terminal. The environment's FATHOM_SSH replaces the command `ssh`
    /// (words separated by blanks).
    ///
    /// # Errors
    /// When ssh cannot be started or the connection does not come about.
    pub fn open(target: &str) -> Result<Self, SshError> {
        let session = Self::new(target, ssh())?;
        if session.connect(Stdio::inherit())? {
            return Ok(session);
        }
        Err(SshError::NotConnected {
            target: target.to_owned(),
        })
    }

    /// As [`Session::open`], but ssh asks nothing: a host key that is not known,
    /// or a password, is an error.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_unattended(target: &str) -> Result<Self, SshError> {
        let mut program = ssh();
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={CONNECT_S}"),
            // Runs on several machines wait for each other: a dead network is
            // noticed within 15 s.
            "ServerAliveInterval=5".to_owned(),
        ];
        for option in options {
            program.extend(["-o".to_owned(), option]);
        }
        let session = Self::new(target, program)?;
        // A file: an older ssh keeps a pipe open behind its connection.
        let said = session.control.path().join("said");
        let failed = |source| SshError::Local {
            what: "a file for ssh's messages",
            source,
        };
        if session.connect(fs::File::create(&said).map_err(failed)?.into())? {
            return Ok(session);
        }
        let said = fs::read_to_string(said).unwrap_or_default();
        let lines = said.lines().map(|line| line.trim().trim_end_matches('.'));
        let last = lines.rev().find(|line| !line.is_empty());
        Err(SshError::Unattended {
            target: target.to_owned(),
            said: last.unwrap_or("ssh does not say why").to_owned(),
            turned_away: is_turned_away(&said),
        })
    }

    fn new(target: &str, program: Vec<String>) -> Result<Self, SshError> {
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
        })
    }

    /// Makes the connection; whether it came about.
    fn connect(&self, stderr: Stdio) -> Result<bool, SshError> {
        let status = self
            .command("exit 0", &[])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .status()
            .map_err(|source| self.no_client(source))?;
        Ok(status.success())
    }

    /// The host as given.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The name of the folder of what is sent over this connection, there.
    pub(crate) fn folder_name(&self) -> String {
        let name = self.control.path().file_name().unwrap_or_default();
        // The other machine may be this one.
        format!("{}-sent", name.to_string_lossy())
    }

    /// Whether the connection was found to be gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Runs a POSIX sh script there and waits for it. `$1`… are `args`. Its
    /// stderr goes to this process's.
    ///
    /// # Errors
    /// When the connection is gone or ssh does not start.
    pub fn output(&self, script: &str, args: &[&str]) -> Result<Output, SshError> {
        self.refuse_when_lost()?;
        let output = self
            .command(script, args)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| self.no_client(source))?;
        if output.status.code() == Some(SSH_FAILED) {
            return Err(self.lose());
        }
        Ok(Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// Runs a POSIX sh script there if that can be done, and says nothing of it.
    pub(crate) fn attempt(&self, script: &str, args: &[&str]) {
        let mut command = self.command(script, args);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        // What keeps it from running has been told before.
        let _ = command.stderr(Stdio::null()).status();
    }

    /// Starts a POSIX sh script there, stdin and stdout piped. The client runs
    /// in a process group of its own: Ctrl-C must reach the other side as a
    /// request to end, not cut the line to it. The script should end when its
    /// stdin does.
    ///
    /// # Errors
    /// When the connection is known to be gone or ssh does not start.
    pub fn spawn(&self, script: &str, args: &[&str], stderr: Stdio) -> Result<Child, SshError> {
        self.refuse_when_lost()?;
        self.command(script, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
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
        // ServerAlive: a dead network is noticed within a minute.
        for option in [
            "ControlMaster=auto".to_owned(),
            format!("ControlPath={}", socket.display()),
            "ControlPersist=60".to_owned(),
            "ServerAliveInterval=15".to_owned(),
            "ServerAliveCountMax=3".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }

    fn command(&self, script: &str, args: &[&str]) -> Command {
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

impl Drop for Session {
    fn drop(&mut self) {
        let closed = self
            .ssh()
            .args(["-q", "-O", "exit", "--"])
            .arg(&self.target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // Without an exit the connection ends by itself (ControlPersist).
        drop(closed);
    }
}

/// Ends a script's input, which asks it to end.
pub(super) fn close_stdin(child: &mut Child) {
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.flush();
    }
}
