//! Statistics of nodes while the phases run: a thread for each node reads its
//! counters from a pod there, at an interval and at both ends of a phase, into a
//! file of its own. Nothing of the run waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use fathom_device::node::{NodeReading, files};
use fathom_device::threads;
use fathom_fleet::kube::Cluster;
use fathom_model::Event;
use fathom_record::{StatsWriter, now_ms};

use super::cluster_run::ClusterRun;
use super::error::ClusterError;
use super::files::print;
use super::manifests::HOST_PROC;
use super::start::PollPace;
use super::trouble::{Trouble, is_ready, text, troubles};

/// How long the pods on the nodes may take to start: the servers have been
/// waited for already, and a node without statistics is no reason to stop.
const START: Duration = Duration::from_secs(30);
/// A node that has not answered by then is told of.
const ANSWER: Duration = Duration::from_secs(10);

/// The nodes that are read, as long as it lives.
pub(super) struct Nodes {
    /// One for each thread; a thread ends when it is gone.
    wake: Vec<Sender<()>>,
    said: Receiver<String>,
}

impl Nodes {
    /// Has every node read now: a phase begins or ends. Does not wait for it.
    pub(super) fn mark(&self) {
        for wake in &self.wake {
            // A thread that could not write its file has said so, and ended.
            let _ = wake.send(());
        }
    }

    /// What is to know of the readings since it was asked last.
    pub(super) fn said(&self) -> impl Iterator<Item = String> + '_ {
        self.said.try_iter()
    }
}

impl ClusterRun<'_, '_> {
    /// Begins to read the nodes; none when it is not asked for. What stands
    /// against it is told, and the run goes on.
    pub(super) fn read_nodes<'s>(&mut self, scope: &'s Scope<'s, '_>) -> Result<Nodes, ClusterError>
    where
        Self: 's,
    {
        let (say, said) = channel();
        let mut wake = Vec::new();
        if let Some(interval) = self.objects.parameters.stats() {
            for (pod, node) in self.observers()? {
                let (waker, woken) = channel();
                let observer = NodeObserver {
                    cluster: self.cluster,
                    namespace: self.namespace().to_owned(),
                    argv: print(&files(HOST_PROC), self.objects.parameters.is_by_agent()),
                    pod,
                    node,
                    interval,
                };
                let dir = self.dir.clone();
                let say = say.clone();
                wake.push(waker);
                let observe = move || observer.observe(&dir, &woken, &say);
                if let Err(error) = threads::spawn_scoped(scope, "statistics", observe) {
                    let text = format!("no statistics of all nodes: {error}");
                    self.tell(Event::Note { text });
                }
            }
        }
        Ok(Nodes { wake, said })
    }

    /// The pods that are ready, each with its node.
    fn observers(&mut self) -> Result<Vec<(String, String)>, ClusterError> {
        let began = Instant::now();
        let mut pace = PollPace::new();
        loop {
            self.go_on()?;
            let (wanted, pods) = (self.daemons_wanted("stats")?, self.pods("stats")?);
            let ready = pods.iter().filter(|pod| is_ready(pod));
            let named = |pointer| move |pod| text(pod, pointer).to_owned();
            let pod_and_node = |pod| {
                let (name, node) = (named("/metadata/name"), named("/spec/nodeName"));
                (name(pod), node(pod))
            };
            let ready: Vec<(String, String)> = ready.map(pod_and_node).collect();
            let all = wanted.is_some_and(|wanted| wanted > 0 && ready.len() >= wanted);
            if all {
                return Ok(ready);
            }
            if began.elapsed() >= START || wanted == Some(0) {
                let troubles = troubles(&self.see(pods)?, wanted.unwrap_or(0));
                let troubles: Vec<String> = troubles.into_iter().map(Trouble::text).collect();
                let text = self.why_not(wanted, ready.len(), &troubles);
                self.tell(Event::Note { text });
                return Ok(ready);
            }
            pace.wait();
        }
    }

    fn why_not(&self, wanted: Option<usize>, ready: usize, troubles: &[String]) -> String {
        match (wanted, &self.objects.parameters.stats_node_label) {
            (Some(0), Some((key, value))) => {
                format!("no statistics: no node has the label {key}={value}")
            }
            (Some(0), None) => "no statistics: no node takes their pods".to_owned(),
            (wanted, _) => {
                let of = wanted.map_or_else(String::new, |wanted| format!(" of {wanted}"));
                let why = match troubles {
                    [] => String::new(),
                    some => format!(": {}", some.join("; ")),
                };
                let after = START.as_secs();
                format!("statistics of {ready}{of} nodes: no more were ready after {after} s{why}")
            }
        }
    }
}

/// Reads one node.
struct NodeObserver<'c> {
    cluster: &'c Cluster,
    namespace: String,
    pod: String,
    node: String,
    argv: Vec<String>,
    interval: Duration,
}

impl NodeObserver<'_> {
    /// Until nobody can wake it any more.
    fn observe(&self, record: &std::path::Path, woken: &Receiver<()>, say: &Sender<String>) {
        let interval_ms = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        let written = StatsWriter::create(record, &self.node, interval_ms)
            .and_then(|writer| self.read_on(writer, woken, say));
        if let Err(error) = written {
            // Who listens has the run's record to say it in; else it has ended.
            let _ = say.send(format!("statistics of {} end: {error}", self.node));
        }
    }

    fn read_on(
        &self,
        mut file: StatsWriter,
        woken: &Receiver<()>,
        say: &Sender<String>,
    ) -> Result<(), fathom_record::RecordError> {
        let mut before: Option<NodeReading> = None;
        let mut was_missed = false;
        loop {
            let began = Instant::now();
            match self.read() {
                Ok((now, at_ms)) => {
                    let sample = before.as_ref().and_then(|then| now.since(then, at_ms));
                    if let Some(sample) = sample {
                        file.sample(sample)?;
                    }
                    (before, was_missed) = (Some(now), false);
                }
                Err(why) => {
                    file.missed(&why)?;
                    if !was_missed {
                        let _ = say.send(format!("{} gave no statistics: {why}", self.node));
                    }
                    was_missed = true;
                }
            }
            match woken.recv_timeout(self.interval.saturating_sub(began.elapsed())) {
                // However often it was woken meanwhile: one reading serves all.
                Ok(()) => while woken.try_recv().is_ok() {},
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// The counters, and when they were read: in the middle of the call.
    fn read(&self) -> Result<(NodeReading, u64), String> {
        let argv: Vec<&str> = self.argv.iter().map(String::as_str).collect();
        let asked_ms = now_ms();
        let ran = self
            .cluster
            .exec(&self.namespace, &self.pod, &argv, None, ANSWER);
        let ran = ran.map_err(|error| error.to_string())?;
        let at_ms = u64::midpoint(asked_ms, now_ms());
        if ran.code != Some(0) {
            return Err(super::cluster_run::last_words(&ran.stderr));
        }
        let reading = NodeReading::parse(&String::from_utf8_lossy(&ran.stdout))?;
        Ok((reading, at_ms))
    }
}
