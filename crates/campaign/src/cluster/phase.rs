//! A phase: one job file that all servers run at the same time.

use std::time::{Duration, Instant};

use fathom_engine::fio::import;
use fathom_fleet::kube::KubeError;
use fathom_model::{Event, Failure, FailureKind, Results};
use serde_json::Value;

use super::going::{ClusterError, Going, LOOK, POD, SHORT, Server};
use super::jobs::Phase;
use super::statistics::Nodes;
use super::trouble::{is_ready, items, text};
use super::whole::Written;

/// What the client of a phase has left.
struct Output {
    /// fio's exit code.
    code: i32,
    /// Its standard output: normal and json+.
    report: Vec<u8>,
    /// Its standard error.
    log: Vec<u8>,
}

impl Going<'_, '_> {
    /// One job file on all servers at once, told by a client in a pod of its own.
    pub(super) fn phase(
        &mut self,
        phase: &Phase,
        servers: &[Server],
        nodes: &Nodes,
    ) -> Result<(), ClusterError> {
        let client = self.objects.client(&phase.name);
        let pod = text(&client, "/metadata/name").to_owned();
        self.make("client", &format!("fio_{}_pod", phase.name), &client)?;
        self.wait_for("client", &format!("client-{}", phase.name), 1)?;
        let hosts: String = servers
            .iter()
            .map(|server| format!("{}\n", server.address))
            .collect();
        self.keep(&format!("jobs/{}.fio", phase.name), phase.text.as_bytes())?;
        self.keep("hosts.list", hosts.as_bytes())?;
        for (file, text) in [("job.fio", &phase.text), ("hosts.list", &hosts)] {
            let write = format!("cat > /client/{file}");
            self.must(&pod, &["sh", "-c", &write], Some(text.as_bytes()))?;
        }
        let start = "fio --client=/client/hosts.list --output-format=normal,json+ /client/job.fio \
            >/client/out 2>/client/log </dev/null; echo $? >/client/exit";
        nodes.mark();
        self.tell(Event::EngineStarted {
            engine: "fio".to_owned(),
            version: None,
            argv: vec!["sh".to_owned(), "-c".to_owned(), start.to_owned()],
            pid: None,
        });
        self.must(
            &pod,
            &["sh", "-c", &format!("({start}) >/dev/null 2>&1 &")],
            None,
        )?;
        let code = self.wait_for_exit(&pod, servers)?;
        nodes.mark();
        let out = Output {
            code,
            report: self.must(&pod, &["cat", "/client/out"], None)?,
            log: self.must(&pod, &["cat", "/client/log"], None)?,
        };
        let name = &phase.name;
        self.keep(&format!("client/{name}/fio.{name}.run.txt"), &out.report)?;
        self.keep(&format!("client/{name}/fio.{name}.log"), &out.log)?;
        let written = self.take_results(phase, servers, &out);
        self.cluster.delete(POD, Some(self.namespace()), &pod)?;
        let by_address = servers
            .iter()
            .map(|server| (server.address.as_str(), server.pod.as_str()));
        must_be_whole(phase, &written, by_address)
    }

    /// Looks for the client's exit again and again: no connection has to last as
    /// long as the run does.
    fn wait_for_exit(&self, pod: &str, servers: &[Server]) -> Result<i32, ClusterError> {
        let limit = Duration::from_secs(self.objects.parameters.maxwait_s);
        let began = Instant::now();
        loop {
            self.go_on()?;
            let ran = self.exec(pod, &["cat", "/client/exit"], None, SHORT)?;
            let told = String::from_utf8_lossy(&ran.stdout);
            if let Ok(code) = told.trim().parse() {
                return Ok(code);
            }
            let gone = self.lost(servers)?;
            if !gone.is_empty() {
                return Err(ClusterError::Command(went_away(&gone)));
            }
            if began.elapsed() >= limit {
                return Err(ClusterError::Command(format!(
                    "it did not end within {} s",
                    limit.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Servers that are not the ones any more that the phase began with: deleted
    /// and made again, restarted, not ready.
    pub(super) fn lost(&self, servers: &[Server]) -> Result<Vec<String>, KubeError> {
        let pods = self.pods("server")?;
        let is_well = |server: &&Server| {
            let pod = pods
                .iter()
                .find(|pod| text(pod, "/metadata/uid") == server.uid);
            pod.is_some_and(|pod| {
                let is_ending = pod.pointer("/metadata/deletionTimestamp").is_some();
                is_ready(pod) && !is_ending && !has_restarted(pod)
            })
        };
        let lost = servers.iter().filter(|server| !is_well(server));
        Ok(lost.map(|server| server.pod.clone()).collect())
    }

    fn take_results(&mut self, phase: &Phase, servers: &[Server], out: &Output) -> Written {
        let mut failures = Vec::new();
        let mut written = Written::default();
        let failed = |what: String| Failure::new(FailureKind::Other, what);
        match import::read(&out.report) {
            Ok((_, all, warnings)) => {
                // The normal output beside the json one is there for people.
                let is_news = |text: &String| !text.contains("normal output in it");
                for text in warnings.into_iter().filter(is_news) {
                    self.tell(Event::Note { text });
                }
                let last = all.into_iter().next_back().unwrap_or_default();
                failures.extend(import::failures(&last));
                failures.extend(silent(&last, servers).map(failed));
                written.take(&last);
                let results = Box::new(last);
                self.tell(Event::Finished { results });
            }
            Err(error) => {
                let said = String::from_utf8_lossy(&out.log);
                failures.push(failed(format!(
                    "phase {}: {error}; {}",
                    phase.name,
                    said.trim()
                )));
            }
        }
        if out.code != 0 && failures.is_empty() {
            failures.push(failed(format!(
                "phase {}: fio ended with {}",
                phase.name, out.code
            )));
        }
        self.failed |= !failures.is_empty();
        for failure in failures {
            self.tell(Event::Failure(failure));
        }
        written
    }
}

/// Ends the run where a phase has not written what later ones read. `servers`
/// are the names in the figures, and those of the pods.
pub(super) fn must_be_whole<'s>(
    phase: &Phase,
    written: &Written,
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

pub(super) fn went_away(servers: &[String]) -> String {
    format!("{} went away while it ran", servers.join(", "))
}

/// Servers of which there is no report: fio leaves them out of its sums and says
/// nothing.
fn silent<'s>(results: &Results, servers: &'s [Server]) -> impl Iterator<Item = String> {
    let reported = |server: &&Server| {
        let mut hosts = results
            .jobs
            .iter()
            .filter_map(|job| job.hostname.as_deref());
        !hosts.any(|host| host == server.address)
    };
    let silent: Vec<&'s Server> = servers.iter().filter(reported).collect();
    silent.into_iter().map(|server| {
        format!(
            "{} ({}) gave no figures: it is not in the sums of all clients",
            server.pod, server.address
        )
    })
}

/// Whether a container of a pod was started more than once.
fn has_restarted(pod: &Value) -> bool {
    items(pod, "/status/containerStatuses")
        .any(|container| container["restartCount"].as_u64() > Some(0))
}
