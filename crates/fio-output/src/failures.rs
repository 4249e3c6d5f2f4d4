//! What went wrong, from everything fio leaves behind.
//!
//! fio's exit code alone says little: it is the number of failed jobs modulo
//! 256, and 0 for a job that a signal killed. So the report, the messages on
//! both outputs and the end of the process are read together.

use std::collections::BTreeMap;

use fathom_model::failure::advice_on_signal;
use fathom_model::{Failure, FailureKind, JobResult, Results, units};
use rustix::io::Errno;

use super::messages::{Message, classify, one_line};

/// fio's exit code after SIGINT and SIGTERM (`sig_int` in backend.c).
const EXIT_TERMINATED: i32 = 128;
/// Most failures of one kind that are told one by one.
const ONE_BY_ONE: usize = 16;
/// `EHWPOISON` (include/uapi/asm-generic/errno.h).
const LAST_ERRNO: i32 = 133;

/// How fio's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioEnd {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Nobody saw it: its guard is gone, or it does not die.
    Unknown,
}

/// Everything that is known of a run that has ended.
#[derive(Debug)]
pub struct Evidence<'e> {
    /// End of the process.
    pub end: FioEnd,
    /// Whether Fathom told it to stop.
    pub stopped: bool,
    /// Lines of both outputs that are no part of a status.
    pub messages: &'e [String],
    /// The last report, if it is fio's final one.
    pub results: Option<&'e Results>,
    /// The last report's normal text: it knows the jobs' pids.
    pub normal: &'e str,
    /// Whether the last report is cut off.
    pub cut: bool,
    /// Why the last report could not be read.
    pub unreadable: Option<String>,
    /// Names of the jobs (with group reporting, of the groups) that must report.
    pub expected: &'e [String],
}

/// What the evidence says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FailureVerdict {
    /// What failed.
    pub failures: Vec<Failure>,
    /// What is to know besides.
    pub notes: Vec<String>,
    /// Somebody else than Fathom told fio to end.
    pub ended_from_outside: bool,
}

/// Judges a run.
pub fn judge(evidence: &Evidence) -> FailureVerdict {
    let jobs_by_pid = jobs_by_pid(evidence.normal);
    let mut judge = FailureJudge {
        messages: evidence
            .messages
            .iter()
            .map(|line| classify(line))
            .collect(),
        evidence,
        jobs_by_pid,
        ignored: false,
        verdict: FailureVerdict::default(),
    };
    judge.refusals();
    judge.killed_jobs();
    match evidence.results {
        Some(results) => judge.report(results),
        None => judge.no_report(),
    }
    judge.end();
    judge.notes();
    judge.verdict
}

struct FailureJudge<'e> {
    evidence: &'e Evidence<'e>,
    messages: Vec<Message>,
    jobs_by_pid: BTreeMap<u32, String>,
    /// A job reports an error that it was to go past: fio's exit code may count it
    /// among the failed ones all the same.
    ignored: bool,
    verdict: FailureVerdict,
}

impl FailureJudge<'_> {
    fn fail(&mut self, failure: Failure) {
        if !self.verdict.failures.contains(&failure) {
            self.verdict.failures.push(failure);
        }
    }

    /// What fio refused before any job ran.
    fn refusals(&mut self) {
        for message in self.messages.clone() {
            if let Message::Refusal(failure) = message {
                self.fail(failure);
            }
        }
    }

    /// A job killed by a signal reports no error, and fio's exit code is 0.
    fn killed_jobs(&mut self) {
        for message in self.messages.clone() {
            let Message::KilledJob { pid, signal } = message else {
                continue;
            };
            let (subject, whose) = match self.jobs_by_pid.get(&pid) {
                Some(job) => (job.clone(), "its process"),
                None => (format!("process {pid}"), "a job's process"),
            };
            let what = format!("{whose} was killed by signal {signal}: the figures end there");
            let failure = Failure::new(FailureKind::JobKilled, what).about(subject);
            self.fail(by_signal(failure, signal));
        }
    }

    fn report(&mut self, results: &Results) {
        for job in results.jobs.iter().filter(|job| job.error != 0) {
            if is_tolerated(results, job) && !self.was_ended_by_error(job) {
                self.ignored = true;
                let errors = job.total_errors.unwrap_or(1);
                let failed = units::counted(errors, "failed I/O");
                let note = format!(
                    "job {}: went on after {failed}, first: {}",
                    job.name,
                    errno_text_of(job.error)
                );
                self.verdict.notes.push(note);
                continue;
            }
            let failure = self.job_error(job);
            self.fail(failure);
        }
        // Errors of jobs that the report does not show: a member of a group.
        let unshown: Vec<Failure> = self
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::JobError {
                    pid,
                    errno,
                    func,
                    text,
                } if !results.jobs.iter().any(|job| job.error == *errno) => {
                    let job = self.jobs_by_pid.get(pid).cloned();
                    let failure =
                        Failure::new(kind_of(*errno, func), text.clone()).with_errno(*errno);
                    Some(failure.about(job.unwrap_or_else(|| format!("process {pid}"))))
                }
                _ => None,
            })
            .take(ONE_BY_ONE)
            .collect();
        for failure in unshown {
            self.fail(failure);
        }
        if !self.evidence.stopped && !self.was_terminated() {
            self.missing_jobs(results);
        }
    }

    /// Whether an error ended the job: fio says so of each such process, and of no
    /// other (`thread_main` in backend.c).
    fn was_ended_by_error(&self, job: &JobResult) -> bool {
        self.messages.iter().any(|message| match message {
            Message::JobError { pid, .. } => {
                let of = self.jobs_by_pid.get(pid);
                of.is_none_or(|name| *name == job.name)
            }
            _ => false,
        })
    }

    /// The error a job reports, with the words of the message that belongs to it.
    fn job_error(&self, job: &JobResult) -> Failure {
        let said = self.messages.iter().find_map(|message| match message {
            Message::JobError {
                errno, func, text, ..
            } if *errno == job.error => Some((func.as_str(), text.as_str())),
            _ => None,
        });
        let func = said.map(|(func, _)| func);
        let errno = said.map_or(job.error, |(_, words)| errno_of(job.error, words));
        let file = self.messages.iter().find_map(|message| match message {
            Message::FileError { text, errno_text } if *errno_text == errno_text_of(errno) => {
                Some(text)
            }
            _ => None,
        });
        let no_size = self
            .messages
            .iter()
            .any(|message| matches!(message, Message::NoSize { job: name } if *name == job.name));
        let kind = match no_size {
            true => FailureKind::NoSize,
            false => kind_of(errno, func.unwrap_or_default()),
        };
        let what = match (kind, file) {
            (FailureKind::NoSize, _) => "it has no size, and its target gives none".to_owned(),
            (FailureKind::AioLimit, _) => {
                "the kernel gives no more asynchronous I/O contexts (fs.aio-max-nr)".to_owned()
            }
            (_, Some(file)) => file.clone(),
            (_, None) if errno == Errno::ILSEQ.raw_os_error() => {
                "verification found other data than was written".to_owned()
            }
            (_, None) => match func {
                Some(func) => format!("{} ({func})", errno_text_of(errno)),
                None => errno_text_of(errno),
            },
        };
        let what = match job.total_errors {
            Some(n) if n > 1 => format!("{what}; {n} I/Os failed in all"),
            _ => what,
        };
        Failure::new(kind, what).about(&job.name).with_errno(errno)
    }

    fn missing_jobs(&mut self, results: &Results) {
        let mut there: Vec<&str> = results.jobs.iter().map(|job| job.name.as_str()).collect();
        let mut missing = Vec::new();
        for name in self.evidence.expected {
            match there.iter().position(|have| have == name) {
                Some(at) => drop(there.swap_remove(at)),
                None => missing.push(name.as_str()),
            }
        }
        if !missing.is_empty() {
            let shown = missing[..missing.len().min(ONE_BY_ONE)].join(", ");
            let what = format!(
                "{} of {} jobs did not report: {shown}",
                missing.len(),
                self.evidence.expected.len()
            );
            self.fail(Failure::new(FailureKind::JobsMissing, what));
        }
    }

    fn no_report(&mut self) {
        let killed = matches!(self.evidence.end, FioEnd::Signaled(_) | FioEnd::Unknown);
        if killed || self.evidence.stopped || !self.verdict.failures.is_empty() {
            return;
        }
        let what = match (&self.evidence.unreadable, self.evidence.cut) {
            (Some(reason), _) => format!("fio's report cannot be read: {reason}"),
            (None, true) => "fio's report is cut off".to_owned(),
            (None, false) => match self.last_words() {
                Some(words) => format!("fio reported nothing; it said: {words}"),
                None => "fio reported nothing".to_owned(),
            },
        };
        self.fail(Failure::new(FailureKind::NoReport, what));
    }

    fn last_words(&self) -> Option<String> {
        let last = self
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Other(text) => Some(text),
                _ => None,
            });
        last.map(|text| one_line(text))
    }

    fn was_terminated(&self) -> bool {
        self.evidence.end == FioEnd::Exited(EXIT_TERMINATED)
            && self
                .messages
                .iter()
                .any(|m| matches!(m, Message::Terminating { .. }))
    }

    fn end(&mut self) {
        let from_outside = !self.evidence.stopped;
        match self.evidence.end {
            FioEnd::Signaled(signal) if from_outside => {
                let what = format!("fio was killed by signal {signal}");
                let failure = Failure::new(FailureKind::EngineKilled, what);
                self.fail(by_signal(failure, signal));
            }
            FioEnd::Exited(EXIT_TERMINATED) if from_outside && self.was_terminated() => {
                self.verdict.ended_from_outside = true;
                self.verdict
                    .notes
                    .push("somebody else told fio to end before its time".to_owned());
            }
            FioEnd::Exited(code)
                if code != 0
                    && from_outside
                    && !self.ignored
                    && self.verdict.failures.is_empty() =>
            {
                let words = self
                    .last_words()
                    .map_or(String::new(), |w| format!("; it said: {w}"));
                let what = format!("fio ended with exit code {code}{words}");
                self.fail(Failure::new(FailureKind::Other, what));
            }
            _ => {}
        }
    }

    /// What fio remarks and no failure repeats.
    fn notes(&mut self) {
        let remarks = self.messages.iter().filter_map(|message| match message {
            Message::Remark(text) => Some(one_line(text)),
            _ => None,
        });
        for remark in remarks {
            if self.verdict.notes.len() < ONE_BY_ONE && !self.verdict.notes.contains(&remark) {
                self.verdict.notes.push(remark);
            }
        }
    }
}

/// A failure with what to do about a process that this signal ended.
pub fn by_signal(failure: Failure, signal: i32) -> Failure {
    match advice_on_signal(signal) {
        Some(advice) => failure.to_do(advice),
        None => failure,
    }
}

/// An option of a job, its own or everybody's.
fn option<'r>(results: &'r Results, job: &'r JobResult, name: &str) -> Option<&'r str> {
    let own = job.options.get(name);
    own.or_else(|| results.global_options.get(name))
        .map(String::as_str)
}

/// Whether the error that a job reports is one that it was told to go past: a counted
/// one that `ignore_error` speaks of, or else one of those that `continue_on_error`
/// goes past (`td_non_fatal_error` in td_error.c).
pub fn is_tolerated(results: &Results, job: &JobResult) -> bool {
    let of_kind = job.error == Errno::IO.raw_os_error() || job.error == Errno::ILSEQ.raw_os_error();
    job.total_errors.is_some_and(|errors| errors > 0)
        && (of_kind || option(results, job, "ignore_error").is_some())
}

/// The kind of an error by its number and fio's function that met it.
pub fn kind_of(errno: i32, func: &str) -> FailureKind {
    let is = |one: Errno| errno == one.raw_os_error();
    if is(Errno::AGAIN) && func.contains("io_queue_init") {
        FailureKind::AioLimit
    } else if is(Errno::ILSEQ) {
        FailureKind::Corrupt
    } else if is(Errno::NOSPC) || is(Errno::DQUOT) {
        FailureKind::NoSpace
    } else if is(Errno::PERM) || is(Errno::ACCESS) {
        FailureKind::Permission
    } else if func.contains("open") || is(Errno::NOENT) || is(Errno::ROFS) || is(Errno::BUSY) {
        FailureKind::Open
    } else if func.contains("io_u") || is(Errno::IO) || func.contains("sync") {
        FailureKind::Io
    } else {
        FailureKind::Other
    }
}

/// The errno that `words` are for, where they are not those of `errno`. Of many
/// threads that fail while fio 3.33 reports its status, some have the number 35 with
/// the words of 28: the words are those of the call that failed.
fn errno_of(errno: i32, words: &str) -> i32 {
    if errno_text_of(errno) == words {
        return errno;
    }
    (1..=LAST_ERRNO)
        .find(|&other| errno_text_of(other) == words)
        .unwrap_or(errno)
}

/// The system's words for an errno.
pub fn errno_text_of(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Job names by pid, from the heads of the normal output's blocks:
/// `NAME: (groupid=0, jobs=1): err= 0: pid=10616: DATE`.
fn jobs_by_pid(normal: &str) -> BTreeMap<u32, String> {
    normal
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(": (groupid=")?;
            let pid = rest.split_once(": pid=")?.1;
            let digits = pid.split(|c: char| !c.is_ascii_digit()).next()?;
            Some((digits.parse().ok()?, name.to_owned()))
        })
        .collect()
}
