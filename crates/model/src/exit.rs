//! Exit codes of the command, the same for every subcommand.

/// How the process ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// It ran, and at least one job or check failed; the record says which.
    Failed = 1,
    /// The command line is wrong (clap's own code).
    Usage = 2,
    /// A job file or another input is wrong; nothing was run.
    Input = 3,
    /// Refused for the safety of data, or because the figure would mislead.
    Refused = 4,
    /// Something needed is missing: an engine, a privilege, a host, a run.
    Missing = 5,
    /// The record cannot be written (folder not writable, disk full).
    Record = 6,
    /// Measured, but a stated condition does not hold.
    ConditionFailed = 7,
    /// It waits for something that only a person or another program does, and says what;
    /// `fathom resume` goes on then.
    Waits = 8,
    /// Ended by SIGINT or SIGTERM; what was measured is kept.
    Interrupted = 130,
}

impl Exit {
    /// The number the process ends with.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The exit with this number; `None` when there is none.
    pub fn from_code(code: u8) -> Option<Self> {
        [
            Self::Success,
            Self::Failed,
            Self::Usage,
            Self::Input,
            Self::Refused,
            Self::Missing,
            Self::Record,
            Self::ConditionFailed,
            Self::Waits,
            Self::Interrupted,
        ]
        .into_iter()
        .find(|exit| exit.code() == code)
    }
}
