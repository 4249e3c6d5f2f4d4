//! Logs that a job writes, and the one that it replays.

use crate::native::clock::system_clock_ms;

/// fio's log files; the prefixes of those that are written.
#[derive(Debug, Clone)]
pub(in crate::native) struct LogOptions {
    pub(in crate::native) lat: Option<String>,
    pub(in crate::native) bw: Option<String>,
    pub(in crate::native) iops: Option<String>,
    pub(in crate::native) hist: Option<String>,
    /// Averaging window in ms; 0: a line for each I/O.
    pub(in crate::native) avg_ms: u64,
    /// The same of these logs, where it is shorter.
    pub(in crate::native) bw_avg_ms: Option<u64>,
    pub(in crate::native) iops_avg_ms: Option<u64>,
    /// The largest value of a window, not its mean.
    pub(in crate::native) maxima: bool,
    pub(in crate::native) hist_ms: u64,
    /// Buckets of a histogram that count as one, in powers of two.
    pub(in crate::native) hist_coarseness: u32,
    /// No line for each I/O in the log of bandwidths.
    pub(in crate::native) no_bw: bool,
    /// Times are those of a clock, not from the start of the job on.
    pub(in crate::native) unix_epoch: bool,
    pub(in crate::native) other_epoch: bool,
    /// Its number (clock_gettime(2)).
    pub(in crate::native) epoch_clock: i32,
    pub(in crate::native) prio: bool,
    pub(in crate::native) offset: bool,
    /// A file for each member.
    pub(in crate::native) per_job: bool,
    /// Bytes of a chunk that fio compresses; 0: none is.
    pub(in crate::native) compression: u64,
    pub(in crate::native) store_compressed: bool,
    /// The I/Os themselves, to be replayed: the whole name, not a prefix.
    pub(in crate::native) iolog: Option<String>,
}

impl LogOptions {
    /// What the job's clock says when its times begin, `since_ms` ago; 0: they count from
    /// there.
    pub(in crate::native) fn epoch_ms(&self, since_ms: u64) -> u64 {
        let asked = self.unix_epoch || self.other_epoch;
        let now_ms = asked.then(|| system_clock_ms(self.epoch_clock)).flatten();
        now_ms.unwrap_or(0).saturating_sub(since_ms)
    }

    /// Whether files hold compressed samples instead of lines; fio needs both options.
    pub(in crate::native) fn compressed(&self) -> bool {
        self.store_compressed && self.compression > 0
    }

    pub(in crate::native) fn any(&self) -> bool {
        [&self.lat, &self.bw, &self.iops, &self.hist]
            .iter()
            .any(|prefix| prefix.is_some())
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            lat: None,
            bw: None,
            iops: None,
            hist: None,
            avg_ms: 0,
            bw_avg_ms: None,
            iops_avg_ms: None,
            maxima: false,
            hist_ms: 1000,
            hist_coarseness: 0,
            no_bw: false,
            unix_epoch: false,
            other_epoch: false,
            epoch_clock: 0,
            prio: false,
            offset: false,
            per_job: true,
            compression: 0,
            store_compressed: false,
            iolog: None,
        }
    }
}

/// A log of I/Os that is done instead of the job's own.
#[derive(Debug, Clone)]
pub(in crate::native) struct ReplayOptions {
    /// The logs; the clones of a job take them in turn. Empty: nothing is replayed.
    pub(in crate::native) logs: Vec<String>,
    /// Read as it is replayed, not before.
    pub(in crate::native) chunked: bool,
    /// Its times do not count.
    pub(in crate::native) no_stall: bool,
    /// How fast time passes, in percent of the log's.
    pub(in crate::native) time_percent: u32,
    /// The only file or device, whatever the log names.
    pub(in crate::native) redirect: Option<String>,
    /// Offsets are multiples of it, and lengths of block traces; 0: as they are.
    pub(in crate::native) align: u32,
    /// What offsets are divided by; 0: they are not.
    pub(in crate::native) scale: u32,
    /// Directions, and syncs, of a block trace that are left out.
    pub(in crate::native) skips: [bool; 3],
    pub(in crate::native) skips_syncs: bool,
    /// Block traces are merged into this file, which is then the log of all clones.
    pub(in crate::native) merged: Option<String>,
    /// What the times of each are stretched to, in percent, and how often each comes;
    /// empty: as they are, once.
    pub(in crate::native) merge_percents: Vec<u64>,
    pub(in crate::native) merge_times: Vec<u64>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            logs: Vec::new(),
            chunked: false,
            no_stall: false,
            time_percent: 100,
            redirect: None,
            align: 0,
            scale: 1,
            skips: [false; 3],
            skips_syncs: false,
            merged: None,
            merge_percents: Vec::new(),
            merge_times: Vec::new(),
        }
    }
}
