//! The state of a device, as far as its ledger tells, and whether it is the one
//! that somebody wants: pure functions over the entries.
//!
//! A state is made by a purge, a fill or a load that became steady, and lasts
//! until something else is written. A purge that was stopped or killed makes one
//! as well: nobody knows it. That somebody else wrote is seen where the
//! drive (or, within one boot, the kernel) counts what hosts write to it: when
//! it counts more between two looks than the deeds in the ledger explain.

use std::path::Path;
use std::time::Duration;

use fathom_model::{LedgerEntry, LedgerEvent, Pattern, units};

/// What a drive may count beyond what Fathom wrote before somebody else must
/// have written: drives count in units of 512 000 bytes, rounded up, at the
/// begin and at the end.
const UNITS_BYTES: u64 = 2 * 512_000;

/// A state that a flow leads to, wanted by whoever measures next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WantedState<'w> {
    /// The load in which the device is to be steady.
    pub pattern: Pattern,
    /// Size of one write in bytes.
    pub bs_bytes: u64,
    /// The part of the device that is written to, in percent.
    pub range_percent: f64,
    /// The rule that says that it is, by its name with its limits: one with other
    /// limits says something else.
    pub rule: &'w str,
}

/// What is known of a device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceState {
    /// What made the state: the last purge, interrupted or not, fill or load.
    pub made: Option<LedgerEntry>,
    /// Whether another drive with the same identifier was seen, so that nobody knows of
    /// which its ledger tells.
    pub is_duplicate: bool,
    /// When Fathom wrote to it the last time, ms since 1970 UTC.
    pub touched_ms: Option<u64>,
    /// Bytes that Fathom has written since the state was made.
    pub written_bytes: u64,
    /// The command that did so last.
    pub written_by: Option<String>,
    /// Bytes that others have written since; `None`: nobody counts them.
    pub others_bytes: Option<u64>,
    /// A command that began to write to it, and of which nobody knows how much it
    /// has written: it goes on, or was killed and its record is gone.
    pub begun_by: Option<String>,
    /// Whether it holds what the state was made with: `None` where Fathom has written since,
    /// or nothing is made by what it holds.
    pub content: Option<ContentState>,
}

/// What a device holds, beside what was left on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentState {
    /// It is what was noted then.
    Same,
    /// It is something else: it is another drive, or somebody has written to it.
    Changed,
    /// Nothing was noted then, or it cannot be read.
    Unverified,
}

/// Whether a device is in the state that is wanted, in one sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is: leading it there would be needless.
    Holds(String),
    /// It was led there, but has not been left alone since.
    Stale(String),
    /// It was not led there last.
    Lacks(String),
}

impl Judgement {
    /// The sentence.
    pub fn reason(&self) -> &str {
        match self {
            Self::Holds(reason) | Self::Stale(reason) | Self::Lacks(reason) => reason,
        }
    }
}

/// What counts the bytes written to a device, and how many it has counted.
#[derive(Debug, Clone, PartialEq)]
struct Counter<'e> {
    host: Option<u64>,
    kernel: Option<(&'e str, u64)>,
}

impl<'e> Counter<'e> {
    fn of(deed: &'e LedgerEvent) -> Option<Self> {
        let LedgerEvent::Seen {
            host_written_bytes,
            kernel_written_bytes,
            boot,
            ..
        } = deed
        else {
            return None;
        };
        Some(Self {
            host: *host_written_bytes,
            kernel: boot.as_deref().zip(*kernel_written_bytes),
        })
    }

    /// What was counted since; `None` when nothing counted all the time. A count
    /// that went back was begun anew.
    fn since(&self, before: &Self) -> Option<u64> {
        if let (Some(now), Some(before)) = (self.host, before.host) {
            return now.checked_sub(before);
        }
        match (self.kernel, before.kernel) {
            (Some((boot, now)), Some((earlier, before))) if boot == earlier => {
                now.checked_sub(before)
            }
            _ => None,
        }
    }
}

impl DeviceState {
    /// The state of a device whose identifier another drive reports as well: not known.
    pub fn of_duplicate() -> Self {
        Self {
            is_duplicate: true,
            ..Self::default()
        }
    }

    /// The state of a device with these entries in its ledger, which now says
    /// `now` of itself (a [`LedgerEvent::Seen`]). Entries of the record `own` do not
    /// count as disturbances: a flow that goes on does not disturb itself.
    pub fn of(entries: &[LedgerEntry], now: Option<&LedgerEvent>, own: Option<&Path>) -> Self {
        let is_duplicate = |entry: &LedgerEntry| entry.deed == LedgerEvent::Duplicate;
        if entries.iter().any(is_duplicate) {
            return Self::of_duplicate();
        }
        // A run that was killed is entered when somebody looks, at its own time.
        let mut ordered: Vec<&LedgerEntry> = entries.iter().collect();
        ordered.sort_by_key(|entry| entry.at_ms);
        let mut state = Self::default();
        let mut look = CounterReadings::default();
        let mut begun: Vec<&LedgerEntry> = Vec::new();
        for entry in ordered {
            // A look that names a record is the begin of a command, bytes its end.
            begun.retain(|other| entry.record.is_none() || other.record != entry.record);
            if let Some(counter) = Counter::of(&entry.deed) {
                look.take(counter);
                begun.extend(entry.record.as_ref().map(|_| entry));
                continue;
            }
            let bytes = entry.deed.bytes().unwrap_or(0);
            look.explain(bytes);
            match entry.deed {
                LedgerEvent::Written { bytes: 0 }
                | LedgerEvent::Duplicate
                | LedgerEvent::Seen { .. } => continue,
                LedgerEvent::Written { .. } => {
                    state.content = None;
                    if own.is_none() || entry.record.as_deref() != own {
                        state.written_bytes = state.written_bytes.saturating_add(bytes);
                        state.written_by = Some(entry.command.clone());
                    }
                }
                LedgerEvent::Purged { .. }
                | LedgerEvent::Interrupted { .. }
                | LedgerEvent::Filled { .. }
                | LedgerEvent::Settled { .. } => {
                    state.made = Some(entry.clone());
                    state.content = match entry.deed {
                        LedgerEvent::Filled { .. } | LedgerEvent::Settled { .. } => {
                            Some(ContentState::Unverified)
                        }
                        _ => None,
                    };
                    state.written_bytes = 0;
                    state.written_by = None;
                    look.forget();
                    begun.clear();
                    begun.extend(entry.record.as_ref().map(|_| entry));
                }
            }
            state.touched_ms = Some(entry.at_ms);
        }
        if let Some(counter) = now.and_then(Counter::of) {
            look.take(counter);
        }
        state.others_bytes = look.others();
        begun.retain(|entry| own.is_none() || entry.record.as_deref() != own);
        state.begun_by = begun.last().map(|entry| entry.command.clone());
        state
    }

    /// Looks whether it still holds what the state was made with.
    pub fn compare(&mut self, holds: impl FnOnce(&[(u64, u32)]) -> Option<bool>) {
        let made = self.made.as_ref().filter(|_| self.content.is_some());
        let Some(noted) = made.map(|made| &made.content[..]) else {
            return;
        };
        let compared = (!noted.is_empty()).then(|| holds(noted)).flatten();
        self.content = Some(match compared {
            Some(true) => ContentState::Same,
            Some(false) => ContentState::Changed,
            None => ContentState::Unverified,
        });
    }

    /// Whether anything was written to it since it was made, as far as is known.
    pub fn is_disturbed(&self) -> bool {
        self.written_bytes > 0 || self.begun_by.is_some() || self.others_bytes.unwrap_or(0) > 0
    }

    /// Whether the device is in the wanted state, at `now_ms` since 1970 UTC.
    /// Beyond `idle_limit` without writes the state counts as stale.
    pub fn judge(&self, wanted: &WantedState, idle_limit: Duration, now_ms: u64) -> Judgement {
        let Some(made) = &self.made else {
            let reason = match self.is_duplicate {
                true => {
                    "another drive with the same identifier was seen, so the state of the device is not known"
                }
                false => "nothing is known of the state of the device",
            };
            return Judgement::Lacks(reason.to_owned());
        };
        let is = describe(&made.deed);
        if !is_wanted(&made.deed, wanted) {
            let load = load(wanted.pattern, wanted.bs_bytes, wanted.range_percent);
            let rule = wanted.rule;
            return Judgement::Lacks(format!("{is}, and {load} by {rule} is required"));
        }
        let idle_ms = now_ms.saturating_sub(self.touched_ms.unwrap_or(made.at_ms));
        let idle = units::duration(idle_ms);
        if self.written_bytes > 0 {
            let bytes = units::bytes(self.written_bytes as f64);
            let by = self.written_by.as_deref().unwrap_or("Fathom");
            return Judgement::Stale(format!(
                "{is}, but {bytes} were written since (fathom {by})"
            ));
        }
        if let Some(by) = &self.begun_by {
            return Judgement::Stale(format!(
                "{is}, but fathom {by} began to write to it, and how much it wrote is unknown"
            ));
        }
        if let Some(others) = self.others_bytes.filter(|bytes| *bytes > 0) {
            let bytes = units::bytes(others as f64);
            return Judgement::Stale(format!("{is}, but others have written {bytes} since"));
        }
        match self.content {
            Some(ContentState::Changed) => {
                return Judgement::Stale(format!(
                    "{is}, but it does not hold what it held then: it is another drive, or somebody has written to it"
                ));
            }
            Some(ContentState::Unverified) => {
                return Judgement::Stale(format!(
                    "{is}, but nothing was noted of what it held then, so whether that was this drive is not known"
                ));
            }
            Some(ContentState::Same) | None => {}
        }
        if u128::from(idle_ms) > idle_limit.as_millis() {
            let limit = units::duration(idle_limit.as_millis() as u64);
            let reason = format!("{is}, but has been idle for {idle}, longer than {limit}");
            return Judgement::Stale(reason);
        }
        let nobody = match self.others_bytes {
            Some(_) => "nothing was written to it since",
            None => "Fathom has written nothing since (writes of other programs are not counted)",
        };
        Judgement::Holds(format!("{is} {idle} ago, and {nobody}"))
    }
}

/// Whether a deed led to the wanted state.
fn is_wanted(deed: &LedgerEvent, wanted: &WantedState) -> bool {
    /// Ranges are kept in percent, and come from text.
    const SAME_PERCENT: f64 = 0.01;
    match deed {
        LedgerEvent::Settled {
            pattern,
            bs_bytes,
            range_percent,
            rule,
            attained: true,
            ..
        } => {
            *pattern == wanted.pattern
                && *bs_bytes == wanted.bs_bytes
                && (range_percent - wanted.range_percent).abs() < SAME_PERCENT
                && rule == wanted.rule
        }
        _ => false,
    }
}

/// What a deed has made of the device: `it became steady in random writes of
/// 4 KiB`.
pub fn describe(deed: &LedgerEvent) -> String {
    match deed {
        LedgerEvent::Purged {
            method, verified, ..
        } => {
            let verified = if *verified { "" } else { ", not verified" };
            format!("it was purged ({method}{verified})")
        }
        LedgerEvent::Filled {
            pattern,
            bs_bytes,
            range_percent,
            ..
        } => format!(
            "it was filled with {}",
            load(*pattern, *bs_bytes, *range_percent)
        ),
        LedgerEvent::Settled {
            pattern,
            bs_bytes,
            range_percent,
            rule,
            attained,
            ..
        } => {
            let load = load(*pattern, *bs_bytes, *range_percent);
            match attained {
                true => format!("it became steady in {load} ({rule})"),
                false => format!("it did not become steady in {load} ({rule})"),
            }
        }
        LedgerEvent::Interrupted { what } => format!("its {what} was not brought to its end"),
        LedgerEvent::Duplicate => "another drive has its identifier".to_owned(),
        LedgerEvent::Written { .. } | LedgerEvent::Seen { .. } => "it was used".to_owned(),
    }
}

/// `random writes of 4 KiB over 75 % of it`.
fn load(pattern: Pattern, bs_bytes: u64, range_percent: f64) -> String {
    let bs = units::bytes(bs_bytes as f64);
    let over = match range_percent {
        100.0.. => String::new(),
        part => format!(" over {part} % of it"),
    };
    format!("{pattern} writes of {bs}{over}")
}

/// The looks at what a drive has counted, one after the other, since the state
/// was made.
#[derive(Default)]
struct CounterReadings<'e> {
    last: Option<Counter<'e>>,
    /// What Fathom has written since the last look.
    explained: u64,
    others: Option<u64>,
    /// Somebody did not count for a while.
    gap: bool,
}

impl<'e> CounterReadings<'e> {
    fn take(&mut self, counter: Counter<'e>) {
        if let Some(last) = &self.last {
            match counter.since(last) {
                Some(grown) => {
                    // What jobs write in their ramp time, and to lay out files, is
                    // not in their figures: up to as much again is theirs.
                    let slack = UNITS_BYTES.saturating_add(self.explained);
                    let beyond = grown.saturating_sub(self.explained);
                    let beyond = if beyond > slack { beyond } else { 0 };
                    self.others = Some(self.others.unwrap_or(0).saturating_add(beyond));
                }
                None => self.gap = true,
            }
        }
        self.last = Some(counter);
        self.explained = 0;
    }

    fn explain(&mut self, bytes: u64) {
        self.explained = self.explained.saturating_add(bytes);
    }

    /// What was written until here does not count any more: the next look is the
    /// first. A purge may write, and nobody tells how much.
    fn forget(&mut self) {
        *self = Self::default();
    }

    fn others(&self) -> Option<u64> {
        match (self.others, self.gap) {
            // What was counted was written, whatever was not counted.
            (Some(0), true) => None,
            (others, _) => others,
        }
    }
}

#[cfg(test)]
mod tests;
