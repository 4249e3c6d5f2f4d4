//! Pages as `cdladm show` prints them: the form of `cdl_descriptors` in a folder
//! of results.

use std::fmt::Write as _;

use super::file::CdlFault;
use super::{Bound, CdlLimit, CdlPage, CdlUnit, Descriptor, Guideline, Page, Policy, time};

/// A bound with the names of its time and of its policy.
const NAMES: [(Bound, &str, &str); 3] = [
    (Bound::Inactive, "max inactive time", "max inactive policy"),
    (Bound::Active, "max active time", "max active policy"),
    (
        Bound::Duration,
        "duration guideline",
        "duration guideline policy",
    ),
];

/// The text of one page.
pub fn page(page: &Page) -> String {
    let of = match page.kind {
        CdlPage::T2a => "read",
        CdlPage::T2b => "write",
    };
    let mut text = format!("Page {}: {of} descriptors\n", page.kind);
    if page.kind == CdlPage::T2a {
        let _ = writeln!(text, "  perf_vs_duration_guideline : {}", page.guideline);
    }
    for (number, descriptor) in (1..).zip(&page.descriptors) {
        let _ = writeln!(text, "  Descriptor {number}:");
        for (bound, name, policy) in NAMES {
            let _ = writeln!(text, "    {name:<24}: {}", limit(descriptor, bound));
            let _ = writeln!(text, "    {policy:<24}: {}", descriptor.limit(bound).policy);
        }
    }
    text
}

fn limit(descriptor: &Descriptor, bound: Bound) -> String {
    match (descriptor.limit(bound).time, descriptor.ns(bound)) {
        (0, _) => "no limit".to_owned(),
        (_, Some(ns)) => time(ns),
        (count, None) => format!("{count} (unit {:#x})", descriptor.unit.0),
    }
}

/// Reads back what [`page`] and `cdladm show` write: pages, in them descriptors,
/// in them times with their policies. Units are not shown: the coarsest that holds
/// all times of a descriptor is taken. Lines that tell something else are passed
/// over.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<Vec<Page>, CdlFault> {
    let mut pages: Vec<Page> = Vec::new();
    // The descriptor that lines belong to, and its times in ns.
    let mut number: Option<u8> = None;
    let mut times = [0; Bound::ALL.len()];
    for (line, text) in (1..).zip(text.lines()) {
        let fault = |what: String| CdlFault { line, what };
        let Some((key, value)) = text.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if let Some(name) = key.strip_prefix("Page ") {
            let name = name.trim();
            let kind = CdlPage::of_name(name);
            let kind = kind.ok_or_else(|| fault(format!("'{name}' is no page of limits")))?;
            pages.push(Page::empty(kind));
            number = None;
            continue;
        }
        let Some(page) = pages.last_mut() else {
            continue;
        };
        if let Some(name) = key.strip_prefix("Descriptor ") {
            let found = name.trim().parse().ok();
            number = found.filter(|&number| page.descriptor(number).is_some());
            if number.is_none() {
                return Err(fault(format!("there is no descriptor '{name}'")));
            }
            times = Default::default();
        } else if key == "perf_vs_duration_guideline" {
            page.guideline = guideline(value).unwrap_or_default();
        } else if let Some(number) = number {
            let descriptor = &mut page.descriptors[usize::from(number) - 1];
            for (at, (bound, time, policy)) in NAMES.into_iter().enumerate() {
                if key == time {
                    let ns = nanos(value);
                    times[at] = ns.ok_or_else(|| fault(format!("'{value}' is no time")))?;
                    let held = descriptor.hold(times);
                    held.ok_or_else(|| fault(format!("no unit of limits holds '{value}'")))?;
                } else if key == policy {
                    let named = Policy::of_name(value);
                    descriptor.limit_mut(bound).policy = named.unwrap_or_default();
                }
            }
        }
    }
    Ok(pages)
}

impl Descriptor {
    /// Puts times in ns, 0 for none, into the coarsest unit that holds them all.
    fn hold(&mut self, times_ns: [u64; Bound::ALL.len()]) -> Option<()> {
        let units = CdlUnit::KNOWN.into_iter().rev().map(CdlUnit);
        let units = units.filter_map(|unit| Some((unit, unit.ns().filter(|&ns| ns > 0)?)));
        for (unit, unit_ns) in units {
            let count = |ns: u64| {
                u16::try_from(ns / unit_ns)
                    .ok()
                    .filter(|_| ns.is_multiple_of(unit_ns))
            };
            let counts: Vec<u16> = times_ns.iter().filter_map(|&ns| count(ns)).collect();
            if counts.len() == times_ns.len() {
                self.unit = unit;
                for (bound, time) in Bound::ALL.into_iter().zip(counts) {
                    let policy = self.limit(bound).policy;
                    *self.limit_mut(bound) = CdlLimit { time, policy };
                }
                return Some(());
            }
        }
        None
    }
}

/// The code of `20%`.
fn guideline(text: &str) -> Option<Guideline> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    let codes = (0..=u8::MAX).map(Guideline);
    codes
        .into_iter()
        .find(|code| code.percent() == Some(percent))
}

/// `50 ms`; `no limit` is 0.
fn nanos(text: &str) -> Option<u64> {
    if text == "no limit" {
        return Some(0);
    }
    let (number, unit) = text.split_once(' ')?;
    let unit_ns = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ns)
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
        let pages = parse(SHOWN).unwrap();
        let kinds: Vec<CdlPage> = pages.iter().map(|page| page.kind).collect();
        assert_eq!(kinds, CdlPage::ALL);
        let of = |page: usize, number| pages[page].descriptor(number).unwrap();
        assert_eq!(of(0, 1).whole_ns(), Some(50_000_000));
        assert_eq!(of(0, 2).whole_ns(), Some(30_500_000));
        assert_eq!(of(1, 1).whole_ns(), Some(1_000_000_000));
        assert_eq!(of(0, 7).whole_ns(), None);
        assert!(of(0, 2).may_fail() && !of(0, 1).may_fail());
        assert_eq!(pages[0].guideline.percent(), Some(20.0));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (unit, kind) in [
            (0x6, CdlPage::T2a),
            (0x8, CdlPage::T2b),
            (0xa, CdlPage::T2a),
            (0xe, CdlPage::T2b),
        ] {
            let mut written = Page::empty(kind);
            if kind == CdlPage::T2a {
                written.guideline = Guideline(0x7);
            }
            for (n, descriptor) in (1..).zip(&mut written.descriptors) {
                descriptor.unit = CdlUnit(unit);
                descriptor.max_inactive.time = n * 3;
                descriptor.max_active.policy = Policy(0xe);
                descriptor.duration = CdlLimit {
                    time: u16::MAX - n,
                    policy: Policy(0xf),
                };
            }
            let read = parse(&page(&written)).unwrap();
            assert_eq!(read[0].differences(&written), [""; 0]);
        }
    }

    #[test]
    fn a_damaged_text_is_told_by_line() {
        let fault = parse(&SHOWN.replace("50 ms", "50 parsec")).unwrap_err();
        assert_eq!(
            (fault.line, fault.what.as_str()),
            (8, "'50 parsec' is no time")
        );
        let fault = parse(&SHOWN.replace("Descriptor 7", "Descriptor 8")).unwrap_err();
        assert_eq!(fault.line, 15);
        assert_eq!(parse("").unwrap(), []);
    }
}
