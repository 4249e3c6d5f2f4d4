//! The files of a record as kubuculum names them, for tools and people that know
//! its folders.

use fathom_analysis::hosts::sum;
use fathom_fio_output::write::{FormatFacts, OutputFormat, render};
use fathom_model::{Direction, DirectionResult, JobResult, Results};
use serde_json::json;

use super::cluster_run::ClusterRun;
use super::error::ClusterError;
use super::jobs::BenchPhase;
use super::{BenchWorkload, to_yaml};

/// The letters of the names that Kubernetes makes (apimachinery, util/rand).
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Its name of a benchmark; it has none that runs a job file.
pub(super) fn role(workload: BenchWorkload) -> Option<&'static str> {
    match workload {
        BenchWorkload::Seq => Some("bench_fioseq"),
        BenchWorkload::Rand => Some("bench_fiorand"),
        BenchWorkload::Job => None,
    }
}

/// Folder of a phase, there named as the pod that ran it: `seqwr_fio-x7k2b`. Of
/// one run and phase it is always the same.
fn folder(run: &str, phase: &str) -> String {
    // FNV-1a, 64 bits.
    let hash = run
        .bytes()
        .chain(phase.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut rest = hash;
    let letters = (0..5).map(|_| {
        let letter = LETTERS[(rest % 27) as usize];
        rest /= 27;
        char::from(letter)
    });
    format!("{phase}_fio-{}", letters.collect::<String>())
}

impl ClusterRun<'_, '_> {
    /// What fio would have said of a phase, under its name here and there.
    pub(super) fn keep_run_text(&self, phase: &str, text: &[u8]) -> Result<(), ClusterError> {
        let file = format!("fio.{phase}.run.txt");
        self.keep(&format!("client/{phase}/{file}"), text)?;
        let Some(role) = role(self.workload) else {
            return Ok(());
        };
        let folder = folder(self.objects.run, phase);
        self.keep(&format!("{role}/{folder}/{file}"), text)
    }

    /// What is run in a phase, and where.
    pub(super) fn keep_job(
        &self,
        phase: &BenchPhase,
        servers: &[&str],
    ) -> Result<(), ClusterError> {
        let name = &phase.name;
        self.keep(&format!("jobs/{name}.fio"), phase.text.as_bytes())?;
        let Some(role) = role(self.workload) else {
            return Ok(());
        };
        let engine = self.objects.parameters.engine.name();
        let job = json!({
            "phase": name, "engine": engine, "servers": servers, "job": phase.text,
        });
        let file = format!("{role}/fio_{name}_job.yaml");
        self.keep(&file, to_yaml(&job).as_bytes())
    }
}

/// The figures of a phase as fio's client prints them, with its "All clients":
/// all bytes over the longest time.
pub(super) fn run_text(results: &Results) -> String {
    let mut all = results.clone();
    for job in &mut all.jobs {
        if let Some(host) = &job.hostname {
            job.name = format!("<{host}> {}", job.name);
        }
    }
    all.jobs.push(all_clients(&results.jobs));
    render(&all, &FormatFacts::default(), OutputFormat::Normal)
}

fn all_clients(jobs: &[JobResult]) -> JobResult {
    let members = jobs.iter().map(|job| job.members.unwrap_or(1)).sum();
    let mut all = JobResult {
        name: "All clients".to_owned(),
        members: Some(members),
        ..JobResult::default()
    };
    for dir in [Direction::Read, Direction::Write, Direction::Trim] {
        let of = |job: &JobResult| -> Option<DirectionResult> {
            let mut parts = job.directions().filter(|(other, _)| *other == dir);
            parts.next().map(|(_, result)| result.clone())
        };
        let parts: Vec<DirectionResult> = jobs.iter().filter_map(of).collect();
        let longest = parts.iter().map(|part| part.runtime_ms).max();
        if let (Some(place), Some(runtime_ms)) = (all.direction_mut(dir), longest) {
            *place = Some(DirectionResult {
                runtime_ms,
                ..sum(&parts)
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_all_clients_is_fios_whatever_ran_the_jobs() {
        let job = |host: &str, runtime_ms| JobResult {
            name: "seqwr".to_owned(),
            hostname: Some(host.to_owned()),
            members: Some(16),
            write: Some(DirectionResult {
                io_bytes: 32 << 30,
                total_ios: 262_144,
                runtime_ms,
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        };
        let results = Results {
            jobs: vec![
                job("server-fathom-0", 393_242),
                job("server-fathom-1", 300_000),
                job("server-fathom-2", 380_000),
            ],
            ..Results::default()
        };
        let text = run_text(&results);
        let mut lines = text.lines();
        let all = lines.find(|line| line.starts_with("All clients:")).unwrap();
        assert!(
            all.starts_with("All clients: (groupid=0, jobs=48): err= 0: pid=0: "),
            "{all}"
        );
        // 96 GiB over the longest time, as in the example of its page.
        let write = lines.next().unwrap();
        assert!(
            write.starts_with("  write: IOPS=1999, BW=250MiB/s (262MB/s)(96.0GiB/393242msec)"),
            "{write}"
        );
        assert!(
            text.contains("<server-fathom-1> seqwr: (groupid=0, jobs=16)"),
            "{text}"
        );
    }

    #[test]
    fn a_phase_has_a_folder_of_its_own_that_stays_the_same() {
        let one = folder("run-1", "seqwr");
        assert_eq!(one, folder("run-1", "seqwr"));
        let (name, letters) = one.split_once("_fio-").unwrap();
        assert_eq!((name, letters.len()), ("seqwr", 5));
        assert_ne!(one, folder("run-2", "seqwr"));
        assert_ne!(
            letters,
            folder("run-1", "seqrd").split_once("_fio-").unwrap().1
        );
    }
}
