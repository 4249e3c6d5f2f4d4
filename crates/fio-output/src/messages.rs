//! fio's messages: which of its lines mean what.
//!
//! The wording is that of fio 3.33 and was the same in 2.21 and 3.42; what is
//! not known stays [`Message::Other`] and loses nothing.

use fathom_model::{Failure, FailureKind};

/// Longest text of a message that is repeated.
const TEXT_MAX: usize = 300;

/// How fio's words begin when it gets no thread for a job (`run_threads` in backend.c).
pub const NO_JOB_THREAD: &str = "pthread_create: ";
/// What fio says 10 s after it could not fork for a job: it does not look whether it
/// could, and waits for a job that is not there.
pub const NO_JOB_PROCESS: &str = "fio: job startup hung? exiting.";

/// A line of fio, understood as far as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A job met an error: `fio: pid=1, err=28/file:io_u.c:2057, func=io_u error, error=…`.
    JobError {
        /// Process (0: none yet).
        pid: u32,
        /// Its errno.
        errno: i32,
        /// fio's function.
        func: String,
        /// The error in words.
        text: String,
    },
    /// An I/O on a file failed: `fio: io_u error on file F: No space left on device: write offset=0, buflen=4096`.
    FileError {
        /// What happened to which file.
        text: String,
        /// The errno in words.
        errno_text: String,
    },
    /// `fio: pid=1, got signal=9`
    KilledJob {
        /// Process.
        pid: u32,
        /// Signal.
        signal: i32,
    },
    /// `NAME: you need to specify size=`
    NoSize {
        /// The job.
        job: String,
    },
    /// `fio: terminating on signal 2`
    Terminating {
        /// Signal.
        signal: i32,
    },
    /// fio does not run this.
    Refusal(Failure),
    /// Worth a note.
    Remark(String),
    /// Says what is known anyway.
    Ignored,
    /// Anything else.
    Other(String),
}

/// Understands one line.
pub fn classify(line: &str) -> Message {
    let line = line.trim();
    job_error(line)
        .or_else(|| killed(line))
        .or_else(|| file_error(line))
        .or_else(|| refusal(line).map(Message::Refusal))
        .unwrap_or_else(|| other(line))
}

fn other(line: &str) -> Message {
    let ignored = line.is_empty()
        || line.starts_with("fio-")
        || line.starts_with("Starting ")
        || line.starts_with('.') && line.trim_matches('.').is_empty()
        || line.contains(": (g=")
        || line.contains(": Laying out IO file")
        || line.starts_with("fio: file hash not empty")
        // What follows these says the same better.
        || line.contains("func=dlopen")
        || line.starts_with("fio: failed to load engine")
        || line.starts_with("fio: job ") && line.ends_with(" dropped")
        || line.ends_with(" failed to start");
    if ignored {
        Message::Ignored
    } else if let Some(job) = line.strip_suffix(": you need to specify size=") {
        Message::NoSize {
            job: job.to_owned(),
        }
    } else if let Some(signal) = line.strip_prefix("fio: terminating on signal ") {
        Message::Terminating {
            signal: signal.parse().unwrap_or(0),
        }
    } else if line.starts_with("note: ") || line.starts_with("fio: ") || line.contains("verify: ") {
        Message::Remark(line.to_owned())
    } else {
        Message::Other(line.to_owned())
    }
}

/// `td_verror` (fio.h) writes these.
fn job_error(line: &str) -> Option<Message> {
    let (pid, rest) = line.strip_prefix("fio: pid=")?.split_once(", err=")?;
    let (errno, rest) = rest.split_once('/')?;
    let (func, text) = rest.split_once(", func=")?.1.split_once(", error=")?;
    Some(Message::JobError {
        pid: pid.parse().ok()?,
        errno: errno.parse().ok()?,
        func: func.to_owned(),
        text: text.to_owned(),
    })
}

fn killed(line: &str) -> Option<Message> {
    let (pid, signal) = line
        .strip_prefix("fio: pid=")?
        .split_once(", got signal=")?;
    Some(Message::KilledJob {
        pid: pid.parse().ok()?,
        signal: signal.parse().ok()?,
    })
}

/// `__io_u_log_error` (io_u.c) writes these; a file's name may hold anything
/// but is followed by the error and the operation.
fn file_error(line: &str) -> Option<Message> {
    let rest = line.strip_prefix("fio: io_u error on file ")?;
    let (head, operation) = rest.rsplit_once(": ")?;
    let (file, errno_text) = head.rsplit_once(": ")?;
    let (dir, offset) = operation.split_once(" offset=")?;
    let offset = offset.split(',').next()?;
    Some(Message::FileError {
        text: format!("{dir} of {file} at byte {offset} failed: {errno_text}"),
        errno_text: errno_text.to_owned(),
    })
}

fn refusal(line: &str) -> Option<Failure> {
    let between = |head: &str, tail: &str| {
        let rest = line.strip_prefix(head)?;
        rest.strip_suffix(tail).map(str::to_owned)
    };
    let bad_option = |message: String| Some(Failure::new(FailureKind::BadOption, message));
    if let Some(engine) = between("fio: engine ", " not loadable") {
        let what = "fio has no such ioengine here, or cannot load it";
        return Some(Failure::new(FailureKind::EngineMissing, what).about(engine));
    }
    if let Some(option) = between("Bad option <", ">") {
        return bad_option(format!("fio does not know the option {option}"));
    }
    if let Some(option) = between("fio: unrecognized option '", "'") {
        return bad_option(format!("fio does not know the option {option}"));
    }
    if let Some(option) = between("fio: failed parsing ", "") {
        return bad_option(format!("fio does not accept {option}"));
    }
    if let Some(option) = between("fio: option <", "> outside of [] job section") {
        return bad_option(format!("the option {option} is outside any section"));
    }
    if let Some(file) = between("fio: unable to open '", "' job file") {
        let what = "fio cannot open this job file";
        return Some(Failure::new(FailureKind::Open, what).about(file));
    }
    if let Some(said) = between(NO_JOB_THREAD, "") {
        let what = format!("fio could not start a thread for each job: {said}");
        return Some(Failure::new(FailureKind::NoThread, what));
    }
    if line == NO_JOB_PROCESS {
        let what = "fio could not start a process for each job: one was not there after 10 s";
        return Some(Failure::new(FailureKind::NoThread, what));
    }
    if line == "fio: file creation disallowed by allow_file_create=0" {
        let what = "a file or device that a job names does not exist, and creating it is not allowed (allow_file_create=0)";
        return Some(Failure::new(FailureKind::NoDevice, what));
    }
    if line.contains("does not support direct=1/buffered=0")
        || line.contains("does not support O_DIRECT")
    {
        let what = "the file system does not support direct=1 (O_DIRECT)";
        return Some(Failure::new(FailureKind::Open, what));
    }
    None
}

/// A message short enough to be repeated.
pub fn one_line(text: &str) -> String {
    let text = text.strip_prefix("fio: ").unwrap_or(text);
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
