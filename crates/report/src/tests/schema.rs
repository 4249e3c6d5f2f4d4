//! Documents are held against docs/run.schema.json.

use serde_json::Value;

use fathom_model::{Certainty, RateCertainty};

use super::*;

/// Whether `value` is what `schema` says; else where and what is wrong. Knows
/// the keywords that the schema uses, and refuses others: a rule that is not
/// checked would be worth nothing.
fn check(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    let rules = schema.as_object().unwrap();
    let wrong = |why: String| Err(format!("{at}: {why}"));
    for (rule, said) in rules {
        match rule.as_str() {
            "$ref" => {
                let path = said.as_str().unwrap().strip_prefix('#').unwrap();
                check(root.pointer(path).unwrap(), root, value, at)?;
            }
            "type" if !is(value, said.as_str().unwrap()) => {
                return wrong(format!("{value} is no {said}"));
            }
            "const" if value != said => return wrong(format!("{value} is not {said}")),
            "enum" if !said.as_array().unwrap().contains(value) => {
                return wrong(format!("{value} is not one of {said}"));
            }
            "minimum" if value.as_f64() < said.as_f64() => {
                return wrong(format!("{value} is below {said}"));
            }
            "oneOf" => {
                let fits = said.as_array().unwrap().iter();
                let errors: Vec<_> = fits.map(|s| check(s, root, value, at)).collect();
                if errors.iter().filter(|result| result.is_ok()).count() != 1 {
                    return wrong(format!("not one of several: {errors:?}"));
                }
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(said, root, item, &format!("{at}[{place}]"))?;
                }
            }
            "required" => {
                for name in said.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return wrong(format!("{name} is missing"));
                    }
                }
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    field_of(rules, root, name, field, &format!("{at}.{name}"))?;
                }
            }
            "type" | "const" | "enum" | "minimum" => {}
            "$schema" | "$defs" | "title" | "description" => {}
            other => return wrong(format!("keyword {other} is not known to this test")),
        }
    }
    Ok(())
}

fn field_of(
    rules: &serde_json::Map<String, Value>,
    root: &Value,
    name: &str,
    field: &Value,
    at: &str,
) -> Result<(), String> {
    let named = rules.get("properties").and_then(|all| all.get(name));
    // The only pattern is that of percentiles.
    let percent = name.parse::<f64>().is_ok();
    let pattern = rules.get("patternProperties").filter(|_| percent);
    let pattern = pattern.and_then(|all| all.as_object()?.values().next());
    match named.or(pattern).or(rules.get("additionalProperties")) {
        Some(Value::Bool(false)) => Err(format!("{at} is not in the schema")),
        Some(schema) => check(schema, root, field, at),
        None => Ok(()),
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("type {other}"),
    }
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/run.schema.json")).unwrap()
}

fn valid(doc: &RunDocument) -> Result<(), String> {
    let schema = schema();
    check(&schema, &schema, &serde_json::to_value(doc).unwrap(), "")
}

#[test]
fn documents_keep_to_the_schema() {
    let mut job = reader("r");
    job.sync = job.read.as_ref().unwrap().clat.clone();
    job.iodepth_percent = vec![(">=64".into(), 100.0)];
    let mut unified = reader("unified");
    unified.mixed = unified.read.take();
    (unified.write, unified.trim) = (None, None);
    let failure = fathom_model::Failure::new(fathom_model::FailureKind::Io, "a read failed");
    let complete = vec![
        step(1, 2, "one"),
        started(),
        Event::Failure(failure.about("r").with_errno(5)),
        finished(vec![job, unified, JobResult::default()], vec![disk(1)]),
        step(2, 2, "two"),
        jobs(&["killed"]),
        sample(1000, 0, Direction::Write, 5, 1000),
    ];
    let mut doc = document_of(RunStatus::Failed, complete);
    valid(&doc).unwrap();
    // And with everything that is seldom there.
    doc.jobs[0].port = Some(8765);
    doc.disks[0].host = Some("h".into());
    doc.jobs[0].read.as_mut().unwrap().doubts = fathom_model::Doubt::ALL.to_vec();
    let device = &mut doc.environment.as_mut().unwrap().targets[0].device;
    device.as_mut().unwrap().partition = Some(Partition::default());
    let interval = Certainty::Interval {
        low: 1.0,
        high: 2.0,
        independent: 40.0,
    };
    let shift = Certainty::LevelShift {
        at_ms: 1000,
        from: 1.0,
        to: 2.0,
    };
    let read = doc.jobs[0].read.as_mut().unwrap();
    read.certainty = Some(RateCertainty {
        intervals: 60,
        iops: interval,
        bw_bytes: shift,
    });
    let clat = doc.jobs[0].read.as_mut().unwrap().clat.as_mut().unwrap();
    clat.histogram = Some(Histogram::new());
    valid(&doc).unwrap();
}

#[test]
fn the_check_finds_what_is_wrong() {
    let schema = schema();
    let whole = serde_json::to_value(document_of(
        RunStatus::Complete,
        vec![finished(vec![reader("r")], Vec::new())],
    ))
    .unwrap();
    let broken = |change: fn(&mut Value)| {
        let mut value = whole.clone();
        change(&mut value);
        check(&schema, &schema, &value, "").unwrap_err()
    };
    assert!(broken(|v| v["status"] = "done".into()).contains(".status"));
    assert!(broken(|v| v["surprise"] = 1.into()).contains(".surprise is not in the schema"));
    assert!(broken(|v| v["jobs"][0]["read"]["iops"] = Value::Null).contains(".jobs[0].read"));
    assert!(broken(|v| v["jobs"][0]["name"] = 1.into()).contains(".jobs[0].name"));
    assert!(broken(|v| drop(v.as_object_mut().unwrap().remove("id"))).contains("missing"));
}
