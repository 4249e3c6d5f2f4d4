//! The figures of a phase by pods and nodes, instead of the addresses by which
//! fio's client knows its servers.

use fathom_model::{Host, JobResult, Results};

use super::cluster_run::ServerPod;

/// Puts the names of the pods into what fio's client reported, and says what
/// part each server had. fio's own sum goes: it divides by the longest time and
/// averages percentiles; it stays in fio's text, and the sum that is shown is
/// made from its parts as for every run on several hosts.
pub(super) fn named(results: &mut Results, servers: &[ServerPod]) -> Vec<Host> {
    results.jobs.retain(|job| !job.is_sum_of_clients());
    for server in servers {
        for job in &mut results.jobs {
            if job.hostname.as_deref() == Some(&server.address) {
                (job.hostname, job.port) = (Some(server.pod.clone()), None);
            }
        }
        for disk in &mut results.disks {
            if disk.host.as_deref() == Some(&server.address) {
                disk.host = Some(server.pod.clone());
            }
        }
    }
    servers.iter().map(|server| host(results, server)).collect()
}

fn host(results: &Results, server: &ServerPod) -> Host {
    let is_its = |job: &&JobResult| job.hostname.as_ref() == Some(&server.pod);
    let has_reported = results.jobs.iter().any(|job| is_its(&job));
    Host {
        name: server.pod.clone(),
        node: Some(server.node.clone()),
        engine_version: results.engine_version.clone(),
        lost: (!has_reported).then(|| "it gave no figures".to_owned()),
        ..Host::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u8) -> ServerPod {
        ServerPod {
            pod: format!("server-fio-{number}"),
            node: "node0".into(),
            address: format!("10.88.0.{number}"),
            uid: String::new(),
        }
    }

    fn job(name: &str, hostname: Option<&str>) -> JobResult {
        JobResult {
            name: name.into(),
            hostname: hostname.map(str::to_owned),
            port: Some(8765),
            ..JobResult::default()
        }
    }

    #[test]
    fn figures_have_the_names_of_pods_and_fios_own_sum_is_gone() {
        let mut results = Results {
            jobs: vec![
                job("seqwr", Some("10.88.0.1")),
                job("All clients", Some("10.88.0.1")),
            ],
            ..Results::default()
        };
        let hosts = named(&mut results, &[server(1), server(2)]);
        let [seqwr] = &results.jobs[..] else {
            panic!("{:?}", results.jobs)
        };
        assert_eq!(seqwr.hostname.as_deref(), Some("server-fio-1"));
        assert_eq!(hosts[0].lost, None);
        // fio leaves a server out and says nothing.
        assert!(hosts[1].lost.is_some());
    }
}
