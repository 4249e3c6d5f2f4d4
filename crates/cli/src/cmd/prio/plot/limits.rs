//! The limits of a folder of results, from its `cdl_descriptors`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use fathom_analysis::priority::{Limit, Limits};
use fathom_model::Direction;

/// The name of the file, beside the depths.
const FILE: &str = "cdl_descriptors";

/// The limits of a workload; none where it has none.
///
/// # Errors
/// When the file is there and cannot be read, in words.
pub(super) fn of(workload: &Path) -> Result<Limits, String> {
    let path = workload.join(FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Limits::default()),
        text => text.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
    };
    parse(&text).map_err(|(line, what)| {
        format!(
            "{}, line {line}: {what}; limits are not known",
            path.display()
        )
    })
}

/// A descriptor while it is read.
#[derive(Default)]
struct Times {
    inactive: Option<u64>,
    active: Option<u64>,
    duration: Option<u64>,
    /// A policy lets I/Os that miss it come back without their data.
    may_fail: bool,
}

impl Times {
    /// The guideline is from arrival to end; the others together are.
    fn whole_ns(&self) -> Option<u64> {
        let sum = match (self.inactive, self.active) {
            (None, None) => None,
            (inactive, active) => Some(inactive.unwrap_or(0) + active.unwrap_or(0)),
        };
        self.duration.or(sum)
    }
}

/// Takes apart what `cdladm show` prints: pages, in them descriptors, in them times.
fn parse(text: &str) -> Result<Limits, (usize, String)> {
    let mut limits = Limits::default();
    let mut dir = None;
    let mut number = None;
    let mut times = Times::default();
    let mut put = |dir: Option<Direction>, number: Option<u8>, times: Times| {
        if let (Some(dir), Some(number)) = (dir, number) {
            let limit = Limit {
                number,
                ns: times.whole_ns(),
                may_fail: times.may_fail,
            };
            limits.add(dir, limit);
        }
    };
    for (line, text) in (1..).zip(text.lines()) {
        let Some((key, value)) = text.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if let Some(page) = key.strip_prefix("Page ") {
            put(dir, number.take(), std::mem::take(&mut times));
            dir = match page.trim() {
                "T2A" => Some(Direction::Read),
                "T2B" => Some(Direction::Write),
                other => return Err((line, format!("'{other}' is no page of limits"))),
            };
        } else if let Some(name) = key.strip_prefix("Descriptor ") {
            put(dir, number.take(), std::mem::take(&mut times));
            let parsed = name.trim().parse();
            number = Some(parsed.map_err(|_| (line, format!("'{name}' is no number")))?);
        } else {
            let place = match key {
                "max inactive time" => &mut times.inactive,
                "max active time" => &mut times.active,
                "duration guideline" => &mut times.duration,
                policy => {
                    let fails = ["abort", "abort-recovery", "complete-unavailable"];
                    times.may_fail |= policy.ends_with("policy") && fails.contains(&value);
                    continue;
                }
            };
            *place = time(value).ok_or_else(|| (line, format!("'{value}' is no time")))?;
        }
    }
    put(dir, number, times);
    Ok(limits)
}

/// `50 ms`, `no limit`: `Some(None)` without any.
fn time(text: &str) -> Option<Option<u64>> {
    if text == "no limit" {
        return Some(None);
    }
    let (number, unit) = text.split_once(' ')?;
    let unit_ns = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let ns = number.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    Some((ns > 0).then_some(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cdladm prints them.
    const SHOWN: &str = "\
Page T2A: read descriptors
  perf_vs_duration_guideline : 20%
  Descriptor 1:
    max inactive time        : no limit
    max inactive policy      : complete-earliest
    max active time          : no limit
    max active policy        : complete-earliest
    duration guideline       : 50 ms
    duration guideline policy: complete-earliest
  Descriptor 2:
    max inactive time        : 30 ms
    max active time          : 500 us
    max active policy        : abort
    duration guideline       : no limit
  Descriptor 7:
    max inactive time        : no limit
    max active time          : no limit
    duration guideline       : no limit
Page T2B: write descriptors
  Descriptor 1:
    duration guideline       : 1 s
";

    #[test]
    fn limits_are_read_as_cdladm_shows_them() {
        let limits = parse(SHOWN).unwrap();
        let ns = |dir, prio| limits.of(dir, prio).and_then(|limit| limit.ns);
        assert_eq!(ns(Direction::Read, 0x4008), Some(50_000_000));
        assert_eq!(ns(Direction::Read, 0x4010), Some(30_500_000));
        assert_eq!(ns(Direction::Write, 0x4008), Some(1_000_000_000));
        assert_eq!(ns(Direction::Read, 0), None);
        assert_eq!(ns(Direction::Read, 0x4038), None);
        let fails = |prio| limits.of(Direction::Read, prio).unwrap().may_fail;
        assert!(fails(0x4010) && !fails(0x4008));
    }

    #[test]
    fn a_damaged_file_is_told_by_line() {
        let damaged = SHOWN.replace("50 ms", "50 parsec");
        let (line, what) = parse(&damaged).unwrap_err();
        assert_eq!((line, what.as_str()), (8, "'50 parsec' is no time"));
        assert_eq!(parse("").unwrap(), Limits::default());
    }
}
