//! The job files of the benchmarks.

use super::{Parameters, Workload};

/// A phase of a benchmark: a job file that all servers run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// `seqwr`, `seqrd`, `prefill`, `randread-4k-16`.
    pub name: String,
    /// fio's job file.
    pub text: String,
    /// Caches are dropped before it.
    pub wants_cold_caches: bool,
}

impl Phase {
    /// A job file as it stands.
    #[must_use]
    pub fn of_job(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            wants_cold_caches: true,
        }
    }
}

/// The phases of a benchmark in their order.
#[must_use]
pub fn phases(workload: Workload, parameters: &Parameters) -> Vec<Phase> {
    match workload {
        Workload::Seq => sequential(parameters),
        Workload::Rand => random(parameters),
    }
}

/// The options that the files have in common: where they lie, and how large
/// they are.
fn files(parameters: &Parameters) -> String {
    format!(
        "directory=/dataset\nfilename_format=f.$jobnum.$filenum\nfilesize={}g\nnumjobs={}\n",
        parameters.file_bytes >> 30,
        parameters.njobs
    )
}

fn sequential(parameters: &Parameters) -> Vec<Phase> {
    let several = parameters.bs.len() > 1;
    let named = |name: &str, bs: &str| {
        if several {
            format!("{name}-{bs}")
        } else {
            name.to_owned()
        }
    };
    let phase = |name: &str, bs: &str, options: &str| Phase {
        text: format!(
            "[{name}]\n{options}ioengine=sync\ndirect=0\nbs={bs}\n{}",
            files(parameters)
        ),
        wants_cold_caches: name == "seqrd",
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
fn random(parameters: &Parameters) -> Vec<Phase> {
    let prefill = Phase {
        name: "prefill".to_owned(),
        text: format!(
            "[prefill]\nrw=write\ncreate_on_open=1\nend_fsync=1\nioengine=libaio\ndirect=1\nbs=1m\niodepth=8\n{}",
            files(parameters)
        ),
        wants_cold_caches: false,
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

fn one_random(parameters: &Parameters, rw: &str, bs: &str, depth: u32, rate: u32) -> Phase {
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
    Phase {
        name,
        text,
        wants_cold_caches: true,
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
        let runs = given.runs(Workload::Rand, &Given::default()).unwrap();
        let phases = phases(Workload::Rand, &runs[0]);
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names.len(), 1 + 2 * 2 * 2);
        assert_eq!(
            names[..3],
            ["prefill", "randread-4k-16", "randread-4k-16-500iops"]
        );
        assert!(phases[2].text.contains("rate_iops=500\n"));
    }
}
