//! What each machine of a run on several did, and its share of the sum.

use std::collections::BTreeMap;

use fathom_analysis::hosts::{label_of, sum};
use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Direction, DirectionResult, Host, JobResult, RunDocument};

/// The part of one host in one direction of a job, or the sum of all.
#[derive(Debug, Clone)]
pub struct HostShare<'d> {
    /// The step, when the run has several.
    pub step: Option<&'d str>,
    /// Name of the job; of a run with one job it tells nothing.
    pub job: Option<&'d str>,
    /// The direction.
    pub dir: Direction,
    /// The host; `None` for the sum.
    pub host: Option<&'d Host>,
    /// Its clones of the job together.
    pub result: DirectionResult,
    /// Its part of the bytes of the sum, from 0 to 1; `None` where it is not in
    /// the sum.
    pub share: Option<f64>,
}

/// The hosts of each job and direction, in the order of the run, each followed by
/// the sum; nothing for a run without a sum.
pub fn shares(doc: &RunDocument) -> Vec<HostShare<'_>> {
    let mut all = Vec::new();
    // Labels are made once: three hundred hosts have three hundred jobs.
    let labelled: Vec<(String, &JobResult)> = doc
        .jobs
        .iter()
        .filter_map(|job| Some((label_of(job)?, job)))
        .collect();
    for total in doc.jobs.iter().filter(|job| job.clients.is_some()) {
        let name = total.name.strip_prefix(ALL_CLIENTS).unwrap_or_default();
        let name = name.strip_prefix(": ");
        let mut by_host: BTreeMap<&str, Vec<&JobResult>> = BTreeMap::new();
        for (label, job) in &labelled {
            if job.step == total.step && name.is_none_or(|name| job.name == name) {
                by_host.entry(label).or_default().push(job);
            }
        }
        let hosts: Vec<&Host> = doc.hosts.iter().filter(|h| h.step == total.step).collect();
        for (dir, of_all) in total.directions().filter(|(_, r)| r.total_ios > 0) {
            let row = |host, result, share| HostShare {
                step: total.step.as_deref(),
                job: name,
                dir,
                host,
                result,
                share,
            };
            for host in &hosts {
                let jobs = by_host.get(host.label().as_str()).into_iter().flatten();
                let its: Vec<DirectionResult> = jobs
                    .flat_map(|job| job.directions())
                    .filter(|(of, _)| *of == dir)
                    .map(|(_, result)| result.clone())
                    .collect();
                if its.is_empty() {
                    continue;
                }
                let its = sum(&its);
                let share = its.io_bytes as f64 / of_all.io_bytes as f64;
                let share = Some(share).filter(|s| s.is_finite() && host.lost.is_none());
                all.push(row(Some(*host), its, share));
            }
            all.push(row(None, of_all.clone(), Some(1.0)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, host: Option<&str>, clients: Option<u32>, mib: u64) -> JobResult {
        let read = DirectionResult {
            total_ios: mib,
            io_bytes: mib << 20,
            ..DirectionResult::default()
        };
        JobResult {
            name: name.into(),
            hostname: host.map(str::to_owned),
            clients,
            read: Some(read),
            ..JobResult::default()
        }
    }

    #[test]
    fn clones_of_a_host_are_one_line_and_the_lost_have_no_share() {
        let host = |name: &str, lost: Option<&str>| Host {
            name: name.into(),
            lost: lost.map(str::to_owned),
            ..Host::default()
        };
        let doc = RunDocument {
            hosts: vec![host("x", None), host("y", None), host("z", Some("cut off"))],
            jobs: vec![
                job("a", Some("x"), None, 1),
                job("a", Some("x"), None, 2),
                job("a", Some("y"), None, 1),
                job("a", Some("z"), None, 9),
                job(ALL_CLIENTS, None, Some(2), 4),
            ],
            ..fathom_document::of_results(&fathom_model::Results::default())
        };
        let told: Vec<(Option<&str>, u64, Option<f64>)> = shares(&doc)
            .iter()
            .map(|s| (s.host.map(|h| &*h.name), s.result.total_ios, s.share))
            .collect();
        assert_eq!(
            told,
            [
                (Some("x"), 3, Some(0.75)),
                (Some("y"), 1, Some(0.25)),
                (Some("z"), 9, None),
                (None, 4, Some(1.0)),
            ]
        );
    }
}
