//! elbencho: `--csvfile` (a head, then a row for each phase) and `--jsonfile` (an object
//! for each phase, with the same names).

use std::collections::BTreeMap;

use fathom_model::{DirectionResult, JobResult, Latency, Results, text};
use serde_json::{Deserializer, Value};

use super::{ForeignError, ForeignTool, LOADS_MAX, ToldRates, figure, load, options};

const TOOL: ForeignTool = ForeignTool::Elbencho;

/// A phase by the names of elbencho's columns.
type Phase = BTreeMap<String, String>;

pub(super) fn read(text: &str) -> Result<Vec<Results>, ForeignError> {
    if text.trim_start().starts_with(['{', '[']) {
        return json(text);
    }
    csv(text)
}

fn at(line: usize, column: usize, what: impl Into<String>) -> ForeignError {
    let what = what.into();
    ForeignError::At {
        tool: TOOL,
        line,
        column,
        what,
    }
}

fn csv(text: &str) -> Result<Vec<Results>, ForeignError> {
    let mut head: Vec<&str> = Vec::new();
    let mut loads = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        // Elsewhere than in a label there are no commas, and elbencho quotes none.
        let fields: Vec<&str> = line
            .split(',')
            .map(|field| field.trim().trim_matches('"'))
            .collect();
        if line.trim().is_empty() {
            continue;
        }
        // A file that was written to again has its head again.
        if fields.contains(&"operation") && fields.contains(&"IOPS [last]") {
            head.clone_from(&fields);
            continue;
        }
        if fields.len() < head.len() || head.is_empty() {
            let what = format!("{} fields where the head has {}", fields.len(), head.len());
            return Err(at(number, line.chars().count().max(1), what));
        }
        // A label with commas: what is too much belongs to it.
        let more = fields.len() - head.len();
        let label = head.iter().position(|name| *name == "label");
        let field = |place: usize| match label {
            Some(label) if place > label => fields[place + more],
            _ => fields[place],
        };
        let named = head.iter().enumerate();
        let phase: Phase = named
            .map(|(place, name)| ((*name).to_owned(), field(place).to_owned()))
            .collect();
        loads.extend(load_of(&phase).map_err(|what| at(number, 1, what))?);
        if loads.len() > LOADS_MAX {
            return Err(ForeignError::TooLarge { tool: TOOL });
        }
    }
    Ok(loads)
}

fn json(text: &str) -> Result<Vec<Results>, ForeignError> {
    let mut loads = Vec::new();
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        let document =
            document.map_err(|error| at(error.line(), error.column(), error.to_string()))?;
        let phases = match document {
            Value::Array(phases) => phases,
            one => vec![one],
        };
        for phase in phases {
            let Value::Object(fields) = phase else {
                return Err(at(1, 1, "a phase is an object"));
            };
            let word = |value: Value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let phase: Phase = fields
                .into_iter()
                .map(|(name, value)| (name, word(value)))
                .collect();
            loads.extend(load_of(&phase).map_err(|what| at(1, 1, what))?);
        }
        if loads.len() > LOADS_MAX {
            return Err(ForeignError::TooLarge { tool: TOOL });
        }
    }
    Ok(loads)
}

/// A label as the name of a step, of which its own parts are none.
fn label(told: &str) -> String {
    text::line(told)
        .replace('/', "-")
        .chars()
        .take(80)
        .collect()
}

/// The load of a phase; `None` of one that moves no data.
fn load_of(phase: &Phase) -> Result<Option<Results>, String> {
    let text = |name: &str| {
        phase
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    };
    let number = |name: &str| match text(name) {
        None => Ok(None),
        Some(text) => figure(text)
            .map(Some)
            .ok_or_else(|| format!("{name}: '{text}' is no figure")),
    };
    let operation = text("operation").unwrap_or_default();
    // RWMIX50 is a write with reads in between, told together.
    let is_read = operation.eq_ignore_ascii_case("READ");
    let is_write = operation.eq_ignore_ascii_case("WRITE");
    let (Some(iops), true) = (number("IOPS [last]")?, is_read || is_write) else {
        return Ok(None);
    };
    let ns = |us: Option<f64>| us.unwrap_or(0.0) * 1000.0;
    let mean_ns = ns(number("IO lat us [avg]")?);
    let clat = Latency {
        min_ns: ns(number("IO lat us [min]")?) as u64,
        max_ns: ns(number("IO lat us [max]")?) as u64,
        mean_ns,
        ..Latency::default()
    };
    let result: DirectionResult = ToldRates {
        iops,
        bw_bytes: number("MiB/s [last]")?.unwrap_or(0.0) * f64::from(1 << 20),
        runtime_ms: number("time ms [last]")?,
        clat: Some(clat),
    }
    .result();
    let whole = |name: &str| {
        text(name)
            .filter(|text| text.parse::<u64>().is_ok())
            .map(str::to_owned)
    };
    let random = text("random").is_some_and(|text| text == "1");
    let pattern = match (random, is_read) {
        (false, true) => "read",
        (false, false) => "write",
        (true, true) => "randread",
        (true, false) => "randwrite",
    };
    let job = JobResult {
        name: text("label").map_or_else(|| operation.to_lowercase(), label),
        options: options([
            ("rw", Some(pattern.to_owned())),
            ("bs", whole("block size")),
            ("iodepth", whole("IO depth")),
            ("numjobs", whole("threads")),
            ("direct", whole("direct IO")),
            ("nrfiles", whole("files").filter(|files| files != "0")),
        ]),
        runtime_ms: number("time ms [last]")?.map(|ms| ms as u64),
        read: is_read.then(|| result.clone()),
        write: is_write.then_some(result),
        ..JobResult::default()
    };
    Ok(Some(load("elbencho", job)))
}
