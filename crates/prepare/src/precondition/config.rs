//! Pre-conditioning as the configuration asks for it.

use std::path::Path;
use std::time::Duration;

use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::value::{Amount, Base, amount};

use super::{
    ActiveRange, DecidingRule, MetricLimits, PreconditionMethod, PreconditionSettings, SNIA_ROUND,
    SNIA_WINDOW, SteadyWait,
};
use crate::symbols::SymbolReader;

impl PreconditionSettings {
    /// What the configuration asks for; `None`: no pre-conditioning.
    ///
    /// # Errors
    /// When a symbol has a value that cannot be used.
    pub fn of(config: &Config, dut: &Path) -> Result<Option<Self>, RunError> {
        if !config.is_on("STEADY_STATE_PROVISIONING") || !config.is_on("PRECONDITIONING") {
            return Ok(None);
        }
        let read = SymbolReader(config);
        let method = match config.is_on("PRECONDITION_SNIA_IOPS") {
            true => PreconditionMethod::Snia,
            false => PreconditionMethod::SantaClara,
        };
        let steady = match method {
            PreconditionMethod::Snia => Some(read.snia()?),
            PreconditionMethod::SantaClara => read.santa_clara()?,
        };
        let bs_bytes = read.size("PRECONDITION_BLOCKSIZE")?.unwrap_or(128 << 10);
        let block = read.size("DUT_BLOCKSIZE")?;
        let random = read.size("PRECONDITION_RANDOM_BLOCKSIZE")?.or(block);
        Ok(Some(Self {
            method,
            dut: dut.to_owned(),
            ioengine: config.get("DUT_IOENGINE").unwrap_or("libaio").to_owned(),
            range: read.range()?,
            bs_bytes,
            random_bs_bytes: random.unwrap_or(4 << 10),
            iodepth: read.count("PRECONDITION_IODEPTH")?.unwrap_or(32),
            numjobs: read.count("PRECONDITION_NUMJOBS")?.unwrap_or(4),
            loops: read.count("PRECONDITION_PREFILL_LOOP")?.unwrap_or(2),
            strict_order: config.is_on("PRECONDITION_STRICT_ORDER"),
            steady,
            sprandom: config.is_on("PRECONDITION_SPRANDOM"),
        }))
    }
}

impl SymbolReader<'_> {
    fn range(&self) -> Result<ActiveRange, RunError> {
        let range = self.value("DUT_IOSIZE", |text| {
            match amount(text, Base::default()).map_err(|fault| fault.message)? {
                Amount::Percent(percent @ 1..=100) => Ok(ActiveRange::Percent(percent)),
                Amount::Number(bytes) if bytes > 0 => Ok(ActiveRange::Bytes(bytes.unsigned_abs())),
                _ => Err("it is a size, or a share from 1% to 100%".to_owned()),
            }
        })?;
        Ok(range.unwrap_or(ActiveRange::Percent(100)))
    }

    /// The limits of one metric; `None`: it is not looked at.
    fn limits(
        &self,
        on: &str,
        [mean, mean_window, slope, slope_window]: [&'static str; 4],
    ) -> Result<Option<MetricLimits>, RunError> {
        if !self.0.is_on(on) {
            return Ok(None);
        }
        let usual = Duration::from_secs(15 * 60);
        Ok(Some(MetricLimits {
            mean_percent: self.percent(mean)?.unwrap_or(20.0),
            mean_window: self.time(mean_window)?.unwrap_or(usual),
            slope_percent: self.percent(slope)?.unwrap_or(10.0),
            slope_window: self.time(slope_window)?.unwrap_or(usual),
        }))
    }

    fn santa_clara(&self) -> Result<Option<SteadyWait>, RunError> {
        if !self.0.is_on("PRECONDITION_FIO_STEADY_STATE") {
            return Ok(None);
        }
        let iops = [
            "IOPS_WD_SS_MEAN_LIMIT",
            "IOPS_WD_SS_MEAN_LIMIT_DUR",
            "IOPS_WD_SS_SLOPE",
            "IOPS_WD_SS_SLOPE_DUR",
        ];
        let bw = [
            "BW_WD_SS_MEAN_LIMIT",
            "BW_WD_SS_MEAN_LIMIT_DUR",
            "BW_WD_SS_SLOPE",
            "BW_WD_SS_SLOPE_DUR",
        ];
        let iops = self.limits("PRECONDITION_FIO_STEADY_STATE_IOPS", iops)?;
        let bw = self.limits("PRECONDITION_FIO_STEADY_STATE_BW", bw)?;
        if iops.is_none() && bw.is_none() {
            return Ok(None);
        }
        Ok(Some(SteadyWait {
            by: match self.0.is_on("PRECONDITION_BY_SNIA") {
                true => DecidingRule::Snia,
                false => DecidingRule::Fio,
            },
            iops,
            bw,
            rounds: self.count("SANTA_CLARA_ROUND_LIMIT")?.unwrap_or(5),
            soft: self.0.is_on("SANTA_CLARA_ROUND_LIMIT_SOFT"),
        }))
    }

    /// SNIA's rounds and limits: those of its menu where that is on, else those
    /// of the quick defaults, else its own.
    fn snia(&self) -> Result<SteadyWait, RunError> {
        let quick = self.time("DEBUG_FAST_RUNTIME")?;
        let round = self
            .time("SNIA_IOPS_WD_RUNTIME")?
            .or(quick)
            .unwrap_or(SNIA_ROUND);
        let quick = |easy, difficult| match self.0.is_on("DEBUG_DIFFICULT_STEADY_STATE") {
            true => self.percent(difficult),
            false => self.percent(easy),
        };
        let mean = self.percent("SNIA_IOPS_WD_SS_MEAN_LIMIT")?;
        let slope = self.percent("SNIA_IOPS_WD_SS_SLOPE")?;
        let quick_mean = quick("DEBUG_EASY_SS_MEAN_LIMIT", "DEBUG_DIFFICULT_SS_MEAN_LIMIT")?;
        let quick_slope = quick("DEBUG_EASY_SS_SLOPE", "DEBUG_DIFFICULT_SS_SLOPE")?;
        let window = round * u32::try_from(SNIA_WINDOW).unwrap_or(u32::MAX);
        let limits = MetricLimits {
            mean_percent: mean.or(quick_mean).unwrap_or(20.0),
            mean_window: window,
            slope_percent: slope.or(quick_slope).unwrap_or(10.0),
            slope_window: window,
        };
        Ok(SteadyWait {
            by: DecidingRule::Snia,
            iops: Some(limits),
            bw: None,
            rounds: self.count("SANTA_CLARA_ROUND_LIMIT")?.unwrap_or(5),
            soft: self.0.is_on("SANTA_CLARA_ROUND_LIMIT_SOFT"),
        })
    }
}
