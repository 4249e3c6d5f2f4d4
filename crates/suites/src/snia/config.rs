//! The set-up of a test: from the specification, with what a configuration or
//! the command line lays over it.

use std::time::Duration;

use clap::builder::TypedValueParser as _;
use fathom_analysis::snia::{DriveClass, Setup, SniaTest, TrackedVariable};
use fathom_flow::error::RunError;
use fathom_flow::options::duration;
use fathom_kconfig::Config;
use fathom_model::units::parse_size;
use fathom_prepare::symbols::SymbolReader;
use serde::{Deserialize, Serialize};

/// What is wanted otherwise than in the specification; `None`: as it is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Different from the specification (the report says so)")]
pub struct SniaChoices {
    /// Short instead of right: cells of a second, 4 MiB, one fill, two or three rounds
    #[arg(long)]
    pub debug: bool,
    /// Active range: a part such as 75%, or a size such as 8g
    #[arg(long = "range", value_name = "RANGE")]
    pub active_range: Option<String>,
    /// I/Os that each thread keeps in flight
    #[arg(long, value_name = "N")]
    pub iodepth: Option<u32>,
    /// Threads
    #[arg(long = "threads", value_name = "N")]
    pub jobs: Option<u32>,
    /// How often the range is filled before the rounds
    #[arg(long = "fills", value_name = "N")]
    pub fill_loops: Option<u32>,
    /// Block size of the fill: `128k`.
    #[arg(skip)]
    pub fill_block: Option<String>,
    /// IOPS: the mixes, reads/writes in percent: 100/0,65/35,0/100
    #[arg(long, value_name = "LIST")]
    pub mixes: Option<String>,
    /// IOPS: the block sizes: 1024k,64k,4k
    #[arg(long, value_name = "LIST")]
    pub blocks: Option<String>,
    /// Time of a cell (write saturation: of a sample)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub cell: Option<Duration>,
    /// Time of the histogram
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub histogram: Option<Duration>,
    /// Time between two samples.
    #[arg(skip)]
    pub interval: Option<Duration>,
    /// Rounds of the measurement window
    #[arg(long, value_name = "N")]
    pub window: Option<usize>,
    /// Rounds after which steady state is not attained
    #[arg(long, value_name = "N")]
    pub max_rounds: Option<usize>,
    /// Go on beyond them, with a warning, until it is
    #[arg(long)]
    pub soft: bool,
    /// Limit of the data excursion, in percent of the average
    #[arg(long = "data-limit", value_name = "PERCENT")]
    pub data_percent: Option<f64>,
    /// Limit of the slope excursion, in percent of the average
    #[arg(long = "slope-limit", value_name = "PERCENT")]
    pub slope_percent: Option<f64>,
    /// fio-tests' stricter criterion decides: in every round of the window every
    /// cell keeps fio's rule
    #[arg(long = "all-cells", value_parser = clap::builder::BoolishValueParser::new()
        .map(|all| if all { TrackedVariable::AllCells } else { TrackedVariable::Tracked }))]
    #[arg(action = clap::ArgAction::SetTrue)]
    pub criterion: TrackedVariable,
    /// fio's rule in a cell: distance from the mean in percent, and its window.
    #[arg(skip)]
    pub cell_mean: (Option<f64>, Option<Duration>),
    /// fio's rule in a cell: slope in percent, and its window.
    #[arg(skip)]
    pub cell_slope: (Option<f64>, Option<Duration>),
    /// Write saturation: drive fills that end it
    #[arg(long, value_name = "N")]
    pub stop_fills: Option<f64>,
    /// Write saturation: time that ends it
    #[arg(long = "stop-after", value_name = "TIME", value_parser = duration)]
    pub stop: Option<Duration>,
    /// Write saturation: samples that make a round of the criterion.
    #[arg(skip)]
    pub samples_a_round: Option<usize>,
}

/// The least time of a cell of a test in which something is judged by samples.
const SAMPLES: u64 = 10;

impl SniaChoices {
    /// As short as it can be, to see whether a test goes through: the same
    /// settings as DEBUG_QUICK_DEFAULTS of a campaign.
    pub fn debug() -> Self {
        let second = Some(Duration::from_secs(1));
        Self {
            active_range: Some("4096k".to_owned()),
            fill_loops: Some(1),
            cell: second,
            histogram: second,
            window: Some(2),
            max_rounds: Some(3),
            data_percent: Some(100.0),
            slope_percent: Some(100.0),
            cell_mean: (Some(100.0), second),
            cell_slope: (Some(100.0), second),
            stop: Some(Duration::from_secs(6)),
            samples_a_round: Some(1),
            ..Self::default()
        }
    }

    /// With the values of [`debug`](Self::debug()) where it is to be short and nothing else
    /// is said.
    fn resolved(&self) -> Self {
        let base = match self.debug {
            true => Self::debug(),
            false => return self.clone(),
        };
        let this = self.clone();
        Self {
            active_range: this.active_range.or(base.active_range),
            fill_loops: this.fill_loops.or(base.fill_loops),
            cell: this.cell.or(base.cell),
            histogram: this.histogram.or(base.histogram),
            window: this.window.or(base.window),
            max_rounds: this.max_rounds.or(base.max_rounds),
            data_percent: this.data_percent.or(base.data_percent),
            slope_percent: this.slope_percent.or(base.slope_percent),
            cell_mean: base.cell_mean,
            cell_slope: base.cell_slope,
            stop: this.stop.or(base.stop),
            samples_a_round: base.samples_a_round,
            ..this
        }
    }

    /// The set-up on a device of this capacity.
    ///
    /// # Errors
    /// A sentence about the first value that cannot be.
    pub fn setup(
        &self,
        test: SniaTest,
        class: DriveClass,
        capacity_bytes: u64,
    ) -> Result<Setup, String> {
        let chosen = self.resolved();
        let mut setup = Setup::specified(test, class, capacity_bytes);
        if let Some(range) = &chosen.active_range {
            setup.active_bytes = active_bytes(range, capacity_bytes)?;
        }
        let set = |place: &mut u32, value: Option<u32>| *place = value.unwrap_or(*place);
        set(&mut setup.iodepth, chosen.iodepth);
        set(&mut setup.jobs, chosen.jobs);
        // Write saturation begins on a purged device.
        if test != SniaTest::Wsat {
            set(&mut setup.fill_loops, chosen.fill_loops);
        }
        if let Some(block) = &chosen.fill_block {
            setup.fill_block_bytes = bytes(block)?;
        }
        // The others have cells of their own.
        if test == SniaTest::Iops {
            if let Some(mixes) = &chosen.mixes {
                setup.mixes = list(mixes, mix)?;
            }
            if let Some(blocks) = &chosen.blocks {
                setup.blocks = list(blocks, bytes)?;
            }
        }
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        setup.cell_ms = chosen.cell.map_or(setup.cell_ms, ms);
        if setup.histogram_ms > 0 {
            setup.histogram_ms = chosen.histogram.map_or(setup.histogram_ms, ms);
        }
        let interval = chosen.interval.map(ms);
        // A short cell has samples too.
        setup.interval_ms = interval.unwrap_or((setup.cell_ms / SAMPLES).clamp(100, 1000));
        setup.stop_ms = chosen.stop.map_or(setup.stop_ms, ms);
        setup.stop_fills = chosen.stop_fills.unwrap_or(setup.stop_fills);
        if test == SniaTest::Wsat {
            setup.samples_a_round = chosen
                .samples_a_round
                .unwrap_or(setup.samples_a_round)
                .max(1);
        }
        chosen.limits(&mut setup);
        let rule = &mut setup.cell_rule;
        rule.mean_percent = chosen.cell_mean.0.unwrap_or(rule.mean_percent);
        rule.mean_ms = chosen.cell_mean.1.map_or(rule.mean_ms, ms);
        rule.slope_percent = chosen.cell_slope.0.unwrap_or(rule.slope_percent);
        rule.slope_ms = chosen.cell_slope.1.map_or(rule.slope_ms, ms);
        check(&setup)?;
        Ok(setup)
    }

    fn limits(&self, setup: &mut Setup) {
        let limits = &mut setup.limits;
        limits.window = self.window.unwrap_or(limits.window);
        limits.max_rounds = self.max_rounds.unwrap_or(limits.max_rounds);
        limits.soft = self.soft;
        limits.data_percent = self.data_percent.unwrap_or(limits.data_percent);
        limits.slope_percent = self.slope_percent.unwrap_or(limits.slope_percent);
        // Its samples are single cells; it has no rounds of cells.
        if setup.test != SniaTest::Wsat {
            setup.criterion = self.criterion;
        }
        if setup.criterion == TrackedVariable::Tracked {
            // One round has no slope.
            limits.window = limits.window.max(2);
        }
        limits.max_rounds = limits.max_rounds.max(limits.window);
    }
}

/// What makes no sense.
fn check(setup: &Setup) -> Result<(), String> {
    let largest = setup.blocks.iter().max().copied().unwrap_or(0);
    if setup.blocks.is_empty() || setup.mixes.is_empty() {
        return Err("a round needs a mix and a block size at least".to_owned());
    }
    if setup.active_bytes < largest.max(setup.fill_block_bytes) {
        return Err(format!(
            "the active range of {} bytes is smaller than a block of {largest}",
            setup.active_bytes
        ));
    }
    if setup.active_bytes > setup.capacity_bytes {
        return Err(format!(
            "the active range of {} bytes is larger than the device, which has {}",
            setup.active_bytes, setup.capacity_bytes
        ));
    }
    for (what, value) in [
        ("the I/O depth", u64::from(setup.iodepth)),
        ("the number of threads", u64::from(setup.jobs)),
        ("the time of a cell", setup.cell_ms),
    ] {
        if value == 0 {
            return Err(format!("{what} is 0"));
        }
    }
    let tracked = setup
        .parts()
        .iter()
        .any(|part| !setup.tracked(part).is_empty());
    if !tracked {
        return Err(
            "none of the cells is tracked, so that nothing could be judged: 0/100 4k, 65/35 64k \
             and 100/0 1024k are"
                .to_owned(),
        );
    }
    Ok(())
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|item| read(item.trim())).collect()
}

/// The reads of `65/35`.
fn mix(text: &str) -> Result<u8, String> {
    let parts = text.split_once('/').and_then(|(reads, writes)| {
        Some((
            reads.trim().parse::<u8>().ok()?,
            writes.trim().parse::<u8>().ok()?,
        ))
    });
    match parts {
        Some((reads, writes)) if u16::from(reads) + u16::from(writes) == 100 => Ok(reads),
        _ => Err(format!(
            "'{text}' is no mix: reads/writes in percent, as in 65/35"
        )),
    }
}

/// A size as job files have it.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no size: a number, as in 4k, 512, 8g");
    parse_size(text).ok_or_else(wrong)
}

/// `75%` of the capacity, or a size.
fn active_bytes(text: &str, capacity_bytes: u64) -> Result<u64, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return bytes(text);
    };
    let percent = percent.trim().parse::<f64>().ok();
    let percent = percent.filter(|p| *p > 0.0 && *p <= 100.0);
    let percent = percent.ok_or_else(|| format!("'{text}' is no part of a device: 1% to 100%"))?;
    let bytes = (capacity_bytes as f64 * percent / 100.0) as u64;
    // Whole blocks: a range that ends within one cannot be written to its end.
    Ok(bytes.min(capacity_bytes) / 4096 * 4096)
}

/// The tests that a configuration asks for, with what it wants of them.
///
/// # Errors
/// A value that cannot be.
pub fn from_config(config: &Config) -> Result<Vec<(SniaTest, DriveClass, SniaChoices)>, RunError> {
    if !config.is_on("SNIA_TESTS") {
        return Ok(Vec::new());
    }
    let class = match config.is_on("ENTERPRISE_SSD_TESTING") {
        true => DriveClass::Enterprise,
        false => DriveClass::Client,
    };
    let symbols = [
        (SniaTest::Iops, "SNIA_IOPS"),
        (SniaTest::Throughput, "SNIA_THROUGHPUT"),
        (SniaTest::Latency, "SNIA_LATENCY"),
        (SniaTest::Wsat, "SNIA_WSAT"),
    ];
    let on = symbols
        .into_iter()
        .filter(|(_, symbol)| config.is_on(symbol));
    on.map(|(test, _)| Ok((test, class, wanted(config, test)?)))
        .collect()
}

fn wanted(config: &Config, test: SniaTest) -> Result<SniaChoices, RunError> {
    let debug = config.is_on("DEBUG_QUICK_DEFAULTS");
    let mut wanted = match debug {
        true => SniaChoices::debug(),
        false => SniaChoices::default(),
    };
    if debug {
        let range = config.get("DEBUG_ACTIVE_RANGE").unwrap_or_default();
        wanted.active_range = Some(range.to_owned()).filter(|range| !range.is_empty());
        let runtime = SymbolReader(config).time("DEBUG_FAST_RUNTIME")?;
        wanted.cell = runtime;
        wanted.histogram = runtime;
    }
    if test != SniaTest::Iops {
        // Its limits hold for all of them; what else a test has is its own.
        let iops = iops(config)?;
        wanted.window = iops.window;
        wanted.max_rounds = iops.max_rounds;
        wanted.soft = iops.soft;
        wanted.data_percent = iops.data_percent;
        wanted.slope_percent = iops.slope_percent;
        return Ok(wanted);
    }
    let histogram = wanted.histogram;
    wanted = iops(config)?;
    wanted.histogram = histogram;
    Ok(wanted)
}

/// The symbols of fio-tests, which are those of the IOPS test. Where it is off
/// they are not there, and the specification's values hold.
fn iops(config: &Config) -> Result<SniaChoices, RunError> {
    let read = SymbolReader(config);
    let text = |symbol: &str| read.text(symbol).map(str::to_owned);
    let mean = percent(read, "SNIA_IOPS_WD_SS_MEAN_LIMIT")?;
    let slope = percent(read, "SNIA_IOPS_WD_SS_SLOPE")?;
    Ok(SniaChoices {
        active_range: text("SNIA_IOPS_ACTIVE_RANGE"),
        iodepth: read.count("SNIA_IOPS_IODEPTH")?,
        jobs: read.count("SNIA_IOPS_JOBS")?,
        fill_loops: read.count("SNIA_IOPS_WI_LOOPS")?,
        fill_block: text("SNIA_IOPS_WI_BS"),
        mixes: text("SNIA_IOPS_WD_RANDRW_STEP"),
        blocks: text("SNIA_IOPS_WD_BS_STEP"),
        cell: read.time("SNIA_IOPS_WD_RUNTIME")?,
        window: read
            .count("SNIA_IOPS_WD_ROUND_MIN_COUNT")?
            .map(|n| n as usize),
        max_rounds: read.count("SNIA_IOPS_WD_ROUND_LIMIT")?.map(|n| n as usize),
        soft: config.is_on("SNIA_IOPS_WD_ROUND_LIMIT_SOFT"),
        data_percent: mean,
        slope_percent: slope,
        criterion: match config.is_on("SNIA_CRITERION_ALL_CELLS") {
            true => TrackedVariable::AllCells,
            false => TrackedVariable::Tracked,
        },
        cell_mean: (mean, read.time("SNIA_IOPS_WD_SS_MEAN_LIMIT_DUR")?),
        cell_slope: (slope, read.time("SNIA_IOPS_WD_SS_SLOPE_DUR")?),
        ..SniaChoices::default()
    })
}

/// A share in percent, with its % or without.
fn percent(read: SymbolReader<'_>, symbol: &str) -> Result<Option<f64>, RunError> {
    read.value(symbol, |text| {
        let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| "it is a percentage, as in 20%".to_owned())
    })
}
