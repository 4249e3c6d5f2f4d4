//! What differs between two sides but their figures: machines, devices, options.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{JobResult, RunDocument};
use serde::Serialize;
use serde_json::Value;

use super::ComparedRun;

/// What every run has another value of, and what says nothing of the storage.
const VOLATILE: [&str; 3] = ["free_bytes", "fathom_version", "options.runtime"];

/// One thing in which the sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CompareDifference {
    /// What: `kernel`, `targets.0.device.scheduler`, `mix: iodepth`.
    pub what: String,
    /// As the one side has it; several where its runs differ. Empty: it has it not.
    pub a: Vec<String>,
    /// As the other side has it.
    pub b: Vec<String>,
}

/// What differs between machines, devices and engines.
pub(crate) fn between(a: &[ComparedRun], b: &[ComparedRun]) -> Vec<CompareDifference> {
    let facts = |runs: &[ComparedRun]| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (what, value) in runs.iter().flat_map(|run| facts(&run.doc)) {
            all.entry(what).or_default().insert(value);
        }
        all
    };
    differing(facts(a), facts(b))
}

fn differing(
    a: BTreeMap<String, BTreeSet<String>>,
    b: BTreeMap<String, BTreeSet<String>>,
) -> Vec<CompareDifference> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let of = |side: &BTreeMap<String, BTreeSet<String>>, what: &str| -> Vec<String> {
        side.get(what).into_iter().flatten().cloned().collect()
    };
    (names.into_iter())
        .filter(|what| a.get(*what) != b.get(*what))
        .map(|what| CompareDifference {
            what: what.clone(),
            a: of(&a, what),
            b: of(&b, what),
        })
        .collect()
}

/// Options of a job in which the sides differ.
pub(super) fn options_between(name: &str, a: &JobResult, b: &JobResult) -> Vec<CompareDifference> {
    let options = |job: &JobResult| {
        let each = job.options.iter();
        each.map(|(option, value)| (format!("{name}: {option}"), BTreeSet::from([value.clone()])))
            .collect()
    };
    differing(options(a), options(b))
}

/// Whether two runs are of the same kind: the same jobs with the same options, on the
/// same machine and device with the same settings.
pub fn is_alike(a: &RunDocument, b: &RunDocument) -> bool {
    let jobs = |doc: &RunDocument| -> Vec<_> {
        let each = doc.jobs.iter();
        each.map(|job| (job.step.clone(), job.name.clone(), job.options.clone()))
            .collect()
    };
    a.environment.is_some() && facts(a) == facts(b) && jobs(a) == jobs(b)
}

/// Machine, devices and engine of a run, by name.
fn facts(doc: &RunDocument) -> Vec<(String, String)> {
    let mut all = vec![("engine".to_owned(), doc.engine.clone())];
    all.extend(
        doc.engine_version
            .clone()
            .map(|version| ("engine_version".to_owned(), version)),
    );
    let environment = serde_json::to_value(&doc.environment).unwrap_or_default();
    flatten("", &environment, &mut all);
    all.retain(|(what, _)| !VOLATILE.iter().any(|name| what.ends_with(name)));
    all
}

fn flatten(path: &str, value: &Value, all: &mut Vec<(String, String)>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, value)| flatten(&below(name), value, all));
        }
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.for_each(|(n, value)| flatten(&below(&n.to_string()), value, all));
        }
        Value::Null => {}
        Value::String(text) => all.push((path.to_owned(), text.clone())),
        other => all.push((path.to_owned(), other.to_string())),
    }
}
