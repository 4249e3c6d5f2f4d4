//! Pre-conditioning as the configuration asks for it.

use std::path::Path;
use std::time::Duration;

use fathom_kconfig::Config;
use fathom_model::value::{Amount, BareTimeUnit, Base, amount, size, time_us};

use super::{
    ActiveRange, DecidingRule, MetricLimits, PreconditionMethod, PreconditionSettings, SNIA_ROUND,
    SNIA_WINDOW, SteadyWait,
};
use crate::CampaignError;

impl PreconditionSettings {
    /// What the configuration asks for; `None`: no pre-conditioning.
    ///
    /// # Errors
    /// When a symbol has a value that cannot be used.
    pub fn of(config: &Config, dut: &Path) -> Result<Option<Self>, CampaignError> {
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

/// Reads symbols.
struct SymbolReader<'c>(&'c Config);

impl SymbolReader<'_> {
    /// A value, where the symbol is there and not empty.
    fn text(&self, symbol: &'static str) -> Option<&str> {
        let text = self.0.get(symbol)?.trim();
        (!text.is_empty()).then_some(text)
    }

    fn value<T>(
        &self,
        symbol: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, CampaignError> {
        let Some(text) = self.text(symbol) else {
            return Ok(None);
        };
        let wrong = |reason| CampaignError::Setting {
            symbol,
            value: text.to_owned(),
            reason,
        };
        parse(text).map(Some).map_err(wrong)
    }

    fn count(&self, symbol: &'static str) -> Result<Option<u32>, CampaignError> {
        self.value(symbol, |text| {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| "it is a whole number above 0".to_owned())
        })
    }

    fn size(&self, symbol: &'static str) -> Result<Option<u64>, CampaignError> {
        self.value(symbol, |text| {
            let bytes = size(text, Base::default()).map_err(|fault| fault.message)?;
            let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            bytes.ok_or_else(|| "a size is above 0".to_owned())
        })
    }

    fn time(&self, symbol: &'static str) -> Result<Option<Duration>, CampaignError> {
        self.value(symbol, |text| {
            let us = time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.message)?;
            let us = u64::try_from(us).ok().filter(|us| *us > 0);
            us.map(Duration::from_micros)
                .ok_or_else(|| "a time is above 0".to_owned())
        })
    }

    /// fio takes a number without % for a limit in the unit of the metric.
    fn percent(&self, symbol: &'static str) -> Result<Option<f64>, CampaignError> {
        self.value(symbol, |text| {
            let number = text.strip_suffix('%').and_then(|n| n.trim().parse().ok());
            let number = number.filter(|n: &f64| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| "it is a share in percent, as in 20%".to_owned())
        })
    }

    fn range(&self) -> Result<ActiveRange, CampaignError> {
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
    ) -> Result<Option<MetricLimits>, CampaignError> {
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

    fn santa_clara(&self) -> Result<Option<SteadyWait>, CampaignError> {
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
    fn snia(&self) -> Result<SteadyWait, CampaignError> {
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
