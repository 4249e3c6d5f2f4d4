//! A phase: one job file that all servers run at the same time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fathom_fio_output::import;
use fathom_fleet::kube::{KubeError, PodCommand};
use fathom_model::{Event, Failure, FailureKind, Results};

use super::background_load::BackgroundLoad;
use super::cluster_run::{ClusterRun, ServerPod, last_words};
use super::error::ClusterError;
use super::hosts;
use super::jobs::BenchPhase;
use super::liveness::{API, Liveness};
use super::manifests::CLIENT;
use super::start::PollPace;
use super::statistics::Nodes;
use super::trouble::lost;
use super::written_bytes::WrittenBytes;

/// A command that is only to be answered, and how long that may take.
const SPEAK: &[&str] = &["sh", "-c", ":"];
const ANSWER: Duration = Duration::from_secs(10);

/// The figures of many servers are many MB.
const TAKE: Duration = Duration::from_secs(120);

/// What the client of a phase has left.
struct ClientOutput {
    /// fio's exit code.
    code: i32,
    /// Its standard output: normal and json+.
    report: Vec<u8>,
    /// Its standard error.
    log: Vec<u8>,
}

impl ClusterRun<'_, '_> {
    /// One job file on all servers at once, told by the client.
    pub(super) fn phase(
        &mut self,
        phase: &BenchPhase,
        servers: &[ServerPod],
        nodes: &Nodes,
    ) -> Result<(), ClusterError> {
        let name = &phase.name;
        let addresses = servers.iter().map(|server| server.address.as_str());
        self.keep_job(phase, &addresses.collect::<Vec<_>>())?;
        // The job comes as the input: the files of a phase are in a folder of its own.
        let start = format!(
            "mkdir /client/{name} && cd /client/{name} && cat >job.fio && \
            {{ (fio --client=/client/hosts.list --output-format=normal,json+ job.fio \
            >out 2>log </dev/null; echo $? >exit) >/dev/null 2>&1 & }}"
        );
        let start = ["sh", "-c", &start];
        self.background_phase_begins()?;
        nodes.mark();
        self.tell(Event::EngineStarted {
            engine: "fio".to_owned(),
            version: None,
            argv: start.map(str::to_owned).to_vec(),
            pid: None,
        });
        self.must(CLIENT, &start, Some(phase.text.as_bytes()))?;
        let code = self.wait_for_exit(name, servers)?;
        nodes.mark();
        self.background_phase_ends(name)?;
        let take = format!("cat /client/{name}/log >&2; cat /client/{name}/out");
        let taken = self.exec(CLIENT, &["sh", "-c", &take], None, TAKE)?;
        let out = ClientOutput {
            code,
            report: taken.stdout,
            log: taken.stderr,
        };
        self.keep_run_text(name, &out.report)?;
        self.keep(&format!("client/{name}/fio.{name}.log"), &out.log)?;
        let written = self.take_results(phase, servers, &out);
        let by_address = servers
            .iter()
            .map(|server| (server.address.as_str(), server.pod.as_str()));
        must_be_whole(phase, &written, by_address)
    }

    /// Tells the client who the servers are.
    pub(super) fn introduce(&self, hosts: &str) -> Result<(), ClusterError> {
        let write = ["sh", "-c", "cat >/client/hosts.list"];
        self.must(CLIENT, &write, Some(hosts.as_bytes()))?;
        Ok(())
    }

    /// Looks for the client's exit again and again: no connection has to last as
    /// long as the run does. A look waits a second in the pod, so that the end is
    /// not told late. A pod of each other node is spoken to from time to time: of a
    /// node that has stopped nobody else says anything for a long time.
    fn wait_for_exit(&mut self, phase: &str, servers: &[ServerPod]) -> Result<i32, ClusterError> {
        let limit = Duration::from_secs(self.objects.parameters.maxwait_s);
        let began = Instant::now();
        let look = format!(
            "cd /client/{phase}; for i in 1 2 3 4 5 6 7 8 9 10; do \
            [ ! -s exit ] || break; sleep 0.1; done; cat exit 2>/dev/null"
        );
        let look: &[&str] = &["sh", "-c", &look];
        let others = of_other_nodes(servers, self.client.as_ref());
        let mut heard = Liveness::new(began);
        let mut pace = PollPace::new();
        loop {
            self.go_on()?;
            let mut commands = vec![(CLIENT, look)];
            let due = others
                .iter()
                .filter(|pod| heard.is_due(pod, Instant::now()));
            commands.extend(due.map(|pod| (pod.as_str(), SPEAK)));
            let told = self.cluster.exec_each(self.namespace(), &commands, ANSWER);
            let code = told.first().and_then(exit_code);
            for ((pod, _), ran) in commands.iter().zip(told) {
                heard.take(pod, ran.map(|_| ()), Instant::now())?;
            }
            if let Some(code) = code {
                return Ok(code);
            }
            self.tell_silent(phase, &mut heard)?;
            match self.lost(servers) {
                Ok(lost) if lost.is_empty() => heard.take(API, Ok(()), Instant::now())?,
                Ok(lost) => return Err(ClusterError::Command(lost.join("; "))),
                Err(error) => heard.take(API, Err(error), Instant::now())?,
            }
            self.tell_silent(phase, &mut heard)?;
            if began.elapsed() >= limit {
                return Err(ClusterError::Command(format!(
                    "phase {phase} did not end within {} s",
                    limit.as_secs()
                )));
            }
            if heard.is_silent(CLIENT) {
                pace.wait();
            }
        }
    }

    /// Tells of who does not answer; ends the run where that lasts.
    fn tell_silent(&mut self, phase: &str, heard: &mut Liveness) -> Result<(), ClusterError> {
        for text in heard.news(Instant::now())? {
            let text = format!("phase {phase}: {text}");
            self.tell(Event::Note { text });
        }
        Ok(())
    }

    /// Servers, the client, and servers of the load in the background, that are not the ones any more that the phase
    /// began with: deleted and made again, restarted, not ready. Each with what
    /// became of it.
    pub(super) fn lost(&self, servers: &[ServerPod]) -> Result<Vec<String>, KubeError> {
        let pods = self.all_pods()?;
        let ours = servers.iter().chain(&self.client);
        let ours = ours.map(|server| (server.pod.as_str(), server.uid.as_str()));
        let calm = self
            .background_load
            .iter()
            .flat_map(BackgroundLoad::servers);
        let lost = ours.chain(calm).filter_map(|(pod, uid)| {
            let why = lost(&pods, uid)?;
            Some(format!("{pod} went away while it ran: {why}"))
        });
        Ok(lost.collect())
    }

    fn take_results(
        &mut self,
        phase: &BenchPhase,
        servers: &[ServerPod],
        out: &ClientOutput,
    ) -> WrittenBytes {
        let mut failures = Vec::new();
        let mut written = WrittenBytes::default();
        let failed = |what: String| Failure::new(FailureKind::Other, what);
        match import::read(&out.report) {
            Ok((_, all, warnings)) => {
                // The normal output beside the json one is there for people.
                let is_news = |text: &String| !text.contains("normal output in it");
                for text in warnings.into_iter().filter(is_news) {
                    self.tell(Event::Note { text });
                }
                let mut last = all.into_iter().next_back().unwrap_or_default();
                failures.extend(import::failures(&last));
                failures.extend(silent(&last, servers).map(failed));
                written.take(&last);
                let hosts = hosts::named(&mut last, servers);
                self.tell(Event::Hosts { hosts });
                let results = Box::new(last);
                self.tell(Event::Finished { results });
            }
            Err(error) => {
                let (said, name) = (last_words(&out.log), &phase.name);
                let ended = ended(out.code);
                failures.push(failed(format!("phase {name}: {ended}: {error}; {said}")));
            }
        }
        if out.code != 0 && failures.is_empty() {
            failures.push(failed(format!("phase {}: {}", phase.name, ended(out.code))));
        }
        self.failed |= !failures.is_empty();
        for failure in failures {
            self.tell(Event::Failure(failure));
        }
        written
    }
}

/// How fio's client ended: the shell that waited for it adds 128 to a signal.
fn ended(code: i32) -> String {
    match code - 128 {
        signal @ 1..=64 => format!("fio's client was ended by signal {signal}"),
        _ => format!("fio ended with {code}"),
    }
}

/// The exit code that a look has found.
fn exit_code(ran: &Result<PodCommand, KubeError>) -> Option<i32> {
    let told = ran.as_ref().ok()?.stdout.as_slice();
    String::from_utf8_lossy(told).trim().parse().ok()
}

/// A server of each node that the client is not on.
fn of_other_nodes(servers: &[ServerPod], client: Option<&ServerPod>) -> Vec<String> {
    let mut nodes: BTreeSet<&str> = client.iter().map(|client| client.node.as_str()).collect();
    let others = servers
        .iter()
        .filter(|server| nodes.insert(server.node.as_str()));
    others.map(|server| server.pod.clone()).collect()
}

/// Ends the run where a phase has not written what later ones read. `servers`
/// are the names in the figures, and those of the pods.
pub(super) fn must_be_whole<'s>(
    phase: &BenchPhase,
    written: &WrittenBytes,
    servers: impl Iterator<Item = (&'s str, &'s str)>,
) -> Result<(), ClusterError> {
    let missing = match phase.lays_bytes {
        Some(bytes) => written.missing(bytes, servers),
        None => Vec::new(),
    };
    if missing.is_empty() {
        return Ok(());
    }
    let name = &phase.name;
    let missing = missing.join(", ");
    Err(ClusterError::Command(format!(
        "{name} is not whole, and what was not written would be read without asking the storage: {missing}"
    )))
}

/// Servers of which there is no report: fio leaves them out of its sums and says
/// nothing.
fn silent<'s>(results: &Results, servers: &'s [ServerPod]) -> impl Iterator<Item = String> {
    let reported = |server: &&ServerPod| {
        let mut hosts = results
            .jobs
            .iter()
            .filter_map(|job| job.hostname.as_deref());
        !hosts.any(|host| host == server.address)
    };
    let silent: Vec<&'s ServerPod> = servers.iter().filter(reported).collect();
    silent.into_iter().map(|server| {
        format!(
            "{} ({}) gave no figures: it is not in the sums of all clients",
            server.pod, server.address
        )
    })
}
