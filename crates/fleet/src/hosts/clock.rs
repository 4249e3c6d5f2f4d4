//! How another machine's clock stands against this one's.

use fathom_model::Clock;

/// Round trips that are measured before a run; later ones are added.
pub const ROUND_TRIPS: u32 = 8;

/// The estimate, from round trips: Cristian's algorithm (Probabilistic clock
/// synchronization, Distributed Computing 3, 1989). The answer was given
/// somewhere within the round trip; the shortest one says most.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockEstimate {
    best: Option<(f64, f64)>,
    n: u32,
}

impl ClockEstimate {
    /// Adds a question asked at `asked_ms` and answered at `back_ms`, both by
    /// this machine's clock, with the other's time `theirs_ms`.
    pub fn add(&mut self, asked_ms: f64, theirs_ms: f64, back_ms: f64) {
        let round_trip = (back_ms - asked_ms).max(0.0);
        self.n += 1;
        if self.best.is_none_or(|(shortest, _)| round_trip <= shortest) {
            let offset = theirs_ms - (asked_ms + back_ms) / 2.0;
            self.best = Some((round_trip, offset));
        }
    }

    /// Whether enough is known to begin.
    pub fn is_known(&self) -> bool {
        self.n >= ROUND_TRIPS
    }

    /// The estimate; `None` before the first answer.
    pub fn clock(&self) -> Option<Clock> {
        let (round_trip, offset_ms) = self.best?;
        Some(Clock {
            offset_ms,
            error_ms: round_trip / 2.0,
            n: self.n,
        })
    }

    /// A time of the other machine by this one's clock, ms since 1970.
    pub fn here_ms(&self, theirs_ms: f64) -> f64 {
        theirs_ms - self.best.map_or(0.0, |(_, offset)| offset)
    }

    /// A time of this machine by the other one's clock, ms since 1970.
    pub fn there_ms(&self, ours_ms: f64) -> f64 {
        ours_ms + self.best.map_or(0.0, |(_, offset)| offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_decides_and_its_error_holds() {
        let mut estimate = ClockEstimate::default();
        // The other clock is 1000 ms ahead; the ways there and back are unequal.
        for (there, back) in [(40.0, 10.0), (3.0, 1.0), (8.0, 90.0)] {
            let asked = 5000.0;
            estimate.add(asked, asked + there + 1000.0, asked + there + back);
        }
        let clock = estimate.clock().unwrap();
        assert_eq!((clock.offset_ms, clock.error_ms, clock.n), (1001.0, 2.0, 3));
        assert!((clock.offset_ms - 1000.0).abs() <= clock.error_ms);
        assert_eq!(estimate.here_ms(estimate.there_ms(77.0)), 77.0);
        assert!(!estimate.is_known());
    }
}
