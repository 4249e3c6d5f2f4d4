//! What each measurement is, for the command line, plan files and records.

use fathom_model::value::{self, Base};
use serde::{Deserialize, Serialize};

/// What each measurement is: names and defaults are those of cdl_bench.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct PrioLoad {
    /// Size of an I/O
    #[arg(long, value_name = "SIZE", default_value = "131072", value_parser = block_size)]
    pub bs: u64,
    /// Ramp time of each measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub ramptime: u32,
    /// Run time of each measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub runtime: u32,
    /// Queue depths
    #[arg(long = "qds", value_name = "LIST", default_value = "1 2 4 8 16 24 32")]
    #[arg(value_parser = depths)]
    pub depths: Depths,
    /// What the I/Os are; all but reads need --destroy
    #[arg(long, value_enum, value_name = "RW", default_value_t)]
    pub rw: Rw,
}

/// What the I/Os are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Rw {
    /// Reads at random
    #[default]
    #[value(name = "randread")]
    #[serde(rename = "randread")]
    RandRead,
    /// Reads in order
    #[serde(rename = "read")]
    Read,
    /// Writes at random
    #[value(name = "randwrite")]
    #[serde(rename = "randwrite")]
    RandWrite,
    /// Writes in order
    #[serde(rename = "write")]
    Write,
    /// Half of each, at random
    #[value(name = "randrw")]
    #[serde(rename = "randrw")]
    RandMix,
    /// Half of each, in order
    #[value(name = "rw")]
    #[serde(rename = "rw")]
    Mix,
}

impl Rw {
    /// fio's word, which is also the job's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RandRead => "randread",
            Self::Read => "read",
            Self::RandWrite => "randwrite",
            Self::Write => "write",
            Self::RandMix => "randrw",
            Self::Mix => "rw",
        }
    }

    /// Whether there are reads.
    pub fn reads(self) -> bool {
        !matches!(self, Self::RandWrite | Self::Write)
    }

    /// Whether there are writes.
    pub fn writes(self) -> bool {
        !matches!(self, Self::RandRead | Self::Read)
    }
}

/// Queue depths, in the order in which they are measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depths(pub Vec<u32>);

/// Numbers of limits with the percentage of I/Os that name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split(pub Vec<(u8, u8)>);

fn block_size(text: &str) -> Result<u64, String> {
    let bytes = value::size(text, Base::Binary).map_err(|fault| fault.to_string())?;
    match u64::try_from(bytes) {
        Ok(bytes) if bytes > 0 && bytes.is_multiple_of(512) => Ok(bytes),
        _ => Err("it must be a multiple of 512 bytes".to_owned()),
    }
}

fn depths(text: &str) -> Result<Depths, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut list = Vec::new();
    for word in words {
        let depth = word
            .parse()
            .ok()
            .filter(|depth| (1..=65_535).contains(depth));
        let depth = depth.ok_or_else(|| format!("'{word}' is no queue depth"))?;
        if list.contains(&depth) {
            return Err(format!("{depth} is given twice"));
        }
        list.push(depth);
    }
    match list.is_empty() {
        true => Err("there is no depth in it".to_owned()),
        false => Ok(Depths(list)),
    }
}

/// Limits with their shares: `1/10,2/20`.
///
/// # Errors
/// What is wrong with them.
pub fn split(text: &str) -> Result<Split, String> {
    let mut list: Vec<(u8, u8)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let pair = part.split_once('/');
        let number = |text: &str| text.trim().parse::<u8>().ok();
        let pair = pair.and_then(|(dld, percent)| Some((number(dld)?, number(percent)?)));
        let Some((dld, percent)) = pair else {
            return Err(format!("'{part}' is not LIMIT/PERCENT, as in 1/10"));
        };
        if !(1..=7).contains(&dld) {
            return Err(format!("there is no limit {dld}: they are 1 to 7"));
        }
        if !(1..=100).contains(&percent) {
            return Err(format!(
                "{percent} percent in '{part}' is not within 1 to 100"
            ));
        }
        if list.iter().any(|&(before, _)| before == dld) {
            return Err(format!("limit {dld} is given twice"));
        }
        list.push((dld, percent));
    }
    let sum: u32 = list.iter().map(|&(_, percent)| u32::from(percent)).sum();
    match sum > 100 {
        true => Err(format!("the shares add up to {sum} percent")),
        false => Ok(Split(list)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_checked() {
        assert_eq!(split("2/10,4/20").unwrap().0, [(2, 10), (4, 20)]);
        for (text, said) in [
            ("8/10", "no limit 8"),
            ("0/10", "no limit 0"),
            ("1/0", "not within 1 to 100"),
            ("1/60,2/50", "110 percent"),
            ("1/10,1/20", "twice"),
            ("1", "as in 1/10"),
            ("", "as in 1/10"),
        ] {
            let fault = split(text).unwrap_err();
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }

    #[test]
    fn depths_stand_between_blanks_or_commas() {
        assert_eq!(depths("1 2,4  8").unwrap().0, [1, 2, 4, 8]);
        assert!(depths("1 0").is_err() && depths("").is_err() && depths("2 2").is_err());
    }
}
