//! A phase that Fathom itself runs on the servers: an agent in each pod, all
//! driven from here, as on hosts over ssh.

use std::time::{Duration, Instant};

use fathom_engines::EngineName;
use fathom_fleet::hosts::wire::Word;
use fathom_fleet::hosts::{self, Course, HostsJob, Machine};
use fathom_model::{Event, Host, RunStatus};

use super::cluster_run::{ClusterRun, SHORT, ServerPod, some, well};
use super::error::ClusterError;
use super::fio_phase::must_be_whole;
use super::image::PROGRAM;
use super::jobs::BenchPhase;
use super::kubuculum::run_text;
use super::pod::{FILES, PodLook};
use super::start::PollPace;
use super::statistics::Nodes;
use super::written_bytes::WrittenBytes;

/// A kubelet tells of a container's end within a second or two.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// The agents end by themselves when the time of a phase is over; what does not
/// even do that is given up by its silence.
fn words(engine: EngineName, limit: Duration, file: &str) -> Vec<Word> {
    vec![
        Word::text("job"),
        Word::text("run"),
        Word::text(format!("--engine={}", engine.name())),
        Word::text(format!("--timeout={}s", limit.as_secs())),
        Word::File(file.to_owned()),
    ]
}

fn why_lost(host: &Host) -> Option<String> {
    let why = host.lost.as_ref()?;
    Some(format!("{} did not take part to the end: {why}", host.name))
}

impl ClusterRun<'_, '_> {
    /// One job file on all servers at once, begun at one moment.
    pub(super) fn drive(
        &mut self,
        phase: &BenchPhase,
        servers: &[ServerPod],
        nodes: &Nodes,
        (step, of): (u32, u32),
    ) -> Result<(), ClusterError> {
        let name = &phase.name;
        let file = format!("{name}.fio");
        let pods = servers.iter().map(|server| server.pod.as_str());
        self.keep_job(phase, &pods.collect::<Vec<_>>())?;
        let (cluster, namespace) = (self.cluster, self.namespace());
        let machines = servers
            .iter()
            .map(|server| Machine {
                node: Some(server.node.clone()),
                ..cluster.machine(namespace, &server.pod, &[PROGRAM, "agent"])
            })
            .collect();
        let parameters = self.objects.parameters;
        let limit = Duration::from_secs(parameters.maxwait_s);
        let job = HostsJob {
            args: words(parameters.engine, limit, &file),
            files: vec![(file, phase.text.clone())],
            steps: vec![name.clone()],
            least: servers.len(),
            // The cluster tells its pods apart, wherever they run.
            allow_same_host: true,
            ..HostsJob::default()
        };
        let course = Course {
            record: &mut self.session,
            raw_dir: Some(self.dir.join("client").join(name)),
            started: self.began,
            before: step - 1,
            of,
        };
        let mut written = WrittenBytes::default();
        let (mut lost, mut text) = (None, None);
        let status = hosts::steps(
            machines,
            &job,
            course,
            self.control,
            &mut |event| match event {
                Event::Step { .. } => nodes.mark(),
                Event::Finished { results } => {
                    nodes.mark();
                    written.take(results);
                    text = Some(run_text(results));
                }
                Event::Hosts { hosts } => lost = hosts.iter().find_map(why_lost),
                _ => {}
            },
        );
        if let Some(text) = text {
            self.keep_run_text(name, text.as_bytes())?;
        }
        if status == RunStatus::Interrupted {
            return Err(ClusterError::Interrupted);
        }
        self.failed |= status != RunStatus::Complete;
        if let Some(lost) = lost {
            let why = self.why_gone(servers).unwrap_or(lost);
            return Err(ClusterError::Command(why));
        }
        let by_name = servers
            .iter()
            .map(|server| (server.pod.as_str(), server.pod.as_str()));
        must_be_whole(phase, &written, by_name)
    }

    /// What the cluster says of servers whose connection has ended: it may take a
    /// moment until it knows, and it may be what was lost.
    fn why_gone(&self, servers: &[ServerPod]) -> Option<String> {
        let began = Instant::now();
        let mut pace = PollPace::new();
        loop {
            let gone = self.lost(servers).ok()?;
            if !gone.is_empty() {
                return Some(gone.join("; "));
            }
            if began.elapsed() >= TOLD_WITHIN {
                return None;
            }
            pace.wait();
        }
    }

    /// What each server sees of its volume and its surroundings, as its Fathom
    /// tells it.
    pub(super) fn look_by_agents(&self, servers: &[ServerPod]) -> Result<(), ClusterError> {
        let argv: &[&str] = &[PROGRAM, "pod", "look"];
        let commands: Vec<_> = servers
            .iter()
            .map(|server| (server.pod.as_str(), argv))
            .collect();
        let told = self.cluster.exec_all(self.namespace(), &commands, SHORT)?;
        for ((pod, argv), ran) in commands.iter().zip(&told) {
            well(pod, argv, ran)?;
            self.keep_look(pod, &ran.stdout)?;
        }
        Ok(())
    }

    fn keep_look(&self, pod: &str, told: &[u8]) -> Result<(), ClusterError> {
        let look: PodLook = serde_json::from_slice(told)
            .map_err(|error| ClusterError::Command(format!("the look of {pod}: {error}")))?;
        let here = env!("CARGO_PKG_VERSION");
        if look.version != here {
            return Err(ClusterError::Command(format!(
                "the image of {pod} holds Fathom {}, and this is {here}: they do not understand each other\n  \
                 to do: make an image of this one (fathom cluster image)",
                look.version
            )));
        }
        for name in FILES {
            let text = look.files.get(name).map_or("", String::as_str);
            let file = format!("{}/{pod}/{name}", self.objects.folder());
            self.keep(&file, some(text.as_bytes()))?;
        }
        Ok(())
    }
}
