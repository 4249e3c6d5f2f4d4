//! Whether the figures of a run are true.
//!
//! Every rule is a pure function of a [`JudgedFigure`], in a file of its own with its
//! threshold and where that comes from. A rule that lacks its facts (options not
//! reported, no counters) says nothing: valid means that no reason was found, not that
//! there is none.

mod across;
pub mod course;
mod figure;
pub mod limit;
mod rules;
#[cfg(test)]
mod tests;

use fathom_model::{FigureVerdict, JobResult, ReasonKind, RunDocument, RunStatus, VerdictReason};

pub use figure::{DISK_FIGURES_MS, FigureReason, JudgedFigure};

use crate::step_evidence::StepEvidence;
use crate::{hosts, volumes};

/// Gives every figure of a run its verdict, and the run one.
pub fn judge(doc: &mut RunDocument, steps: &[StepEvidence]) {
    let found = reasons(doc, steps);
    let is_running = doc.status == RunStatus::Running;
    for job in &mut doc.jobs {
        let all = [&mut job.read, &mut job.write, &mut job.trim, &mut job.mixed];
        for result in all.into_iter().flatten() {
            let told = std::mem::take(&mut result.told);
            if result.total_ios == 0 && told.is_empty() {
                continue;
            }
            let verdict = result.verdict.get_or_insert_default();
            told.into_iter()
                .for_each(|kind| verdict.add(of_told(kind, is_running)));
        }
    }
    for found in found {
        let place = doc
            .jobs
            .get_mut(found.job)
            .and_then(|job| job.direction_mut(found.dir)?.as_mut());
        if let Some(result) = place {
            result.verdict.get_or_insert_default().add(found.reason);
        }
    }
    doc.verdict = of_run(&results(doc));
    if doc.command == QUICK
        && let Some(verdict) = &mut doc.verdict
    {
        verdict.without(&QUICK_BY_DESIGN);
    }
}

/// The series that goes through the page cache on purpose: it shows what a program without
/// tuning gets.
const QUICK: &str = "quick";
/// What is marked at its rows, and says nothing against the series.
const QUICK_BY_DESIGN: [ReasonKind; 2] = [ReasonKind::CachedReads, ReasonKind::UnsyncedWrites];

/// What the engine told. Figures of a run that goes on are counted so far, which speaks
/// against none of them.
fn of_told(kind: ReasonKind, is_running: bool) -> VerdictReason {
    match kind {
        ReasonKind::FromSamples if is_running => {
            let text = "counted so far: the run has not ended".to_owned();
            VerdictReason::found(kind, text, []).noted()
        }
        _ => VerdictReason::of(kind),
    }
}

/// The verdict on all figures together: each reason once, as the first figure has it.
/// `None` where there are no figures.
pub fn of_run(jobs: &[&JobResult]) -> Option<FigureVerdict> {
    let results = jobs.iter().flat_map(|job| job.directions());
    let verdicts = results.filter_map(|(_, result)| result.verdict.as_ref());
    let mut all: Option<FigureVerdict> = None;
    for verdict in verdicts {
        let all = all.get_or_insert_default();
        verdict
            .reasons
            .iter()
            .for_each(|reason| all.add(reason.clone()));
    }
    all
}

/// The jobs whose figures are results: not those that made a device ready.
pub fn results(doc: &RunDocument) -> Vec<&JobResult> {
    let prepares = |job: &&JobResult| {
        job.step
            .as_ref()
            .is_some_and(|step| doc.preparations.contains(step))
    };
    doc.jobs.iter().filter(|job| !prepares(job)).collect()
}

/// Every reason that there is about the figures of a run.
pub fn reasons(doc: &RunDocument, steps: &[StepEvidence]) -> Vec<FigureReason> {
    let mut found = Vec::new();
    for (place, job) in doc.jobs.iter().enumerate() {
        let step = steps.iter().find(|step| step.step == job.step);
        for (dir, _) in job.directions().filter(|(_, result)| result.total_ios > 0) {
            let Some(figure) = JudgedFigure::of(doc, place, dir, step) else {
                continue;
            };
            let holding = rules::ALL.iter().filter_map(|rule| rule(&figure));
            found.extend(holding.map(|reason| FigureReason {
                job: place,
                dir,
                reason,
            }));
        }
    }
    found.extend(volumes::reasons(doc));
    for (place, total) in doc.jobs.iter().enumerate() {
        if total.clients.is_some() {
            across::of_total(doc, place, total, &mut found);
        }
    }
    found
}

/// One sentence for each kind of reason against any figure, in the order of
/// [`ReasonKind::ALL`]: where it holds and what it means.
pub fn sentences(jobs: &[JobResult]) -> Vec<(ReasonKind, String)> {
    let carried = |job: &JobResult, kind| job.directions().any(|(_, result)| result.is(kind));
    let all = ReasonKind::ALL.iter().copied();
    all.filter_map(|kind| {
        let carrying: Vec<&JobResult> = jobs.iter().filter(|job| carried(job, kind)).collect();
        let told = match kind {
            ReasonKind::SlowHost => across::slow(&carrying),
            ReasonKind::Apart => across::apart(&carrying),
            _ => None,
        };
        let place = told.or_else(|| place(&carrying, jobs.len()))?;
        Some((kind, format!("{place}: {}", meaning(kind, &carrying))))
    })
    .collect()
}

/// What a reason means, with the numbers where one figure alone has it.
fn meaning(kind: ReasonKind, carrying: &[&JobResult]) -> String {
    let results = carrying.iter().flat_map(|job| job.directions());
    let verdicts = results.filter_map(|(_, result)| result.verdict.as_ref());
    let mut its = verdicts.flat_map(|verdict| verdict.reasons.iter().filter(|it| it.kind == kind));
    match (its.next(), its.next()) {
        (Some(one), None) => format!("{}; {}", one.sentence, one.to_do),
        _ => kind.meaning().to_owned(),
    }
}

/// Which of so many jobs these are.
fn place(carrying: &[&JobResult], of: usize) -> Option<String> {
    let names: Vec<&str> = carrying.iter().map(|job| job.name.as_str()).collect();
    Some(match names[..] {
        [] => return None,
        _ if names.len() == of && of > 1 => "all jobs".to_owned(),
        [name] => name.to_owned(),
        // The same job on several hosts.
        [first, ..] if names.iter().all(|name| *name == first) => first.to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, ..] => format!("{first} and {} more jobs", names.len() - 1),
    })
}

/// The label of the machine that ran a job; `None`: this one.
fn machine_of(job: &JobResult) -> Option<String> {
    hosts::label_of(job)
}
