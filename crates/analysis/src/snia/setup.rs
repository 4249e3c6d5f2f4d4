//! What a test is made of.
//!
//! The numbers are those on which independent implementations and quotations of
//! SSS PTS 2.0.1 and 2.0.2 agree (docs/SNIA.md has the list and its doubts).

use std::fmt;

use fathom_model::{Point, units};
use serde::{Deserialize, Serialize};

use super::collect::SniaCell;
use crate::steady_state::{
    Metric, SNIA_DATA_PERCENT, SNIA_MAX_ROUNDS, SNIA_SLOPE_PERCENT, SNIA_WINDOW, WindowRule,
};

/// Which test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SniaTest {
    /// Random I/O over all mixes and block sizes (chapter 7).
    Iops,
    /// Sequential I/O of large blocks (chapter 8).
    Throughput,
    /// One I/O at a time (chapter 9).
    Latency,
    /// Random writes from the purged state on (chapter 10).
    Wsat,
}

/// Options that a test does not use, and why.
pub type UnusedOptions = (&'static [&'static str], &'static str);

const NO_HISTOGRAM: UnusedOptions = (
    &["histogram"],
    "only latency and write saturation have a histogram",
);
const STOP: UnusedOptions = (&["stop-fills", "stop-after"], "they end write saturation");

impl SniaTest {
    /// The options that it does not use, by their names.
    pub fn unused(self) -> &'static [UnusedOptions] {
        match self {
            Self::Iops => &[NO_HISTOGRAM, STOP],
            Self::Throughput => &[
                NO_HISTOGRAM,
                STOP,
                (
                    &["mixes", "blocks"],
                    "the specification names its block sizes and directions",
                ),
            ],
            Self::Latency => &[
                STOP,
                (
                    &["mixes", "blocks", "threads"],
                    "the specification names them, with one I/O under way",
                ),
            ],
            Self::Wsat => &[
                (
                    &["mixes", "blocks", "fills"],
                    "random writes of 4 KiB fill the drive themselves",
                ),
                (&["all-cells"], "write saturation has no cells to judge"),
            ],
        }
    }

    /// Why it does not use an option of this name.
    pub fn why_not(self, option: &str) -> Option<&'static str> {
        let mut unused = self.unused().iter();
        unused.find_map(|(options, why)| options.contains(&option).then_some(*why))
    }

    /// All, in the order of the specification.
    pub const ALL: [Self; 4] = [Self::Iops, Self::Throughput, Self::Latency, Self::Wsat];

    /// As the command line and folders have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Wsat => "wsat",
        }
    }

    /// As a heading has it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Throughput => "Throughput",
            Self::Latency => "Latency",
            Self::Wsat => "Write saturation",
        }
    }

    /// What is tracked of it.
    pub fn metric(self) -> Metric {
        match self {
            Self::Iops | Self::Wsat => Metric::Iops,
            Self::Throughput => Metric::Bandwidth,
            Self::Latency => Metric::Latency,
        }
    }
}

/// The two kinds of drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriveClass {
    /// PTS-C: 75 % of the range, QD 16 × 2 threads, write cache on.
    Client,
    /// PTS-E: the whole range, QD 32 × 4 threads, write cache off.
    Enterprise,
}

impl fmt::Display for DriveClass {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Enterprise => "enterprise",
        })
    }
}

/// What decides that the rounds are steady.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrackedVariable {
    /// SNIA's, of the tracked variables.
    #[default]
    Tracked,
    /// The stricter one of fio-tests: in so many rounds in a row every cell
    /// keeps fio's rule by its own samples.
    AllCells,
}

impl fmt::Display for TrackedVariable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Tracked => "SNIA's criterion (interpretation), of the tracked variables",
            Self::AllCells => "fio-tests' all-cells criterion",
        })
    }
}

/// When rounds are steady, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoundLimits {
    /// Most that the values of a window may lie apart, in percent of the average.
    pub data_percent: f64,
    /// Most that the fit may change over the window, in percent of the average.
    pub slope_percent: f64,
    /// Rounds of the window.
    pub window: usize,
    /// Rounds after which it is not attained.
    pub max_rounds: usize,
    /// Whether it goes on beyond them, with a warning, until it is steady.
    pub soft: bool,
}

impl RoundLimits {
    /// SNIA's own (2.1.24).
    pub const SNIA: Self = Self {
        data_percent: SNIA_DATA_PERCENT,
        slope_percent: SNIA_SLOPE_PERCENT,
        window: SNIA_WINDOW,
        max_rounds: SNIA_MAX_ROUNDS,
        soft: false,
    };

    /// As a rule. The number of rounds is not its business: it looks at one
    /// window at a time.
    pub fn rule(&self) -> WindowRule {
        WindowRule::Snia {
            data_limit_percent: self.data_percent,
            slope_limit_percent: self.slope_percent,
            window: self.window,
            max_rounds: self.max_rounds.max(self.window),
        }
    }
}

/// fio's rule within a cell, for [`TrackedVariable::AllCells`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellRule {
    /// The largest |sample − mean| is below so many percent of the mean.
    pub mean_percent: f64,
    /// In a window of so many ms at the end of the cell.
    pub mean_ms: u64,
    /// The |slope| per sample is below so many percent of the mean.
    pub slope_percent: f64,
    /// In a window of so many ms at the end of the cell.
    pub slope_ms: u64,
}

/// The cache of the device itself: what is wanted, and what was found before
/// anything was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CacheSetting {
    /// Whether it is to be on; `None`: it is left as it is.
    pub wanted: Option<bool>,
    /// What the device itself says; `None`: it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<bool>,
    /// What the kernel takes it for: `write back`, `write through`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether it can be set.
    #[serde(default)]
    pub settable: bool,
}

impl CacheSetting {
    /// That it is not as the class wants it.
    fn deviation(&self) -> Option<String> {
        let word = |on: bool| if on { "on" } else { "off" };
        let looked_for = self.kernel.is_some() || self.device.is_some();
        match (self.wanted, self.device) {
            (None, _) => Some("the write cache is left as it is".to_owned()),
            _ if self.settable || !looked_for || self.wanted == self.device => None,
            (Some(wanted), Some(_)) => Some(format!(
                "the write cache is to be {}, and cannot be set",
                word(wanted)
            )),
            (Some(wanted), None) => Some(format!(
                "the write cache is to be {}; the device does not tell whether it has one",
                word(wanted)
            )),
        }
    }
}

/// Everything that a test was asked for. It stands in the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Setup {
    /// Which test.
    pub test: SniaTest,
    /// Which kind of drive it is measured as.
    pub class: DriveClass,
    /// Capacity of the device in bytes.
    pub capacity_bytes: u64,
    /// The part of it that is used, from its start, in bytes.
    pub active_bytes: u64,
    /// I/Os that each thread keeps under way.
    pub iodepth: u32,
    /// Threads.
    pub jobs: u32,
    /// Block size of workload-independent pre-conditioning, in bytes.
    pub fill_block_bytes: u64,
    /// How often it writes the active range; 0: there is none.
    pub fill_loops: u32,
    /// Reads in percent, in the order in which a round has them.
    pub mixes: Vec<u8>,
    /// Block sizes in bytes, in the order within a mix (of throughput: the parts).
    pub blocks: Vec<u64>,
    /// Time of a cell in ms.
    pub cell_ms: u64,
    /// Time between two samples in ms.
    pub interval_ms: u64,
    /// When rounds are steady.
    pub limits: RoundLimits,
    /// Which criterion decides.
    pub criterion: TrackedVariable,
    /// fio's rule within a cell.
    pub cell_rule: CellRule,
    /// Time of the histogram at the end in ms; 0: there is none.
    pub histogram_ms: u64,
    /// Write saturation: it ends when the capacity has been written so often.
    pub stop_fills: f64,
    /// Write saturation: it ends after so many ms of I/O.
    pub stop_ms: u64,
    /// Write saturation: samples (cells) that make a round of the criterion.
    pub samples_a_round: usize,
    /// The device's cache.
    #[serde(default)]
    pub write_cache: CacheSetting,
    /// What its stages begin with, as a step of a plan file: `STEP/`; empty where it
    /// stands alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
}

const KIB: u64 = 1024;
/// A cell of the specification takes a minute.
const CELL_MS: u64 = 60_000;

/// Id of the stage of the histogram at the end.
pub const HISTOGRAM: &str = "histogram";

impl Setup {
    /// The test as the specification has it, on a device of this capacity.
    pub fn specified(test: SniaTest, class: DriveClass, capacity_bytes: u64) -> Self {
        let enterprise = class == DriveClass::Enterprise;
        let (iodepth, jobs) = match (test, enterprise) {
            (SniaTest::Throughput, _) => (32, 1),
            (SniaTest::Latency, _) => (1, 1),
            (_, true) => (32, 4),
            (_, false) => (16, 2),
        };
        let (mixes, blocks): (&[u8], &[u64]) = match test {
            SniaTest::Iops => (
                &[100, 95, 65, 50, 35, 5, 0],
                &[1024, 128, 64, 32, 16, 8, 4, 0],
            ),
            SniaTest::Throughput => (&[100, 0], &[1024, 128]),
            SniaTest::Latency => (&[100, 65, 0], &[8, 4, 0]),
            SniaTest::Wsat => (&[0], &[4]),
        };
        // 0 stands for half a KiB.
        let bytes = |kib: &u64| if *kib == 0 { KIB / 2 } else { kib * KIB };
        let active_percent = if enterprise { 100 } else { 75 };
        Self {
            test,
            class,
            capacity_bytes,
            active_bytes: aligned(u128::from(capacity_bytes) * active_percent / 100),
            iodepth,
            jobs,
            fill_block_bytes: 128 * KIB,
            fill_loops: if test == SniaTest::Wsat { 0 } else { 2 },
            mixes: mixes.to_vec(),
            blocks: blocks.iter().map(bytes).collect(),
            cell_ms: CELL_MS,
            interval_ms: 1000,
            limits: RoundLimits::SNIA,
            criterion: TrackedVariable::Tracked,
            // fio-tests: SNIA_IOPS_WD_SS_* of its Kconfig.
            cell_rule: CellRule {
                mean_percent: 20.0,
                mean_ms: CELL_MS,
                slope_percent: 10.0,
                slope_ms: CELL_MS,
            },
            histogram_ms: match test {
                SniaTest::Latency | SniaTest::Wsat => 20 * CELL_MS,
                SniaTest::Iops | SniaTest::Throughput => 0,
            },
            stop_fills: 4.0,
            stop_ms: 6 * 60 * CELL_MS,
            samples_a_round: if test == SniaTest::Wsat { 30 } else { 1 },
            write_cache: CacheSetting {
                wanted: Some(!enterprise),
                ..CacheSetting::default()
            },
            scope: String::new(),
        }
    }

    /// Leaves out the block sizes that a device with logical blocks of so many
    /// bytes cannot do: half a KiB on a drive with blocks of 4 KiB.
    pub fn fit_blocks(&mut self, logical_block_bytes: u64) {
        let logical = logical_block_bytes.max(1);
        self.blocks.retain(|block| block.is_multiple_of(logical));
    }

    /// The parts that are purged and made steady each by itself: one without a
    /// name, or one for each block size.
    pub fn parts(&self) -> Vec<String> {
        match self.test {
            SniaTest::Throughput => self.blocks.iter().map(|&block| block_name(block)).collect(),
            _ => vec![String::new()],
        }
    }

    /// The cells of a round of a part, in their order.
    pub fn cells(&self, part: &str) -> Vec<SniaCell> {
        let blocks = self.blocks.iter();
        let blocks: Vec<u64> = match self.test {
            SniaTest::Throughput => blocks
                .filter(|&&b| block_name(b) == part)
                .copied()
                .collect(),
            _ => blocks.copied().collect(),
        };
        let cells = self.mixes.iter().flat_map(|&reads_percent| {
            blocks.iter().map(move |&block_bytes| SniaCell {
                reads_percent,
                block_bytes,
            })
        });
        cells.collect()
    }

    /// The cells whose figures decide, those of them that there are.
    pub fn tracked(&self, part: &str) -> Vec<SniaCell> {
        let cells = self.cells(part);
        let cell = |reads_percent, kib: u64| SniaCell {
            reads_percent,
            block_bytes: kib * KIB,
        };
        let wanted = match self.test {
            // 2.0 tracks three; 1.1 tracked the first only.
            SniaTest::Iops => vec![cell(0, 4), cell(65, 64), cell(100, 1024)],
            SniaTest::Latency | SniaTest::Wsat => vec![cell(0, 4)],
            SniaTest::Throughput => return cells,
        };
        wanted.into_iter().filter(|c| cells.contains(c)).collect()
    }

    /// What decides, by its name: other limits are named as such.
    pub fn criterion_name(&self) -> String {
        match self.criterion {
            TrackedVariable::Tracked => {
                format!("{}, of the tracked variables", self.limits.rule().name())
            }
            TrackedVariable::AllCells => self.criterion.to_string(),
        }
    }

    /// The cell of the histogram at the end.
    pub fn histogram_cell(&self) -> SniaCell {
        SniaCell {
            reads_percent: 0,
            block_bytes: 4 * KIB,
        }
    }

    /// What is otherwise than in the specification, a sentence each.
    pub fn deviations(&self) -> Vec<String> {
        let own = Self::specified(self.test, self.class, self.capacity_bytes);
        let mut told = Vec::new();
        let mut tell = |differs: bool, what: String| {
            if differs {
                told.push(what);
            }
        };
        let bytes = |bytes: u64| units::bytes(bytes as f64);
        tell(
            self.active_bytes != own.active_bytes,
            format!(
                "the active range is {}, the specification's is {}",
                bytes(self.active_bytes),
                bytes(own.active_bytes)
            ),
        );
        tell(
            (self.iodepth, self.jobs) != (own.iodepth, own.jobs),
            format!(
                "QD {} × {} threads, the specification has QD {} × {}",
                self.iodepth, self.jobs, own.iodepth, own.jobs
            ),
        );
        tell(
            (self.fill_block_bytes, self.fill_loops) != (own.fill_block_bytes, own.fill_loops),
            format!(
                "the range is filled {} × in blocks of {}, the specification's {} × in blocks of {}",
                self.fill_loops,
                block_name(self.fill_block_bytes),
                own.fill_loops,
                block_name(own.fill_block_bytes)
            ),
        );
        if let Some(what) = self.other_cells(&own) {
            tell(true, what);
        }
        let time = units::duration;
        tell(
            self.cell_ms != own.cell_ms,
            format!(
                "a cell takes {}, the specification's {}",
                time(self.cell_ms),
                time(own.cell_ms)
            ),
        );
        tell(
            self.histogram_ms != own.histogram_ms,
            format!(
                "the histogram takes {}, the specification's {}",
                time(self.histogram_ms),
                time(own.histogram_ms)
            ),
        );
        self.tell_limits(&own, &mut told);
        told.extend(self.write_cache.deviation());
        told
    }

    /// How the cells of a round differ.
    fn other_cells(&self, own: &Self) -> Option<String> {
        if self.mixes == own.mixes && self.blocks == own.blocks {
            return None;
        }
        // A drive whose own blocks are larger cannot do the smallest ones.
        let (rest, missing): (Vec<u64>, Vec<u64>) = own
            .blocks
            .iter()
            .partition(|block| self.blocks.contains(block));
        if self.mixes != own.mixes || rest != self.blocks {
            let what = "the mixes and block sizes are not those of the specification";
            return Some(what.to_owned());
        }
        let names: Vec<String> = missing.into_iter().map(block_name).collect();
        Some(format!("there are no cells of {}", names.join(", ")))
    }

    fn tell_limits(&self, own: &Self, told: &mut Vec<String>) {
        let limits = self.limits;
        if (limits.data_percent, limits.slope_percent)
            != (own.limits.data_percent, own.limits.slope_percent)
        {
            told.push(format!(
                "data excursion ≤ {} % and slope excursion ≤ {} %, the specification has {} % and \
                 {} %",
                limits.data_percent,
                limits.slope_percent,
                own.limits.data_percent,
                own.limits.slope_percent
            ));
        }
        if (limits.window, limits.max_rounds) != (own.limits.window, own.limits.max_rounds) {
            told.push(format!(
                "a window of {} rounds within {}, the specification has {} within {}",
                limits.window, limits.max_rounds, own.limits.window, own.limits.max_rounds
            ));
        }
        if self.criterion == TrackedVariable::AllCells {
            told.push(format!("{} decides, not SNIA's", self.criterion));
        }
        let stop = |setup: &Self| (setup.stop_fills, setup.stop_ms);
        if self.test == SniaTest::Wsat && stop(self) != stop(own) {
            told.push(format!(
                "it ends after {} drive fills or {}, the specification's after {} or {}",
                self.stop_fills,
                units::duration(self.stop_ms),
                own.stop_fills,
                units::duration(own.stop_ms)
            ));
        }
    }
}

/// Whole blocks of 4 KiB: a range that ends within one cannot be written to its end.
fn aligned(bytes: u128) -> u64 {
    u64::try_from(bytes / 4096 * 4096).unwrap_or(u64::MAX)
}

/// A block size as job files and tables have it: `512`, `4k`, `1024k`.
pub(super) fn block_name(bytes: u64) -> String {
    match bytes % KIB {
        0 => format!("{}k", bytes / KIB),
        _ => bytes.to_string(),
    }
}

impl Setup {
    /// The id of a stage of this test: `iops/round-03`, `throughput/128k/purge`.
    pub fn stage_id(&self, part: &str, stage: &str) -> String {
        let (scope, test) = (&self.scope, self.test.name());
        match part {
            "" => format!("{scope}{test}/{stage}"),
            part => format!("{scope}{test}/{part}/{stage}"),
        }
    }

    /// As a heading has it: with its step, where it is one of a plan file.
    pub fn title(&self) -> String {
        let title = self.test.title();
        match self.scope.strip_suffix('/') {
            None => title.to_owned(),
            Some(step) => format!("{title} ({step})"),
        }
    }

    /// The part that a stage belongs to and its name there; `None` when it is
    /// none of this test.
    pub fn part_of<'i>(&self, stage_id: &'i str) -> Option<(&'i str, &'i str)> {
        let own = stage_id.strip_prefix(&self.scope)?;
        let own = own.strip_prefix(self.test.name())?.strip_prefix('/')?;
        Some(own.split_once('/').unwrap_or(("", own)))
    }
}

impl SniaCell {
    /// The cell that a point measures; `None` when it is none.
    pub fn of(point: &Point) -> Option<Self> {
        let reads_percent = match point.settings.get("rw")?.as_str() {
            "read" | "randread" => 100,
            "write" | "randwrite" => 0,
            _ => u8::try_from(point.number("rwmixread")?).ok()?,
        };
        Some(Self {
            reads_percent,
            block_bytes: point.number("bs")?,
        })
    }

    /// `65/35`: reads and writes in percent.
    pub fn mix(&self) -> String {
        format!("{}/{}", self.reads_percent, 100 - self.reads_percent)
    }

    /// `64k`.
    pub fn block(&self) -> String {
        block_name(self.block_bytes)
    }
}

/// `65/35 64k`.
impl fmt::Display for SniaCell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}", self.mix(), self.block())
    }
}
