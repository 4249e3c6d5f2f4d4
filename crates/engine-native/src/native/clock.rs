//! The clock of the I/O loop: the time stamp counter where the kernel trusts it
//! for its own time, else CLOCK_MONOTONIC.

#![allow(unsafe_code)] // each block says why it is sound

use std::time::{Duration, Instant};

/// How far apart the two readings of a calibration are at least. A reading of
/// both clocks is good to about 50 ns: 17 millionths of this.
const CALIBRATION: Duration = Duration::from_millis(3);

/// Reads ticks and turns them into ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct TickClock {
    tsc: bool,
    /// ns per tick, 32 bits behind the point.
    ns_per_tick: u64,
    zero: Instant,
}

/// The first reading of a calibration.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockAnchor {
    tsc: Option<u64>,
    at: Instant,
}

impl ClockAnchor {
    pub(super) fn now() -> Self {
        if !tsc::trusted() {
            return Self {
                tsc: None,
                at: Instant::now(),
            };
        }
        let (ticks, at) = together();
        Self {
            tsc: Some(ticks),
            at,
        }
    }

    /// Waits until enough time has passed since the first reading and compares.
    pub(super) fn clock(self) -> TickClock {
        let zero = self.at;
        let monotonic = TickClock {
            tsc: false,
            ns_per_tick: 1 << 32,
            zero,
        };
        let Some(first) = self.tsc else {
            return monotonic;
        };
        std::thread::sleep(CALIBRATION.saturating_sub(self.at.elapsed()));
        let (second, at) = together();
        let ns = at.duration_since(self.at).as_nanos();
        let ticks = u128::from(second.saturating_sub(first));
        match (ns << 32).checked_div(ticks).map(u64::try_from) {
            Some(Ok(ns_per_tick)) if ns_per_tick > 0 => TickClock {
                tsc: true,
                ns_per_tick,
                zero,
            },
            _ => monotonic,
        }
    }
}

/// Both clocks at one moment: of several tries the one in which the counter
/// moved least between two readings.
fn together() -> (u64, Instant) {
    let mut best: Option<(u64, u64, Instant)> = None;
    for _ in 0..8 {
        let before = tsc::read();
        let at = Instant::now();
        let width = tsc::read().wrapping_sub(before);
        if best.is_none_or(|(narrowest, ..)| width < narrowest) {
            best = Some((width, before.wrapping_add(width / 2), at));
        }
    }
    best.map_or((0, Instant::now()), |(_, ticks, at)| (ticks, at))
}

impl TickClock {
    /// The time in ticks.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        if self.tsc {
            tsc::read()
        } else {
            u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
        }
    }

    /// A number of ticks in ns.
    #[inline]
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> 32) as u64
    }

    /// A number of ns in ticks.
    pub(super) fn ticks(&self, ns: u64) -> u64 {
        u64::try_from((u128::from(ns) << 32) / u128::from(self.ns_per_tick)).unwrap_or(u64::MAX)
    }
}

#[cfg(target_arch = "x86_64")]
mod tsc {
    /// Whether the kernel runs its own clock on the counter: it has then
    /// checked that it is invariant and the same on all CPUs
    /// (arch/x86/kernel/tsc.c, check_tsc_sync_source).
    pub(super) fn trusted() -> bool {
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|name| name.trim() == "tsc")
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: RDTSC has no operands and touches no memory; every x86-64 has it.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod tsc {
    pub(super) fn trusted() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        0
    }
}

/// What a clock of the system says, in ms; `None`: there is no such clock.
pub(super) fn system_clock_ms(clock: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec at the pointer.
    match unsafe { libc::clock_gettime(clock, &raw mut now) } {
        0 => Some(now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_ns_and_back() {
        let clock = ClockAnchor::now().clock();
        for ns in [1_000u64, 1_000_000_000, 3_600_000_000_000] {
            let back = clock.ns(clock.ticks(ns));
            assert!(back.abs_diff(ns) <= ns / 100_000 + 2, "{ns} {back}");
        }
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
