//! How much of what was read from volumes they have delivered.
//!
//! A device's counters of the node hold everybody's reads. What the jobs read
//! beyond them was in memory, or nowhere: files have parts that were never
//! written. Other reads of the node hide such a share and never make one up.

use fathom_model::{Direction, JobResult, ReasonKind, RunDocument, VerdictReason, Volume, units};

use crate::verdict::FigureReason;

/// From this share on a figure is marked: less is within what two runs differ by.
const SHARE_LEAST: f64 = 0.05;

/// Bytes that the jobs of a volume's servers read, in its step.
pub fn issued_bytes(volume: &Volume, jobs: &[JobResult]) -> u64 {
    let read = |job: &JobResult| job.read.as_ref().map_or(0, |read| read.io_bytes);
    let own = jobs.iter().filter(|job| is_of(volume, job));
    own.map(read).sum()
}

/// The share of the reads of a volume's servers that it has not delivered;
/// `None` when it has no counters, or nothing was read.
pub fn share_from_memory(volume: &Volume, jobs: &[JobResult]) -> Option<f64> {
    let delivered = volume.read_bytes?;
    let issued = issued_bytes(volume, jobs);
    let missing = issued.saturating_sub(delivered);
    (issued > 0).then(|| missing as f64 / issued as f64)
}

fn is_of(volume: &Volume, job: &JobResult) -> bool {
    let host = job.hostname.as_ref();
    let its = host.is_some_and(|host| volume.hosts.contains(host));
    its && volume.step == job.step && !job.is_sum_of_clients()
}

/// Whether the counters of its volume say where a job's reads came from: then no
/// estimate is needed.
pub(crate) fn is_counted(job: &JobResult, doc: &RunDocument) -> bool {
    let counted = |volume: &Volume| volume.read_bytes.is_some() && is_of(volume, job);
    doc.volumes.iter().any(counted)
}

fn is_marked(volume: &Volume, jobs: &[JobResult]) -> bool {
    share_from_memory(volume, jobs).is_some_and(|share| share >= SHARE_LEAST)
}

/// The reads that are to be marked: of the servers, and of the sums over them.
pub(crate) fn reasons(doc: &RunDocument) -> Vec<FigureReason> {
    let marked = doc
        .volumes
        .iter()
        .filter(|volume| is_marked(volume, &doc.jobs));
    let marked: Vec<&Volume> = marked.collect();
    let is_spoiled = |job: &JobResult| {
        let sums = |volume: &&Volume| job.is_sum_of_clients() && volume.step == job.step;
        let reads = job.read.as_ref().is_some_and(|read| read.total_ios > 0);
        reads
            && marked
                .iter()
                .any(|volume| is_of(volume, job) || sums(volume))
    };
    let spoiled = doc
        .jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| is_spoiled(job));
    let reason = |(job, _)| FigureReason {
        job,
        dir: Direction::Read,
        reason: VerdictReason::of(ReasonKind::CachedReads),
    };
    spoiled.map(reason).collect()
}

/// What is to be said of it: a sentence for each step with marked reads, and one
/// for each reason for which nobody can tell.
pub fn notes(doc: &RunDocument) -> Vec<String> {
    let mut steps: Vec<Option<&str>> = Vec::new();
    for volume in &doc.volumes {
        if !steps.contains(&volume.step.as_deref()) {
            steps.push(volume.step.as_deref());
        }
    }
    let of_steps = steps.iter().filter_map(|step| of_step(doc, *step));
    let mut notes: Vec<String> = of_steps.collect();
    for volume in &doc.volumes {
        let Some(why) = &volume.unknown else { continue };
        let device = volume.device.as_deref().unwrap_or("a volume");
        let note = format!("unknown whether reads of {device} came from memory: {why}");
        if issued_bytes(volume, &doc.jobs) > 0 && !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn of_step(doc: &RunDocument, step: Option<&str>) -> Option<String> {
    let counted = doc
        .volumes
        .iter()
        .filter(|volume| volume.step.as_deref() == step);
    let counted: Vec<&Volume> = counted
        .filter(|volume| volume.read_bytes.is_some())
        .collect();
    let share = |volume: &&&Volume| share_from_memory(volume, &doc.jobs).unwrap_or(0.0);
    let worst = counted
        .iter()
        .max_by(|a, b| share(a).total_cmp(&share(b)))?;
    if !is_marked(worst, &doc.jobs) {
        return None;
    }
    let issued: u64 = counted
        .iter()
        .map(|volume| issued_bytes(volume, &doc.jobs))
        .sum();
    let missing = |volume: &&Volume| {
        let delivered = volume.read_bytes.unwrap_or(0);
        issued_bytes(volume, &doc.jobs).saturating_sub(delivered)
    };
    let missing: u64 = counted.iter().map(missing).sum();
    let step = step.map_or_else(String::new, |step| format!("{step}: "));
    let most = match counted.len() {
        1 => String::new(),
        _ => format!(", {:.0} % on {}", share(&worst) * 100.0, worst.node),
    };
    let device = worst.device.as_deref().unwrap_or("the volume");
    let volumes = match counted.len() {
        1 => format!("{device} of {}", worst.node),
        n => format!("their {n} devices"),
    };
    Some(format!(
        "{step}of the {} that the jobs read, {:.0} % never came from {volumes}{most}: they were in memory, or in parts of files that were never written",
        units::bytes(issued as f64),
        missing as f64 * 100.0 / issued.max(1) as f64,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::DirectionResult;

    fn job(host: Option<&str>, step: &str, gib: u64) -> JobResult {
        JobResult {
            name: "seqrd".to_owned(),
            step: Some(step.to_owned()),
            hostname: host.map(str::to_owned),
            clients: host.is_none().then_some(2),
            read: Some(DirectionResult {
                total_ios: gib * 8192,
                io_bytes: gib << 30,
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        }
    }

    fn volume(hosts: &[&str], step: &str, gib: Option<u64>) -> Volume {
        Volume {
            node: "node0".to_owned(),
            step: Some(step.to_owned()),
            device: Some("sda".to_owned()),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            read_bytes: gib.map(|gib| gib << 30),
            write_bytes: gib,
            unknown: gib.is_none().then(|| "it is not counted".to_owned()),
        }
    }

    fn doc(jobs: Vec<JobResult>, volumes: Vec<Volume>) -> RunDocument {
        let mut doc = RunDocument::default();
        (doc.jobs, doc.volumes) = (jobs, volumes);
        doc
    }

    fn marked(doc: &RunDocument) -> Vec<usize> {
        reasons(doc).iter().map(|finding| finding.job).collect()
    }

    #[test]
    fn reads_that_a_shared_device_has_not_delivered_are_marked_and_so_is_their_sum() {
        let jobs = vec![
            job(Some("a"), "rd", 4),
            job(Some("b"), "rd", 4),
            job(Some("c"), "rd", 4),
            job(None, "rd", 12),
        ];
        let volumes = vec![
            volume(&["a", "b"], "rd", Some(2)),
            volume(&["c"], "rd", Some(9)),
        ];
        let doc = doc(jobs, volumes);
        assert_eq!(marked(&doc), [0, 1, 3]);
        let notes = notes(&doc);
        assert!(notes[0].starts_with("rd: of the 12 GiB that the jobs read, 50 % never came from their 2 devices, 75 % on node0"), "{notes:?}");
    }

    #[test]
    fn what_a_step_has_read_says_nothing_of_another() {
        let jobs = vec![job(Some("a"), "one", 4), job(Some("a"), "two", 4)];
        let volumes = vec![
            volume(&["a"], "one", Some(4)),
            volume(&["a"], "two", Some(0)),
        ];
        let doc = doc(jobs, volumes);
        assert_eq!(marked(&doc), [1]);
        assert!(notes(&doc)[0].contains("100 % never came from sda of node0:"));
    }

    #[test]
    fn where_nothing_is_counted_it_is_said_once_and_nothing_is_marked() {
        let jobs = vec![job(Some("a"), "rd", 4), job(Some("b"), "rd", 4)];
        let volumes = vec![volume(&["a"], "rd", None), volume(&["b"], "rd", None)];
        let doc = doc(jobs, volumes);
        assert!(marked(&doc).is_empty());
        assert_eq!(
            notes(&doc),
            ["unknown whether reads of sda came from memory: it is not counted"]
        );
    }
}
