//! A simulated device: what it is like, as a file says, and how it behaves at a
//! moment of its life.

use std::path::Path;

use fathom_model::mix::mix;
use serde::Deserialize;

use super::life::Life;

/// What [`SimDevice::format`] says.
const FORMAT: &str = "fathom-sim-device";
/// The only version there is.
const VERSION: u32 = 1;

/// A device as its file describes it; docs/FORMAT.md explains every key. The
/// default is healthy and never changes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimDevice {
    /// `fathom-sim-device`.
    pub format: String,
    /// 1.
    pub version: u32,
    /// Time of a single I/O without its data, in µs.
    pub latency_us: f64,
    /// I/Os that it serves side by side: the knee of its curves.
    pub parallel: f64,
    /// Most that it moves, in MiB/s.
    pub bandwidth_mib: f64,
    /// Its size in GiB: what shares of it (`size=25%`) are meant of.
    pub capacity_gib: f64,
    /// Percent of the rate that is lost with each doubling of the I/Os under
    /// way beyond `parallel`.
    pub beyond_percent: f64,
    /// Percent by which intervals differ at random.
    pub noise_percent: f64,
    /// Chooses the random numbers: the same seed gives the same figures.
    pub seed: u64,
    /// Percent by which the rate grows in an hour, compounded; negative: it
    /// gets worse.
    pub drift_percent_per_hour: f64,
    /// Percent by which the rate takes a step up or down at random each second,
    /// from where it stands: it never settles.
    pub wander_percent: f64,
    /// Faster when new or purged, and slower with time.
    pub settle: Option<SettlingRate>,
    /// A rate that goes up and down.
    pub swing: Option<Swing>,
    /// Errors.
    pub fail: Option<Fail>,
    /// Silence.
    pub stall: Option<Stall>,
    /// From this second of its life on it is gone (ENODEV).
    pub vanish_after_s: Option<f64>,
    /// Time that a simulated second really takes, in ms.
    pub pace_ms: f64,
}

/// The rate of a new device falls towards that of a used one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettlingRate {
    /// Rate when new, in percent of the settled one.
    pub fresh_percent: f64,
    /// Time after which 1/e of the difference is left, in s.
    pub seconds: f64,
}

/// A sine.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swing {
    /// Percent of the rate, up and down.
    pub percent: f64,
    /// From one top to the next, in s.
    pub seconds: f64,
}

/// When I/Os fail, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fail {
    /// From this second of its life on; absent: not for its age.
    pub after_s: Option<f64>,
    /// Jobs with so many I/Os under way; absent: not for that.
    pub in_flight: Option<u64>,
    /// The errno: 5 (EIO) unless another is given.
    pub errno: i32,
}

impl Default for Fail {
    fn default() -> Self {
        Self {
            after_s: None,
            in_flight: None,
            errno: EIO,
        }
    }
}

/// When no I/O comes back.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// From this second of its life on.
    pub after_s: f64,
    /// For so long, in s; absent: for ever.
    pub for_s: Option<f64>,
}

/// errno(3): the same numbers on every Linux architecture that Rust knows.
const EIO: i32 = 5;
/// No such device.
pub(super) const ENODEV: i32 = 19;

impl Default for SimDevice {
    fn default() -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            latency_us: 80.0,
            parallel: 32.0,
            bandwidth_mib: 2000.0,
            capacity_gib: 64.0,
            beyond_percent: 0.0,
            noise_percent: 1.0,
            seed: 1,
            drift_percent_per_hour: 0.0,
            wander_percent: 0.0,
            settle: None,
            swing: None,
            fail: None,
            stall: None,
            vanish_after_s: None,
            pace_ms: 0.0,
        }
    }
}

/// What a device gives in one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct IntervalService {
    /// I/Os per second.
    pub(super) iops: f64,
    /// Mean latency in ns.
    pub(super) latency_ns: f64,
}

impl SimDevice {
    /// Reads a description.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let device: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if device.format != FORMAT || device.version != VERSION {
            return Err(format!(
                "it is not of the format {FORMAT}, version {VERSION}"
            ));
        }
        let must_be_positive = [
            ("latency_us", device.latency_us),
            ("parallel", device.parallel),
            ("bandwidth_mib", device.bandwidth_mib),
            ("capacity_gib", device.capacity_gib),
        ];
        for (key, value) in must_be_positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{key} must be above 0"));
            }
        }
        Ok(device)
    }

    /// Its size in bytes.
    pub(super) fn capacity_bytes(&self) -> u64 {
        (self.capacity_gib * f64::from(1 << 30)) as u64
    }

    /// What `in_flight` I/Os of `block_bytes` get at a moment of its life.
    pub(super) fn serve(&self, in_flight: f64, block_bytes: f64, life: &Life) -> IntervalService {
        let bandwidth = self.bandwidth_mib * f64::from(1 << 20);
        let alone_s = self.latency_us / 1e6 + block_bytes / bandwidth;
        let served = in_flight.min(self.parallel);
        let doublings = (in_flight / self.parallel).log2().max(0.0);
        let lost = (1.0 - self.beyond_percent / 100.0)
            .max(0.01)
            .powf(doublings);
        let most = bandwidth / block_bytes;
        let iops = (served / alone_s).min(most) * lost * self.mood(life) * life.wandered;
        let iops = iops.max(0.1);
        IntervalService {
            iops,
            // Little's law: in a closed loop latency follows from the rate.
            latency_ns: in_flight / iops * 1e9,
        }
    }

    /// Its rate at a moment as a factor.
    fn mood(&self, life: &Life) -> f64 {
        let at_s = life.now.as_secs_f64();
        let mut factor = (1.0 + self.drift_percent_per_hour / 100.0)
            .max(0.01)
            .powf(at_s / 3600.0);
        if let Some(settle) = self.settle {
            let more = settle.fresh_percent / 100.0 - 1.0;
            let used_s = at_s - life.purged.as_secs_f64();
            factor *= 1.0 + more * (-used_s / settle.seconds).exp();
        }
        if let Some(swing) = self.swing {
            let turn = at_s / swing.seconds * std::f64::consts::TAU;
            factor *= 1.0 + swing.percent / 100.0 * turn.sin();
        }
        factor * (1.0 + self.noise_percent / 100.0 * self.chance((at_s * 1000.0) as u64, 1))
    }

    /// A number from -1 to 1 that is the same for the same moment.
    pub(super) fn chance(&self, moment: u64, stream: u64) -> f64 {
        let bits = mix(mix(self.seed, stream), moment) >> 11;
        bits as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// The errno of I/Os at a moment; `None`: they succeed.
    pub(super) fn errno(&self, at_s: f64, in_flight: u64) -> Option<i32> {
        if self.vanish_after_s.is_some_and(|from| at_s >= from) {
            return Some(ENODEV);
        }
        let fail = self.fail?;
        let old = fail.after_s.is_some_and(|from| at_s >= from);
        let many = fail.in_flight.is_some_and(|from| in_flight >= from);
        (old || many).then_some(fail.errno)
    }

    /// Whether it is silent at a moment.
    pub(super) fn stalls(&self, at_s: f64) -> bool {
        self.stall.is_some_and(|stall| {
            let end = stall
                .for_s
                .map_or(f64::INFINITY, |length| stall.after_s + length);
            (stall.after_s..end).contains(&at_s)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_grow_up_to_the_knee_and_latencies_beyond_it() {
        let device = SimDevice {
            noise_percent: 0.0,
            beyond_percent: 10.0,
            ..SimDevice::default()
        };
        let at = |depth: f64| device.serve(depth, 4096.0, &Life::new());
        assert!(at(32.0).iops > 1.9 * at(16.0).iops);
        assert!(at(64.0).iops < at(32.0).iops);
        assert!(at(64.0).latency_ns > 2.0 * at(32.0).latency_ns);
    }

    #[test]
    fn files_are_read_and_wrong_ones_refused() {
        let device = SimDevice::parse(
            "format = \"fathom-sim-device\"\nversion = 1\nlatency_us = 10\n[stall]\nafter_s = 3\n",
        )
        .unwrap();
        assert!(device.stalls(3.0) && !device.stalls(2.9) && device.stalls(1e9));
        assert!(
            SimDevice::parse("latency = 10\n")
                .unwrap_err()
                .contains("latency")
        );
        assert!(SimDevice::parse("parallel = 0\n").is_err());
        assert!(SimDevice::parse("version = 2\n").is_err());
    }
}
