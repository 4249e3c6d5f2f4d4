//! A real sshd on a loopback port, with keys made for the test.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{free_port, program, run, text};

/// How long sshd may take to listen.
const START_WAIT: Duration = Duration::from_secs(60);

/// An sshd that lets this user in with a key of its own; ended when dropped.
#[derive(Debug)]
pub struct Sshd {
    daemon: Child,
    dir: TempDir,
}

impl Sshd {
    /// Starts one whose sessions see `environment` (name, value) beside their own.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(environment: &[(&str, &str)]) -> Result<Self, String> {
        Self::configured(environment, "")
    }

    /// The same with `more` lines of sshd_config(5).
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn configured(environment: &[(&str, &str)], more: &str) -> Result<Self, String> {
        let sshd = program("sshd")?;
        program("ssh")?;
        // sshd's folder for its unprivileged part, which a service would make.
        let _ = fs::create_dir_all("/run/sshd");
        let dir = TempDir::with_prefix("fathom-sshd-").map_err(|e| e.to_string())?;
        for key in ["host", "user", "stranger"] {
            let file = dir.path().join(key);
            run(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", text(&file)],
            )?;
        }
        let port = free_port();
        let user = run("id", &["-un"])?;
        let configured = write_configuration(dir.path(), port, user.trim(), environment, more);
        configured.map_err(|e| format!("sshd's configuration: {e}"))?;
        let log = fs::File::create(dir.path().join("log")).map_err(|e| e.to_string())?;
        let daemon = Command::new(sshd)
            .args(["-D", "-e", "-f", text(&dir.path().join("sshd_config"))])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("sshd: {e}"))?;
        let server = Self { daemon, dir };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > START_WAIT {
                return Err(format!("sshd does not listen: {}", server.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// The name under which the client's configuration knows it; so it does under
    /// every name that begins with `door`.
    pub fn host(&self) -> &'static str {
        "bench1"
    }

    /// The command `ssh` that reaches it.
    pub fn command(&self) -> String {
        format!("ssh -F {}", text(&self.dir.path().join("client")))
    }

    /// As [`Sshd::command`], with a key that is not let in.
    pub fn command_of_a_stranger(&self) -> String {
        format!("ssh -F {}", text(&self.dir.path().join("stranger-client")))
    }

    /// Kills every session, as a crash of the network would end it.
    pub fn kill_sessions(&self) {
        for pid in children(self.daemon.id()) {
            let _ = run("kill", &["-KILL", &pid.to_string()]);
        }
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill_sessions();
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn write_configuration(
    dir: &Path,
    port: u16,
    user: &str,
    environment: &[(&str, &str)],
    more: &str,
) -> std::io::Result<()> {
    let file = |name: &str| -> PathBuf { dir.join(name) };
    let mut server = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {keys}\n\
         StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n",
        host = text(&file("host")),
        keys = text(&file("user.pub")),
    );
    if !environment.is_empty() {
        let pairs: Vec<String> = environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        server.push_str(&format!("SetEnv {}\n", pairs.join(" ")));
    }
    server.push_str(more);
    fs::write(file("sshd_config"), server)?;
    let host_key = fs::read_to_string(file("host.pub"))?;
    fs::write(
        file("known_hosts"),
        format!("[127.0.0.1]:{port} {host_key}"),
    )?;
    for (name, key) in [("client", "user"), ("stranger-client", "stranger")] {
        let client = format!(
            "Host bench1 door*\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {key}\n\
             IdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {known}\n\
             GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nBatchMode yes\n",
            key = text(&file(key)),
            known = text(&file("known_hosts")),
        );
        fs::write(file(name), client)?;
    }
    Ok(())
}

/// Children of a process, from /proc.
fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}
