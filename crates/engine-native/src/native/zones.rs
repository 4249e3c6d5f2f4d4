//! `zonemode=strided`: zones of a file, one after the other.

use super::job::ZoneOptions;

/// Where the current zone is, and how much was done in it.
#[derive(Debug)]
pub(super) struct StridedZones {
    options: ZoneOptions,
    /// Where the first zone begins, and where the file ends.
    first: u64,
    end: u64,
    /// Where the current one begins.
    start: u64,
    /// Bytes done in it, those done more than once as often as they were.
    done: u64,
}

/// What comes before the next I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneStep {
    /// It lies in the zone of the one before.
    Same,
    /// The whole zone was done, or a new one begins here: no block of it is used.
    From(u64),
}

impl StridedZones {
    /// The zones of a file that is used from `first` on and has this end.
    pub(super) fn new(options: ZoneOptions, first: u64, end: u64) -> Self {
        Self {
            options: ZoneOptions {
                range: options.range.min(end - first),
                ..options
            },
            first,
            end,
            start: first,
            done: 0,
        }
    }

    /// Bytes from the begin of a zone to its end.
    pub(super) fn range(&self) -> u64 {
        self.options.range
    }

    /// As at the start.
    pub(super) fn rewind(&mut self) {
        (self.start, self.done) = (self.first, 0);
    }

    /// What the next I/O of `len` bytes begins with (io_u.c, setup_strided_zone_mode).
    /// A zone that the file's end would cut short is left out.
    #[inline]
    pub(super) fn step(&mut self) -> ZoneStep {
        if self.done >= self.options.size {
            self.done = 0;
            self.start += self.options.range + self.options.skip;
            if self.start + self.options.range > self.end {
                self.start = self.first;
            }
        }
        if self.done.is_multiple_of(self.options.range) {
            ZoneStep::From(self.start)
        } else {
            ZoneStep::Same
        }
    }

    /// An I/O of so many bytes was made.
    #[inline]
    pub(super) fn did(&mut self, len: u32) {
        self.done += u64::from(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::job::ZoneMode;

    fn starts(size: u64, range: u64, skip: u64, end: u64) -> Vec<u64> {
        let options = ZoneOptions {
            mode: Some(ZoneMode::Strided),
            size,
            range,
            skip,
            ..ZoneOptions::default()
        };
        let mut zones = StridedZones::new(options.strided(1).unwrap(), 100, end);
        let mut at = 100;
        let mut found = Vec::new();
        for _ in 0..8 {
            if let ZoneStep::From(start) = zones.step() {
                at = start;
            }
            zones.did(10);
            found.push(at);
        }
        found
    }

    #[test]
    fn zones_follow_each_other_and_begin_again_at_the_end() {
        // A zone's range is its size where it is not given.
        assert_eq!(
            starts(20, 0, 0, 160),
            [100, 100, 120, 120, 140, 140, 100, 100]
        );
        assert_eq!(
            starts(20, 0, 10, 160),
            [100, 100, 130, 130, 100, 100, 130, 130]
        );
        // Half of each; twice each; a range that is longer than the file.
        assert_eq!(starts(10, 20, 0, 140), [100, 120].repeat(4));
        assert_eq!(
            starts(20, 10, 0, 120),
            [100, 100, 110, 110, 100, 100, 110, 110]
        );
        assert_eq!(starts(20, 500, 0, 120), [100; 8]);
    }

    #[test]
    fn one_file_has_zones() {
        let options = ZoneOptions {
            mode: Some(ZoneMode::Strided),
            size: 4096,
            ..ZoneOptions::default()
        };
        assert_eq!(options.strided(1).map(|zones| zones.range), Some(4096));
        assert_eq!(options.strided(2), None);
        let in_zones = ZoneOptions {
            skip_zones: 2,
            ..options
        };
        assert_eq!(in_zones.strided(1).map(|zones| zones.skip), Some(8192));
        assert_eq!(ZoneOptions::default().strided(1), None);
    }
}
