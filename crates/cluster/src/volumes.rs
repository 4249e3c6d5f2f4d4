//! What the volumes of the servers moved in a phase, by the counters of their
//! nodes: reads that fio has issued and no device has delivered were served from
//! memory.
//!
//! `/proc/diskstats` is the node's own in every pod, so that the server itself
//! is asked. Servers that share a device are one volume. Whatever else the node
//! does makes its counters larger, never smaller.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fathom_device::node::{VOLUME_FILES, VolumeReading};
use fathom_fleet::kube::{KubeError, PodCommand};
use fathom_model::Volume;

use super::cluster_run::{ClusterRun, ServerPod};
use super::files::print;
use super::manifests::DATASET;

/// A server that does not answer by then is taken for one of which nobody can tell.
const ANSWER: Duration = Duration::from_secs(10);

/// What each server sees under its data, in their order; or why it does not.
pub(super) type Readings = Vec<Result<VolumeReading, String>>;

impl ClusterRun<'_, '_> {
    /// Asks all servers.
    pub(super) fn read_volumes(&self, servers: &[ServerPod]) -> Readings {
        let argv = print(&VOLUME_FILES, self.objects.parameters.is_by_agent());
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let commands: Vec<_> = servers
            .iter()
            .map(|server| (server.pod.as_str(), &argv[..]))
            .collect();
        let told = self.cluster.exec_each(self.namespace(), &commands, ANSWER);
        told.into_iter().map(read).collect()
    }
}

fn read(ran: Result<PodCommand, KubeError>) -> Result<VolumeReading, String> {
    let ran = ran.map_err(|error| error.to_string())?;
    if ran.code != Some(0) {
        return Err(super::cluster_run::last_words(&ran.stderr));
    }
    let text = String::from_utf8_lossy(&ran.stdout);
    VolumeReading::parse(&text, Path::new(DATASET))
        .ok_or_else(|| format!("nothing is mounted on {DATASET}"))
}

/// What the volumes of servers moved between two readings. Figures have the names
/// of the pods.
pub(super) fn moved(servers: &[ServerPod], before: &Readings, after: &Readings) -> Vec<Volume> {
    let mut volumes: BTreeMap<(&str, (u32, u32)), Volume> = BTreeMap::new();
    let mut alone = Vec::new();
    for ((server, before), after) in servers.iter().zip(before).zip(after) {
        let (before, after) = match (before, after) {
            (Ok(before), Ok(after)) if before.number == after.number => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                alone.push(unknown(server, why));
                continue;
            }
            _ => {
                alone.push(unknown(server, "its volume was mounted again meanwhile"));
                continue;
            }
        };
        let volume = volumes
            .entry((&server.node, after.number))
            .or_insert_with(|| {
                let (read_bytes, write_bytes, unknown) = match delta(before, after) {
                    Ok((read, written)) => (Some(read), Some(written), None),
                    Err(why) => (None, None, Some(why)),
                };
                Volume {
                    node: server.node.clone(),
                    device: Some(after.device.clone()),
                    read_bytes,
                    write_bytes,
                    unknown,
                    ..Volume::default()
                }
            });
        volume.hosts.push(server.pod.clone());
        // Every server was asked at a moment of its own: what the device moved
        // is at least what the one saw that saw most.
        if let Ok((read, written)) = delta(before, after) {
            volume.read_bytes = volume.read_bytes.max(Some(read));
            volume.write_bytes = volume.write_bytes.max(Some(written));
        }
    }
    volumes.into_values().chain(alone).collect()
}

fn delta(before: &VolumeReading, after: &VolumeReading) -> Result<(u64, u64), String> {
    let (then, now) = (before.moved.as_ref(), after.moved.as_ref());
    let (then, now) = (then.map_err(Clone::clone)?, now.map_err(Clone::clone)?);
    let since = |now: u64, then: u64| now.checked_sub(then);
    since(now.0, then.0)
        .zip(since(now.1, then.1))
        .ok_or_else(|| "its counters went back".to_owned())
}

fn unknown(server: &ServerPod, why: &str) -> Volume {
    Volume {
        node: server.node.clone(),
        hosts: vec![server.pod.clone()],
        unknown: Some(why.to_owned()),
        ..Volume::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u8, node: &str) -> ServerPod {
        ServerPod {
            pod: format!("server-fio-{number}"),
            node: node.to_owned(),
            address: format!("10.0.0.{number}"),
            uid: number.to_string(),
        }
    }

    fn reading(minor: u32, moved: Result<(u64, u64), String>) -> Result<VolumeReading, String> {
        Ok(VolumeReading {
            number: (8, minor),
            device: "sda".to_owned(),
            moved,
        })
    }

    #[test]
    fn servers_that_share_a_device_are_one_volume() {
        let servers = [
            server(0, "a"),
            server(1, "a"),
            server(2, "b"),
            server(3, "b"),
        ];
        let before = vec![
            reading(1, Ok((100, 10))),
            reading(1, Ok((100, 10))),
            reading(1, Ok((5, 5))),
            reading(2, Err("its file system, ceph, …".to_owned())),
        ];
        let after = vec![
            reading(1, Ok((400, 10))),
            reading(1, Ok((410, 30))),
            reading(1, Ok((4, 5))),
            reading(2, Err("its file system, ceph, …".to_owned())),
        ];
        let volumes = moved(&servers, &before, &after);
        assert_eq!(volumes.len(), 3, "{volumes:?}");
        assert_eq!(volumes[0].hosts, ["server-fio-0", "server-fio-1"]);
        assert_eq!(
            (volumes[0].read_bytes, volumes[0].write_bytes),
            (Some(310), Some(20))
        );
        assert_eq!(
            volumes[1].unknown.as_deref(),
            Some("its counters went back")
        );
        assert_eq!(
            (volumes[2].read_bytes, volumes[2].unknown.is_some()),
            (None, true)
        );
    }
}
