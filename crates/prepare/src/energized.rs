//! The wait until a device is energized: some drives work for hours after they
//! were switched on, and are measured only once that is over.
//!
//! How long a drive has been powered nobody tells exactly. Not longer than all
//! its life (its power-on time, rounded up); and, as far as this machine knows,
//! since it appeared: udev notes when, else the machine's own start counts. The
//! lesser of both is taken. A drive that was powered before the machine started
//! is waited for longer than needed, and never less.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fathom_device::{Health, Sys, SysBlock};
use fathom_engine::{Control, Engine};
use fathom_model::environment::BlockDevice;
use fathom_model::{Stage, StageKind, units};

/// Models that are known to need it, by the begin and the end of their number,
/// and for how long: what fio-tests waits for, Intel's P4500 a day and no other
/// drive.
const MODELS: [(&str, &str, Duration); 1] = [("INTEL SSDPE2KX", "T7", DAY)];
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How often somebody may stop the wait.
const LOOK: Duration = Duration::from_millis(200);

/// A wait for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// How long the device is to have been powered.
    pub need: Duration,
    /// How long it has been, as far as is known.
    pub powered: Duration,
    /// How that is known.
    pub known_by: KnownBy,
}

/// How it is known how long a device has been powered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    /// All its life, as the drive counts.
    Drive,
    /// The time since it appeared on this machine.
    Appearance,
    /// The time since the machine started.
    Machine,
}

/// How long a device is to have been powered before it is measured: as set, else
/// as is known of its model; `None`: it need not be.
pub fn need(set: Option<Duration>, device: &BlockDevice) -> Option<Duration> {
    let model = device.model.as_deref().unwrap_or_default();
    let known = || {
        let is = |(begin, end): (&str, &str)| model.starts_with(begin) && model.ends_with(end);
        let known = MODELS.iter().find(|(begin, end, _)| is((begin, end)))?;
        Some(known.2)
    };
    set.or_else(known).filter(|need| !need.is_zero())
}

/// The stage of a flow that waits.
pub fn stage() -> Stage {
    Stage {
        id: "energize".to_owned(),
        kind: StageKind::Energize,
        title: "wait until the device has been powered long enough".to_owned(),
        round: None,
    }
}

impl Wait {
    /// The wait for the device behind a path, which says `health` of itself.
    pub fn of(sys: &Sys, path: &Path, health: &Health, need: Duration) -> Self {
        let node = sys.by_path(path).map(|node| node.whole());
        let up = uptime(sys).unwrap_or_default();
        let appeared = node.and_then(|node| appeared(sys, &node));
        let (mut powered, mut known_by) = match appeared {
            Some(at) => (up.saturating_sub(at), KnownBy::Appearance),
            None => (up, KnownBy::Machine),
        };
        // A count in hours may be short of nearly one.
        if let Some(life) = health.powered.map(|life| life + health.powered_step)
            && life < powered
        {
            (powered, known_by) = (life, KnownBy::Drive);
        }
        Self {
            need,
            powered,
            known_by,
        }
    }

    /// The wait for a simulated device, which is switched on now.
    pub fn simulated(need: Duration) -> Self {
        Self {
            need,
            powered: Duration::ZERO,
            known_by: KnownBy::Machine,
        }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.need.saturating_sub(self.powered)
    }

    /// What is known, in one sentence: why there is a wait, or why there is none.
    pub fn reason(&self) -> String {
        let text = |time: Duration| units::duration(time.as_millis() as u64);
        let powered = text(self.powered);
        let known = match self.known_by {
            KnownBy::Drive => format!("it has been powered for {powered} at most in all its life"),
            KnownBy::Appearance => format!("it has been on this machine for {powered}"),
            KnownBy::Machine => format!("the machine has been up for {powered}"),
        };
        format!("{} of power are asked for, and {known}", text(self.need))
    }

    /// Waits for what is left, on the engine's clock. `told` is given the time
    /// that is left, every second. Gives whether nobody stopped it.
    pub fn go(
        &self,
        engine: &dyn Engine,
        control: &Control,
        told: &mut dyn FnMut(Duration),
    ) -> bool {
        let end = engine.now() + self.left();
        let mut next = Duration::ZERO;
        loop {
            let now = engine.now();
            let left = end.saturating_sub(now);
            if left.is_zero() {
                return true;
            }
            if control.stop_requests() > 0 {
                return false;
            }
            if now >= next {
                told(left);
                next = now + Duration::from_secs(1);
            }
            engine.pass(left.min(LOOK));
        }
    }
}

/// When a device appeared, since the machine's start: udev notes it in µs of the
/// monotonic clock (`I:` in its database, libsystemd's device-private.c).
fn appeared(sys: &Sys, disk: &SysBlock) -> Option<Duration> {
    let (major, minor) = disk.number()?;
    let notes = fs::read(sys.path(format!("/run/udev/data/b{major}:{minor}"))).ok()?;
    let notes = String::from_utf8_lossy(&notes);
    let at = notes.lines().find_map(|line| line.strip_prefix("I:"))?;
    Some(Duration::from_micros(at.parse().ok()?))
}

/// How long the machine is up (proc(5)).
fn uptime(sys: &Sys) -> Option<Duration> {
    let text = fs::read_to_string(sys.path("/proc/uptime")).ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fathom_engine_sim::{Sim, SimDevice};

    use super::*;

    fn machine(up_s: &str, appeared_us: Option<&str>) -> (tempfile::TempDir, Sys) {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/uptime", &format!("{up_s} 1.0\n"));
        write("sys/devices/nvme0n1/dev", "259:0\n");
        write("dev/nvme0n1", "");
        fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
        let dir = root.path().join("sys/devices/nvme0n1");
        symlink(dir, root.path().join("sys/class/block/nvme0n1")).unwrap();
        if let Some(us) = appeared_us {
            write("run/udev/data/b259:0", &format!("S:x\nI:{us}\nE:Y=1\n"));
        }
        let sys = Sys::recorded(root.path());
        (root, sys)
    }

    fn wait(sys: &Sys, health: &Health) -> Wait {
        Wait::of(sys, Path::new("/dev/nvme0n1"), health, DAY)
    }

    #[test]
    fn the_shortest_time_that_can_be_known_counts() {
        let (_root, sys) = machine("3600.5", None);
        let by_machine = wait(&sys, &Health::default());
        assert_eq!(by_machine.known_by, KnownBy::Machine);
        assert_eq!(by_machine.left(), DAY - Duration::from_millis(3_600_500));

        let (_root, sys) = machine("3600", Some("3000000000"));
        let by_udev = wait(&sys, &Health::default());
        assert_eq!(by_udev.known_by, KnownBy::Appearance);
        assert_eq!(by_udev.powered, Duration::from_secs(600));

        let (_root, sys) = machine("360000", None);
        let life = |hours: u64| Health {
            powered: Some(Duration::from_secs(hours * 3600)),
            powered_step: Duration::from_secs(3600),
            ..Health::default()
        };
        let young = wait(&sys, &life(5));
        assert_eq!(young.known_by, KnownBy::Drive);
        assert_eq!(young.left(), Duration::from_secs(18 * 3600));
        assert!(
            young.reason().contains("6h00m at most"),
            "{}",
            young.reason()
        );
        assert!(wait(&sys, &life(500)).left().is_zero());
    }

    #[test]
    fn a_setting_goes_before_what_is_known_of_the_model() {
        let device = |model: &str| BlockDevice {
            model: Some(model.into()),
            ..BlockDevice::default()
        };
        let p4500 = device("INTEL SSDPE2KX040T7");
        assert_eq!(need(None, &p4500), Some(DAY));
        assert_eq!(need(Some(Duration::ZERO), &p4500), None);
        assert_eq!(need(None, &device("QEMU NVMe Ctrl")), None);
        let minute = Duration::from_secs(60);
        assert_eq!(need(Some(minute), &device("QEMU NVMe Ctrl")), Some(minute));
    }

    #[test]
    fn a_day_passes_on_the_clock_of_the_simulation_and_can_be_stopped() {
        let sim = Sim::new(SimDevice::default());
        let wait = Wait::simulated(DAY);
        let control = Control::default();
        let mut told = 0_u64;
        assert!(wait.go(&sim, &control, &mut |_| told += 1));
        assert_eq!((sim.now(), told), (DAY, 24 * 3600));

        let mut left = Duration::ZERO;
        let stopped = !wait.go(&sim, &control, &mut |time| {
            left = time;
            if time < DAY / 2 {
                control.stop();
            }
        });
        assert!(stopped && left > DAY / 3, "{left:?}");
    }
}
