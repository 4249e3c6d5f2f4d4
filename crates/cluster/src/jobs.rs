//! The job files of the benchmarks.

use std::collections::BTreeSet;
use std::path::Path;

use fathom_jobfile::{Diagnostic, JobFile, Severity};
use fathom_model::value::{self, Base};

use super::size::in_job;
use super::{BenchWorkload, Parameters};

/// A phase of a benchmark: a job file that all servers run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchPhase {
    /// `seqwr`, `seqrd`, `prefill`, `randread-4k-16`.
    pub name: String,
    /// fio's job file.
    pub text: String,
    /// Caches are dropped before it.
    pub wants_cold_caches: bool,
    /// Bytes that each server has to have written when it ends, because later
    /// phases read them.
    pub lays_bytes: Option<u64>,
}

impl BenchPhase {
    /// A job file as it stands.
    pub fn of_job(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            wants_cold_caches: true,
            lays_bytes: None,
        }
    }
}

/// The phases of a benchmark in their order.
pub fn phases(workload: BenchWorkload, parameters: &Parameters) -> Vec<BenchPhase> {
    match workload {
        BenchWorkload::Seq => sequential(parameters),
        BenchWorkload::Rand => random(parameters),
        // Its phase is the job file itself.
        BenchWorkload::Job => Vec::new(),
    }
}

/// What is wrong with the jobs of a benchmark and of the load beside it, as
/// `fathom job check` finds it; asked before anything is made.
pub fn check(phases: &[BenchPhase], parameters: &Parameters) -> Vec<Diagnostic> {
    let calm = parameters.calm.iter();
    let calm = calm.flat_map(|calm| [("calm_prefill", calm.prefill()), ("calm", calm.job())]);
    let phases = phases.iter();
    let phases = phases.map(|phase| (phase.name.as_str(), phase.text.clone()));
    let found = phases.chain(calm).flat_map(|(name, text)| {
        let path = format!("{name}.fio");
        let checked = JobFile::parse(&text, Path::new(&path), &|_| None);
        checked.diagnostics
    });
    let wrong = |found: &Diagnostic| found.severity != Severity::Warning;
    found.filter(wrong).collect()
}

/// Names that more than one phase has: their files would be the same.
pub fn twice(phases: &[BenchPhase]) -> Vec<&str> {
    let mut names = BTreeSet::new();
    let again = phases.iter().filter(|phase| !names.insert(&phase.name));
    again.map(|phase| phase.name.as_str()).collect()
}

/// What the native engine does not take of the jobs of phases, each with its
/// place; asked before anything is made.
pub fn against_native(phases: &[BenchPhase]) -> Vec<String> {
    let of = |phase: &BenchPhase| {
        let path = format!("{}.fio", phase.name);
        let checked = JobFile::parse(&phase.text, Path::new(&path), &|_| None);
        let refused = fathom_engine_native::supports(&checked.file.jobs()).err();
        refused.unwrap_or_default()
    };
    let refused = phases.iter().flat_map(of);
    refused.map(|refused| refused.to_string()).collect()
}

/// The options that the files have in common: where they lie, and how large
/// they are.
fn files(parameters: &Parameters) -> String {
    format!(
        "directory=/dataset\nfilename_format=f.$jobnum.$filenum\nfilesize={}\nnumjobs={}\n",
        in_job(parameters.file_bytes),
        parameters.njobs
    )
}

/// What one server writes when it writes all files: whole blocks.
fn laid_bytes(parameters: &Parameters, bs: &str) -> u64 {
    let block = value::size(bs, Base::Binary).unwrap_or_default();
    // A block size that is none fails by itself.
    let block = u64::try_from(block).unwrap_or_default().max(1);
    parameters.file_bytes / block * block * u64::from(parameters.njobs)
}

fn sequential(parameters: &Parameters) -> Vec<BenchPhase> {
    let several = parameters.bs.len() > 1;
    let named = |name: &str, bs: &str| {
        if several {
            format!("{name}-{bs}")
        } else {
            name.to_owned()
        }
    };
    let phase = |name: &str, bs: &str, options: &str| BenchPhase {
        text: format!(
            "[{name}]\n{options}ioengine=sync\ndirect=0\nbs={bs}\n{}",
            files(parameters)
        ),
        wants_cold_caches: name == "seqrd",
        lays_bytes: (name == "seqwr").then(|| laid_bytes(parameters, bs)),
        name: named(name, bs),
    };
    let of = |bs: &String| {
        [
            phase("seqwr", bs, "rw=write\ncreate_on_open=1\nend_fsync=1\n"),
            phase("seqrd", bs, "rw=read\n"),
        ]
    };
    parameters.bs.iter().flat_map(of).collect()
}

/// Every combination, after everything has been written once: what was never
/// written is read without asking the storage.
fn random(parameters: &Parameters) -> Vec<BenchPhase> {
    let prefill = BenchPhase {
        name: "prefill".to_owned(),
        text: format!(
            "[prefill]\nrw=write\ncreate_on_open=1\nend_fsync=1\nioengine=libaio\ndirect=1\nbs=1m\niodepth=8\n{}",
            files(parameters)
        ),
        wants_cold_caches: false,
        lays_bytes: Some(laid_bytes(parameters, "1m")),
    };
    let mut phases = vec![prefill];
    for rw in &parameters.rw {
        for bs in &parameters.bs {
            for depth in &parameters.iodepth {
                for rate in &parameters.rate_iops {
                    phases.push(one_random(parameters, rw, bs, *depth, *rate));
                }
            }
        }
    }
    phases
}

fn one_random(parameters: &Parameters, rw: &str, bs: &str, depth: u32, rate: u32) -> BenchPhase {
    let (name, limit) = match rate {
        0 => (format!("{rw}-{bs}-{depth}"), String::new()),
        rate => (
            format!("{rw}-{bs}-{depth}-{rate}iops"),
            format!("rate_iops={rate}\n"),
        ),
    };
    let text = format!(
        "[{rw}]\nrw={rw}\nioengine=libaio\ndirect=1\nbs={bs}\niodepth={depth}\n{limit}time_based=1\nruntime={}\n{}",
        parameters.runtime_s,
        files(parameters)
    );
    BenchPhase {
        name,
        text,
        wants_cold_caches: true,
        lays_bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::*;

    #[test]
    fn every_combination_is_a_phase_behind_the_prefill() {
        let given = Given {
            bs: Some(vec!["4k".into(), "16k".into()]),
            rate_iops: Some(vec![0, 500]),
            ..Given::default()
        };
        let runs = given.runs(BenchWorkload::Rand, &Given::default()).unwrap();
        let phases = phases(BenchWorkload::Rand, &runs[0]);
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names.len(), 1 + 2 * 2 * 2);
        assert_eq!(
            names[..3],
            ["prefill", "randread-4k-16", "randread-4k-16-500iops"]
        );
        assert!(phases[2].text.contains("rate_iops=500\n"));
        assert_eq!(against_native(&phases), Vec::<String>::new());
        assert_eq!(phases[0].lays_bytes, Some(4 << 30));
        assert!(phases[1..].iter().all(|phase| phase.lays_bytes.is_none()));
    }
}
