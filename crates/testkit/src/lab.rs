//! Machines for tests: network namespaces with an address and a real sshd each.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::exclusive::{Exclusive, exclusive, free};
use crate::{program, root, run, text};

/// How long an sshd may take to listen.
const START_WAIT: Duration = Duration::from_secs(120);
/// Interfaces have names of at most 15 bytes (IFNAMSIZ).
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Machines that this one can reach by name over ssh; gone when dropped.
#[derive(Debug)]
pub struct Lab {
    dir: TempDir,
    bridge: String,
    machines: Vec<LabMachine>,
    _network: Exclusive,
}

#[derive(Debug)]
struct LabMachine {
    namespace: String,
    daemon: Child,
    address: String,
}

impl Lab {
    /// `count` machines, called `m1`, `m2`, …; each sees `data[i]`, where there is
    /// one, at the same place: [`Lab::data`].
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(count: usize, data: &[&Path]) -> Result<Self, String> {
        root()?;
        for needed in ["ip", "sshd", "ssh", "unshare", "nsenter", "mount"] {
            program(needed)?;
        }
        // sshd's folder for its unprivileged part, which a service would make.
        let _ = fs::create_dir_all("/run/sshd");
        let dir = TempDir::with_prefix("fathom-lab-").map_err(|e| e.to_string())?;
        fs::create_dir(dir.path().join("data")).map_err(|e| e.to_string())?;
        for key in ["host", "user"] {
            let file = dir.path().join(key);
            run(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", text(&file)],
            )?;
        }
        let own = std::process::id() % 100_000;
        let nth = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (network, hold) = network()?;
        let bridge = format!("fb{own}-{nth}");
        run("ip", &["link", "add", &bridge, "type", "bridge"])?;
        let mut lab = Self {
            dir,
            bridge: bridge.clone(),
            machines: Vec::new(),
            _network: hold,
        };
        let here = format!("{network}.254/24");
        run("ip", &["addr", "add", &here, "dev", &bridge])?;
        run("ip", &["link", "set", &bridge, "up"])?;
        for place in 0..count {
            let address = format!("{network}.{}", place + 1);
            lab.add(place, address, data.get(place).copied())?;
        }
        lab.write_client()?;
        lab.wait()?;
        Ok(lab)
    }

    fn add(&mut self, place: usize, address: String, data: Option<&Path>) -> Result<(), String> {
        let namespace = format!("{}m{}", self.bridge, place + 1);
        // The first one makes the folder of all.
        let turn = exclusive("netns");
        run("ip", &["netns", "add", &namespace])?;
        drop(turn);
        let near = format!("{}v{place}", self.bridge.replace("fb", "v"));
        let far = "eth0";
        let made = run(
            "ip",
            &[
                "link", "add", &near, "type", "veth", "peer", "name", far, "netns", &namespace,
            ],
        );
        let up = made
            .and_then(|_| run("ip", &["link", "set", &near, "master", &self.bridge, "up"]))
            .and_then(|_| {
                let with_mask = format!("{address}/24");
                run(
                    "ip",
                    &["-n", &namespace, "addr", "add", &with_mask, "dev", far],
                )
            })
            .and_then(|_| run("ip", &["-n", &namespace, "link", "set", far, "up"]))
            .and_then(|_| run("ip", &["-n", &namespace, "link", "set", "lo", "up"]));
        let daemon = up.and_then(|_| self.daemon(&namespace, place, &address, data));
        match daemon {
            Ok(daemon) => {
                self.machines.push(LabMachine {
                    namespace,
                    daemon,
                    address,
                });
                Ok(())
            }
            Err(reason) => {
                let _ = run("ip", &["netns", "del", &namespace]);
                Err(reason)
            }
        }
    }

    /// The sshd of a machine, in its network and with mounts of its own.
    fn daemon(
        &self,
        namespace: &str,
        place: usize,
        address: &str,
        data: Option<&Path>,
    ) -> Result<Child, String> {
        let file = |name: &str| self.dir.path().join(name);
        let own = |kind: &str| file(&format!("{kind}{}", place + 1));
        let (tmp, state, keys) = (self.tmp(place), self.state(place), own("keys"));
        fs::create_dir(&tmp)
            .and_then(|()| fs::create_dir(&state))
            .and_then(|()| fs::copy(file("user.pub"), &keys))
            .map_err(|e| e.to_string())?;
        let configuration = format!(
            "Port 22\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nMaxStartups 100\n\
             SetEnv TMPDIR={} XDG_STATE_HOME={}\n",
            text(&file("host")),
            text(&keys),
            text(&tmp),
            text(&state),
        );
        let path = own("sshd");
        fs::write(&path, configuration).map_err(|e| e.to_string())?;
        let log = fs::File::create(own("log")).map_err(|e| e.to_string())?;
        let bind = data.map_or(String::new(), |data| {
            format!("mount --bind '{}' '{}' && ", text(data), text(&self.data()))
        });
        let script = format!("{bind}exec \"$0\" -D -e -f \"$1\"");
        Command::new(program("ip")?)
            .args([
                "netns", "exec", namespace, "unshare", "-m", "sh", "-c", &script,
            ])
            .arg(program("sshd")?)
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("sshd: {e}"))
    }

    fn write_client(&self) -> Result<(), String> {
        let file = |name: &str| self.dir.path().join(name);
        let host_key = fs::read_to_string(file("host.pub")).map_err(|e| e.to_string())?;
        let mut client = format!(
            "Host *\nUser root\nIdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n",
            text(&file("user")),
            text(&file("known")),
        );
        let mut known = String::new();
        for (place, machine) in self.machines.iter().enumerate() {
            let name = self.name(place);
            client += &format!("Host {name}\nHostName {}\n", machine.address);
            known += &format!("{} {host_key}", machine.address);
        }
        fs::write(file("client"), client)
            .and_then(|()| fs::write(file("known"), known))
            .map_err(|e| e.to_string())
    }

    fn wait(&mut self) -> Result<(), String> {
        let started = Instant::now();
        for place in 0..self.machines.len() {
            let address = format!("{}:22", self.machines[place].address);
            while TcpStream::connect(&address).is_err() {
                let died = self.machines[place].daemon.try_wait();
                if matches!(died, Ok(Some(_))) || started.elapsed() > START_WAIT {
                    let log = fs::read_to_string(self.dir.path().join(format!("log{}", place + 1)));
                    let log = log.unwrap_or_default();
                    return Err(format!(
                        "sshd of a network namespace does not listen: {log}"
                    ));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// The name by which ssh knows machine `place`, counted from 0.
    pub fn name(&self, place: usize) -> String {
        format!("m{}", place + 1)
    }

    /// Its address.
    pub fn address(&self, place: usize) -> &str {
        &self.machines[place].address
    }

    /// The folder where each machine sees its own data.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The folder where a machine keeps temporary files.
    pub fn tmp(&self, place: usize) -> PathBuf {
        self.dir.path().join(format!("tmp{}", place + 1))
    }

    /// The folder where a machine keeps what outlives a program (XDG_STATE_HOME).
    pub fn state(&self, place: usize) -> PathBuf {
        self.dir.path().join(format!("state{}", place + 1))
    }

    /// Leaves a machine so little room for temporary files that no program fits.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn fill_tmp(&self, place: usize) -> Result<(), String> {
        let daemon = self.machines[place].daemon.id().to_string();
        let tmp = self.tmp(place);
        // In the mounts of that machine alone, which go with it.
        let mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", text(&tmp)];
        run("nsenter", &[&["-t", &daemon, "-m"], &mount[..]].concat()).map(drop)
    }

    /// Lets a machine refuse the key with which it was reached until now.
    pub fn refuse_key(&self, place: usize) {
        let keys = self.dir.path().join(format!("keys{}", place + 1));
        fs::write(keys, "").expect("the lab's own folder can be written");
    }

    /// The command `ssh` that reaches the machines.
    pub fn command(&self) -> String {
        format!("ssh -F {}", text(&self.dir.path().join("client")))
    }

    /// Forgets a machine's host key.
    pub fn forget_key(&self, place: usize) {
        let path = self.dir.path().join("known");
        let known = fs::read_to_string(&path).unwrap_or_default();
        let is_its = |line: &&str| line.starts_with(&format!("{} ", self.address(place)));
        let kept: Vec<&str> = known.lines().filter(|line| !is_its(line)).collect();
        let _ = fs::write(&path, kept.join("\n") + "\n");
    }

    /// Cuts a machine off, as a cable that is pulled: nobody is told.
    pub fn cut(&self, place: usize) {
        let near = format!("{}v{place}", self.bridge.replace("fb", "v"));
        let _ = run("ip", &["link", "set", &near, "down"]);
    }

    /// Processes of a machine, but its sshd and their command lines.
    pub fn processes(&self, place: usize) -> Vec<(u32, String)> {
        let machine = &self.machines[place];
        let listed = run("ip", &["netns", "pids", &machine.namespace]).unwrap_or_default();
        let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
        let command = |pid: u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).replace('\0', " ")
        };
        pids.map(|pid| (pid, command(pid)))
            .filter(|(_, command)| !command.is_empty() && !command.starts_with("sshd"))
            .filter(|(_, command)| !command.contains("/sshd"))
            .collect()
    }

    /// Kills every session of a machine, as a crash would end it.
    pub fn kill_sessions(&self, place: usize) {
        let machine = &self.machines[place];
        let listed = run("ip", &["netns", "pids", &machine.namespace]).unwrap_or_default();
        let daemon = machine.daemon.id().to_string();
        for pid in listed.split_whitespace().filter(|pid| *pid != daemon) {
            let _ = run("kill", &["-KILL", pid]);
        }
    }
}

/// A network out of 10.64.0.0/10 that no other test has: the first three bytes.
fn network() -> Result<(String, Exclusive), String> {
    // Tests with another folder for temporary files have other locks.
    let taken = run("ip", &["-br", "addr"])?;
    let all = (64..128).flat_map(|a| (0..250).map(move |b| format!("10.{a}.{b}")));
    let all = all.filter(|network| !taken.contains(&format!(" {network}.254/")));
    let mut held = all.filter_map(|network| free(&network).map(|hold| (network, hold)));
    held.next().ok_or_else(|| "no network is free".to_owned())
}

impl Drop for Lab {
    fn drop(&mut self) {
        for place in 0..self.machines.len() {
            self.kill_sessions(place);
            let machine = &mut self.machines[place];
            let _ = machine.daemon.kill();
            let _ = machine.daemon.wait();
            let _ = run("ip", &["netns", "del", &machine.namespace]);
        }
        let _ = run("ip", &["link", "del", &self.bridge]);
    }
}
