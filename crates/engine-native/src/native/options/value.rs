//! The text of an option's value into what a [`super::NativeJob`] holds, by the job
//! files' own number grammar ([`fathom_model::value`]).

use std::str::FromStr;
use std::time::Duration;

use fathom_model::value::{self, BareTimeUnit, Base};

use crate::native::job::FileAmount;

/// What is wrong with a value, without its option's name.
pub(super) type Outcome<T> = Result<T, String>;

/// An option's value, and what `k` means in its job.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionValue<'a>(pub(super) Option<&'a str>, pub(super) Base);

impl<'a> OptionValue<'a> {
    /// The text; an option that needs a value and has none is an error.
    pub(super) fn text(self) -> Outcome<&'a str> {
        match self.0.map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("needs a value".to_owned()),
        }
    }

    /// A switch: without a value it is on.
    pub(super) fn flag(self) -> Outcome<bool> {
        match self.0.map(str::trim) {
            None | Some("" | "1") => Ok(true),
            Some("0") => Ok(false),
            Some(other) => Err(format!("'{other}' is neither 0 nor 1")),
        }
    }

    /// A whole number, also with a size's unit (fio takes `iodepth=1k`).
    pub(super) fn number<T: TryFrom<u64>>(self) -> Outcome<T> {
        let text = self.text()?;
        let number = self.bytes(text)?;
        T::try_from(number).map_err(|_| format!("{text} is too large"))
    }

    /// A size of blocks: more than 0.
    pub(super) fn block(self) -> Outcome<u32> {
        self.block_in(self.text()?)
    }

    /// A block size in a part of the value.
    pub(super) fn block_in(self, part: &str) -> Outcome<u32> {
        match u32::try_from(self.bytes(part)?) {
            Ok(0) => Err("a block has at least one byte".to_owned()),
            Ok(size) => Ok(size),
            Err(_) => Err(format!("{part} is too large for a block")),
        }
    }

    /// A size in bytes in a part of the value: `4096`, `0x1000`, `4k`.
    pub(super) fn bytes(self, part: &str) -> Outcome<u64> {
        let bytes = value::size(part, self.1).map_err(|fault| fault.message)?;
        unsigned(part, bytes)
    }

    /// `low-high` or `low:high`, or one value for both.
    pub(super) fn range<T: PartialOrd + Copy>(
        self,
        one: impl Fn(&str) -> Outcome<T>,
    ) -> Outcome<(T, T)> {
        let text = self.text()?;
        let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
        let (low, high) = (one(low)?, one(high)?);
        if low > high {
            return Err(format!("'{text}' begins above its end"));
        }
        Ok((low, high))
    }

    /// A size in bytes or percent.
    pub(super) fn amount(self) -> Outcome<FileAmount> {
        let text = self.text()?;
        match value::amount(text, self.1).map_err(|fault| fault.message)? {
            value::Amount::Percent(percent) => Ok(FileAmount::Percent(u64::from(percent))),
            value::Amount::Number(bytes) => Ok(FileAmount::Bytes(unsigned(text, bytes)?)),
            value::Amount::Zones(zones) => Ok(FileAmount::Zones(zones)),
        }
    }

    /// A percentage without a sign.
    pub(super) fn percent(self) -> Outcome<u8> {
        percent(self.text()?)
    }

    /// A time; `bare` is what a number alone counts.
    pub(super) fn time(self, bare: BareTimeUnit) -> Outcome<Duration> {
        time(self.text()?, bare)
    }

    /// `read,write,trim`: what is left out is as the one before, the first as
    /// in `default`; one value is for all.
    pub(super) fn triple<T: Clone>(
        self,
        default: &[T; 3],
        one: impl Fn(&str) -> Outcome<T>,
    ) -> Outcome<[T; 3]> {
        let text = self.text()?;
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            return Err(format!(
                "'{text}' has more than the three values of read, write and trim"
            ));
        }
        let mut values = default.clone();
        for place in 0..3 {
            match parts.get(place).filter(|part| !part.is_empty()) {
                Some(part) => values[place] = one(part)?,
                None if place > 0 => values[place] = values[place - 1].clone(),
                None => {}
            }
        }
        Ok(values)
    }
}

/// A number without a unit.
pub(super) fn plain<T: FromStr>(text: &str) -> Outcome<T> {
    text.trim()
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

/// A percentage of 0 to 100.
pub(super) fn percent(text: &str) -> Outcome<u8> {
    match plain::<u8>(text.trim_end_matches('%'))? {
        percent @ 0..=100 => Ok(percent),
        other => Err(format!("{other} is more than 100 percent")),
    }
}

/// A time; `bare` is what a number alone counts.
pub(super) fn time(text: &str, bare: BareTimeUnit) -> Outcome<Duration> {
    let us = value::time_us(text, bare).map_err(|fault| fault.message)?;
    Ok(Duration::from_micros(unsigned(text, us)?))
}

fn unsigned(text: &str, number: i64) -> Outcome<u64> {
    u64::try_from(number).map_err(|_| format!("{text} is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_fill_up_from_the_left_and_keep_the_first_default() {
        let sizes = |text| {
            let value = OptionValue(Some(text), Base::Binary);
            value.triple(&[1, 1, 1], |part| value.block_in(part))
        };
        assert_eq!(sizes("4k"), Ok([4096; 3]));
        assert_eq!(sizes("4k,8k"), Ok([4096, 8192, 8192]));
        assert_eq!(sizes(",8k"), Ok([1, 8192, 8192]));
        assert!(sizes("1,2,3,4").is_err());
    }

    #[test]
    fn kb_base_says_what_k_means() {
        let of = |base| OptionValue(Some("64k"), base).number::<u64>();
        assert_eq!(of(Base::Binary), Ok(65_536));
        assert_eq!(of(Base::Decimal), Ok(64_000));
    }
}
