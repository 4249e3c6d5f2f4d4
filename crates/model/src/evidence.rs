//! What a machine did and was set to while something was measured on it.
//!
//! Everything has a name of two parts, `SUBJECT.FIGURE`: `vda.read_ios`,
//! `cpu.steal_ms`. docs/FORMAT.md lists them. What cannot be read is absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Values of one setting that are kept: more changes say nothing more.
const VALUES_MOST: usize = 8;

/// What was read at the end of an interval, as far as it differs from what was read
/// before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EvidenceInterval {
    /// When it was read, ms since the run's start.
    pub t_ms: u64,
    /// Time since the reading before. 0: the first of a step, which names all that can
    /// be read.
    pub span_ms: u64,
    /// The machine, as [`Host::label`](crate::Host::label) has it; absent: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How much counters have grown since the reading before; absent: not at all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// What goes up and down; absent: as before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
    /// Settings; absent: as before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl EvidenceInterval {
    /// Whether it is the first reading of a step.
    pub fn is_first(&self) -> bool {
        self.span_ms == 0
    }

    /// Whether nothing could be read.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.gauges.is_empty() && self.settings.is_empty()
    }
}

/// A gauge over a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GaugeSum {
    /// Readings.
    pub n: u64,
    /// Of the last one.
    pub last: f64,
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
    /// Mean of the readings.
    pub mean: f64,
}

impl GaugeSum {
    fn add(&mut self, value: f64) {
        self.merge(&Self {
            n: 1,
            last: value,
            min: value,
            max: value,
            mean: value,
        });
    }

    /// Adds what followed.
    fn merge(&mut self, later: &Self) {
        if self.n == 0 || later.n == 0 {
            if later.n > 0 {
                *self = *later;
            }
            return;
        }
        let n = self.n.saturating_add(later.n);
        self.mean += (later.mean - self.mean) * later.n as f64 / n as f64;
        (self.n, self.last) = (n, later.last);
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
    }
}

/// What the readings of a time add up to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EvidenceSum {
    /// The machine, as in [`EvidenceInterval`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// End of the last.
    pub t_ms: u64,
    /// Time that counters were read over.
    pub span_ms: u64,
    /// Growth of each counter. One that stood still is there with 0 where the first
    /// reading of the step is among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Each gauge.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, GaugeSum>,
    /// The values that each setting had, in their order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Vec<String>>,
}

impl EvidenceSum {
    /// Adds a reading that follows.
    pub fn add(&mut self, interval: &EvidenceInterval) {
        self.host.clone_from(&interval.host);
        self.t_ms = self.t_ms.max(interval.t_ms);
        self.span_ms = self.span_ms.saturating_add(interval.span_ms);
        for (name, grown) in &interval.counts {
            let count = self.counts.entry(name.clone()).or_default();
            *count = count.saturating_add(*grown);
        }
        for (name, gauge) in &mut self.gauges {
            if !interval.gauges.contains_key(name) {
                gauge.add(gauge.last);
            }
        }
        for (name, value) in &interval.gauges {
            self.gauges.entry(name.clone()).or_default().add(*value);
        }
        for (name, value) in &interval.settings {
            self.set(name, value);
        }
    }

    /// Adds what followed.
    pub fn merge(&mut self, later: &Self) {
        self.host.clone_from(&later.host);
        self.t_ms = self.t_ms.max(later.t_ms);
        self.span_ms = self.span_ms.saturating_add(later.span_ms);
        for (name, grown) in &later.counts {
            let count = self.counts.entry(name.clone()).or_default();
            *count = count.saturating_add(*grown);
        }
        for (name, gauge) in &later.gauges {
            self.gauges.entry(name.clone()).or_default().merge(gauge);
        }
        for (name, values) in &later.settings {
            values.iter().for_each(|value| self.set(name, value));
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let values = self.settings.entry(name.to_owned()).or_default();
        let is_new = values.last().is_none_or(|last| last != value);
        if is_new && values.len() < VALUES_MOST {
            values.push(value.to_owned());
        }
    }

    /// What counts from here on: counters begin at 0, and gauges and settings are as
    /// they were last.
    pub fn from_here(&self) -> Self {
        let last = |values: &Vec<String>| values.last().cloned().into_iter().collect();
        let settings = self.settings.iter();
        let gauge = |gauge: &GaugeSum| {
            let mut from_here = GaugeSum::default();
            from_here.add(gauge.last);
            from_here
        };
        let gauges = self.gauges.iter();
        Self {
            host: self.host.clone(),
            t_ms: self.t_ms,
            span_ms: 0,
            counts: self.counts.keys().map(|name| (name.clone(), 0)).collect(),
            gauges: gauges.map(|(name, of)| (name.clone(), gauge(of))).collect(),
            settings: settings
                .map(|(name, of)| (name.clone(), last(of)))
                .collect(),
        }
    }

    /// Growth of a counter; `None` where it cannot be read.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// A gauge.
    pub fn gauge(&self, name: &str) -> Option<&GaugeSum> {
        self.gauges.get(name)
    }

    /// The values of a setting; none where it cannot be read.
    pub fn setting(&self, name: &str) -> &[String] {
        self.settings.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value of a setting.
    pub fn set_to(&self, name: &str) -> Option<&str> {
        self.setting(name).last().map(String::as_str)
    }

    /// Size of the pages that the machine's kernel counts in, in bytes. Records of earlier
    /// versions have it not: they are of machines with pages of 4 KiB, as most are.
    pub fn page_bytes(&self) -> u64 {
        let told = self.set_to("memory.page_bytes");
        told.and_then(|it| it.parse().ok()).unwrap_or(4096)
    }

    /// The devices of this role: `target`, or `under` one.
    pub fn devices<'e>(&'e self, role: &'e str) -> impl Iterator<Item = &'e str> {
        let roles = self.settings.iter();
        roles.filter_map(move |(name, values)| {
            let device = name.strip_suffix(".role")?;
            values.iter().any(|value| value == role).then_some(device)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(span_ms: u64, ios: Option<u64>, busy: Option<f64>) -> EvidenceInterval {
        EvidenceInterval {
            t_ms: span_ms,
            span_ms,
            counts: ios
                .map(|ios| ("sda.read_ios".to_owned(), ios))
                .into_iter()
                .collect(),
            gauges: busy
                .map(|busy| ("cpu.busy".to_owned(), busy))
                .into_iter()
                .collect(),
            settings: BTreeMap::from([(
                "sda.scheduler".to_owned(),
                format!("s{}", span_ms / 2000),
            )]),
            ..EvidenceInterval::default()
        }
    }

    #[test]
    fn sums_in_parts_are_those_of_the_whole() {
        let all = [
            interval(0, Some(0), Some(1.0)),
            interval(1000, Some(5), None),
            interval(2000, None, Some(4.0)),
            interval(3000, Some(7), Some(2.0)),
        ];
        let mut whole = EvidenceSum::default();
        all.iter().for_each(|one| whole.add(one));
        assert_eq!(whole.count("sda.read_ios"), Some(12));
        assert_eq!(whole.count("sda.write_ios"), None);
        let busy = whole.gauge("cpu.busy").unwrap();
        assert_eq!((busy.min, busy.max, busy.mean, busy.n), (1.0, 4.0, 2.0, 4));
        assert_eq!(whole.setting("sda.scheduler"), ["s0", "s1"]);
        let (mut first, mut second) = (EvidenceSum::default(), EvidenceSum::default());
        all[..2].iter().for_each(|one| first.add(one));
        all[2..].iter().for_each(|one| second.add(one));
        first.merge(&second);
        assert_eq!(first, whole);
        let from_here = whole.from_here();
        assert_eq!(from_here.count("sda.read_ios"), Some(0));
        assert_eq!(from_here.setting("sda.scheduler"), ["s1"]);
    }
}
