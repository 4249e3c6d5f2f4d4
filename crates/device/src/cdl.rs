//! Command Duration Limits: the T2A page (reads) and the T2B page (writes), each
//! with seven descriptors that an I/O can name in its hint.
//!
//! [`mod@file`] reads and writes page files as `cdladm` has them, [`show`] the text
//! in which it shows pages, [`wire`] the mode pages themselves (SPC-6, control
//! mode subpages 07h and 08h), and [`scsi`] asks a disk for them and uploads them.

pub mod file;
pub mod scsi;
pub mod show;
pub mod wire;

use std::fmt;

/// Descriptors of a page; an I/O names one by its number, from 1.
pub const DESCRIPTORS: usize = 7;

/// Which page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CdlPage {
    /// The limits of reads.
    T2a,
    /// The limits of writes.
    T2b,
}

impl CdlPage {
    /// Both, reads first.
    pub const ALL: [Self; 2] = [Self::T2a, Self::T2b];

    /// Its name, as in page files.
    pub fn name(self) -> &'static str {
        match self {
            Self::T2a => "T2A",
            Self::T2b => "T2B",
        }
    }

    /// The page of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Subpage of the control mode page (SPC-6 7.5.14 and 7.5.15).
    pub fn subpage(self) -> u8 {
        match self {
            Self::T2a => 0x07,
            Self::T2b => 0x08,
        }
    }
}

impl fmt::Display for CdlPage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Which one.
    pub kind: CdlPage,
    /// How much performance the device may give up to keep duration guidelines;
    /// only T2A has it.
    pub guideline: Guideline,
    /// The descriptors 1 to 7.
    pub descriptors: [Descriptor; DESCRIPTORS],
}

impl Page {
    /// A page without limits.
    pub fn empty(kind: CdlPage) -> Self {
        Self {
            kind,
            guideline: Guideline::default(),
            descriptors: Default::default(),
        }
    }

    /// A descriptor by its number, from 1.
    pub fn descriptor(&self, number: u8) -> Option<&Descriptor> {
        self.descriptors.get(usize::from(number).checked_sub(1)?)
    }

    /// What differs from another page, a sentence each: empty when both limit
    /// alike.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut list = Vec::new();
        if self.guideline != other.guideline {
            list.push(format!(
                "perf-vs-duration-guideline is {}, not {}",
                other.guideline, self.guideline
            ));
        }
        for (number, (one, two)) in (1..).zip(self.descriptors.iter().zip(&other.descriptors)) {
            for bound in Bound::ALL {
                let (want, have) = (one.limit(bound), two.limit(bound));
                // Without a time neither policy nor unit mean anything.
                let want_ns = one.unit.times(want.time);
                let have_ns = two.unit.times(have.time);
                let same_policy = want.policy == have.policy || want_ns == Some(0);
                if want_ns != have_ns || !same_policy {
                    list.push(format!(
                        "descriptor {number}: {} is {}, not {}",
                        bound.name(),
                        two.told(bound),
                        one.told(bound)
                    ));
                }
            }
        }
        list
    }
}

/// What a device does for I/Os that name one descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The unit of its times.
    pub unit: CdlUnit,
    /// Longest wait before the device begins with the I/O.
    pub max_inactive: CdlLimit,
    /// Longest time that the device works on it.
    pub max_active: CdlLimit,
    /// Time from its arrival to its end that the device is to keep.
    pub duration: CdlLimit,
}

/// Which time of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Maximum inactive time.
    Inactive,
    /// Maximum active time.
    Active,
    /// Duration guideline.
    Duration,
}

impl Bound {
    /// All, in the order of page files.
    pub const ALL: [Self; 3] = [Self::Inactive, Self::Active, Self::Duration];

    /// Its name, as in page files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inactive => "max-inactive-time",
            Self::Active => "max-active-time",
            Self::Duration => "duration-guideline",
        }
    }

    /// Policies that it can have (SPC-6 tables of these fields).
    pub fn policies(self) -> &'static [u8] {
        match self {
            Self::Inactive => &[0x0, 0xd, 0xf],
            Self::Active => &[0x0, 0xd, 0xe, 0xf],
            Self::Duration => &[0x0, 0x1, 0x2, 0xd, 0xf],
        }
    }
}

impl Descriptor {
    /// One of its limits.
    pub fn limit(&self, bound: Bound) -> CdlLimit {
        match bound {
            Bound::Inactive => self.max_inactive,
            Bound::Active => self.max_active,
            Bound::Duration => self.duration,
        }
    }

    /// The place of one of its limits.
    pub(crate) fn limit_mut(&mut self, bound: Bound) -> &mut CdlLimit {
        match bound {
            Bound::Inactive => &mut self.max_inactive,
            Bound::Active => &mut self.max_active,
            Bound::Duration => &mut self.duration,
        }
    }

    /// A limit in ns; `None` when there is none, or its unit is unknown.
    pub fn ns(&self, bound: Bound) -> Option<u64> {
        self.unit.times(self.limit(bound).time).filter(|&ns| ns > 0)
    }

    /// How long an I/O may take from its arrival to its end, in ns: the duration
    /// guideline, or else the sum of the times that it may wait and be worked on,
    /// or the only one of these. `None` without any limit.
    pub fn whole_ns(&self) -> Option<u64> {
        let sum = || match (self.ns(Bound::Inactive), self.ns(Bound::Active)) {
            (None, None) => None,
            (inactive, active) => Some(inactive.unwrap_or(0).saturating_add(active.unwrap_or(0))),
        };
        self.ns(Bound::Duration).or_else(sum)
    }

    /// Whether an I/O that misses a limit may come back without its data.
    pub fn may_fail(&self) -> bool {
        Bound::ALL
            .iter()
            .any(|&bound| self.ns(bound).is_some() && self.limit(bound).policy.fails())
    }

    /// All its limits in a line: `100 ms, complete-earliest`.
    pub fn summary(&self) -> String {
        let set = Bound::ALL
            .iter()
            .filter(|&&bound| self.limit(bound).time > 0);
        let mut parts: Vec<String> = Vec::new();
        for &bound in set {
            let what = match bound {
                Bound::Inactive => "to wait ",
                Bound::Active => "to work ",
                Bound::Duration => "",
            };
            let time = self
                .ns(bound)
                .map_or_else(|| "unknown unit".to_owned(), time);
            parts.push(format!("{what}{time}, {}", self.limit(bound).policy));
        }
        match parts.is_empty() {
            true => "no limit".to_owned(),
            false => parts.join("; "),
        }
    }

    /// A limit with its policy, as a person reads it.
    pub fn told(&self, bound: Bound) -> String {
        match (self.limit(bound), self.ns(bound)) {
            (CdlLimit { time: 0, .. }, _) => "no limit".to_owned(),
            (CdlLimit { policy, .. }, Some(ns)) => format!("{} ({policy})", time(ns)),
            (CdlLimit { time, policy }, None) => {
                format!("{time} in unit {:#x} ({policy})", self.unit.0)
            }
        }
    }
}

/// A limit, as the page has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CdlLimit {
    /// In the descriptor's unit; 0 is none.
    pub time: u16,
    /// What happens to an I/O that misses it.
    pub policy: Policy,
}

/// What the device does with an I/O that misses a limit: the page's code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy(pub u8);

impl Policy {
    /// Its name, as `cdladm` has it; `None` for a code without meaning.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0 => "complete-earliest",
            0x1 => "continue-next-limit",
            0x2 => "continue-no-limit",
            0xd => "complete-unavailable",
            0xe => "abort-recovery",
            0xf => "abort",
            _ => return None,
        })
    }

    /// The policy of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        let codes = (0..=0xf).map(Self);
        codes.into_iter().find(|code| code.name() == Some(name))
    }

    /// Whether the I/O comes back without its data: Linux gives it back as
    /// ETIME (`scsi_check_sense` in drivers/scsi/scsi_error.c).
    pub fn fails(self) -> bool {
        matches!(self.0, 0xd..=0xf)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown policy {:#x}", self.0),
        }
    }
}

/// The unit of a descriptor's times: the page's code (T2CDLUNITS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CdlUnit(pub u8);

impl CdlUnit {
    /// The codes with a meaning.
    pub const KNOWN: [u8; 5] = [0x0, 0x6, 0x8, 0xa, 0xe];

    /// Its length in ns; 0 where the descriptor has no limits.
    pub fn ns(self) -> Option<u64> {
        Some(match self.0 {
            0x0 => 0,
            0x6 => 500,
            0x8 => 1_000,
            0xa => 10_000_000,
            0xe => 500_000_000,
            _ => return None,
        })
    }

    /// So many of them, in ns.
    fn times(self, count: u16) -> Option<u64> {
        match count {
            0 => Some(0),
            _ => Some(self.ns()? * u64::from(count)),
        }
    }
}

/// The code of the performance that the device may give up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guideline(pub u8);

impl Guideline {
    /// Tenths of a percent, by code (SPC-6, PERF VS DURATION GUIDELINE).
    const TENTHS: [u16; 13] = [0, 5, 10, 15, 20, 25, 30, 40, 50, 80, 100, 150, 200];

    /// In percent; `None` for a code without meaning.
    pub fn percent(self) -> Option<f64> {
        let tenths = Self::TENTHS.get(usize::from(self.0))?;
        Some(f64::from(*tenths) / 10.0)
    }
}

impl fmt::Display for Guideline {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.percent() {
            Some(percent) => write!(f, "{percent}%"),
            None => write!(f, "unknown ({:#x})", self.0),
        }
    }
}

/// A time in the largest unit in which it is a whole number: `50 ms`, `500 ns`.
pub fn time(ns: u64) -> String {
    match ns {
        0 => "0 ms".to_owned(),
        _ if ns.is_multiple_of(1_000_000) => format!("{} ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{} us", ns / 1_000),
        _ => format!("{ns} ns"),
    }
}
