//! The conditions of a plan file: which step each is about.

use fathom_campaign::error::meant;
use fathom_model::Direction;

use super::assertion::{Assertion, ParsedAssertion, parse};
use super::fields::StudyReader;
use super::jobs::PlannedJob;
use super::keys::measures;
use super::tree::TomlNode;
use super::{CheckedStep, StudyAction};

/// All conditions: those of the file, then those of each step.
pub(super) fn all(
    reading: &mut StudyReader,
    root: &TomlNode,
    steps: &[CheckedStep],
) -> Vec<Assertion> {
    let mut all = Vec::new();
    for item in root.get("assert").map_or(&[][..], TomlNode::items) {
        all.extend(one(reading, item, None, steps));
    }
    for step in steps.iter().filter(|step| measures(step.kind.key.name)) {
        let items = step.expanded.node.get("assert");
        for item in items.map_or(&[][..], TomlNode::items) {
            all.extend(one(reading, item, Some(step), steps));
        }
    }
    all
}

/// What a name means: a step, and a job of it.
struct NamedStep<'s, 'n> {
    step: &'s CheckedStep<'n>,
    /// What the record calls it: the step, or a part of it.
    path: String,
    job: Option<String>,
}

/// One condition; `within` is the step that it stands in.
fn one(
    reading: &mut StudyReader,
    item: &TomlNode,
    within: Option<&CheckedStep>,
    steps: &[CheckedStep],
) -> Option<Assertion> {
    let text = item.text()?;
    let read = parse(text, within.is_some());
    let read = read.and_then(|parsed| {
        let name = parsed.name.as_ref();
        let name = name.map(|(name, at)| (name.as_str(), *at));
        let named = match within {
            Some(step) => behind(step, name),
            None => find(name.unwrap_or_default(), steps),
        };
        named.map(|named| (parsed, named))
    });
    let read = read.and_then(|(parsed, named)| Ok((job(&parsed, &named)?, parsed, named)));
    match read {
        Ok((job, parsed, named)) => Some(Assertion {
            written: match within {
                Some(_) => format!("{}: {}", named.step.step.name, text.trim()),
                None => text.trim().to_owned(),
            },
            step: named.path,
            job,
            direction: parsed.direction.0,
            figure: parsed.figure,
            comparison: parsed.comparison,
            limit: parsed.limit,
        }),
        Err((offset, said)) => {
            reading.fault_in(&item.span, text, offset, &format!("assert: {said}"));
            None
        }
    }
}

/// What a name of the whole file means: a step, a part of one, or a job that has its
/// name alone.
fn find<'s, 'n>(
    (name, at): (&str, usize),
    steps: &'s [CheckedStep<'n>],
) -> Result<NamedStep<'s, 'n>, (usize, String)> {
    let (begin, rest) = match name.split_once('/') {
        Some((begin, rest)) => (begin, Some((rest, at + begin.len() + 1))),
        None => (name, None),
    };
    if let Some(step) = steps.iter().find(|step| step.step.name == begin) {
        return behind(step, rest);
    }
    let has = |step: &&CheckedStep| step.measures.jobs.iter().any(|job| job.name == name);
    let owners: Vec<&CheckedStep> = steps.iter().filter(has).collect();
    match owners.as_slice() {
        [step] => behind(step, Some((name, at))),
        [one, other, ..] => Err((
            at,
            format!(
                "several steps have a job {name}: write {}/{name} or {}/{name}",
                one.step.name, other.step.name
            ),
        )),
        [] => {
            let known = steps.iter().filter(|step| measures(step.kind.key.name));
            let near = meant(name, known.map(|step| step.step.name.as_str()));
            let hint = match (near.is_empty(), name.contains('.')) {
                (true, false) if steps.iter().any(|step| step.step.name.contains('.')) => {
                    "; put a name with dots in quotes"
                }
                _ => "",
            };
            Err((at, format!("there is no step {name}{near}{hint}")))
        }
    }
}

/// A step with what is named behind it.
fn behind<'s, 'n>(
    step: &'s CheckedStep<'n>,
    rest: Option<(&str, usize)>,
) -> Result<NamedStep<'s, 'n>, (usize, String)> {
    let name = &step.step.name;
    let mut named = NamedStep {
        step,
        path: name.clone(),
        job: None,
    };
    match (rest, &step.step.action) {
        (None, _) => {}
        (Some((rest, at)), StudyAction::Job(_)) => {
            let known = || step.measures.jobs.iter().map(|job| job.name.as_str());
            if !step.measures.jobs.is_empty() && !known().any(|job| job == rest) {
                let near = meant(rest, known());
                return Err((at, format!("{name} has no job {rest}{near}")));
            }
            named.job = Some(rest.to_owned());
        }
        (Some((rest, at)), _) => {
            let parts = &step.measures.parts;
            let is_it = |id: &String| {
                let behind = id.strip_prefix(rest);
                behind.is_some_and(|more| more.is_empty() || more.starts_with('/'))
            };
            if !parts.is_empty() && !parts.iter().any(is_it) {
                let series = parts.iter().flat_map(|id| {
                    let ends = id.match_indices('/').map(|(end, _)| end);
                    ends.chain([id.len()]).map(|end| &id[..end])
                });
                let near = meant(rest, series);
                return Err((at, format!("{name} has no point or series {rest}{near}")));
            }
            named.path = format!("{name}/{rest}");
        }
    }
    Ok(named)
}

/// Which job of the step it is about, and whether that has the direction.
fn job(parsed: &ParsedAssertion, named: &NamedStep) -> Result<Option<String>, (usize, String)> {
    let step = named.step;
    let name = &step.step.name;
    if !measures(step.kind.key.name) {
        let at = parsed.name.as_ref().map_or(0, |(_, at)| *at);
        let said = format!("{name} has no figures: its kind is {}", step.kind.key.name);
        return Err((at, said));
    }
    let (direction, at) = parsed.direction;
    let does = |job: &PlannedJob| match &job.directions {
        Some(all) => all.contains(&direction),
        None => true,
    };
    let asked = |job: &&PlannedJob| named.job.as_ref().is_none_or(|name| *name == job.name);
    let jobs: Vec<&PlannedJob> = step.measures.jobs.iter().filter(asked).collect();
    let doing: Vec<&str> = jobs
        .iter()
        .filter(|job| does(job))
        .map(|job| job.name.as_str())
        .collect();
    match doing.as_slice() {
        // Nothing is known of its jobs.
        [] if jobs.is_empty() => Ok(named.job.clone()),
        [] => Err((at, nothing(name, direction, &jobs))),
        [_] if step.measures.jobs.len() == 1 => Ok(None),
        [job] => Ok(Some((*job).to_owned())),
        several => {
            let ways: Vec<String> = several.iter().map(|job| format!("{name}/{job}")).collect();
            let said = format!(
                "{name} has several jobs: name one, as in {}",
                ways.join(" or ")
            );
            Err((parsed.name.as_ref().map_or(at, |(_, at)| *at), said))
        }
    }
}

/// That no job goes in a direction; and which one it is.
fn nothing(name: &str, direction: Direction, jobs: &[&PlannedJob]) -> String {
    let all = jobs
        .iter()
        .filter_map(|job| job.directions.as_deref())
        .flatten();
    let mut all: Vec<&str> = all
        .filter(|dir| **dir != Direction::Sync)
        .map(|dir| dir.name())
        .collect();
    all.sort_unstable();
    all.dedup();
    let all = all.join(" and ");
    let direction = direction.name();
    format!("{name} has no figures of {direction}, only of {all}")
}
