//! What an engine knows of its own run, taken from fio's document.

use fathom_fio_output::write::{FormatFacts, JobFacts, LatencyClasses};
use jiff::tz::TimeZone;
use serde_json::Value;

const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
const CLASSES: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

/// The facts of a document of fio in `time_zone`.
pub fn of(text: &str, time_zone: TimeZone) -> FormatFacts {
    let document: Value = serde_json::from_str(text).unwrap();
    let mut options = options_in(text, "job options").into_iter();
    let jobs = document["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| JobFacts {
            options: options.next().unwrap_or_default(),
            start_ms: job["job_start"].as_u64(),
            eta_s: job["eta"].as_u64(),
            elapsed_s: job["elapsed"].as_u64().unwrap(),
            runtime_sum_ms: job["job_runtime"].as_u64(),
            submit_percent: shares(&job["iodepth_submit"], BATCHES),
            complete_percent: shares(&job["iodepth_complete"], BATCHES),
            iodepth: job["latency_depth"]
                .as_u64()
                .unwrap_or(0)
                .try_into()
                .unwrap(),
            latency_classes: Some(classes(job)),
            ..JobFacts::default()
        });
    let jobs = jobs.collect();
    FormatFacts {
        time_zone,
        global_options: options_in(text, "global options").pop().unwrap_or_default(),
        jobs,
        ..FormatFacts::default()
    }
}

/// The latency classes of a job in fio's document.
pub fn classes(job: &Value) -> LatencyClasses {
    let small: [&str; 10] = std::array::from_fn(|at| CLASSES[at]);
    LatencyClasses {
        ns: shares(&job["latency_ns"], small),
        us: shares(&job["latency_us"], small),
        ms: shares(&job["latency_ms"], CLASSES),
    }
}

fn shares<const N: usize>(value: &Value, names: [&str; N]) -> [f64; N] {
    names.map(|name| value[name].as_f64().unwrap())
}

/// The members of each object of this name, in the order of the text.
fn options_in(text: &str, name: &str) -> Vec<Vec<(String, String)>> {
    let mut found = Vec::new();
    let begin = format!("\"{name}\" : {{");
    let mut lines = text.lines().map(str::trim);
    while lines.any(|line| line == begin) {
        let members = lines.by_ref().take_while(|line| !line.starts_with('}'));
        found.push(members.map(member).collect());
    }
    found
}

fn member(line: &str) -> (String, String) {
    let object = format!("{{{}}}", line.trim_end_matches(','));
    let value: Value = serde_json::from_str(&object).unwrap();
    let (name, value) = value.as_object().unwrap().iter().next().unwrap();
    (name.clone(), value.as_str().unwrap().to_owned())
}
