//! A benchmark while it runs: the cluster, the record, and what every part of it
//! does with both. The parts are in files of their own; [`mod@super::run`] puts them
//! in order.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_device::bounded::TEXT_BYTES_MAX;
use fathom_engine::{Control, Sink as _};
use fathom_fleet::kube::{Cluster, KubeError, PodCommand};
use fathom_fleet::local::Session;
use fathom_model::Event;
use serde_json::Value;

use super::BenchWorkload;
use super::background_load::BackgroundLoad;
use super::error::ClusterError;
use super::kinds::POD;
use super::manifests::{Objects, RUN};
use super::trouble::text;

/// A short command in a pod takes no longer.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// More than a message holds of what a command said.
pub(super) const SAID_BYTES_MAX: u64 = 4096;

pub(super) struct ClusterRun<'w, 'o> {
    pub(super) cluster: &'w Cluster,
    pub(super) objects: Objects<'w>,
    pub(super) session: Session<'o>,
    pub(super) workload: BenchWorkload,
    pub(super) control: &'w Control,
    pub(super) dir: PathBuf,
    pub(super) began: Instant,
    /// The pod that tells the phases to servers of fio, once it runs.
    pub(super) client: Option<ServerPod>,
    /// A job of a phase has failed.
    pub(super) failed: bool,
    /// The load in the background.
    pub(super) background_load: Option<BackgroundLoad>,
}

/// A pod as it runs.
#[derive(Debug, Clone)]
pub(super) struct ServerPod {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) address: String,
    /// A pod that is made again has the same name and another id.
    pub(super) uid: String,
}

impl ServerPod {
    pub(super) fn of(pod: &Value) -> Self {
        Self {
            pod: text(pod, "/metadata/name").to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            address: text(pod, "/status/podIP").to_owned(),
            uid: text(pod, "/metadata/uid").to_owned(),
        }
    }
}

impl ClusterRun<'_, '_> {
    pub(super) fn namespace(&self) -> &str {
        &self.objects.parameters.namespace
    }

    pub(super) fn tell(&mut self, event: Event) {
        let elapsed = self.began.elapsed().as_millis();
        self.session.at(u64::try_from(elapsed).unwrap_or(u64::MAX));
        let _ = self.session.event(event);
    }

    /// The record's folder.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Puts a file into the record.
    pub(super) fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), ClusterError> {
        keep(&self.dir.join(name), bytes)
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

    pub(super) fn exec(
        &self,
        pod: &str,
        argv: &[&str],
        stdin: Option<&[u8]>,
        limit: Duration,
    ) -> Result<PodCommand, KubeError> {
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
}

/// The end of what was printed, as much of it as somebody reads in an error.
pub(super) fn last_words(printed: &[u8]) -> String {
    let begin = printed.len().saturating_sub(SAID_BYTES_MAX as usize);
    let said = String::from_utf8_lossy(&printed[begin..]);
    match begin {
        0 => said.trim().to_owned(),
        _ => format!("…{}", said.trim()),
    }
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
pub(super) fn well(pod: &str, argv: &[&str], ran: &PodCommand) -> Result<(), ClusterError> {
    if ran.code == Some(0) {
        return Ok(());
    }
    let said = last_words(&ran.stderr);
    let what = format!("{} in pod {pod} failed: {said}", argv.join(" "));
    Err(ClusterError::Command(what))
}
