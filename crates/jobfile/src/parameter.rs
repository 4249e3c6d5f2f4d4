//! What stands behind the colon of a choice: `rw=randread:8`, `ss=iops:5%`.

use fathom_model::value::{self, Base, ValueFault};

/// Checks the parameter of `word`, a choice of `option`.
pub fn check(option: &str, word: &str, parameter: Option<&str>) -> Result<(), ValueFault> {
    match (option, parameter) {
        ("steadystate", None) => Err(ValueFault::new(
            0,
            word.len(),
            format!("{word} needs its limit, as {word}:5%"),
        )),
        ("steadystate", Some(limit)) => {
            number(limit.strip_suffix('%').unwrap_or(limit)).map(|_| ())
        }
        ("rw", Some(n)) => match value::size(n, Base::Binary) {
            Ok(_) => Ok(()),
            Err(_) => Err(ValueFault::new(
                0,
                n.len(),
                format!("'{n}' is not a number; fio ignores it"),
            )),
        },
        ("random_distribution", Some(parameter)) => distribution(word, parameter),
        ("file_service_type", Some(n)) => number(n.split(':').next().unwrap_or(n)).map(|_| ()),
        _ => Ok(()),
    }
}

fn number(text: &str) -> Result<f64, ValueFault> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite());
    n.ok_or_else(|| ValueFault::new(0, text.len(), format!("'{text}' is not a number")))
}

/// The limits are those fio 3.33 names when they are not kept.
fn distribution(word: &str, parameter: &str) -> Result<(), ValueFault> {
    if word.starts_with("zoned") {
        return zones(word, parameter);
    }
    let first = parameter.split(':').next().unwrap_or(parameter);
    let fault = |message: &str| Err(ValueFault::new(0, parameter.len(), message));
    let n = number(first)?;
    match word {
        "zipf" if n == 1.0 => fault("zipf cannot be 1"),
        "pareto" if n <= 0.0 || n >= 1.0 => fault("pareto is between 0 and 1"),
        "normal" if !(0.0..100.0).contains(&n) => {
            fault("the deviation is 0 or more and below 100 %")
        }
        "random" => fault("random takes no parameter; fio ignores it"),
        _ => Ok(()),
    }
}

/// `zoned:60/10:40/90`: shares of the accesses, each with its share of the
/// file (`zoned_abs`: with a size).
fn zones(word: &str, parameter: &str) -> Result<(), ValueFault> {
    for (start, direction) in value::parts(parameter, ',') {
        let mut accesses = 0u64;
        for (at, zone) in value::parts(direction, ':') {
            let at = start + at;
            let share = |text: &str| text.parse::<u64>().ok().filter(|&n| n <= 100);
            let form = match word {
                "zoned" => "percent of accesses/percent of the file",
                _ => "percent of accesses/size",
            };
            let fault = || ValueFault::new(at, zone.len(), format!("'{zone}' is not {form}"));
            // Without a size a zone gets its part of what the others leave.
            let (access, rest) = match word {
                "zoned" => zone.split_once('/').unwrap_or((zone, "")),
                _ => zone.split_once('/').ok_or_else(fault)?,
            };
            accesses += share(access).ok_or_else(fault)?;
            let fits = match word {
                "zoned" => rest.is_empty() || share(rest).is_some(),
                _ => value::size(rest, Base::Binary).is_ok(),
            };
            if !fits {
                return Err(fault());
            }
        }
        if accesses != 100 {
            let message = format!("the accesses add up to {accesses} %, not 100 %");
            return Err(ValueFault::new(start, direction.len(), message));
        }
    }
    Ok(())
}
