//! One dot of a graph: what a campaign measures at one place of a sweep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A point of a campaign: one job file, run once for each repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// The job file without its ending, below the campaign's folder:
    /// `0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30/0010-bs4k-1j-512qd-randrw`.
    /// Unique in a campaign.
    pub id: String,
    /// The curve it belongs to: points with the same series are drawn as one
    /// line. For generated files the folder of [`Point::id`].
    pub series: String,
    /// The option on the x axis: `iodepth`, `numjobs`, `bs`, … Its value is in
    /// [`Point::settings`].
    pub x: String,
    /// What tells this point from others, by fio's option names with the values
    /// as a job file has them: `rw`, `rwmixread`, `bs`, `iodepth`, `numjobs`,
    /// `iodepth_batch_submit`, `iodepth_batch_complete_min`, … Unknown is absent
    /// (an imported folder may tell nothing but depth and jobs).
    pub settings: BTreeMap<String, String>,
    /// Which measurement of it, counted from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub repetition: u32,
}

fn first() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_first(repetition: &u32) -> bool {
    *repetition == 1
}

impl Point {
    /// A setting as a whole number: `4k` is 4096, as job files count. `None`
    /// when it is absent or no number.
    pub fn number(&self, option: &str) -> Option<u64> {
        whole_number(self.settings.get(option)?)
    }

    /// Where the point stands on the x axis.
    pub fn x_value(&self) -> Option<u64> {
        self.number(&self.x)
    }
}

/// A number with fio's binary suffix, which is all that generated settings use.
/// `None` when it is none.
pub fn whole_number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_count_as_job_files_do() {
        assert_eq!(whole_number("512"), Some(512));
        assert_eq!(whole_number("4k"), Some(4096));
        assert_eq!(whole_number("1M"), Some(1 << 20));
        assert_eq!(whole_number("4q"), None);
        assert_eq!(whole_number(""), None);
    }
}
