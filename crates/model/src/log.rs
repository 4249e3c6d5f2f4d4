//! One line of a latency log, as fio writes it with `write_lat_log`, and what
//! kinds of logs there are.

use crate::Direction;

/// One I/O of a latency log; or, of an averaged one, one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// When it was logged, ms after the start of the job.
    pub time_ms: u64,
    /// The latency in ns; of a window, the mean.
    pub value: u64,
    /// The largest latency of the window in ns (`log_window_value=both`).
    pub max: Option<u64>,
    /// Read, write or trim.
    pub dir: Direction,
    /// Bytes of the I/O; 0 for a window.
    pub bs: u64,
    /// Where the I/O went, in bytes (`log_offset`).
    pub offset: Option<u64>,
    /// What the log says of the priority; its meaning is that of the log's [`PrioColumn`].
    pub prio: u16,
    /// When the I/O was issued, in ns (`log_issue_time`).
    pub issue_ns: Option<u64>,
}

/// What a log says of priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrioColumn {
    /// Nothing: written by a fio before 3.15 or so.
    Absent,
    /// 1 for real time, 0 for everything else: without `log_prio`.
    RealTime,
    /// The kernel's value, `class << 13 | hint << 3 | level`: with `log_prio`.
    Value,
}

/// Name of the kernel's I/O class (`include/uapi/linux/ioprio.h`) of a value's
/// upper three bits; `None` for one that the kernel does not have.
pub fn class_name(class: u16) -> Option<&'static str> {
    ["NONE", "RT", "BE", "IDLE"]
        .get(usize::from(class))
        .copied()
}

/// What the values of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogKind {
    /// KiB/s (`write_bw_log`).
    Bandwidth,
    /// I/Os per second (`write_iops_log`).
    Iops,
    /// Total latencies in ns (`write_lat_log`).
    Lat,
    /// Latencies of the submission.
    Slat,
    /// Latencies of the completion.
    Clat,
    /// Histograms of the latencies of the completion (`write_hist_log`).
    ClatHistograms,
}

impl LogKind {
    /// All, in the order in which they are drawn.
    pub const ALL: [Self; 6] = [
        Self::Bandwidth,
        Self::Iops,
        Self::Lat,
        Self::Slat,
        Self::Clat,
        Self::ClatHistograms,
    ];

    /// The word that stands for it in the name, behind an underscore.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Lat => "lat",
            Self::Slat => "slat",
            Self::Clat => "clat",
            Self::ClatHistograms => "clat_hist",
        }
    }

    /// What it is a log of, in words.
    pub fn holds(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Iops => "IOPS",
            Self::Lat | Self::Slat | Self::Clat => "latencies",
            Self::ClatHistograms => "histograms",
        }
    }

    /// Whether each of its lines is a latency.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Lat | Self::Slat | Self::Clat)
    }
}
