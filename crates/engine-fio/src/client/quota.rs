//! How much a server may send: as much as an honest one does, and no more. What
//! its jobs have to tell grows with their number and the time; only text and logs
//! have other bounds.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_device::bounded::BoundedFiles;

use super::frame::{Frame, op};

/// Figures of a job that are allowed at once, and one more for so many ms: a server
/// may have been told to give them while the jobs run (`--status-interval`).
const FIGURES_SPARE: u64 = 100;
const FIGURES_EVERY_MS: u64 = 100;
/// Other messages that are allowed at once, for each job (its options), and one more
/// for so many ms.
const OTHERS_SPARE: u64 = 4096;
const OTHERS_PER_JOB: u64 = 256;
const OTHERS_EVERY_MS: u64 = 10;
/// Longest message that is no log, in however many frames.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// What one server has sent, and may send.
#[derive(Debug)]
pub struct FrameQuota {
    began: Instant,
    jobs: u64,
    figures: u64,
    others: u64,
    /// Of the message whose frames come now.
    message_bytes: u64,
    /// Where fio's client puts logs; `None`: none are wanted.
    logs: Option<PathBuf>,
    log_bytes: BoundedFiles,
}

impl FrameQuota {
    /// Of a server with so many jobs.
    pub fn new(jobs: usize, logs: Option<&Path>) -> Self {
        Self {
            began: Instant::now(),
            jobs: jobs as u64,
            figures: 0,
            others: 0,
            message_bytes: 0,
            logs: logs.map(Path::to_owned),
            log_bytes: BoundedFiles::default(),
        }
    }

    /// Whether a log may come.
    pub fn takes_logs(&self) -> bool {
        self.logs.is_some()
    }

    /// Takes the bytes of a frame.
    ///
    /// # Errors
    /// Why they are too much.
    pub fn bytes(&mut self, frame: &Frame, goes_on: bool) -> Result<(), String> {
        let bytes = frame.payload.len();
        if let (op::IOLOG, Some(dir)) = (frame.op, &self.logs) {
            let taken = self.log_bytes.take(dir, bytes);
            return taken.map_err(|full| full.to_string());
        }
        let before = if goes_on { self.message_bytes } else { 0 };
        self.message_bytes = before.saturating_add(bytes as u64);
        match self.message_bytes > MESSAGE_BYTES_MAX {
            true => Err(too_much("one message without an end")),
            false => Ok(()),
        }
    }

    /// Takes a message.
    ///
    /// # Errors
    /// Why it is one too many.
    pub fn message(&mut self, frame: &Frame) -> Result<(), String> {
        let elapsed = u64::try_from(self.began.elapsed().as_millis());
        self.message_at(elapsed.unwrap_or(u64::MAX), frame.op)
    }

    fn message_at(&mut self, elapsed_ms: u64, op: u16) -> Result<(), String> {
        let (count, most, what) = if op == op::TS {
            self.figures += 1;
            let each = FIGURES_SPARE + elapsed_ms / FIGURES_EVERY_MS;
            (self.figures, self.jobs.saturating_mul(each), "figures")
        } else {
            self.others += 1;
            let of_jobs = self.jobs.saturating_mul(OTHERS_PER_JOB);
            let most = OTHERS_SPARE + of_jobs + elapsed_ms / OTHERS_EVERY_MS;
            (self.others, most, "messages")
        };
        match count > most {
            true => Err(too_much(what)),
            false => Ok(()),
        }
    }
}

fn too_much(what: &str) -> String {
    format!("it sends far more than its jobs can have to tell ({what})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_days_is_not_cut_and_one_that_floods_is() {
        let mut quota = FrameQuota::new(2, None);
        // Statuses of every second, and answers to both fio's client and Fathom.
        for second in 0..3600 * 24 * 30_u64 {
            for op in [op::TS, op::TS, op::ETA, op::ETA, op::ETA] {
                assert_eq!(quota.message_at(second * 1000, op), Ok(()), "{second}");
            }
        }
        let taken = |op| {
            let mut quota = FrameQuota::new(2, None);
            (0..1 << 20)
                .take_while(|_| quota.message_at(0, op).is_ok())
                .count()
        };
        assert_eq!(taken(op::TS), 200);
        assert_eq!(taken(op::PROBE), 4096 + 512);
    }
}
