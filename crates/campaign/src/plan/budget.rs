//! What a plan costs: time, and wear of the device.

use fathom_flow::budget::{Cost, Speed};

use super::{CampaignStep, ResolvedCampaign};

impl CampaignStep {
    /// The cost of these steps on a device that writes no faster than `speed`.
    pub fn cost<'s>(steps: impl IntoIterator<Item = &'s Self>, speed: Option<Speed>) -> Cost {
        let parts = steps
            .into_iter()
            .map(|step| (step.duration, step.write_most(speed)));
        Cost::of_parts(parts)
    }

    /// The most it writes, in bytes; `None` when neither job nor speed tells.
    pub fn write_most(&self, speed: Option<Speed>) -> Option<u64> {
        self.write_bytes.or_else(|| {
            let speed = speed?.bytes_per_second() as f64 * self.write_share;
            Some((self.duration?.as_secs_f64() * speed) as u64)
        })
    }
}

impl ResolvedCampaign {
    /// How fast the link of the device under test is, where it has one that
    /// tells; a look at sysfs, the device is not opened.
    pub fn link_speed(&self) -> Option<Speed> {
        Speed::of_link(&self.dut)
    }
}
