//! Hosts that are far slower than the others of the same job.

use fathom_model::result::{SlowBy, SlowHost};
use fathom_model::{Direction, JobResult, Latency};

use super::{label_of, merged};

/// Of two nobody can say which of them is as it should be.
const HOSTS_LEAST: usize = 3;
/// A host below this share of the median of all is called slow. Like machines
/// differ by some percent; among ten a host at this limit takes 2.5 % from the
/// sum, where nobody sees it, and a quarter from whoever is on it
/// (docs/METHODOLOGY.md).
const RATE_SHARE: f64 = 0.75;
/// From this multiple of the median on a p99 is called high: the limit by which
/// drives were called slow beside the others of their array (Hao et al., The
/// Tail at Store, FAST 2016).
const P99_TIMES: f64 = 2.0;
/// Ten I/Os beyond the percentile: with fewer it is a matter of luck.
const P99_IOS: u64 = 1000;

/// What one host did in one direction of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFigures {
    /// The host, as [`Host::label`](fathom_model::Host::label) has it.
    pub host: String,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Completion latencies, of all its clones together.
    pub clat: Option<Latency>,
}

/// The figures of each host of a job, in the order of the hosts.
pub fn by_host(parts: &[&JobResult], dir: Direction) -> Vec<HostFigures> {
    let mut all: Vec<(HostFigures, Vec<&Latency>)> = Vec::new();
    for job in parts {
        let result = job.directions().find(|(d, _)| *d == dir);
        let (Some(host), Some((_, result))) = (label_of(job), result) else {
            continue;
        };
        let place = all.iter().position(|(figures, _)| figures.host == host);
        let place = place.unwrap_or_else(|| {
            let (bw_bytes, iops, clat) = (0.0, 0.0, None);
            let none = HostFigures {
                host,
                bw_bytes,
                iops,
                clat,
            };
            all.push((none, Vec::new()));
            all.len() - 1
        });
        let (figures, clats) = &mut all[place];
        figures.bw_bytes += result.bw_bytes;
        figures.iops += result.iops;
        clats.extend(&result.clat);
    }
    let with = |(mut figures, clats): (HostFigures, Vec<&Latency>)| {
        figures.clat = merged(&clats);
        figures
    };
    all.into_iter().map(with).collect()
}

/// The hosts that are far off the median of all, for three hosts and more.
pub(super) fn hosts(parts: &[&JobResult]) -> Vec<SlowHost> {
    let mut slow = Vec::new();
    for dir in Direction::MEASURED {
        let hosts = by_host(parts, dir);
        for figure in [SlowBy::Bandwidth, SlowBy::Iops, SlowBy::ClatP99] {
            slow.extend(far_off(figure, &hosts).map(|(host, of_median)| SlowHost {
                host: host.to_owned(),
                dir,
                figure,
                of_median,
            }));
        }
    }
    slow
}

/// A host's figure, where there is one that can be compared.
fn comparable(figure: SlowBy, host: &HostFigures) -> Option<f64> {
    match figure {
        SlowBy::Bandwidth => Some(host.bw_bytes),
        SlowBy::Iops => Some(host.iops),
        SlowBy::ClatP99 => {
            let clat = host.clat.as_ref().filter(|clat| clat.n >= Some(P99_IOS))?;
            clat.percentile_ns(99.0).map(|ns| ns as f64)
        }
    }
}

/// The hosts with such values, and their shares of the median.
fn far_off(figure: SlowBy, hosts: &[HostFigures]) -> impl Iterator<Item = (&str, f64)> {
    let of = move |host: &HostFigures| comparable(figure, host);
    let count = hosts.iter().filter_map(of).count();
    let median = median(hosts.iter().filter_map(of));
    let median = median.filter(|median| *median > 0.0 && count >= HOSTS_LEAST);
    let shares = hosts.iter().filter_map(move |host| {
        let share = of(host)? / median?;
        Some((host.host.as_str(), share))
    });
    shares.filter(move |(_, share)| match figure {
        SlowBy::Bandwidth | SlowBy::Iops => *share < RATE_SHARE,
        SlowBy::ClatP99 => *share >= P99_TIMES,
    })
}

/// The middle of some values; of an even number the mean of the two.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[low] + sorted[high]) / 2.0)
}
