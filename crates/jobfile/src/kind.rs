//! Whether a value is one its option takes.

use super::diagnostic::Severity;
use super::table::{Spec, ValueKind, nearest};
use fathom_model::io_engine::{IO_ENGINES, io_engine};
use fathom_model::value::{self, Amount, BareTimeUnit, Base, ValueFault};

/// Something about a value.
pub struct ValueFinding {
    pub severity: Severity,
    pub fault: ValueFault,
}

fn error(fault: ValueFault) -> ValueFinding {
    ValueFinding {
        severity: Severity::Error,
        fault,
    }
}

fn warning(fault: ValueFault) -> ValueFinding {
    ValueFinding {
        severity: Severity::Warning,
        fault,
    }
}

/// The engine's name: `external:PATH` and parameters cut off, quotes too.
pub fn engine_name(value: &str) -> &str {
    let value = value.trim().trim_matches('"');
    value.split(':').next().unwrap_or(value)
}

/// What is wrong with the value of an option.
pub fn check(spec: &Spec, name: &str, value: Option<&str>, base: Base) -> Vec<ValueFinding> {
    let Some(value) = value else {
        return missing(spec, name).into_iter().collect();
    };
    if value.trim().is_empty() && !spec.has("optional") {
        let message = match spec.kind {
            ValueKind::Flag => format!("{name} takes no value; leave out the ="),
            _ => format!("{name} needs a value"),
        };
        return vec![error(ValueFault::new(0, 0, message))];
    }
    if value.trim_start().starts_with('(') && matches!(spec.kind, ValueKind::Int | ValueKind::Time)
    {
        let message =
            "an expression: only a fio built with its arithmetic takes it (Debian's is not)";
        return vec![warning(ValueFault::new(0, 0, message))];
    }
    let checked = match spec.kind {
        ValueKind::Text => Ok(()),
        ValueKind::Flag | ValueKind::Bool => switch(spec, name, value),
        ValueKind::Int => list(spec, name, value, &|part| int(spec, name, part, base)),
        ValueKind::Time => list(spec, name, value, &|part| time(spec, part)),
        ValueKind::Floats => floats(spec, value),
        ValueKind::Range => value::triple(value, |part| range(spec, part, base)).map(|_| ()),
        ValueKind::Choice => return choice(spec, name, value),
        ValueKind::BsSplit => value::bssplit(value, base).map(|_| ()),
        ValueKind::Cpus => cpus(value),
        ValueKind::Engine => return engine(value).into_iter().map(warning).collect(),
        ValueKind::Deprecated => {
            let message = format!("{name} is no longer an option of fio");
            return vec![warning(ValueFault::new(0, 0, message))];
        }
    };
    match checked {
        Err(fault) => vec![error(fault)],
        Ok(()) if spec.kind == ValueKind::Int => surprises(value, base),
        Ok(()) => Vec::new(),
    }
}

fn missing(spec: &Spec, name: &str) -> Option<ValueFinding> {
    let fault = ValueFault::new(0, 0, format!("{name} needs a value"));
    match spec.kind {
        ValueKind::Flag => None,
        _ if spec.has("optional") => None,
        ValueKind::Bool => Some(error(fault.instead(format!("{name}=1")))),
        ValueKind::Choice => Some(error(ValueFault::new(
            0,
            0,
            format!("{name} needs a value: {}", words(spec)),
        ))),
        _ => Some(error(fault)),
    }
}

fn switch(spec: &Spec, name: &str, value: &str) -> Result<(), ValueFault> {
    if matches!(value::size(value, Base::Binary), Ok(0 | 1)) {
        return Ok(());
    }
    let form = match spec.kind {
        ValueKind::Flag => "no value, or 0 or 1",
        _ => "0 or 1",
    };
    let fault = ValueFault::new(0, 0, format!("{name} takes {form}"));
    Err(match value.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "y" => fault.instead("1"),
        "no" | "false" | "off" | "n" => fault.instead("0"),
        _ => fault,
    })
}

/// One value, or as many as the option takes.
fn list(
    spec: &Spec,
    name: &str,
    value: &str,
    parse: &dyn Fn(&str) -> Result<i64, ValueFault>,
) -> Result<(), ValueFault> {
    if spec.has("triple") {
        if let (false, Some(at)) = (value.contains(','), value.find([':', '-']))
            && at > 0
            && value[at + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            let fault = ValueFault::new(
                0,
                0,
                format!("{name} takes read,write,trim values, not a range"),
            );
            return Err(if spec.name == "bs" {
                fault.instead(format!("bsrange={value}"))
            } else {
                fault
            });
        }
        return value::triple(value, parse).map(|_| ());
    }
    if spec.has("pair") && value.trim_start_matches('-').contains(['-', ':']) {
        return value::range(value, parse).map(|_| ());
    }
    if let Some(at) = value.find(',') {
        return Err(ValueFault::new(
            at,
            0,
            format!("{name} takes a single value"),
        ));
    }
    parse(value).map(|_| ())
}

fn int(spec: &Spec, name: &str, text: &str, base: Base) -> Result<i64, ValueFault> {
    let n = match value::amount(text, base)? {
        Amount::Number(n) => n,
        Amount::Percent(n) if spec.has("percent") => return Ok(i64::from(n)),
        Amount::Zones(_) if spec.has("zones") => return Ok(0),
        Amount::Percent(n) => {
            let fault = ValueFault::new(0, text.len(), format!("{name} takes no percentage"));
            let is_percent = spec.max == Some(100.0);
            return Err(if is_percent {
                fault.instead(n.to_string())
            } else {
                fault
            });
        }
        Amount::Zones(_) => {
            return Err(ValueFault::new(
                0,
                text.len(),
                format!("{name} counts no zones"),
            ));
        }
    };
    limits(spec, text, n as f64)?;
    // Engines' options take -1 for their default.
    if n < 0 && spec.min.is_none() && spec.is_general() {
        return Err(ValueFault::new(
            0,
            text.len(),
            format!("{name} cannot be negative"),
        ));
    }
    narrow(spec, text, n)
}

/// Options of 32 bits lose what is above them, silently.
fn narrow(spec: &Spec, text: &str, n: i64) -> Result<i64, ValueFault> {
    if !spec.has("wide") && n > i64::from(u32::MAX) {
        let kept = n as u32;
        let message = format!(
            "{} is more than 32 bits hold: fio would take {kept}",
            text.trim()
        );
        return Err(ValueFault::new(0, text.len(), message));
    }
    Ok(n)
}

fn limits(spec: &Spec, text: &str, n: f64) -> Result<(), ValueFault> {
    let fault = |which: &str, limit: f64| {
        let message = format!("{} is a value out of range: {which} {limit}", text.trim());
        Err(ValueFault::new(0, text.len(), message))
    };
    match (spec.min, spec.max) {
        (Some(min), _) if n < min => fault("at least", min),
        (_, Some(max)) if n > max => fault("at most", max),
        _ => Ok(()),
    }
}

fn time(spec: &Spec, text: &str) -> Result<i64, ValueFault> {
    let bare = if spec.has("unit=us") {
        BareTimeUnit::Micros
    } else {
        BareTimeUnit::Seconds
    };
    let us = value::time_us(text, bare)?;
    if us < 0 {
        return Err(ValueFault::new(0, text.len(), "a time cannot be negative"));
    }
    narrow(spec, text, us)
}

fn range(spec: &Spec, text: &str, base: Base) -> Result<(i64, i64), ValueFault> {
    let (low, high) = value::range(text, |part| value::size(part, base))?;
    limits(spec, text, low as f64)?;
    Ok((low, high))
}

fn floats(spec: &Spec, text: &str) -> Result<(), ValueFault> {
    /// FIO_IO_U_LIST_MAX_LEN: fio keeps so many.
    const MOST: usize = 20;
    for (place, (at, part)) in value::parts(text, ':').enumerate() {
        let limit = if spec.has("one") { 1 } else { MOST };
        if place >= limit {
            return Err(ValueFault::new(at, 0, format!("more than {limit} values")));
        }
        let n: f64 = part
            .trim()
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .ok_or_else(|| ValueFault::new(at, part.len(), format!("'{part}' is not a number")))?;
        limits(spec, part, n).map_err(|fault| fault.shifted(at))?;
    }
    Ok(())
}

fn words(spec: &Spec) -> String {
    let words: Vec<&str> = spec.choices.iter().map(|&(word, _)| word).collect();
    words.join(", ")
}

fn choice(spec: &Spec, name: &str, text: &str) -> Vec<ValueFinding> {
    let mut findings = Vec::new();
    let separator = if spec.has("many") { ',' } else { '\0' };
    for (at, part) in value::parts(text, separator) {
        let (word, parameter) = match part.split_once(':') {
            Some((word, parameter)) => (word, Some(parameter)),
            None => (part, None),
        };
        let known = spec.choices.iter().find(|(known, _)| *known == word);
        let Some((_, since)) = known else {
            findings.push(error(wrong_word(spec, name, at, word)));
            continue;
        };
        if let Some(version) = since {
            let message = format!("{word} needs a fio of version {version} or later");
            findings.push(warning(ValueFault::new(at, word.len(), message)));
        }
        let offset = at + word.len() + 1;
        match parameter {
            Some(parameter) if !spec.has("suffix") => {
                let message = format!("{name}={word} takes no parameter; fio ignores it");
                findings.push(error(ValueFault::new(offset, parameter.len(), message)));
            }
            _ => findings.extend(
                super::parameter::check(spec.name, word, parameter)
                    .err()
                    .map(|fault| {
                        error(fault.shifted(if parameter.is_some() { offset } else { at }))
                    }),
            ),
        }
    }
    findings
}

fn wrong_word(spec: &Spec, name: &str, at: usize, word: &str) -> ValueFault {
    let message =
        if word.trim() != word && spec.choices.iter().any(|(known, _)| *known == word.trim()) {
            "fio takes no blank after the =".to_owned()
        } else if word.contains(',') {
            format!("{name} takes a single value; fio takes the last one")
        } else {
            format!("{name} cannot be '{word}'; it can be {}", words(spec))
        };
    let fault = ValueFault::new(at, word.len(), message);
    match nearest(word.trim(), spec.choices.iter().map(|&(word, _)| word)) {
        Some(meant) => fault.instead(meant),
        None => fault,
    }
}

fn engine(value: &str) -> Option<ValueFault> {
    let name = engine_name(value);
    // A library of one's own is given with its path.
    if name == "external" || name.contains('/') || io_engine(name).is_some() {
        return None;
    }
    let fault = ValueFault::new(
        0,
        0,
        format!("unknown engine {name}; 'fathom engines' lists those of fio here"),
    );
    Some(match nearest(name, IO_ENGINES.iter().map(|row| row.name)) {
        Some(meant) => fault.instead(meant),
        None => fault,
    })
}

fn cpus(text: &str) -> Result<(), ValueFault> {
    for (at, part) in value::parts(text, ',') {
        let fault = |message| Err(ValueFault::new(at, part.len(), message));
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if first > last => {
                return fault(format!("the range {part} is reversed"));
            }
            (Ok(_), Ok(_)) => {}
            _ => {
                return fault(format!(
                    "'{part}' is not a CPU or a range of CPUs (as 0-3,8)"
                ));
            }
        }
    }
    Ok(())
}

/// Units that mean something else in fio than elsewhere.
fn surprises(text: &str, base: Base) -> Vec<ValueFinding> {
    value::parts(text, ',')
        .filter_map(|(at, part)| {
            let message = value::surprising_unit(part, base)?;
            Some(warning(ValueFault::new(at, part.len(), message)))
        })
        .collect()
}
