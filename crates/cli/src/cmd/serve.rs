//! `fathom serve`: a fio server, bound to one address, ended with everything below it.

use std::cell::Cell;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::Context;
use fathom_device::{Scratch, threads};
use fathom_engine::guard::{FioSupervisor, GuardOrder, GuardPlace, GuardReport};
use fathom_engine_fio::client;
use fathom_engine_fio::client::address::Address;
use fathom_engine_fio::version::Program;
use fathom_model::Exit;

use super::{ExitError, Global};
use crate::{out, signals};

/// How often signals and fio's end are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long fio gets to end by itself; then it is killed with all its jobs.
const PATIENCE: Duration = Duration::from_secs(3);
/// What is bound when no host is named: the machine itself and nobody else.
const LOOPBACK: &str = "127.0.0.1";

/// Run a fio server that 'job run --client' and fio itself can use
#[derive(Debug, clap::Args)]
#[command(after_help = "\
ADDR is one of fio's forms: 1.2.3.4, HOST,4444, ip:HOST,4444, ip6:::1,4444, sock:/tmp/fio.sock.
Without a host (no ADDR, or ,4444) it listens on 127.0.0.1 alone. fio's protocol knows neither
passwords nor encryption: whoever reaches the address can run commands as you. Ctrl-C ends the
server and the jobs it runs.

Examples:
  fathom serve                       for this machine itself: 127.0.0.1, port 8765
  fathom serve 10.0.0.7              on that address, for the network it belongs to
  fathom serve ip6:::1,4444
  fathom serve sock:/run/fio.sock    for this user alone
  fathom serve ,4444 --all-addresses for everybody who reaches this machine")]
pub struct Args {
    /// Where to listen [default: 127.0.0.1]
    #[arg(value_name = "ADDR")]
    address: Option<String>,
    /// Listen on every address of this machine
    #[arg(long)]
    all_addresses: bool,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    fio: Option<PathBuf>,
}

/// What `--json` prints when it listens.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ServeDocument {
    schema: &'static str,
    address: String,
    /// What fio is told to reach it.
    client: String,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let address = address(args)?;
    let program =
        Program::find(args.fio.as_deref()).map_err(|failure| exit(Exit::Missing, failure))?;
    let (bound, socket) = match &address {
        Address::Sock(path) => {
            let socket = Socket::beside(path)?;
            (Address::Sock(socket.made()), Some(socket))
        }
        Address::Ip { .. } => (address.clone(), None),
    };
    check_free(&address)?;
    let control = signals::control()?;
    let argv = [
        program.path.clone().into_os_string(),
        format!("--server={bound}").into(),
    ];
    let leash = FioSupervisor::start(GuardPlace::Process, &argv, Path::new("/"))
        .context("the guard process of fio cannot be started")?;
    let mut server = Server {
        lines: lines(&leash)?,
        leash,
        address,
        bound,
        socket,
        is_open: false,
        last: None,
    };
    server.watch(global, &control)
}

fn address(args: &Args) -> anyhow::Result<Address> {
    let text = args.address.as_deref().unwrap_or_default();
    let address = Address::parse(text).map_err(|bad| exit(Exit::Usage, bad))?;
    let named = !address.name().is_empty();
    match address {
        Address::Sock(_) if args.all_addresses => Err(exit(
            Exit::Usage,
            "a socket of this machine has no addresses: leave out --all-addresses",
        )),
        address if args.all_addresses && named && !address.is_everywhere() => Err(exit(
            Exit::Usage,
            format!("listen on {address}, or on --all-addresses: not both"),
        )),
        address if args.all_addresses => Ok(address),
        Address::Ip { port, v6, .. } if !named => Ok(Address::Ip {
            host: if v6 {
                "::1".to_owned()
            } else {
                LOOPBACK.to_owned()
            },
            port,
            v6,
        }),
        address if address.is_everywhere() => Err(exit(
            Exit::Refused,
            format!(
                "{address} is every address of this machine, and anyone who reaches one of them could run commands as you\n  to do: name the one address to listen on, or say --all-addresses"
            ),
        )),
        address => Ok(address),
    }
}

/// Tells what keeps fio from listening there: it would try again for a minute.
fn check_free(address: &Address) -> anyhow::Result<()> {
    let Address::Ip { host, port, v6 } = address else {
        return Ok(());
    };
    let everywhere = if *v6 { "::" } else { "0.0.0.0" };
    let host = if host.is_empty() { everywhere } else { host };
    let Err(error) = TcpListener::bind((host, *port)) else {
        return Ok(());
    };
    let (code, what) = match error.kind() {
        ErrorKind::AddrInUse => (
            Exit::Refused,
            format!(
                "something listens on {address} already\n  to do: end it, or take another port"
            ),
        ),
        ErrorKind::AddrNotAvailable => (
            Exit::Missing,
            format!("{address} is no address of this machine\n  to do: 'ip address' lists them"),
        ),
        _ => (Exit::Missing, format!("{address}: {error}")),
    };
    Err(exit(code, what))
}

/// A socket that only this user can open. fio makes its socket for everybody, so
/// it makes it in a private folder beside, and the finished one is moved.
struct Socket {
    folder: Scratch,
    path: PathBuf,
    is_open: Cell<bool>,
}

impl Socket {
    fn beside(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        if path.symlink_metadata().is_ok() {
            let what = format!(
                "{} is there already\n  to do: end the server that uses it, or remove it",
                path.display()
            );
            return Err(exit(Exit::Refused, what));
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        let folder = Scratch::within(parent, ".fathom-")
            .map_err(|e| exit(Exit::Missing, format!("{}: {e}", parent.display())))?;
        Ok(Self {
            folder,
            path,
            is_open: Cell::new(false),
        })
    }

    fn made(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn open(&self) -> std::io::Result<()> {
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.made(), own)?;
        std::fs::rename(self.made(), &self.path)?;
        self.is_open.set(true);
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_open.get() {
            // Gone already is gone too.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

struct Server {
    leash: FioSupervisor,
    lines: Receiver<String>,
    address: Address,
    /// What fio itself listens on.
    bound: Address,
    socket: Option<Socket>,
    is_open: bool,
    last: Option<String>,
}

impl Server {
    fn watch(&mut self, global: &Global, control: &fathom_engine::Control) -> anyhow::Result<Exit> {
        let mut asked: Option<Instant> = None;
        loop {
            let line = self.lines.recv_timeout(TICK);
            if let Ok(line) = line {
                self.line(global, line);
            }
            // fio keeps its own "listening" in a buffer.
            if !self.is_open && client::reach(&self.bound).is_ok() {
                self.is_open = true;
                self.opened(global)?;
            }
            match self.leash.reports() {
                Ok(Some(reports)) => {
                    if let Some(last) = reports.into_iter().find(GuardReport::is_last) {
                        return self.ended(global, &last, asked.is_some());
                    }
                }
                Ok(None) | Err(_) => {
                    return self.ended(global, &GuardReport::Signaled(0), asked.is_some());
                }
            }
            self.leash.kill_abandoned_jobs();
            let since = asked.map(|asked| asked.elapsed());
            match (control.stop_requests(), since) {
                (0, _) => {}
                (_, None) => {
                    self.leash.order(GuardOrder::Interrupt);
                    asked = Some(Instant::now());
                }
                (n, Some(since)) if n > 1 || since > PATIENCE => self.leash.order(GuardOrder::Kill),
                _ => {}
            }
        }
    }

    /// Passes on what fio says.
    fn line(&mut self, global: &Global, line: String) {
        if !global.quiet {
            out::note(&line);
        }
        self.last = Some(line);
    }

    fn opened(&mut self, global: &Global) -> anyhow::Result<()> {
        if let Some(socket) = &self.socket {
            socket
                .open()
                .with_context(|| socket.path.display().to_string())?;
        }
        let who = match self.address.is_everywhere() {
            true => "anyone who reaches this machine",
            false if self.socket.is_some() => "every process of this user",
            false => "anyone who reaches this address",
        };
        out::note(format_args!(
            "warning: fio's protocol has no passwords: {who} can read, write and run commands as this user"
        ));
        if global.json {
            out::json(&ServeDocument {
                schema: "fathom.serve/1",
                address: self.address.to_string(),
                client: format!("--client {}", self.address),
            })
        } else {
            out::line(format_args!(
                "listening on {}; Ctrl-C ends it",
                self.address
            ));
            Ok(())
        }
    }

    fn ended(
        &mut self,
        global: &Global,
        last: &GuardReport,
        was_asked: bool,
    ) -> anyhow::Result<Exit> {
        while let Ok(line) = self.lines.recv_timeout(TICK) {
            self.line(global, line);
        }
        match (last, was_asked) {
            (_, true) => Ok(Exit::Success),
            (GuardReport::CannotStart(errno), _) => Err(exit(
                Exit::Missing,
                format!(
                    "fio cannot be executed: {}",
                    std::io::Error::from_raw_os_error(*errno)
                ),
            )),
            _ => {
                let words = self
                    .last
                    .take()
                    .map_or(String::new(), |last| format!(": {last}"));
                Err(exit(
                    Exit::Failed,
                    format!("the fio server ended by itself{words}"),
                ))
            }
        }
    }
}

/// Both outputs of fio, line by line.
fn lines(leash: &FioSupervisor) -> anyhow::Result<Receiver<String>> {
    let (sender, lines) = mpsc::channel();
    for output in [&leash.stdout, &leash.stderr] {
        let output = std::fs::File::from(OwnedFd::try_clone(output)?);
        let sender = sender.clone();
        threads::spawn("fio-lines", move || {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            // No line of fio is that long: bounded whatever comes.
            while matches!(
                reader.by_ref().take(1 << 16).read_until(b'\n', &mut line),
                Ok(1..)
            ) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if !text.is_empty() && sender.send(text).is_err() {
                    return;
                }
            }
        })?;
    }
    Ok(lines)
}

fn exit(exit: Exit, message: impl std::fmt::Display) -> anyhow::Error {
    ExitError::new(exit, message).into()
}
