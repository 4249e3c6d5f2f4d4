//! What a plan costs: time, and wear of the device.

use std::time::Duration;

use fathom_device::environment;

use super::{CampaignStep, ResolvedCampaign};

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
    /// The cost of these steps on a device that writes no faster than `speed`.
    pub fn of<'s>(steps: impl IntoIterator<Item = &'s CampaignStep>, speed: Option<Speed>) -> Self {
        let parts = steps
            .into_iter()
            .map(|step| (step.duration, step.write_most(speed)));
        Self::of_parts(parts)
    }

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

impl CampaignStep {
    /// The most it writes, in bytes; `None` when neither job nor speed tells.
    #[must_use]
    pub fn write_most(&self, speed: Option<Speed>) -> Option<u64> {
        self.write_bytes.or_else(|| {
            let speed = speed?.bytes_per_second() as f64 * self.write_share;
            Some((self.duration?.as_secs_f64() * speed) as u64)
        })
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
    #[must_use]
    pub fn of_link(device: &std::path::Path) -> Option<Self> {
        let environment = environment::capture(&[device.to_owned()]);
        let device = environment.targets.into_iter().next()?.device?;
        device.link_bytes_per_second().map(Self::Link)
    }

    /// In bytes per second.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        match self {
            Self::Said(speed) | Self::Link(speed) => speed,
        }
    }
}

impl ResolvedCampaign {
    /// How fast the link of the device under test is, where it has one that
    /// tells; a look at sysfs, the device is not opened.
    #[must_use]
    pub fn link_speed(&self) -> Option<Speed> {
        Speed::of_link(&self.dut)
    }
}
