//! Reads the values of symbols: one grammar, one wording for errors.

use std::time::Duration;

use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::value::{BareTimeUnit, Base, size, time_us};

/// Reads the values of symbols: `None` where one is not there, or empty.
#[derive(Debug, Clone, Copy)]
pub struct SymbolReader<'c>(pub &'c Config);

impl<'c> SymbolReader<'c> {
    /// The text itself.
    pub fn text(&self, symbol: &str) -> Option<&'c str> {
        let text = self.0.get(symbol)?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The value as `parse` reads it.
    ///
    /// # Errors
    /// The error of `parse` after the symbol and its value, here and below.
    pub fn value<T>(
        &self,
        symbol: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, RunError> {
        let Some(text) = self.text(symbol) else {
            return Ok(None);
        };
        parse(text)
            .map(Some)
            .map_err(|reason| RunError::Input(format!("CONFIG_{symbol}=\"{text}\": {reason}")))
    }

    /// A whole number above 0.
    pub fn count(&self, symbol: &str) -> Result<Option<u32>, RunError> {
        self.value(symbol, |text| {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| "it is a whole number above 0".to_owned())
        })
    }

    /// A size as job files have it, in bytes, above 0.
    pub fn size(&self, symbol: &str) -> Result<Option<u64>, RunError> {
        self.value(symbol, |text| {
            let bytes = size(text, Base::default()).map_err(|fault| fault.message)?;
            let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            bytes.ok_or_else(|| "a size is above 0".to_owned())
        })
    }

    /// A time as job files have it, above 0.
    pub fn time(&self, symbol: &str) -> Result<Option<Duration>, RunError> {
        self.value(symbol, |text| {
            let us = time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.message)?;
            let us = u64::try_from(us).ok().filter(|us| *us > 0);
            us.map(Duration::from_micros)
                .ok_or_else(|| "a time is above 0, as in 60s".to_owned())
        })
    }

    /// A share in percent. fio takes a number without % for a limit in the unit of the metric,
    /// so it is not taken for a share.
    pub fn percent(&self, symbol: &str) -> Result<Option<f64>, RunError> {
        self.value(symbol, |text| {
            let number = text.strip_suffix('%').and_then(|n| n.trim().parse().ok());
            let number = number.filter(|n: &f64| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| "it is a share in percent, as in 20%".to_owned())
        })
    }
}
