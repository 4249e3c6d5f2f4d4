//! TKperf's XML (`TEST.xml`, versions 1.0 to 2.2): tests after SNIA's specification as
//! elements below a root of the test's name, each with its figures as JSON in `roundmat`.
//!
//! - `iops`: a matrix for each round, a row for each mix, in it IOPS for each block size;
//! - `lat`: likewise, with smallest, largest and mean latency in µs;
//! - `tp`: for each block size the rounds' bandwidth of reads and of writes, in KiB/s;
//! - `writesat`: the rounds' IOPS, and their latencies.
//!
//! Mixes and block sizes do not stand in the file: they are those of the test, and of a
//! drive with sectors of 4 KiB 512 bytes are not among them.

use fathom_model::{DirectionResult, JobResult, Latency, Results};
use roxmltree::Node;
use serde::de::DeserializeOwned;

use super::xml::{self, text_below};
use super::{ForeignError, ForeignTool, ToldRates, load, options};

const TOOL: ForeignTool = ForeignTool::Tkperf;
/// Characters of one `roundmat` at most; 25 rounds have some 10,000.
const MATRIX_MAX: usize = 4 << 20;
/// Shares of reads in percent, in the order of the rows: of solid-state drives, of disks.
const MIXES: [u32; 7] = [100, 95, 65, 50, 35, 5, 0];
const DISK_MIXES: [u32; 3] = [100, 50, 0];
const LATENCY_MIXES: [u32; 3] = [100, 65, 0];
/// Block sizes in bytes, in the order of the columns.
const SIZES: [u32; 8] = [
    1 << 20,
    128 << 10,
    64 << 10,
    32 << 10,
    16 << 10,
    8192,
    4096,
    512,
];
const DISK_SIZES: [u32; 3] = [64 << 10, 16 << 10, 4096];
const LATENCY_SIZES: [u32; 3] = [8192, 4096, 512];
const BANDWIDTH_SIZES: [u32; 5] = [1 << 20, 64 << 10, 8192, 4096, 512];
const DISK_BANDWIDTH_SIZES: [u32; 2] = [1 << 20, 4096];

/// A matrix of a round: rows of columns.
type Rounds<T> = Vec<Vec<Vec<T>>>;
/// Smallest, largest, mean.
type Latencies = [f64; 3];

pub(super) fn detect(head: &str) -> bool {
    head.trim_start().starts_with('<')
        && (head.contains("<ioperfversion>") || head.contains("<roundmat>"))
}

pub(super) fn read(text: &str) -> Result<Vec<Results>, ForeignError> {
    let document = xml::parse(text, TOOL)?;
    let root = document.root_element();
    let version: Option<String> = json_below(root, "ioperfversion");
    let version = format!("tkperf {}", version.unwrap_or_default());
    let mut jobs = Vec::new();
    for node in root.children().filter(Node::is_element) {
        let test = TkperfTest::of(node);
        let wrong = |what: &str| xml::at(node, TOOL, what);
        match node.tag_name().name() {
            "iops" => test.iops(&mut jobs),
            "lat" => test.latencies(&mut jobs),
            "tp" => test.bandwidths(&mut jobs),
            "writesat" => test.saturation(&mut jobs),
            _ => continue,
        }
        .ok_or_else(|| wrong("no figures (roundmat) as this test has them"))?;
    }
    let version = version.trim();
    Ok(jobs.into_iter().map(|job| load(version, job)).collect())
}

fn json_below<T: DeserializeOwned>(node: Node, name: &'static str) -> Option<T> {
    let text = text_below(node, &[name]).filter(|text| text.len() <= MATRIX_MAX)?;
    serde_json::from_str(text).ok()
}

/// One test, and what it was told.
struct TkperfTest<'a, 'i> {
    node: Node<'a, 'i>,
    numjobs: Option<u32>,
    iodepth: Option<u32>,
    runtime_ms: Option<f64>,
    /// The rounds in which it was steady; none where it does not say.
    steady: Vec<usize>,
}

impl<'a, 'i> TkperfTest<'a, 'i> {
    fn of(node: Node<'a, 'i>) -> Self {
        let seconds: Option<f64> = json_below(node, "runtime");
        Self {
            node,
            numjobs: json_below(node, "numjobs"),
            iodepth: json_below(node, "iodepth"),
            runtime_ms: seconds
                .filter(|seconds| (0.0..=1e7).contains(seconds))
                .map(|seconds| seconds * 1000.0),
            steady: json_below(node, "stdyrounds").unwrap_or_default(),
        }
    }

    /// The rounds that count: those of the steady state, or all where none is told.
    fn counting<T>(&self, rounds: Vec<T>) -> Vec<T> {
        let is_known = self.steady.iter().any(|place| *place < rounds.len());
        let counts = |place: usize| !is_known || self.steady.contains(&place);
        let all = rounds.into_iter().enumerate();
        all.filter(|(place, _)| counts(*place))
            .map(|(_, round)| round)
            .collect()
    }

    fn iops(&self, jobs: &mut Vec<JobResult>) -> Option<()> {
        let rounds: Rounds<f64> = json_below(self.node, "roundmat")?;
        for round in self.counting(rounds) {
            let is_disk = round.len() == DISK_MIXES.len();
            let (mixes, sizes): (&[u32], &[u32]) = match is_disk {
                true => (&DISK_MIXES, &DISK_SIZES),
                false => (&MIXES, &SIZES),
            };
            self.each(round, mixes, sizes, |mix, size, iops| {
                jobs.push(self.random("iops", mix, size, rates_of(iops, size, None)));
            })?;
        }
        Some(())
    }

    fn latencies(&self, jobs: &mut Vec<JobResult>) -> Option<()> {
        let rounds: Rounds<Latencies> = json_below(self.node, "roundmat")?;
        for round in self.counting(rounds) {
            self.each(round, &LATENCY_MIXES, &LATENCY_SIZES, |mix, size, told| {
                // One I/O at a time: as many fit into a second as its mean latency does.
                let mean_us = told[2];
                let iops = if mean_us > 0.0 { 1e6 / mean_us } else { 0.0 };
                // Of a mix smallest and largest are weighted means, and no latency.
                let lat = latency(told, mix == 0 || mix == 100);
                jobs.push(self.random("lat", mix, size, rates_of(iops, size, Some(lat))));
            })?;
        }
        Some(())
    }

    /// Every cell of a matrix with its mix and its block size; `None` where it has others
    /// than this test.
    fn each<T>(
        &self,
        round: Vec<Vec<T>>,
        mixes: &[u32],
        sizes: &[u32],
        mut tell: impl FnMut(u32, u32, T),
    ) -> Option<()> {
        if round.len() != mixes.len() {
            return None;
        }
        for (row, &mix) in round.into_iter().zip(mixes) {
            let fits = row.len() == sizes.len()
                || (row.len() + 1 == sizes.len() && sizes.last() == Some(&512));
            if !fits {
                return None;
            }
            for (cell, &size) in row.into_iter().zip(sizes) {
                tell(mix, size, cell);
            }
        }
        Some(())
    }

    fn bandwidths(&self, jobs: &mut Vec<JobResult>) -> Option<()> {
        let all: Rounds<f64> = json_below(self.node, "roundmat")?;
        let sizes: &[u32] = match all.len() {
            2 => &DISK_BANDWIDTH_SIZES,
            4 | 5 => &BANDWIDTH_SIZES,
            _ => return None,
        };
        for (sides, &size) in all.into_iter().zip(sizes) {
            let [reads, writes] = <[Vec<f64>; 2]>::try_from(sides).ok()?;
            for (rw, rounds) in [("read", reads), ("write", writes)] {
                for kib in self.counting(rounds).into_iter().filter(is_figure) {
                    let bw_bytes = kib * 1024.0;
                    let rates = ToldRates {
                        iops: bw_bytes / f64::from(size),
                        bw_bytes,
                        runtime_ms: self.runtime_ms,
                        clat: None,
                    };
                    let (result, mut job) = (rates.result(), self.job("tp", rw, size));
                    match rw {
                        "read" => job.read = Some(result),
                        _ => job.write = Some(result),
                    }
                    jobs.push(job);
                }
            }
        }
        Some(())
    }

    /// The mean over all rounds: each is another state of the drive.
    fn saturation(&self, jobs: &mut Vec<JobResult>) -> Option<()> {
        let (iops, told): (Vec<f64>, Vec<Latencies>) = json_below(self.node, "roundmat")?;
        if iops.is_empty() || !iops.iter().all(is_figure) {
            return None;
        }
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
            if n > 0.0 { sum / n } else { 0.0 }
        };
        let lat = (!told.is_empty()).then(|| {
            let low = told.iter().map(|one| one[0]).fold(f64::MAX, f64::min);
            let high = told.iter().map(|one| one[1]).fold(0.0, f64::max);
            latency([low, high, mean(&mut told.iter().map(|one| one[2]))], true)
        });
        let all = mean(&mut iops.iter().copied());
        let rates = rates_of(all, 4096, lat);
        let rounds = iops.len() as f64;
        let mut job = self.job("writesat", "randwrite", 4096);
        job.runtime_ms = self.runtime_ms.map(|ms| (ms * rounds) as u64);
        job.write = Some(rates(self.runtime_ms.map(|ms| ms * rounds)));
        jobs.push(job);
        Some(())
    }

    fn random(
        &self,
        test: &str,
        mix: u32,
        size: u32,
        rates: impl FnOnce(Option<f64>) -> DirectionResult,
    ) -> JobResult {
        let mut job = self.job(test, "randrw", size);
        job.name = format!("{} {mix} % reads", job.name);
        job.options.insert("rwmixread".into(), mix.to_string());
        let result = Some(rates(self.runtime_ms));
        match mix {
            100 => job.read = result,
            0 => job.write = result,
            _ => job.mixed = result,
        }
        job
    }

    fn job(&self, test: &str, rw: &str, size: u32) -> JobResult {
        JobResult {
            // Tests are folders: what two of them did alike is no repetition.
            name: format!("{test}/{rw} {size}"),
            options: options([
                ("rw", Some(rw.to_owned())),
                ("bs", Some(size.to_string())),
                ("iodepth", self.iodepth.map(|depth| depth.to_string())),
                ("numjobs", self.numjobs.map(|jobs| jobs.to_string())),
            ]),
            runtime_ms: self.runtime_ms.map(|ms| ms as u64),
            ..JobResult::default()
        }
    }
}

fn is_figure(value: &f64) -> bool {
    value.is_finite() && *value >= 0.0
}

/// What a rate comes to over a time in ms.
fn rates_of(
    iops: f64,
    size: u32,
    lat: Option<Latency>,
) -> impl FnOnce(Option<f64>) -> DirectionResult {
    let iops = if is_figure(&iops) { iops } else { 0.0 };
    move |runtime_ms| DirectionResult {
        lat: lat.filter(|lat| lat.mean_ns > 0.0),
        ..ToldRates {
            iops,
            bw_bytes: iops * f64::from(size),
            runtime_ms,
            clat: None,
        }
        .result()
    }
}

/// Of smallest, largest and mean in µs.
fn latency(told: Latencies, has_ends: bool) -> Latency {
    let ns = |us: f64| (if is_figure(&us) { us } else { 0.0 }) * 1000.0;
    let end = |us: f64| if has_ends { ns(us) as u64 } else { 0 };
    Latency {
        min_ns: end(told[0]),
        max_ns: end(told[1]),
        mean_ns: ns(told[2]),
        ..Latency::default()
    }
}
