//! Runs a benchmark in a cluster: objects, phases, results, and the end of all
//! of it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_engine::{Control, Sink as _};
use fathom_fleet::kube::{Cluster, Kind, KubeError, Ran};
use fathom_fleet::local::{FleetError, Session};
use fathom_model::{Event, Failure, FailureKind, RunStatus};
use fathom_record::{RecordError, Writer};
use serde_json::Value;

use super::calm::Load;
use super::image::PROGRAM;
use super::jobs::Phase;
use super::manifests::{CALM, Manifest, Objects, RUN};
use super::start::Pace;
use super::statistics::Nodes;
use super::trouble::text;
use super::{DropCaches, Parameters, Workload, named, rights, to_yaml, volumes};

pub(super) const NAMESPACE: Kind = Kind::new("v1", "Namespace");
pub(super) const POD: Kind = Kind::new("v1", "Pod");
pub(super) const SERVICE: Kind = Kind::new("v1", "Service");
pub(super) const EVENT: Kind = Kind::new("v1", "Event");
pub(super) const CLAIM: Kind = Kind::new("v1", "PersistentVolumeClaim");
pub(super) const STATEFUL_SET: Kind = Kind::new("apps/v1", "StatefulSet");
pub(super) const DAEMON_SET: Kind = Kind::new("apps/v1", "DaemonSet");

/// A short command in a pod takes no longer.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// More than a text for people has.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// What takes longer in pods is told of.
const SLOW: Duration = Duration::from_secs(20);
/// What is still to be had of the pods of a run that has ended: of one that was
/// interrupted nobody waits for more. A node that has stopped answers nothing.
const GATHER: Duration = Duration::from_secs(30);
const GATHER_IN_HASTE: Duration = Duration::from_secs(3);
/// All objects of a run are removed by then.
const REMOVAL: Duration = Duration::from_secs(120);
/// More than a message holds of what a command said.
const SAID_BYTES_MAX: u64 = 4096;
/// Dirty pages of a node may take long to be written.
const SYNC: Duration = Duration::from_secs(600);

/// Why a benchmark in a cluster did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The cluster.
    #[error(transparent)]
    Kube(KubeError),
    /// Somebody else's object has a name that the run needs.
    #[error(
        "in namespace {namespace} there is {kind} {name}, which Fathom did not make ({owner}); it was not touched\n  to do: take another --namespace, or ask its owner to remove it"
    )]
    Foreign {
        /// Where.
        namespace: String,
        /// `Service`, …
        kind: String,
        /// Its name.
        name: String,
        /// Its labels, and what owns it.
        owner: String,
    },
    /// Rights are missing; nothing was made.
    #[error("nothing was made, because in namespace {namespace} one may not {}\n  to do: ask whoever runs the cluster for these rights (docs/CLUSTER.md has a Role with all of them)", .missing.join(", "))]
    Rights {
        /// Where.
        namespace: String,
        /// `create pods/exec`, …
        missing: Vec<String>,
    },
    /// Pods did not start.
    #[error("the {part} did not start:\n  - {}", .troubles.join("\n  - "))]
    Start {
        /// `servers`, `client`.
        part: &'static str,
        /// In the cluster's words.
        troubles: Vec<String>,
    },
    /// What others made, or another run, stands where this one would be.
    #[error(
        "in namespace {namespace} there is {what} already\n  to do: wait for its end; if it is dead: fathom cluster cleanup --namespace {namespace}; or take another --namespace"
    )]
    Occupied {
        /// Where.
        namespace: String,
        /// `run-1`'s StatefulSet server-fio, …
        what: String,
    },
    /// A command in a pod did not do what it should.
    #[error("{0}")]
    Command(String),
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file of the record could not be written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The run ended because its record could not be written.
    #[error(transparent)]
    Run(#[from] FleetError),
}

impl From<KubeError> for ClusterError {
    fn from(error: KubeError) -> Self {
        match error {
            KubeError::Interrupted => Self::Interrupted,
            other => Self::Kube(other),
        }
    }
}

/// What a run needs beside its parameters.
#[derive(Debug, Clone)]
pub struct Wish<'w> {
    /// The benchmark.
    pub workload: Workload,
    /// What it does, in order.
    pub phases: &'w [Phase],
    /// Its parameters.
    pub parameters: &'w Parameters,
    /// Name of the run in the cluster; a DNS label.
    pub run: &'w str,
    /// Image of servers and client.
    pub image: &'w str,
}

/// Runs a benchmark and removes all that it made, however it ended.
///
/// # Errors
/// What kept it from its end; the record says so too.
pub fn run(
    cluster: &Cluster,
    wish: &Wish,
    writer: Writer,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), ClusterError> {
    let dir = writer.dir().to_owned();
    cluster.heed(control);
    let mut going = Going {
        cluster,
        objects: Objects {
            parameters: wish.parameters,
            run: wish.run,
            image: wish.image,
        },
        session: Session::new(writer, None, control, observer, 0),
        workload: wish.workload,
        control,
        dir,
        began: Instant::now(),
        client: None,
        failed: false,
        calm: None,
    };
    let done = going.prepare().and_then(|servers| {
        std::thread::scope(|scope| {
            let nodes = going.read_nodes(scope)?;
            going.phases(wish.phases, &servers, &nodes)
        })
    });
    let status = match &done {
        Err(ClusterError::Interrupted) => RunStatus::Interrupted,
        Err(_) => RunStatus::Failed,
        Ok(()) if going.failed => RunStatus::Failed,
        Ok(()) => RunStatus::Complete,
    };
    cluster.wind_up(going.time_to_gather(status));
    going.end_calm(status, done.as_ref().err().map(ToString::to_string));
    going.keep_logs();
    going.keep_descriptions();
    cluster.wind_up(REMOVAL);
    let removed = super::cleanup(cluster, &wish.parameters.namespace, Some(wish.run));
    if let Err(error) = &done
        && !matches!(error, ClusterError::Interrupted)
    {
        going.tell(Event::Failure(Failure::new(
            FailureKind::Cluster,
            error.to_string(),
        )));
    }
    if let Err(error) = &removed {
        let text = format!(
            "not all that was made could be removed ({error}); fathom cluster cleanup tries again"
        );
        going.tell(Event::Note { text });
    }
    let closed = going.session.close(status)?;
    match done {
        Err(error) if !matches!(error, ClusterError::Interrupted) => Err(error),
        _ => Ok(closed),
    }
}

/// Says what one may not do of what a benchmark needs.
///
/// # Errors
/// The missing rights, or that the cluster cannot be asked.
pub fn check_rights(cluster: &Cluster, parameters: &Parameters) -> Result<(), ClusterError> {
    let namespace = &parameters.namespace;
    let is_there = cluster.get(NAMESPACE, None, namespace);
    // Who may not look at namespaces has one that was made for them.
    let makes_namespace = matches!(is_there, Ok(None));
    let mut missing = Vec::new();
    for right in rights::needed(parameters, makes_namespace) {
        let within = (!right.of_cluster).then_some(namespace.as_str());
        if !cluster.may(right.verb, right.group, right.resource, within)? {
            missing.push(format!("{} {}", right.verb, right.resource));
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(ClusterError::Rights {
            namespace: namespace.clone(),
            missing,
        }),
    }
}

pub(super) struct Going<'w, 'o> {
    pub(super) cluster: &'w Cluster,
    pub(super) objects: Objects<'w>,
    pub(super) session: Session<'o>,
    pub(super) workload: Workload,
    pub(super) control: &'w Control,
    pub(super) dir: PathBuf,
    pub(super) began: Instant,
    /// The pod that tells the phases to servers of fio, once it runs.
    pub(super) client: Option<Server>,
    /// A job of a phase has failed.
    pub(super) failed: bool,
    /// The load in the background.
    pub(super) calm: Option<Load>,
}

/// A pod as it runs.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) address: String,
    /// A pod that is made again has the same name and another id.
    pub(super) uid: String,
}

impl Server {
    fn of(pod: &Value) -> Self {
        Self {
            pod: text(pod, "/metadata/name").to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            address: text(pod, "/status/podIP").to_owned(),
            uid: text(pod, "/metadata/uid").to_owned(),
        }
    }
}

impl Going<'_, '_> {
    pub(super) fn namespace(&self) -> &str {
        &self.objects.parameters.namespace
    }

    pub(super) fn tell(&mut self, event: Event) {
        let elapsed = self.began.elapsed().as_millis();
        self.session.at(u64::try_from(elapsed).unwrap_or(u64::MAX));
        self.session.event(event);
    }

    /// How long what the pods still tell may take.
    fn time_to_gather(&self, status: RunStatus) -> Duration {
        let calm = self.objects.parameters.calm.as_ref();
        let pods = self.objects.parameters.ninstances + calm.map_or(0, |calm| calm.ninstances);
        match status {
            RunStatus::Interrupted => GATHER_IN_HASTE,
            _ => GATHER + Duration::from_secs(pods.into()),
        }
    }

    /// Makes an object and keeps it as it was asked for. What others made
    /// meanwhile under its name stays as it is.
    pub(super) fn make(&self, made: &Manifest) -> Result<(), ClusterError> {
        let Manifest {
            folder,
            name,
            object,
        } = made;
        self.keep(&format!("{folder}/{name}.yaml"), to_yaml(object).as_bytes())?;
        let error = match self.cluster.create(object) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match text(object, "/kind") {
            // Whoever made it: it is there.
            "Namespace" if error.is_conflict() => Ok(()),
            _ if error.is_conflict() => {
                // Theirs, or another run's.
                let left = self.is_room()?;
                Err(left.map_or(error.into(), |(kind, first)| self.occupied(kind, &first)))
            }
            _ => Err(error.into()),
        }
    }

    /// The record's folder.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Puts a file into the record.
    pub(super) fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), ClusterError> {
        keep(&self.dir.join(name), bytes)
    }

    /// The servers, once they all run.
    fn prepare(&mut self) -> Result<Vec<Server>, ClusterError> {
        let what = format!("{} servers start", self.objects.parameters.ninstances);
        self.tell(Event::Preparing { what });
        self.find_room()?;
        if let Ok(None) = self.cluster.get(NAMESPACE, None, self.namespace()) {
            self.make(&self.objects.own_namespace())?;
        }
        // A load in the background begins once all the rest is there.
        let made = self.objects.all();
        let mut made = made.iter().filter(|made| made.folder != CALM);
        made.try_for_each(|made| self.make(made))?;
        if self.objects.parameters.dropcaches.is_empty() {
            let text = "caches are not dropped between the phases (--dropcaches): reads may come from memory";
            self.tell(Event::Note {
                text: text.to_owned(),
            });
        }
        let by_agent = self.objects.parameters.is_by_agent();
        let wanted = self.objects.parameters.ninstances as usize;
        let pods = self.wait_for("servers", "server", wanted)?;
        let servers: Vec<Server> = pods.iter().map(Server::of).collect();
        let hosts = self.keep_hosts(&servers)?;
        if by_agent {
            self.look_by_agents(&servers)?;
            self.keep_environment()?;
            return Ok(servers);
        }
        let client = self.wait_for("client", "client", 1)?;
        self.client = client.first().map(Server::of);
        self.look_at(&servers)?;
        self.introduce(&hosts)?;
        self.keep_environment()?;
        Ok(servers)
    }

    pub(super) fn pods(&self, part: &str) -> Result<Vec<Value>, KubeError> {
        let labels = format!(
            "{RUN}={},app.kubernetes.io/component={part}",
            self.objects.run
        );
        self.cluster.list(POD, Some(self.namespace()), &labels, "")
    }

    pub(super) fn go_on(&self) -> Result<(), ClusterError> {
        match self.control.stop_requests() {
            0 => Ok(()),
            _ => Err(ClusterError::Interrupted),
        }
    }

    /// All pods of the run.
    pub(super) fn all_pods(&self) -> Result<Vec<Value>, KubeError> {
        let labels = format!("{RUN}={}", self.objects.run);
        self.cluster.list(POD, Some(self.namespace()), &labels, "")
    }

    /// The addresses of the servers; gives them as fio's client reads them.
    pub(super) fn keep_hosts(&self, servers: &[Server]) -> Result<String, ClusterError> {
        let hosts: String = servers
            .iter()
            .map(|server| format!("{}\n", server.address))
            .collect();
        self.keep("hosts.list", hosts.as_bytes())?;
        Ok(hosts)
    }

    /// Where each pod runs, as a table for people.
    fn locations(&self) -> Result<(), ClusterError> {
        let pods = self.all_pods()?;
        let mut table = String::from("POD NODE ADDRESS PHASE\n");
        for pod in &pods {
            let column = |pointer| text(pod, pointer);
            table.push_str(&format!(
                "{} {} {} {}\n",
                column("/metadata/name"),
                column("/spec/nodeName"),
                column("/status/podIP"),
                column("/status/phase")
            ));
        }
        if let Some(role) = named::role(self.workload) {
            self.keep(&format!("podlocations.{role}.txt"), table.as_bytes())?;
        }
        self.keep("podlocations.txt", table.as_bytes())
    }

    fn phases(
        &mut self,
        phases: &[Phase],
        servers: &[Server],
        nodes: &Nodes,
    ) -> Result<(), ClusterError> {
        self.start_calm(phases.len())?;
        self.locations()?;
        let of = u32::try_from(phases.len()).unwrap_or(u32::MAX);
        for (step, phase) in (1..).zip(phases) {
            self.go_on()?;
            if phase.wants_cold_caches {
                self.drop_caches()?;
            }
            let before = self.read_volumes(servers);
            let done = if self.objects.parameters.is_by_agent() {
                self.calm_phase_begins()?;
                let done = self.drive(phase, servers, nodes, (step, of));
                done.and_then(|()| self.calm_phase_ends(&phase.name))
            } else {
                let name = phase.name.clone();
                self.tell(Event::Step {
                    step,
                    of,
                    name,
                    point: None,
                });
                self.phase(phase, servers, nodes)
            };
            // Whoever waits for the end of a failed run waits for nothing else.
            if done.is_ok() {
                let after = self.read_volumes(servers);
                let volumes = volumes::moved(servers, &before, &after);
                self.tell(Event::Volumes { volumes });
            }
            for text in nodes.said() {
                self.tell(Event::Note { text });
            }
            self.keep_listings(&phase.name, servers);
            done?;
        }
        Ok(())
    }

    /// What each server sees of its volume and its surroundings.
    fn look_at(&self, servers: &[Server]) -> Result<(), ClusterError> {
        let looks: [(&str, &[&str]); 5] = [
            ("df_h.txt", &["df", "-h"]),
            ("mount.txt", &["cat", "/proc/mounts"]),
            ("ls_l.txt", &["ls", "-l", "/dataset"]),
            ("env.txt", &["cat", "/proc/version"]),
            (
                "versions.txt",
                &[
                    "sh",
                    "-c",
                    "fio --version; cat /proc/version /etc/os-release",
                ],
            ),
        ];
        let all = servers
            .iter()
            .flat_map(|server| looks.map(|(file, argv)| (server.pod.as_str(), file, argv)));
        let (files, commands): (Vec<_>, Vec<_>) = all
            .map(|(pod, file, argv)| (format!("server_fio/{pod}/{file}"), (pod, argv)))
            .unzip();
        let told = self.cluster.exec_all(self.namespace(), &commands, SHORT)?;
        for (file, ran) in files.iter().zip(told) {
            self.keep(file, some(&ran.stdout))?;
        }
        Ok(())
    }

    pub(super) fn exec(
        &self,
        pod: &str,
        argv: &[&str],
        stdin: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Ran, KubeError> {
        self.cluster.exec(self.namespace(), pod, argv, stdin, limit)
    }

    /// As [`Self::exec`]; a command that fails is an error.
    pub(super) fn must(
        &self,
        pod: &str,
        argv: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<Vec<u8>, ClusterError> {
        let ran = self.exec(pod, argv, stdin, SHORT)?;
        well(pod, argv, &ran)?;
        Ok(ran.stdout)
    }

    fn drop_caches(&mut self) -> Result<(), ClusterError> {
        let parameters = self.objects.parameters;
        for way in &parameters.dropcaches {
            match way {
                DropCaches::PageCache => self.drop_page_cache()?,
                DropCaches::Ceph => super::ceph::drop_caches(self.cluster)?,
                DropCaches::Command(command) => self.run_here(command)?,
            }
            let text = format!("caches dropped: {way}");
            self.session.event(Event::Note { text });
        }
        Ok(())
    }

    fn drop_page_cache(&mut self) -> Result<(), ClusterError> {
        let pods = self.wait_for_daemons("pods that drop caches", "drop-caches")?;
        // 3: page cache, dentries and inodes (Documentation/admin-guide/sysctl/vm.rst).
        let argv: &[&str] = match self.objects.parameters.is_by_agent() {
            true => &[PROGRAM, "pod", "drop-caches"],
            false => &["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"],
        };
        let commands: Vec<_> = pods
            .iter()
            .map(|pod| (text(pod, "/metadata/name"), argv))
            .collect();
        let nodes = pods.iter().map(|pod| text(pod, "/spec/nodeName"));
        let nodes: Vec<&str> = nodes.collect();
        let slow = format!(
            "caches are still being dropped after {} s (on {}): dirty pages are written, or a node has stopped",
            SLOW.as_secs(),
            nodes.join(", ")
        );
        let (cluster, namespace) = (self.cluster, self.namespace().to_owned());
        let mut tell = || self.tell(Event::Note { text: slow.clone() });
        let told = cluster.exec_slowly(&namespace, &commands, SYNC, (SLOW, &mut tell))?;
        for ((pod, argv), ran) in commands.iter().zip(&told) {
            well(pod, argv, ran)?;
        }
        Ok(())
    }

    /// A command of the user's on this machine, which an interrupt ends too.
    fn run_here(&self, command: &str) -> Result<(), ClusterError> {
        use std::os::unix::process::CommandExt as _;
        let wrong = |error| ClusterError::Command(format!("{command}: {error}"));
        let said = self.dir.join("drop_caches.txt");
        let out = fs::File::create(&said).map_err(wrong)?;
        let mut child = std::process::Command::new("sh")
            .args(["-c", command])
            .stdin(std::process::Stdio::null())
            .stdout(out.try_clone().map_err(wrong)?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let mut pace = Pace::new();
        loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                if status.success() {
                    return Ok(());
                }
                let said = fs::File::open(&said).and_then(|file| {
                    let mut said = String::new();
                    file.take(SAID_BYTES_MAX).read_to_string(&mut said)?;
                    Ok(said)
                });
                let said = said.unwrap_or_default();
                let what = format!("{command}: {status}: {}", said.trim());
                return Err(ClusterError::Command(what));
            }
            if let Err(stopped) = self.go_on() {
                end_group(&mut child);
                return Err(stopped);
            }
            pace.wait();
        }
    }

    /// What the pods wrote, before they are removed. What cannot be had any more
    /// is not worth an error.
    fn keep_logs(&self) {
        let pods = self.all_pods().unwrap_or_default();
        let names: Vec<&str> = pods.iter().map(|pod| text(pod, "/metadata/name")).collect();
        let logs = self.cluster.logs_each(self.namespace(), &names);
        for (name, log) in names.iter().zip(logs) {
            if let Ok(log) = log {
                let _ = self.keep(&format!("podlogs/{name}.txt"), log.as_bytes());
            }
        }
    }
}

/// Ends a command with all that it began.
fn end_group(child: &mut std::process::Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// As much of what a pod printed as is kept of a text.
pub(super) fn some(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

fn keep(path: &Path, bytes: &[u8]) -> Result<(), ClusterError> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    written.map_err(|source| ClusterError::File {
        path: path.to_owned(),
        source,
    })
}

/// That a command in a pod did what it should.
pub(super) fn well(pod: &str, argv: &[&str], ran: &Ran) -> Result<(), ClusterError> {
    if ran.code == Some(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let what = format!("{} in pod {pod} failed: {}", argv.join(" "), said.trim());
    Err(ClusterError::Command(what))
}
