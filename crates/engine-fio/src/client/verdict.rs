//! What became of a run on servers: each is judged by what it said and reported.

use fathom_fio_output::failures::{Evidence, FioEnd, judge};
use fathom_model::{Failure, FailureKind, Host, JobResult, Results};

use super::{ServerSet, ServerState};

/// The judgement.
#[derive(Debug, Default)]
pub struct ServersVerdict {
    /// What failed, alike failures of several servers as one.
    pub failures: Vec<Failure>,
    /// What is to know besides.
    pub notes: Vec<String>,
    /// What part each server had.
    pub hosts: Vec<Host>,
    /// Whether all servers that must have a whole part have one, without error.
    pub is_good: bool,
}

impl ServerSet {
    /// What became of servers of which too few were there to begin.
    pub fn given_up(&self) -> ServersVerdict {
        let mut verdict = ServersVerdict::default();
        for part in &self.parts {
            let mut host = part.host.clone();
            if let Some(failure) = &part.lost {
                host.lost = Some(failure.message.clone());
                verdict.failures.push(failure.clone());
            }
            verdict.hosts.push(host);
        }
        verdict.notes.extend(self.too_few_note());
        verdict
    }

    /// Said where `--min-clients` was; else every lost server says it.
    fn too_few_note(&self) -> Option<String> {
        let left = self.parts.iter().filter(|part| !part.is_lost()).count();
        let (all, least) = (self.parts.len(), self.least);
        (self.too_few && least < all).then(|| {
            format!("the run was given up: {left} of {all} servers were left, and {least} had to take part")
        })
    }

    /// Judges the run. `stopped`: it was told to end before its time; `expected`
    /// are the names of the jobs that each server must report, when known.
    pub fn verdict(
        &self,
        results: Option<&Results>,
        stopped: bool,
        expected: &[String],
    ) -> ServersVerdict {
        let verdict = self.judge_all(results, stopped || self.too_few, expected);
        match verdict.failures.is_empty() && self.too_few && !stopped {
            // Somebody has ended without a word.
            true => self.judge_all(results, false, expected),
            false => verdict,
        }
    }

    /// `stopped` takes silence for what it is then: nobody asked any more.
    fn judge_all(
        &self,
        results: Option<&Results>,
        stopped: bool,
        expected: &[String],
    ) -> ServersVerdict {
        let mut verdict = ServersVerdict::default();
        let mut told: Vec<(Failure, Vec<String>)> = Vec::new();
        let (mut whole, mut failed) = (0, false);
        for part in &self.parts {
            let jobs = jobs_of(part, results);
            let mut host = part.host.clone();
            let failures = match &part.lost {
                Some(failure) => {
                    host.lost = Some(failure.message.clone());
                    vec![failure.clone()]
                }
                None => {
                    let judged = judged(part, &jobs, stopped, expected);
                    verdict.notes.extend(judged.notes);
                    failed |= !judged.failures.is_empty();
                    judged.failures
                }
            };
            if failures.is_empty() && (stopped || !jobs.is_empty()) {
                whole += 1;
            }
            let name = part.address.to_string();
            for failure in failures {
                let subject = failure.subject.clone().filter(|subject| *subject != name);
                let failure = Failure { subject, ..failure };
                match told.iter_mut().find(|(other, _)| *other == failure) {
                    Some((_, names)) => names.push(name.clone()),
                    None => told.push((failure, vec![name.clone()])),
                }
            }
            verdict.hosts.push(host);
        }
        verdict.failures = told
            .into_iter()
            .map(|(f, names)| joined(f, &names))
            .collect();
        verdict.notes.dedup();
        verdict.is_good = !failed && whole >= self.least && !self.too_few;
        verdict.notes.extend(self.too_few_note());
        verdict
    }
}

/// The figures that a server reported.
fn jobs_of(part: &ServerState, results: Option<&Results>) -> Vec<JobResult> {
    let jobs = results.map_or(&[][..], |results| &results.jobs);
    let is_its = |job: &&JobResult| {
        job.hostname.as_deref() == Some(part.host.name.as_str()) && job.port == part.host.port
    };
    jobs.iter().filter(is_its).cloned().collect()
}

/// What the judge of fio's runs says of one server.
fn judged(
    part: &ServerState,
    jobs: &[JobResult],
    stopped: bool,
    expected: &[String],
) -> fathom_fio_output::failures::FailureVerdict {
    let results = Results {
        jobs: jobs.to_vec(),
        ..Results::default()
    };
    let all_came = part.reports.is_none_or(|n| jobs.len() >= n as usize);
    let mut verdict = judge(&Evidence {
        end: FioEnd::Exited(0),
        stopped,
        messages: &part.texts,
        results: (!jobs.is_empty()).then_some(&results),
        normal: "",
        cut: false,
        unreadable: None,
        expected,
    });
    if !stopped && !jobs.is_empty() && !all_came && verdict.failures.is_empty() {
        let wanted = part.reports.unwrap_or_default();
        let what = format!("{} of its {wanted} jobs reported", jobs.len());
        verdict
            .failures
            .push(Failure::new(FailureKind::JobsMissing, what));
    }
    let explained = !verdict.failures.is_empty() || jobs.iter().any(|job| job.error != 0);
    if let Some(errno) = part
        .ended
        .filter(|&errno| errno != 0 && !explained && !stopped)
    {
        let what = format!("its fio ended with error {errno}");
        verdict
            .failures
            .push(Failure::new(FailureKind::Other, what));
    }
    verdict.notes = verdict
        .notes
        .iter()
        .map(|note| format!("{}: {note}", part.address))
        .collect();
    verdict
}

/// One failure of all these servers.
fn joined(failure: Failure, names: &[String]) -> Failure {
    let place = match names {
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, others @ ..] => format!("{one} and {} more servers", others.len()),
        [] => return failure,
    };
    let subject = match &failure.subject {
        Some(job) => format!("{job} on {place}"),
        None => place,
    };
    failure.about(subject)
}
