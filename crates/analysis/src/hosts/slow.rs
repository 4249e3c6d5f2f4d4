//! Hosts that are far slower than the others of the same job.

use std::collections::BTreeMap;

use fathom_model::result::{SlowBy, SlowHost};
use fathom_model::{Direction, JobResult, Latency};

use super::{label_of, merged};

/// Of two nobody can say which of them is as it should be.
const HOSTS_LEAST: usize = 3;
/// A host below this share of the median of all is called slow. Machines of one
/// kind differ by up to a tenth (docs/METHODOLOGY.md); with a host of ten at
/// this limit their sum is 2.5 % too low, and each of them may be the one that
/// somebody's volume is on.
const RATE_SHARE: f64 = 0.75;
/// From this multiple of the median on a p99 is called high. At a fixed depth
/// mean latency and IOPS are bound to each other (Little's law), so that slow
/// means show as low rates already; a tail does not, and it differs from run to
/// run by far more than a rate.
const P99_TIMES: f64 = 2.0;
/// Ten I/Os beyond the percentile: with fewer it is a matter of luck.
const P99_IOS: u64 = 1000;

/// What one host did in one direction.
#[derive(Debug, Default)]
struct Did<'j> {
    bw_bytes: f64,
    iops: f64,
    clats: Vec<&'j Latency>,
}

/// The hosts that are far off the median of all, for three hosts and more.
pub(super) fn hosts(parts: &[&JobResult]) -> Vec<SlowHost> {
    let mut all: BTreeMap<Direction, BTreeMap<String, Did>> = BTreeMap::new();
    for job in parts {
        let Some(label) = label_of(job) else { continue };
        for (dir, result) in job.directions().filter(|(_, result)| result.total_ios > 0) {
            let did = all
                .entry(dir)
                .or_default()
                .entry(label.clone())
                .or_default();
            did.bw_bytes += result.bw_bytes;
            did.iops += result.iops;
            did.clats.extend(&result.clat);
        }
    }
    let mut slow = Vec::new();
    for (dir, hosts) in all {
        let figures = [
            (SlowBy::Bandwidth, rates(&hosts, |did| did.bw_bytes)),
            (SlowBy::Iops, rates(&hosts, |did| did.iops)),
            (SlowBy::ClatP99, p99s(&hosts)),
        ];
        for (figure, values) in figures {
            slow.extend(far_off(figure, &values).map(|(host, of_median)| SlowHost {
                host: host.to_owned(),
                dir,
                figure,
                of_median,
            }));
        }
    }
    slow
}

type Values<'h> = Vec<(&'h str, f64)>;

fn rates<'h>(hosts: &'h BTreeMap<String, Did>, rate: fn(&Did) -> f64) -> Values<'h> {
    let each = hosts.iter();
    each.map(|(host, did)| (host.as_str(), rate(did))).collect()
}

fn p99s<'h>(hosts: &'h BTreeMap<String, Did>) -> Values<'h> {
    let p99 = |did: &Did| {
        let clat = merged(&did.clats)?;
        clat.n.filter(|&n| n >= P99_IOS)?;
        clat.percentile_ns(99.0)
    };
    let each = hosts.iter();
    each.filter_map(|(host, did)| Some((host.as_str(), p99(did)? as f64)))
        .collect()
}

/// The hosts with such values, and their shares of the median.
fn far_off<'v>(figure: SlowBy, values: &'v Values) -> impl Iterator<Item = (&'v str, f64)> {
    let median = median(values.iter().map(|(_, value)| *value)).filter(|median| *median > 0.0);
    let enough = values.len() >= HOSTS_LEAST;
    let shares = values.iter().filter_map(move |(host, value)| {
        let share = value / median.filter(|_| enough)?;
        Some((*host, share))
    });
    shares.filter(move |(_, share)| match figure {
        SlowBy::Bandwidth | SlowBy::Iops => *share < RATE_SHARE,
        SlowBy::ClatP99 => *share >= P99_TIMES,
    })
}

/// The middle of some values; of an even number the mean of the two.
#[must_use]
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[low] + sorted[high]) / 2.0)
}
