//! Runs a benchmark in a cluster: objects, phases, results, and the end of all
//! of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fathom_engine::Control;
use fathom_fleet::kube::Cluster;
use fathom_fleet::local::Session;
use fathom_model::{Event, Failure, FailureKind, Outcome, RunStatus};
use fathom_record::Writer;

use super::cluster_run::{ClusterRun, SHORT, ServerPod, some};
use super::error::ClusterError;
use super::jobs::BenchPhase;
use super::kinds::NAMESPACE;
use super::manifests::{CALM, Objects};
use super::statistics::Nodes;
use super::trouble::text;
use super::{BenchWorkload, Parameters, kubuculum, rights, volumes};

/// What is still to be had of the pods of a run that has ended: of one that was
/// interrupted nobody waits for more. A node that has stopped answers nothing.
const GATHER: Duration = Duration::from_secs(30);
const GATHER_IN_HASTE: Duration = Duration::from_secs(3);
/// All objects of a run are removed by then.
const REMOVAL: Duration = Duration::from_secs(120);

/// What a run needs beside its parameters.
#[derive(Debug, Clone)]
pub struct ClusterPlan<'w> {
    /// The benchmark.
    pub workload: BenchWorkload,
    /// What it does, in order.
    pub phases: &'w [BenchPhase],
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
    plan: &ClusterPlan,
    writer: Writer,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), ClusterError> {
    let dir = writer.dir().to_owned();
    cluster.heed(control);
    let mut run = ClusterRun {
        cluster,
        objects: Objects {
            parameters: plan.parameters,
            run: plan.run,
            image: plan.image,
        },
        session: Session::new(writer, None, control, observer, 0),
        workload: plan.workload,
        control,
        dir,
        began: Instant::now(),
        client: None,
        failed: false,
        background_load: None,
    };
    let done = run.prepare().and_then(|servers| {
        std::thread::scope(|scope| {
            let nodes = run.read_nodes(scope)?;
            run.phases(plan.phases, &servers, &nodes)
        })
    });
    let status = match &done {
        Err(ClusterError::Interrupted) => RunStatus::Interrupted,
        Err(_) => RunStatus::Failed,
        Ok(()) if run.failed => RunStatus::Failed,
        Ok(()) => RunStatus::Complete,
    };
    cluster.wind_up(run.time_to_gather(status));
    run.end_background_load(status, done.as_ref().err().map(ToString::to_string));
    run.keep_logs();
    run.keep_descriptions();
    cluster.wind_up(REMOVAL);
    let removed = super::cleanup(cluster, &plan.parameters.namespace, Some(plan.run));
    if let Err(error) = &done
        && !matches!(error, ClusterError::Interrupted)
    {
        run.tell(Event::Failure(Failure::new(
            FailureKind::Cluster,
            error.to_string(),
        )));
    }
    if let Err(error) = &removed {
        let text = format!(
            "not all that was made could be removed ({error}); fathom cluster cleanup tries again"
        );
        run.tell(Event::Note { text });
    }
    let closed = run.session.close(status)?;
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

impl ClusterRun<'_, '_> {
    /// How long what the pods still tell may take.
    fn time_to_gather(&self, status: RunStatus) -> Duration {
        let calm = self.objects.parameters.calm.as_ref();
        let pods = self.objects.parameters.ninstances + calm.map_or(0, |calm| calm.ninstances);
        match status {
            RunStatus::Interrupted => GATHER_IN_HASTE,
            _ => GATHER + Duration::from_secs(pods.into()),
        }
    }

    /// The servers, once they all run.
    fn prepare(&mut self) -> Result<Vec<ServerPod>, ClusterError> {
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
        let servers: Vec<ServerPod> = pods.iter().map(ServerPod::of).collect();
        let hosts = self.keep_hosts(&servers)?;
        if by_agent {
            self.look_by_agents(&servers)?;
            self.keep_environment()?;
            return Ok(servers);
        }
        let client = self.wait_for("client", "client", 1)?;
        self.client = client.first().map(ServerPod::of);
        self.look_at(&servers)?;
        self.introduce(&hosts)?;
        self.keep_environment()?;
        Ok(servers)
    }

    /// The addresses of the servers; gives them as fio's client reads them.
    pub(super) fn keep_hosts(&self, servers: &[ServerPod]) -> Result<String, ClusterError> {
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
        if let Some(role) = kubuculum::role(self.workload) {
            self.keep(&format!("podlocations.{role}.txt"), table.as_bytes())?;
        }
        self.keep("podlocations.txt", table.as_bytes())
    }

    fn phases(
        &mut self,
        phases: &[BenchPhase],
        servers: &[ServerPod],
        nodes: &Nodes,
    ) -> Result<(), ClusterError> {
        self.start_background_load(phases.len())?;
        self.locations()?;
        let of = u32::try_from(phases.len()).unwrap_or(u32::MAX);
        for (step, phase) in (1..).zip(phases) {
            self.go_on()?;
            if phase.wants_cold_caches {
                self.drop_caches()?;
            }
            let before = self.read_volumes(servers);
            let done = if self.objects.parameters.is_by_agent() {
                self.background_phase_begins()?;
                let done = self.drive(phase, servers, nodes, (step, of));
                done.and_then(|()| self.background_phase_ends(&phase.name))
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
            self.session.end_step(outcome_of(&done));
            self.keep_listings(&phase.name, servers);
            done?;
        }
        Ok(())
    }

    /// What each server sees of its volume and its surroundings.
    fn look_at(&self, servers: &[ServerPod]) -> Result<(), ClusterError> {
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

/// How a phase has ended.
fn outcome_of(done: &Result<(), ClusterError>) -> Outcome {
    match done {
        Ok(()) => Outcome::Complete,
        Err(ClusterError::Interrupted) => Outcome::Interrupted,
        Err(_) => Outcome::Failed,
    }
}
