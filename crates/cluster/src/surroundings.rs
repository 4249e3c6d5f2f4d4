//! What of the cluster goes into the record beside the figures: what it is, what
//! the servers held after each phase, how everything stood at the end.

use std::time::Duration;

use fathom_fleet::kube::{KubeError, ObjectKind, PodCommand};
use serde_json::Value;

use super::cluster_run::{ClusterRun, ServerPod, some};
use super::error::ClusterError;
use super::image::PROGRAM;
use super::kinds::{CLAIM, EVENT, POD, STATEFUL_SET};
use super::manifests::RUN;
use super::pod::PodLook;
use super::to_yaml;
use super::trouble::{is_ready, items, text};

const NODE: ObjectKind = ObjectKind::new("v1", "Node");
const STORAGE_CLASS: ObjectKind = ObjectKind::new("storage.k8s.io/v1", "StorageClass");

/// A server that has not listed its files by then is left out.
const LISTED: Duration = Duration::from_secs(10);
/// What is looked at after each phase, and how.
const LISTINGS: [(&str, &[&str]); 2] = [
    ("ls_l", &["ls", "-l", "/dataset"]),
    ("df_h", &["df", "-h", "/dataset"]),
];

impl ClusterRun<'_, '_> {
    /// Versions, nodes and storage classes, as far as one may see them.
    pub(super) fn keep_environment(&self) -> Result<(), ClusterError> {
        let mut told = format!("server {}\n", self.cluster.server());
        match self.cluster.version() {
            Ok(version) => told += &format!("Kubernetes {version}\n"),
            Err(error) => told += &format!("Kubernetes: {error}\n"),
        }
        told += "\n";
        told += &self.listed(
            NODE,
            "NODE VERSION KERNEL OS RUNTIME CPUS MEMORY READY",
            &|node| {
                let info =
                    |name: &str| text(node, &format!("/status/nodeInfo/{name}")).replace(' ', "_");
                let ready = if is_ready(node) { "yes" } else { "no" };
                vec![
                    text(node, "/metadata/name").to_owned(),
                    info("kubeletVersion"),
                    info("kernelVersion"),
                    info("osImage"),
                    info("containerRuntimeVersion"),
                    text(node, "/status/capacity/cpu").to_owned(),
                    text(node, "/status/capacity/memory").to_owned(),
                    ready.to_owned(),
                ]
            },
        );
        told += "\n";
        let columns = "STORAGECLASS PROVISIONER BINDING RECLAIM";
        told += &self.listed(STORAGE_CLASS, columns, &|class| {
            [
                "/metadata/name",
                "/provisioner",
                "/volumeBindingMode",
                "/reclaimPolicy",
            ]
            .map(|pointer| text(class, pointer).to_owned())
            .to_vec()
        });
        self.keep("out.get_envinfo.txt", told.as_bytes())
    }

    /// Objects of the whole cluster as a table. Who may not see them needs them
    /// for nothing else.
    fn listed(
        &self,
        kind: ObjectKind,
        columns: &str,
        row: &dyn Fn(&Value) -> Vec<String>,
    ) -> String {
        match self.cluster.list(kind, None, "", "") {
            Ok(all) => table(columns, all.iter().map(row)),
            Err(error) => format!("{error}\n"),
        }
    }

    /// What the servers hold, and how full their volumes are. After a failure
    /// servers may be gone; the phase has said so.
    pub(super) fn keep_listings(&self, phase: &str, servers: &[ServerPod]) {
        let folder = self.objects.folder();
        let keep = |pod: &str, file: &str, text: &[u8]| {
            let _ = self.keep(&format!("{folder}/{pod}/{file}.{phase}.txt"), text);
        };
        let mut commands: Vec<(&str, &[&str])> = Vec::new();
        for server in servers {
            match self.objects.parameters.is_by_agent() {
                true => commands.push((&server.pod, &[PROGRAM, "pod", "look"])),
                false => commands.extend(LISTINGS.map(|(_, argv)| (server.pod.as_str(), argv))),
            }
        }
        let told = self.cluster.exec_each(self.namespace(), &commands, LISTED);
        for ((pod, argv), ran) in commands.iter().zip(told) {
            let ran = ran.unwrap_or_else(|error| PodCommand {
                stdout: match error {
                    KubeError::TooMuch { .. } => format!("{error}\n").into_bytes(),
                    _ => Vec::new(),
                },
                ..PodCommand::default()
            });
            if let Some((file, _)) = LISTINGS.iter().find(|(_, listing)| listing == argv) {
                keep(pod, file, some(&ran.stdout));
                continue;
            }
            let look: PodLook = serde_json::from_slice(&ran.stdout).unwrap_or_default();
            for (file, _) in LISTINGS {
                if let Some(text) = look.files.get(&format!("{file}.txt")) {
                    keep(pod, file, some(text.as_bytes()));
                }
            }
        }
    }

    /// Every pod and claim as it stood at the end, and what the cluster said of
    /// them. What cannot be had any more is not worth an error.
    pub(super) fn keep_descriptions(&self) {
        let labels = format!("{RUN}={}", self.objects.run);
        let list = |kind| self.cluster.list(kind, Some(self.namespace()), &labels, "");
        let pods = list(POD).unwrap_or_default();
        for pod in &pods {
            let name = text(pod, "/metadata/name");
            let _ = self.keep(&format!("pods/{name}.yaml"), to_yaml(pod).as_bytes());
        }
        let mut told = table(
            "POD READY RESTARTS STATUS NODE ADDRESS",
            pods.iter().map(pod_row),
        );
        told += "\n";
        let claims = list(CLAIM).unwrap_or_default();
        let columns = "CLAIM STATUS VOLUME CAPACITY STORAGECLASS";
        told += &table(columns, claims.iter().map(claim_row));
        told += "\n";
        let objects = [pods, claims, list(STATEFUL_SET).unwrap_or_default()].concat();
        told += &self
            .events(&objects)
            .unwrap_or_else(|error| format!("{error}\n"));
        let name = format!("out.{}.txt", self.objects.folder());
        let _ = self.keep(&name, told.as_bytes());
    }

    /// What the cluster said of objects of this run.
    fn events(&self, objects: &[Value]) -> Result<String, KubeError> {
        let uids: Vec<&str> = objects
            .iter()
            .map(|object| text(object, "/metadata/uid"))
            .collect();
        let events = self.cluster.list(EVENT, Some(self.namespace()), "", "")?;
        let is_ours = |event: &&Value| uids.contains(&text(event, "/involvedObject/uid"));
        let mut ours: Vec<&Value> = events.iter().filter(is_ours).collect();
        ours.sort_by_key(|event| text(event, "/lastTimestamp"));
        let row = |event: &Value| {
            let object = text(event, "/involvedObject/name").to_owned();
            let at = text(event, "/lastTimestamp").to_owned();
            let reason = text(event, "/reason").to_owned();
            vec![at, object, reason, text(event, "/message").to_owned()]
        };
        Ok(table(
            "TIME OBJECT REASON MESSAGE",
            ours.into_iter().map(row),
        ))
    }
}

fn pod_row(pod: &Value) -> Vec<String> {
    let restarts: u64 = items(pod, "/status/containerStatuses")
        .filter_map(|container| container["restartCount"].as_u64())
        .sum();
    let ready = if is_ready(pod) { "yes" } else { "no" };
    let column = |pointer| text(pod, pointer).to_owned();
    vec![
        column("/metadata/name"),
        ready.to_owned(),
        restarts.to_string(),
        column("/status/phase"),
        column("/spec/nodeName"),
        column("/status/podIP"),
    ]
}

fn claim_row(claim: &Value) -> Vec<String> {
    let pointers = [
        "/metadata/name",
        "/status/phase",
        "/spec/volumeName",
        "/status/capacity/storage",
        "/spec/storageClassName",
    ];
    pointers
        .map(|pointer| text(claim, pointer).to_owned())
        .to_vec()
}

/// Aligned columns; what is empty is a dash, so that a program finds its column.
fn table(titles: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles = titles.split(' ').map(str::to_owned).collect();
    let mut lines: Vec<Vec<String>> = vec![titles];
    lines.extend(rows);
    let columns = lines[0].len();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| match cell.as_str() {
                "" => format!("{:width$}", "-"),
                cell => format!("{cell:width$}"),
            });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += &format!("{}\n", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_have_no_holes() {
        let rows = [vec![
            "a-long-name".to_owned(),
            String::new(),
            "x y".to_owned(),
        ]];
        let told = table("NAME NODE WHAT", rows.into_iter());
        assert_eq!(told, "NAME         NODE  WHAT\na-long-name  -     x y\n");
    }
}
