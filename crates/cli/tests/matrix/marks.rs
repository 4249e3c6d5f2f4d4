//! What a run leaves by which the effect of an option is seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use super::kinds::Place;

/// What an option did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Another record.
    InRecord,
    /// Files, an exit code, another form of what is printed.
    Beside,
    /// It was refused by its name.
    Refused,
    None,
}

/// What a run has left.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    pub code: Option<i32>,
    /// Name, tags and facts, the plan, and what happened, without times.
    pub record: BTreeSet<String>,
    /// Names of files beside the record.
    files: BTreeSet<PathBuf>,
    is_json: bool,
    has_colours: bool,
}

impl Marks {
    pub fn of(place: &Place, output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout);
        let record = place.records().pop();
        Self {
            code: output.status.code(),
            record: record.map(|record| told(&record)).unwrap_or_default(),
            files: place.files(),
            is_json: serde_json::from_str::<Value>(&text).is_ok(),
            has_colours: text.contains('\u{1b}'),
        }
    }

    /// What an option did, by the marks of a run without it.
    pub fn against(&self, without: &Self, option: &str, output: &Output) -> Effect {
        let told = String::from_utf8_lossy(&output.stderr);
        // That would say nothing of the option.
        assert!(!told.contains("invalid value"), "--{option}: {told}");
        let is_refused = matches!(self.code, Some(2..=5)) && self.record.is_empty();
        match self {
            _ if is_refused && told.contains(option) => Effect::Refused,
            _ if self.record != without.record => Effect::InRecord,
            _ if self != without => Effect::Beside,
            _ => Effect::None,
        }
    }
}

/// What a record says but for times and names.
fn told(record: &Path) -> BTreeSet<String> {
    let lines = |name: &str| {
        let text = fs::read_to_string(record.join(name)).unwrap_or_default();
        let lines = text.lines().flat_map(serde_json::from_str::<Value>);
        lines.collect::<Vec<_>>()
    };
    let (mut all, mut is_simulated) = (Vec::new(), false);
    for mut line in lines("events.jsonl") {
        let what = line["event"].as_str().unwrap_or_default().to_owned();
        match &*what {
            // The header.
            "" => {
                is_simulated = line["name"].to_string().contains("(simulated)");
                line["facts"]["command"].take();
                // It has the time in its name.
                line["facts"]["provision"]["batch"].take();
                for field in ["started_ms", "check", "environment", "variables"] {
                    line[field].take();
                }
            }
            "step" | "stage" | "skipped" => {
                // A stop adds to their number.
                for field in ["at_ms", "check", "step", "of"] {
                    line[field].take();
                }
            }
            "stage_ended" => line = json!([line["id"], line["end"]]),
            "engine_started" => line = line["engine"].take(),
            "step_ended" | "ended" => line = line["outcome"].take(),
            "finished" => line = figures(&line, is_simulated),
            // Those of a real step are as long as chance has it.
            "sample" if is_simulated => line = json!({"span": line["span_ms"]}),
            _ => continue,
        }
        all.push(line);
    }
    // What was asked for is kept in the first line, be it of effect or not.
    let jobs = fs::read_dir(record.join("jobs"))
        .into_iter()
        .flatten()
        .flatten();
    all.extend(jobs.map(|job| json!(fs::read_to_string(job.path()).unwrap_or_default())));
    // What stages would have taken is known of those that are left only.
    let is_step = |line: &Value| line.get("stage").is_none();
    let steps = lines("plan.jsonl").into_iter().skip(1).filter(is_step);
    let mut steps = steps.collect();
    all.append(&mut steps);
    all.iter_mut().for_each(leave_place);
    // The record lists every attempt of a step: a set has each once.
    all.iter().map(Value::to_string).collect()
}

/// The jobs of a step, and what a simulated device did, which is the same each time.
fn figures(finished: &Value, is_simulated: bool) -> Value {
    let jobs = finished["results"]["jobs"].as_array().into_iter().flatten();
    let told = jobs.map(|job| match is_simulated {
        true => json!([
            job["name"],
            job["read"]["total_ios"],
            job["write"]["total_ios"]
        ]),
        false => job["name"].clone(),
    });
    told.collect()
}

/// Folders of tests have other names each time.
fn leave_place(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("fathom-test-") => *value = Value::Null,
        Value::Array(all) => all.iter_mut().for_each(leave_place),
        Value::Object(all) => all.values_mut().for_each(leave_place),
        _ => {}
    }
}

/// Leaves half of what a record says to have happened.
pub fn cut(record: &Path) {
    let path = record.join("events.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    // Without the first line there is no record.
    let from = log.find('\n').unwrap() + 1;
    fs::write(&path, &log[..from + (log.len() - from) / 2]).unwrap();
    // A purge keeps what came of it beside its log.
    let _ = fs::remove_file(record.join("purge.json"));
}
