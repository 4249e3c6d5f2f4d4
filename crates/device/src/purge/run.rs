//! Doing it.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fathom_model::{ExpectedContent, Issued, PassedOver, Purged};

use super::method::OverwriteFill;
use super::steps::{DISCARD_STEP, PurgeStep, StepAction, WRITE_STEP};
use super::{Purge, PurgeError, ata, issued, scsi};
use crate::Claim;
use crate::Hold;
use crate::command::{Command, Issue, Reply};
use crate::direct::{self, Buffer, Direct};
use crate::safety::Confirmations;
use crate::threads;

/// What happens meanwhile.
#[derive(Debug)]
pub enum PurgeProgress<'p> {
    /// A step begins.
    Begin {
        /// The step.
        step: &'p PurgeStep,
        /// Its place, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// It goes on; told many times a second at most.
    Part {
        /// The share that is done; absent where nobody tells.
        share: Option<f64>,
        /// Time left, by what is done.
        left: Option<Duration>,
    },
    /// It is over.
    End {
        /// What came of it.
        issued: &'p Issued,
    },
}

/// How often a command that takes its time says that it is still at work.
const TICK: Duration = Duration::from_millis(250);
/// A device that was reset, or has other blocks, is waited for.
const RETURN_MAX: Duration = Duration::from_secs(60);
/// Before so much is done nothing can be said of the time left.
const TELLING: f64 = 0.01;

/// A purge that goes on.
struct PurgeRun<'g> {
    purge: &'g Purge,
    issue: &'g dyn Issue,
    stop: &'g dyn Fn() -> bool,
    progress: &'g mut dyn FnMut(PurgeProgress<'_>),
    bytes_written: u64,
    step_began: Instant,
}

impl Purge {
    /// Does it: writes samples, takes the data away, looks for the samples.
    /// Checks again before the first write that the device and every namespace
    /// it touches may be written to; the caller has called [`Purge::check`] and
    /// holds the device ([`Hold`]).
    ///
    /// `stop` is asked between writes and questions; a command that a drive has
    /// taken cannot be stopped.
    ///
    /// # Errors
    /// What went wrong; [`PurgeError::DataRemains`] when all was done and data are
    /// still there.
    pub fn run(
        &self,
        issue: &dyn Issue,
        confirmed: &Confirmations,
        stop: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(PurgeProgress<'_>),
    ) -> Result<Purged, PurgeError> {
        let _hold = Hold::of(self.touched())?;
        self.check_again(confirmed)?;
        let mut claim = Claim::default();
        for path in self.touched().chain([self.capabilities.path.as_path()]) {
            claim.add(path)?;
        }
        let (mut purge, mut bytes_written) = (Cow::Borrowed(self), 0);
        let mut tried = Vec::new();
        loop {
            let mut going = PurgeRun {
                purge: &purge,
                issue,
                stop,
                progress,
                bytes_written,
                step_began: Instant::now(),
            };
            let error = match going.all() {
                Ok(purged) => return Ok(Purged { tried, ..purged }),
                Err(error) => error,
            };
            bytes_written = going.bytes_written;
            let next = error.refusal().filter(|_| going.is_untouched());
            let next = next.and_then(|reason| Some((reason, purge.next(issue)?)));
            let Some((reason, next)) = next else {
                return Err(error);
            };
            tried.push(PassedOver {
                method: purge.method.to_string(),
                reason,
            });
            purge = Cow::Owned(next);
        }
    }
}

impl PurgeRun<'_> {
    fn all(&mut self) -> Result<Purged, PurgeError> {
        let of = self.purge.steps.len();
        let (mut began, mut took) = (None, Duration::ZERO);
        let mut verification = None;
        for (index, step) in self.purge.steps.iter().enumerate() {
            (self.progress)(PurgeProgress::Begin {
                step,
                number: index + 1,
                of,
            });
            self.step_began = Instant::now();
            match &step.act {
                StepAction::Mark => self.mark(step)?,
                StepAction::Look => {
                    took = began.map_or(took, |began: Instant| began.elapsed());
                    verification = Some(self.look(step)?);
                }
                _ => {
                    began.get_or_insert_with(Instant::now);
                    if let Err(error) = self.act(step) {
                        self.undo(index);
                        return Err(error);
                    }
                }
            }
        }
        let (verification, bytes_after) =
            verification.expect("every purge ends with a look at its samples");
        let purged = Purged {
            method: self.purge.method.to_string(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            bytes_before: self.purge.capabilities.size_bytes,
            bytes_after,
            bytes_written: self.bytes_written,
            verification,
            tried: Vec::new(),
        };
        match purged.verification.held() {
            true => Ok(purged),
            false => Err(PurgeError::DataRemains {
                path: self.path().to_owned(),
                purged: Box::new(purged),
            }),
        }
    }

    fn path(&self) -> &Path {
        &self.purge.capabilities.path
    }

    /// Whether every sample is still there: what failed has taken nothing away.
    fn is_untouched(&self) -> bool {
        let Purge {
            samples,
            capabilities,
            ..
        } = self.purge;
        let block = capabilities.device.logical_block_bytes;
        let size = (capabilities.size_bytes, block);
        let seen = samples.look(self.path(), size, ExpectedContent::Gone, None, &mut |_| {});
        seen.is_ok_and(|seen| seen.kept == seen.samples)
    }

    fn io(&self, doing: impl Into<String>, source: io::Error) -> PurgeError {
        PurgeError::Io {
            path: self.path().to_owned(),
            doing: doing.into(),
            source,
        }
    }

    fn end(&mut self, issued: Issued) {
        (self.progress)(PurgeProgress::End { issued: &issued });
    }

    fn mark(&mut self, step: &PurgeStep) -> Result<(), PurgeError> {
        let samples = &self.purge.samples;
        let path = self.path().to_owned();
        let progress = &mut *self.progress;
        let written = samples.write(&path, &mut |share| {
            progress(PurgeProgress::Part {
                share: Some(share),
                left: None,
            });
        });
        written.map_err(|(at, source)| {
            self.io(
                format!("the sample at byte {at} could not be written"),
                source,
            )
        })?;
        self.bytes_written += samples.total_bytes();
        self.end(issued(step, "written and read back", 0));
        Ok(())
    }

    fn look(&mut self, step: &PurgeStep) -> Result<(fathom_model::Verification, u64), PurgeError> {
        let (size, block) = self.returned()?;
        let path = self.path().to_owned();
        let purge = self.purge;
        let progress = &mut *self.progress;
        let seen = purge.samples.look(
            &path,
            (size, block),
            purge.promise,
            purge.over,
            &mut |share| {
                progress(PurgeProgress::Part {
                    share: Some(share),
                    left: None,
                })
            },
        );
        let seen = seen.map_err(|source| self.io("it cannot be read afterwards", source))?;
        let (answer, status) = match seen.held() {
            true => ("gone", 0),
            false => ("data are still there", 1),
        };
        self.end(issued(step, answer, status));
        Ok((seen, size))
    }

    /// Size and block size of the device once it is there again.
    fn returned(&self) -> Result<(u64, u32), PurgeError> {
        let began = Instant::now();
        loop {
            let node = self.purge.sys.by_path(self.path());
            let opened = Direct::open(self.path(), false);
            if let (Some(node), Ok(_)) = (&node, &opened)
                && node.size_bytes() > 0
            {
                let block = node
                    .whole()
                    .value("queue/logical_block_size")
                    .unwrap_or(512);
                return Ok((node.size_bytes(), block));
            }
            if began.elapsed() > RETURN_MAX {
                let what = "did not come back with a usable capacity within a minute; a format \
                            with metadata in the blocks or protection information may be one \
                            that the kernel cannot use";
                return Err(PurgeError::device(self.path(), what));
            }
            std::thread::sleep(TICK);
        }
    }

    fn act(&mut self, step: &PurgeStep) -> Result<(), PurgeError> {
        match &step.act {
            StepAction::Give {
                command: Command::Discard { bytes, secure, .. },
                ..
            } => {
                self.discard(*bytes, *secure)?;
                self.end(issued(step, "done", 0));
            }
            StepAction::Give { device, command } => {
                let reply = self
                    .give(device, command)
                    .map_err(|source| PurgeError::Io {
                        path: device.clone(),
                        doing: format!("{} could not be given to it", step.like),
                        source,
                    })?;
                let failed = failure(command, &reply);
                let answer = failed.as_deref().unwrap_or("done");
                let status = u32::from(failed.is_some()) * reply.status.max(1);
                self.end(issued(step, answer, status));
                if let Some(failed) = failed {
                    let what = format!("{}: {failed}", step.like);
                    return Err(PurgeError::device(self.path(), what));
                }
            }
            StepAction::Follow {
                device,
                follow,
                expected,
            } => {
                let (began, stop) = (self.step_began, self.stop);
                let progress = &mut *self.progress;
                let ended = follow.to_end(device, self.issue, *expected, stop, &mut |share| {
                    progress(part(began, share));
                });
                ended.map_err(|error| error.about(self.path()))?;
                self.end(issued(step, "done", 0));
            }
            StepAction::Write(fill) => {
                self.overwrite(*fill)?;
                self.end(issued(step, "written", 0));
            }
            StepAction::Mark | StepAction::Look => {}
        }
        Ok(())
    }

    /// Takes back what must not stay when a step has failed.
    fn undo(&mut self, failed: usize) {
        let Some(undo) = self.purge.undo.as_ref().filter(|undo| failed >= undo.from) else {
            return;
        };
        let StepAction::Give { device, command } = &undo.step.act else {
            return;
        };
        let of = self.purge.steps.len();
        (self.progress)(PurgeProgress::Begin {
            step: &undo.step,
            number: of,
            of,
        });
        let (answer, status) = match self.issue.issue(device, command) {
            Ok(reply) => match failure(command, &reply) {
                None => ("done".to_owned(), 0),
                Some(failed) => (failed, reply.status.max(1)),
            },
            Err(error) => (error.to_string(), 1),
        };
        self.end(issued(&undo.step, answer, status));
    }

    /// Gives a command that may take hours, and shows meanwhile that it does.
    fn give(&mut self, device: &Path, command: &Command) -> io::Result<Reply> {
        let issue = self.issue;
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let give = move || {
                // Nobody hears it when this thread has panicked.
                let _ = tell.send(issue.issue(device, command));
            };
            threads::spawn_scoped(scope, "command", give)?;
            loop {
                match told.recv_timeout(TICK) {
                    Ok(reply) => return reply,
                    Err(RecvTimeoutError::Timeout) => {
                        (self.progress)(PurgeProgress::Part {
                            share: None,
                            left: None,
                        });
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(io::Error::other("the command's thread has ended"));
                    }
                }
            }
        })
    }

    fn stopped(&self, at: u64) -> Result<(), PurgeError> {
        if (self.stop)() {
            let size = self.purge.capabilities.size_bytes;
            let percent = 100.0 * at as f64 / size as f64;
            let what = format!(" after {percent:.1} % of {}", self.path().display());
            return Err(PurgeError::Stopped { what });
        }
        Ok(())
    }

    fn discard(&mut self, bytes: u64, secure: bool) -> Result<(), PurgeError> {
        let path = self.path().to_owned();
        let mut offset = 0;
        while offset < bytes {
            self.stopped(offset)?;
            let length = DISCARD_STEP.min(bytes - offset);
            let command = Command::Discard {
                offset,
                bytes: length,
                secure,
            };
            let reply = self.issue.issue(&path, &command);
            let reply = reply.map_err(|source| self.io(command.to_string(), source))?;
            if let Some(failed) = failure(&command, &reply) {
                return Err(PurgeError::device(&path, format!("{command}: {failed}")));
            }
            offset += length;
            (self.progress)(part(self.step_began, offset as f64 / bytes as f64));
        }
        Ok(())
    }

    /// One write after the other, past the page cache; what is written is in the
    /// device, not in its cache, at the end.
    fn overwrite(&mut self, fill: OverwriteFill) -> Result<(), PurgeError> {
        let path = self.path().to_owned();
        let size = self.purge.capabilities.size_bytes;
        let device = Direct::open(&path, true).map_err(|e| self.io("cannot be written to", e))?;
        let mut buffer = Buffer::new(WRITE_STEP);
        let seed = self.purge.over.filter(|_| fill == OverwriteFill::Random);
        let mut at = 0;
        let mut shown = Instant::now();
        while at < size {
            self.stopped(at)?;
            let length = (size - at).min(WRITE_STEP as u64) as usize;
            let bytes = &mut buffer.get()[..length];
            if let Some(seed) = seed {
                direct::fill(seed, at, bytes);
            }
            let written = device.write(bytes, at);
            written.map_err(|e| self.io(format!("cannot be written at byte {at}"), e))?;
            at += length as u64;
            self.bytes_written += length as u64;
            if shown.elapsed() >= TICK {
                shown = Instant::now();
                (self.progress)(part(self.step_began, at as f64 / size as f64));
            }
        }
        device
            .flush()
            .map_err(|e| self.io("cannot write down its cache", e))
    }
}

fn part(began: Instant, share: f64) -> PurgeProgress<'static> {
    let elapsed = began.elapsed().as_secs_f64();
    let left = (share > TELLING && elapsed > 1.0).then(|| elapsed * (1.0 - share) / share);
    PurgeProgress::Part {
        share: Some(share),
        left: left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

/// Why a device did not do it; `None` when it says that it did.
fn failure(command: &Command, reply: &Reply) -> Option<String> {
    match command {
        // 85h: ATA PASS-THROUGH(16).
        Command::Scsi { cdb, .. } if cdb.first() == Some(&0x85) => ata::failure(reply),
        Command::Scsi { .. } => (!reply.is_good()).then(|| scsi::sense_text(reply)),
        Command::Nvme { .. } => (!reply.is_good()).then(|| nvme_status(reply.status)),
        _ => (!reply.is_good()).then(|| format!("exit code {}", reply.status)),
    }
}

/// Status code type and status code (NVMe Base Specification 2.0, figures 93 to
/// 95) of what a format or sanitize may come back with.
fn nvme_status(status: u32) -> String {
    let name = match status & 0x7ff {
        0x001 => "it does not know the command",
        0x002 => "a field of the command is one that it does not take",
        0x006 => "an internal error",
        0x007 => "it was aborted",
        0x00b => "there is no such namespace, or the format is not one of it",
        0x01c => "a sanitize failed; the drive takes nothing else until one succeeds",
        0x01d => "a sanitize is in progress",
        0x020 => "the namespace is write protected",
        0x084 => "a format is in progress",
        0x10a => "it does not take this format",
        0x10b => "a firmware waits for a reset of the controller",
        _ => "refused",
    };
    format!("the drive says no: {name} (status {:#05x})", status & 0x7ff)
}
