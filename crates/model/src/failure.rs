//! What can go wrong with a run: what happened, to what, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::remedies;

/// The kinds of failure; each has one advice text, here and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// An I/O came back with an error.
    Io,
    /// What was read back is not what was written.
    Corrupt,
    /// The file system or device is full.
    NoSpace,
    /// A job ended without figures, killed by a signal.
    JobKilled,
    /// The engine itself was killed.
    EngineKilled,
    /// The engine ended without a whole report.
    NoReport,
    /// The engine refused an option or job file.
    BadOption,
    /// fio has no such I/O engine here, or cannot load it.
    EngineMissing,
    /// The program fio is not installed.
    FioMissing,
    /// The kernel's limit on asynchronous I/O contexts (fs.aio-max-nr) is reached.
    AioLimit,
    /// A job has neither a size nor a target that gives one.
    NoSize,
    /// A file or device cannot be opened.
    Open,
    /// A device that does not exist would have been created as a file.
    NoDevice,
    /// A step would have written to what is in use or carries what may be wanted.
    Refused,
    /// A privilege is missing.
    Permission,
    /// A job reported fewer or other jobs than were asked for.
    JobsMissing,
    /// A job moved no data.
    NoIo,
    /// A process of the engine outlived it and was killed.
    Orphan,
    /// The engine did not end when told to.
    Hung,
    /// A host cannot be reached, or refuses.
    Unreachable,
    /// Nothing that serves fio answers at an address.
    NoServer,
    /// The connection to a host was lost.
    Lost,
    /// Two names of hosts lead to one machine.
    SameHost,
    /// A host runs another version, or something else than was expected.
    Mismatch,
    /// The run took longer than it was allowed to.
    TimeLimit,
    /// The record could not be written.
    Record,
    /// No thread or process was to be had.
    NoThread,
    /// A cluster did not do what was asked of it.
    Cluster,
    /// Anything else; the text says what.
    Other,
}

impl FailureKind {
    /// What the engineer can do.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Io => {
                "check the kernel log (dmesg) for the device; to measure past errors set continue_on_error"
            }
            Self::Corrupt => {
                "keep the file or device as it is and check the kernel log (dmesg), its health (smartctl -a) and whether anything else writes to it"
            }
            Self::NoSpace => "free space or lower size; size counts for each of numjobs",
            Self::JobKilled => {
                "look for the out-of-memory killer in the kernel log, or lower numjobs and iodepth"
            }
            Self::EngineKilled => {
                "look for the out-of-memory killer in the kernel log; what was measured until then is in the record"
            }
            Self::NoReport => "the engine's own words are in the record's raw folder",
            Self::BadOption => {
                "run 'fathom job check FILE'; 'fathom engines' lists what this engine takes"
            }
            Self::EngineMissing => {
                "take another: 'fathom engines' lists those that are here (Debian: fio and its Recommends bring more)"
            }
            Self::FioMissing => "install it (Debian: apt-get install fio)",
            Self::AioLimit => {
                "raise the limit: sysctl -w fs.aio-max-nr=1048576, or lower numjobs × iodepth"
            }
            Self::NoSize => "give size= (or a filename= that exists and has one)",
            Self::Open => {
                "check the path, its permissions and that no program holds it exclusively"
            }
            Self::NoDevice => "check the name: ls -l /dev/disk/by-id",
            Self::Refused => {
                "nothing was written by that step; what was measured before it is kept"
            }
            Self::Permission => "run as root, or choose an option that needs no privilege",
            Self::JobsMissing => "the engine's own words are in the record's raw folder",
            Self::NoIo => "check size, runtime and rate: the job moved nothing",
            Self::Orphan => {
                "nothing of it is left running; the figures of that job are not complete"
            }
            Self::Hung => {
                "a device that does not answer leaves processes in state D until it does; see the kernel log"
            }
            Self::Unreachable => "check its name, that it is on, and its network",
            Self::NoServer => {
                "check its name, its network and that it listens ('fathom serve' there); --min-clients continues without it"
            }
            Self::Lost => {
                "look at that host: its network, and in its kernel log whether what ran there was killed"
            }
            Self::SameHost => {
                "leave out one of the names ('--allow-same-host' counts a machine of --hosts twice)"
            }
            Self::Mismatch => "run the same version of fio on both sides ('fio --version')",
            Self::TimeLimit => "allow more with --timeout, or lower runtime and size",
            Self::Record => "free space where the record lies, or choose another place with --runs",
            Self::NoThread => {
                "raise the limit on processes and memory (ulimit -u, ulimit -v, pids.max of the control group), or lower numjobs"
            }
            Self::Cluster => {
                "see what was made and what the pods said: *.yaml and podlogs in the record's folder"
            }
            Self::Other => "see the engine's own words in the record's raw folder",
        }
    }
}

/// Separates a message from its own advice.
const TO_DO: &str = "\n  to do: ";

/// Splits a message into what happened and its own advice, if it has any.
pub fn split_advice(message: &str) -> (&str, Option<&str>) {
    match message.split_once(TO_DO) {
        Some((what, advice)) => (what, Some(advice)),
        None => (message, None),
    }
}

/// One thing that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// What happened, a sentence without a full stop.
    pub message: String,
    /// The job, device or file it happened to, where one can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The errno behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// What to do about it, where more is known than its kind tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What to do about a process that a signal ended; `None` where its kind tells.
pub fn advice_on_signal(signal: i32) -> Option<&'static str> {
    // The numbers are the same on every Linux but MIPS (signal(7)).
    match signal {
        // What the kernel's out-of-memory killer sends.
        9 => None,
        4 | 6 | 7 | 8 | 11 | 31 => Some(
            "that is a fault of the program or of a library it loads: try another version or ioengine; the kernel log may show where",
        ),
        24 => Some("it reached the limit on CPU time: ulimit -t"),
        25 => Some("it reached the limit on the size of a file: ulimit -f"),
        _ => Some(
            "it was ended from outside: by a person, a service manager or a batch system; measure again without that",
        ),
    }
}

impl Failure {
    /// A failure of `kind` that says `message`.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            subject: None,
            errno: None,
            advice: None,
        }
    }

    /// Says what to do about it, where more is known than its kind tells.
    #[must_use]
    pub fn to_do(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Names what it happened to.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// What happened to what, in one line; its advice is told where there is room.
    pub fn sentence(&self) -> String {
        match self.subject.as_deref() {
            None | Some("") => self.message.clone(),
            Some(subject) => format!("{subject}: {}", self.message),
        }
    }

    /// What to do about it: what its message says, as that of a refusal does, else its
    /// own advice, else that of its errno, else that of its kind.
    pub fn to_be_done(&self) -> &str {
        let own = self.advice.as_deref();
        let (_, said) = split_advice(&self.message);
        let of_errno = || remedies::of(self.kind, self.errno?);
        said.or(own)
            .or_else(of_errno)
            .unwrap_or_else(|| self.kind.advice())
    }

    /// As [`Failure::sentence`], without what to do about it.
    pub fn happened(&self) -> String {
        split_advice(&self.sentence()).0.to_owned()
    }

    /// Adds the errno.
    #[must_use]
    pub fn with_errno(mut self, errno: i32) -> Self {
        self.errno = Some(errno);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{TO_DO}{}", self.happened(), self.to_be_done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_kills_is_laid_to_its_memory() {
        let told = |signal: i32| {
            let failure = Failure::new(FailureKind::EngineKilled, "killed");
            match advice_on_signal(signal) {
                Some(advice) => failure.to_do(advice).to_string(),
                None => failure.to_string(),
            }
        };
        assert!(told(9).contains("out-of-memory killer"), "{}", told(9));
        for (signal, words) in [
            (11, "a fault of the program"),
            (15, "ended from outside"),
            (24, "ulimit -t"),
            (25, "ulimit -f"),
        ] {
            let told = told(signal);
            assert!(told.contains(words) && !told.contains("memory"), "{told}");
        }
    }

    #[test]
    fn what_is_to_be_done_is_told_once_and_by_who_knows_most() {
        let refused = Failure::new(FailureKind::Refused, "in use\n  to do: unmount it");
        let told = refused.about("/dev/sdx");
        assert_eq!(told.happened(), "/dev/sdx: in use");
        assert_eq!(told.to_be_done(), "unmount it");
        assert_eq!(told.to_string().matches("to do").count(), 1);
        let own = Failure::new(FailureKind::Mismatch, "x").to_do("leave it");
        assert_eq!(own.to_string(), "x\n  to do: leave it");
        let of_kind = Failure::new(FailureKind::Io, "x");
        assert_eq!(of_kind.to_be_done(), FailureKind::Io.advice());
    }

    #[test]
    fn only_a_server_of_fio_is_said_to_be_one() {
        let no_server = FailureKind::NoServer.advice();
        assert!(no_server.contains("fathom serve"));
        assert!(!FailureKind::Unreachable.advice().contains("fathom serve"));
        let no_thread = FailureKind::NoThread.advice();
        assert!(no_thread.contains("ulimit -u") && !no_thread.contains("killer"));
    }
}
