//! What may be spent on a plan: time and bytes written; and what the bytes mean
//! to the drive: the share of its rated endurance.
//!
//! The rating is taken from who knows it. Whoever has the data sheet says it in
//! terabytes. Else the drive's own count tells: so many percent used after so
//! many bytes from hosts. That count goes in whole percents, rounded nobody
//! knows how: the true value may be one more or one less, and so the share has
//! bounds, which are shown with it.

use std::path::Path;
use std::time::Duration;

use fathom_device::Health;
use fathom_model::{LedgerEntry, LedgerEvent, units};
use serde::{Deserialize, Serialize};

/// Bytes of a terabyte, as data sheets count (JESD218: TBW, terabytes written).
pub const TB: f64 = 1e12;
/// The percentage used may be one more or one less than a drive says.
const STEP_PERCENT: f64 = 1.0;
/// So many percent must have been used under the eyes of the ledger for them to
/// tell more than all of the drive's life: then the bounds are within 10 %.
const HISTORY_PERCENT: f64 = 10.0;

/// What may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendLimits {
    /// Longest time.
    pub time: Option<Duration>,
    /// Most bytes written.
    pub bytes: Option<u64>,
    /// What becomes of a plan that wants more.
    pub over: Over,
}

/// What becomes of a plan that wants more than it may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Over {
    /// What does not fit is left out
    #[default]
    Cut,
    /// Nothing runs
    Refuse,
}

impl SpendLimits {
    /// The places of those parts that would not fit, each after the ones before
    /// it that do, with `spent` bytes written already. A part whose time or bytes
    /// nobody knows counts as if it had none: it is ended when the limit is
    /// reached.
    pub fn left_out(
        &self,
        parts: impl IntoIterator<Item = (Option<Duration>, Option<u64>)>,
        spent: u64,
    ) -> Vec<usize> {
        let (mut time, mut bytes) = (Duration::ZERO, spent);
        let mut left_out = Vec::new();
        for (place, (needs, writes)) in parts.into_iter().enumerate() {
            let (needs, writes) = (needs.unwrap_or_default(), writes.unwrap_or(0));
            let late = self.time.is_some_and(|limit| time + needs > limit);
            if late || self.is_over(bytes, writes) {
                left_out.push(place);
                continue;
            }
            time += needs;
            bytes = bytes.saturating_add(writes);
        }
        left_out
    }

    /// Whether `writes` bytes more are too many behind `spent`. Once the limit is
    /// reached nothing that writes fits.
    pub fn is_over(&self, spent: u64, writes: u64) -> bool {
        self.bytes
            .is_some_and(|limit| writes > 0 && spent.saturating_add(writes) > limit)
    }

    /// Whether nothing more may be written.
    pub fn is_spent(&self, spent: u64) -> bool {
        self.bytes.is_some_and(|limit| spent >= limit)
    }

    /// The limit of bytes in words.
    pub fn text_of_bytes(&self) -> String {
        let bytes = self.bytes.map(|bytes| units::bytes(bytes as f64));
        bytes.unwrap_or_else(|| "any amount".to_owned())
    }

    /// The limits in words; `None`: there are none.
    pub fn text(&self) -> Option<String> {
        let time = self.time.map(|time| {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            units::duration(ms)
        });
        let bytes = self
            .bytes
            .map(|bytes| format!("{} written", units::bytes(bytes as f64)));
        let all: Vec<String> = time.into_iter().chain(bytes).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    }
}

/// What is known of the bytes that hosts may write to a drive in all its life.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Endurance {
    /// As somebody says, from the data sheet, in bytes.
    pub said_bytes: Option<f64>,
    /// As the drive's own count tells.
    pub told: Option<RatingByWear>,
}

/// A rating in bytes, from what a drive says of its wear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatingByWear {
    /// Percents used over the bytes that it was taken from.
    pub used_percent: f64,
    /// Those bytes.
    pub written_bytes: u64,
    /// What the ledger saw, not all of the drive's life.
    pub from_history: bool,
    /// The rating if the count is exact; `None` while less than one percent is used.
    pub bytes: Option<f64>,
    /// The least that it can be.
    pub bytes_least: f64,
    /// The most that it can be; `None`: no bound.
    pub bytes_most: Option<f64>,
}

/// A share of the rated endurance, 1 for all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnduranceShare {
    /// The share; `None` where only its bound is known.
    pub share: Option<f64>,
    /// The least that it can be.
    pub least: f64,
    /// The most that it can be.
    pub most: f64,
}

impl Endurance {
    /// From what a drive says of itself, from its ledger, and from what somebody
    /// says, in bytes.
    pub fn of(health: &Health, ledger: &[LedgerEntry], said_bytes: Option<u64>) -> Self {
        let now = health.used_percent.zip(health.host_written_bytes);
        let told = now.and_then(|now| from_history(ledger, now).or_else(|| told(now, false)));
        Self {
            said_bytes: said_bytes.map(|bytes| bytes as f64),
            told,
        }
    }

    /// The share that so many bytes are; `None`: nobody knows the rating.
    pub fn share(&self, bytes: u64) -> Option<EnduranceShare> {
        let bytes = bytes as f64;
        if let Some(rated) = self.said_bytes {
            let share = bytes / rated;
            return Some(EnduranceShare {
                share: Some(share),
                least: share,
                most: share,
            });
        }
        let told = self.told?;
        Some(EnduranceShare {
            share: told.bytes.map(|rated| bytes / rated),
            least: told.bytes_most.map_or(0.0, |rated| bytes / rated),
            most: bytes / told.bytes_least,
        })
    }

    /// In words, what so many bytes are of it, and by whom it is known.
    pub fn text(&self, bytes: u64) -> String {
        let Some(share) = self.share(bytes) else {
            return "share unknown: the drive does not tell how worn it is (--endurance-tbw for its rating)"
                .to_owned();
        };
        if let Some(rated) = self.said_bytes {
            let rated = rated / TB;
            return format!("{} of the {rated} TB given", percent(share.most));
        }
        let most = percent(share.most);
        let told = self.told.unwrap_or(RatingByWear::NOTHING);
        let written = units::bytes(told.written_bytes as f64);
        let when = if told.from_history { "more " } else { "" };
        let used = told.used_percent;
        let known = format!("the drive counts {used} % {when}used after {written} {when}written");
        match share.share {
            Some(share_) => format!(
                "about {} of it, {} to {most}: {known}, give or take 1 %",
                percent(share_),
                percent(share.least)
            ),
            None => format!("{most} of it at most: {known}, so less than 1 %"),
        }
    }
}

impl RatingByWear {
    const NOTHING: Self = Self {
        used_percent: 0.0,
        written_bytes: 0,
        from_history: false,
        bytes: None,
        bytes_least: 0.0,
        bytes_most: None,
    };
}

/// The rating if `percent` were used by so many bytes; nothing from no bytes.
fn told((percent, bytes): (f64, u64), from_history: bool) -> Option<RatingByWear> {
    let rated = |percent: f64| (percent > 0.0).then(|| bytes as f64 * 100.0 / percent);
    Some(RatingByWear {
        used_percent: percent,
        written_bytes: bytes,
        from_history,
        bytes: rated(percent),
        bytes_least: rated(percent + STEP_PERCENT).filter(|rated| *rated > 0.0)?,
        bytes_most: rated(percent - STEP_PERCENT),
    })
}

/// From the first look in the ledger until now, where enough was used since: a
/// drive wears by the load that it has, and the ledger's is the one to come.
fn from_history(ledger: &[LedgerEntry], (percent, bytes): (f64, u64)) -> Option<RatingByWear> {
    let first = ledger.iter().find_map(|entry| match entry.deed {
        LedgerEvent::Seen {
            used_percent,
            host_written_bytes,
            ..
        } => used_percent.zip(host_written_bytes),
        _ => None,
    });
    let (percent_then, bytes_then) = first?;
    let used = percent - percent_then;
    (used >= HISTORY_PERCENT).then(|| told((used, bytes.checked_sub(bytes_then)?), true))?
}

/// `12 %`, `0.42 %`, `less than 0.01 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "nothing".to_owned(),
        ..0.01 => "less than 0.01 %".to_owned(),
        ..1.0 => format!("{percent:.2} %"),
        ..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// What a plan costs, in one sentence, said before it starts: time, bytes, share.
pub fn sentence(cost: &Cost, endurance: &Endurance) -> String {
    let ms = u64::try_from(cost.duration.as_millis()).unwrap_or(u64::MAX);
    let time = match (cost.endless, cost.duration.is_zero()) {
        (0, _) => format!("it takes {}", units::duration(ms)),
        (_, true) => "how long it takes is unknown".to_owned(),
        (_, false) => format!("it takes more than {}", units::duration(ms)),
    };
    let bytes = units::bytes(cost.write_bytes as f64);
    match (cost.unbounded, cost.write_bytes) {
        (0, 0) => format!("{time} and writes nothing"),
        (0, write_bytes) => {
            let share = endurance.text(write_bytes);
            format!("{time} and writes {bytes} at most; of the rated endurance: {share}")
        }
        (_, 0) => format!("{time} and writes as fast as the device takes it"),
        _ => format!(
            "{time} and writes more than {bytes}: some of it as fast as the device takes it"
        ),
    }
}

/// The cost of some steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// How many steps.
    pub steps: usize,
    /// Their time together, as far as their jobs say.
    pub duration: Duration,
    /// Steps whose jobs do not say how long they take.
    pub endless: usize,
    /// The most they write, in bytes, where the jobs or the speed tell.
    pub write_bytes: u64,
    /// Steps that write as fast as the device takes it, with no speed known.
    pub unbounded: usize,
}

impl Cost {
    /// The cost of the parts of any plan: the time of each and the most it
    /// writes, in bytes, where they are known.
    pub fn of_parts(parts: impl IntoIterator<Item = (Option<Duration>, Option<u64>)>) -> Self {
        let mut cost = Self::default();
        for (time, write_bytes) in parts {
            cost.steps += 1;
            match time {
                Some(time) => cost.duration += time,
                None => cost.endless += 1,
            }
            match write_bytes {
                Some(bytes) => cost.write_bytes = cost.write_bytes.saturating_add(bytes),
                None => cost.unbounded += 1,
            }
        }
        cost
    }
}

/// How fast a device can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As the user says, in bytes per second.
    Said(u64),
    /// No faster than its link, in bytes per second.
    Link(u64),
}

impl Speed {
    /// That of the link of a device, where it has one that tells; a look at
    /// sysfs, the device is not opened.
    pub fn of_link(device: &Path) -> Option<Self> {
        let environment = fathom_device::environment(&[device.to_owned()]);
        let device = environment.targets.into_iter().next()?.device?;
        device.link_bytes_per_second().map(Self::Link)
    }

    /// In bytes per second.
    pub const fn bytes_per_second(self) -> u64 {
        match self {
            Self::Said(speed) | Self::Link(speed) => speed,
        }
    }
}

/// What is wrong with a rating that is none.
pub const NO_RATING: &str = "not a number of terabytes like 600";

/// Terabytes in bytes.
pub fn terabytes(text: &str) -> Option<u64> {
    let terabytes: f64 = text.parse().ok()?;
    (terabytes.is_finite() && terabytes > 0.0).then_some((terabytes * TB) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(percent: f64, bytes: u64) -> Health {
        Health {
            used_percent: Some(percent),
            host_written_bytes: Some(bytes),
            ..Health::default()
        }
    }

    fn seen(percent: f64, bytes: u64) -> LedgerEntry {
        LedgerEntry {
            content: Vec::new(),
            at_ms: 1,
            command: "run".into(),
            record: None,
            deed: LedgerEvent::Seen {
                host_written_bytes: Some(bytes),
                used_percent: Some(percent),
                power_on_hours: None,
                kernel_written_bytes: None,
                boot: None,
            },
        }
    }

    const TERA: u64 = 1_000_000_000_000;

    #[test]
    fn the_drives_own_count_gives_the_share_with_its_bounds() {
        // 10 % after 60 TB: 600 TB, between 60·100/11 and 60·100/9.
        let endurance = Endurance::of(&drive(10.0, 60 * TERA), &[], None);
        let share = endurance.share(6 * TERA).unwrap();
        assert!((share.share.unwrap() - 0.01).abs() < 1e-12);
        assert!((share.least - 0.009).abs() < 1e-12 && (share.most - 0.011).abs() < 1e-12);
        assert_eq!(
            endurance.text(6 * TERA),
            "about 1.0 % of it, 0.90 % to 1.1 %: the drive counts 10 % used after 54.6 TiB \
             written, give or take 1 %"
        );
    }

    #[test]
    fn a_new_drive_gives_a_bound_and_a_silent_one_nothing() {
        let new = Endurance::of(&drive(0.0, 2 * TERA), &[], None);
        let share = new.share(TERA).unwrap();
        assert_eq!((share.share, share.least, share.most), (None, 0.0, 0.005));
        assert!(new.text(TERA).starts_with("0.50 % of it at most"));
        // One percent may be next to nothing: no bound above.
        let young = Endurance::of(&drive(1.0, TERA), &[], None).told.unwrap();
        assert_eq!(young.bytes_most, None);
        for silent in [Health::default(), drive(0.0, 0)] {
            let none = Endurance::of(&silent, &[], None);
            assert_eq!(none.share(TERA), None);
            assert!(none.text(TERA).contains("--endurance-tbw"));
        }
    }

    #[test]
    fn the_data_sheet_goes_first_and_the_ledger_before_the_whole_life() {
        let said = Endurance::of(&drive(10.0, 60 * TERA), &[], Some(1200 * TERA));
        assert_eq!(said.text(6 * TERA), "0.50 % of the 1200 TB given");
        // 20 % by 60 TB, of which the ledger saw 12 % by 18 TB.
        let ledger = [seen(8.0, 42 * TERA), seen(15.0, 50 * TERA)];
        let told = Endurance::of(&drive(20.0, 60 * TERA), &ledger, None).told;
        let told = told.unwrap();
        assert!(told.from_history && (told.bytes.unwrap() - 150e12).abs() < 1.0);
        let little = [seen(11.0, 42 * TERA)];
        let life = Endurance::of(&drive(20.0, 60 * TERA), &little, None).told;
        assert!(!life.unwrap().from_history);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_what_is_unknown_is_not() {
        let minute = |n: u64| Some(Duration::from_secs(60 * n));
        let limits = SpendLimits {
            time: minute(5),
            bytes: Some(100),
            over: Over::Cut,
        };
        let parts = [
            (minute(2), Some(60)),
            (minute(2), Some(60)),
            (minute(4), Some(0)),
            (minute(1), Some(40)),
            (None, None),
        ];
        assert_eq!(limits.left_out(parts, 0), [1, 2]);
        // Reads fit however much was written.
        assert_eq!(limits.left_out([parts[0], (minute(1), Some(0))], 100), [0]);
        assert_eq!(SpendLimits::default().left_out(parts, u64::MAX), [0; 0]);
        assert_eq!(limits.text().unwrap(), "5m00s and 100 B written");
    }

    #[test]
    fn a_plan_says_what_it_costs_in_one_sentence() {
        let cost = |parts: &[(Option<Duration>, Option<u64>)]| {
            sentence(
                &Cost::of_parts(parts.iter().copied()),
                &Endurance::default(),
            )
        };
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(
            cost(&[(hour, Some(0))]),
            "it takes 1h00m and writes nothing"
        );
        assert!(cost(&[(hour, Some(1 << 30))]).contains("writes 1 GiB at most; of the rated"));
        assert!(cost(&[(hour, None)]).ends_with("as fast as the device takes it"));
        assert!(cost(&[(None, Some(0))]).starts_with("how long it takes is unknown"));
    }
}
