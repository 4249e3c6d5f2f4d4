//! Pages as `cdladm show` prints them: the form of `cdl_descriptors` in a folder
//! of results.

use std::fmt::Write as _;

use super::{Bound, Descriptor, Kind, Page, time};

/// The text of one page.
#[must_use]
pub fn page(page: &Page) -> String {
    let of = match page.kind {
        Kind::T2a => "read",
        Kind::T2b => "write",
    };
    let mut text = format!("Page {}: {of} descriptors\n", page.kind);
    if page.kind == Kind::T2a {
        let _ = writeln!(text, "  perf_vs_duration_guideline : {}", page.guideline);
    }
    for (number, descriptor) in (1..).zip(&page.descriptors) {
        let _ = writeln!(text, "  Descriptor {number}:");
        for (bound, name, policy) in [
            (Bound::Inactive, "max inactive time", "max inactive policy"),
            (Bound::Active, "max active time", "max active policy"),
            (
                Bound::Duration,
                "duration guideline",
                "duration guideline policy",
            ),
        ] {
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
