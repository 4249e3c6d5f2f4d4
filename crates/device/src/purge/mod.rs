//! Taking all data away from a device, so that it is as new: and finding out
//! whether it is.
//!
//! What a device can do is asked first ([`Capabilities`]). A [`Purge`] is one
//! way of all, chosen or named ([`PurgeSettings`]), as steps that can be shown before
//! they are done. Everything goes by [`crate::command`], but for the blocks that
//! Fathom writes itself. Known content is written first and looked for
//! afterwards: no exit status and no answer of a device is believed.

mod ata;
mod capabilities;
mod follow;
pub(crate) mod hidden;
mod method;
mod nvme;
mod run;
mod scsi;
mod steps;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use fathom_model::{Exit, ExpectedContent, Issued, Purged};

pub use ata::{Ata, PASSWORD};
pub use capabilities::{Capabilities, Discard, MethodSupport, Other};
pub use method::{
    AUTO, FormatNvm, OverwriteFill, PurgeMethod, PurgeMethods, PurgeSettings, SanitizeAction,
};
pub use nvme::{Controller, LbaFormat, Namespace, Nvme};
pub use run::PurgeProgress;
pub use scsi::Scsi;
pub use steps::PurgeStep;

use crate::Claim;
use crate::command::Issue;
use crate::identity;
use crate::safety::{self, Confirmations, Refusal};
use crate::sys::Sys;
use steps::PurgeUndo;
use verify::Samples;

/// One purge of one device, ready to be shown and to be done.
#[derive(Debug, Clone)]
pub struct Purge {
    /// What the device can do.
    pub capabilities: Capabilities,
    /// The way that was taken.
    pub method: PurgeMethod,
    /// What is read afterwards.
    pub promise: ExpectedContent,
    /// Ways for this kind of device that come before it and were passed over,
    /// with the reason.
    pub passed_over: Vec<(PurgeMethod, String)>,
    /// Other namespaces whose data it takes away as well.
    pub touches: Vec<Other>,
    want: PurgeSettings,
    sys: Sys,
    steps: Vec<PurgeStep>,
    undo: Option<PurgeUndo>,
    samples: Samples,
    /// The seed of the bytes that an overwrite writes.
    over: Option<u64>,
}

/// Why a device was not purged.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// Files, folders and paths that do not exist are not purged.
    #[error(
        "{path} is no block device; only devices are purged, nothing was done\n  to do: name a device (lsblk); a file is removed with rm"
    )]
    NotADevice {
        /// The path as it was given.
        path: PathBuf,
    },
    /// There is no way that the device can go.
    #[error("{path} cannot be purged so; nothing was done{}\n  to do: fathom purge {path} --list shows what it can do", list(.reasons))]
    Cannot {
        /// The path as it was given.
        path: PathBuf,
        /// Why, each with the way.
        reasons: Vec<String>,
    },
    /// Settings of a format that the drive cannot have.
    #[error("{path} cannot be formatted so; nothing was done{}\n  to do: fathom purge {path} --list shows its LBA formats and what it can do", list(.reasons))]
    Settings {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong.
        reasons: Vec<String>,
    },
    /// It may not be written to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The device did not do what it was told.
    #[error(
        "{device}: {what}\n  to do: the device is in an unknown state; see the kernel log (dmesg), or purge it another way (fathom purge {device} --list)"
    )]
    Device {
        /// The device that was told.
        device: PathBuf,
        /// What happened.
        what: String,
    },
    /// A block could not be written or read, or a command not be given.
    #[error("{path}: {doing}: {source}\n  to do: see the kernel log (dmesg) for the device")]
    Io {
        /// The device.
        path: PathBuf,
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// It was done, and data are still there.
    #[error("{}", kept(.path, .purged))]
    DataRemains {
        /// The device.
        path: PathBuf,
        /// What was done and found.
        purged: Box<Purged>,
    },
    /// It was told to stop.
    #[error("stopped{what}; the device holds what was left and nothing is known of its state")]
    Stopped {
        /// How far it was.
        what: String,
    },
}

impl PurgeError {
    pub(crate) fn device(device: &Path, what: impl Into<String>) -> Self {
        Self::Device {
            device: device.to_owned(),
            what: what.into(),
        }
    }

    /// As one of the block device, where a controller was asked.
    fn about(self, path: &Path) -> Self {
        match self {
            Self::Device { what, .. } => Self::device(path, what),
            other => other,
        }
    }

    /// What a device said that did not do what it was told.
    fn refusal(&self) -> Option<String> {
        match self {
            Self::Device { what, .. } => Some(what.clone()),
            Self::Io { doing, source, .. } => Some(format!("{doing}: {source}")),
            Self::DataRemains { .. } => Some("the device said that it was done".to_owned()),
            _ => None,
        }
    }

    /// The exit code of a command that ends with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotADevice { .. } | Self::Refused(_) => Exit::Refused,
            Self::Cannot { .. } => Exit::Missing,
            Self::Settings { .. } => Exit::Input,
            Self::Device { .. } | Self::Io { .. } | Self::DataRemains { .. } => Exit::Failed,
            Self::Stopped { .. } => Exit::Interrupted,
        }
    }
}

fn list(reasons: &[String]) -> String {
    reasons
        .iter()
        .map(|reason| format!("\n  - {reason}"))
        .collect()
}

fn kept(path: &Path, purged: &Purged) -> String {
    let found = &purged.verification;
    let mut what = Vec::new();
    let mut say = |count: u64, text: &str| {
        if count > 0 {
            what.push(format!("{count} {text}"));
        }
    };
    say(found.kept, "still hold what was written before");
    say(found.unreadable, "cannot be read");
    if found.promise != ExpectedContent::Gone {
        let promised = match found.promise {
            ExpectedContent::Zeros => "are not the zeros that were promised",
            _ => "are not what was written over them",
        };
        say(
            found.samples
                - found.kept
                - found.unreadable
                - found.beyond
                - if found.promise == ExpectedContent::Zeros {
                    found.zeros
                } else {
                    found.written
                },
            promised,
        );
    }
    if found.beyond == found.samples {
        what.push("all lie beyond the end of the device".to_owned());
    }
    let first = found
        .broken_at
        .first()
        .map_or_else(String::new, |at| format!(" (first: byte {at})"));
    format!(
        "{}: {} did not do what it promised: of {} samples {}{first}\n  to do: purge it another way, such as --method overwrite (fathom purge {} --list)",
        path.display(),
        purged.method,
        found.samples,
        what.join(", "),
        path.display(),
    )
}

impl Purge {
    /// Asks the device what it can do and takes the first of the wanted ways
    /// that it can go. Changes nothing.
    ///
    /// Where there is a choice, a way that would take away the data of other
    /// namespaces is passed over: it must be asked for by its name.
    ///
    /// # Errors
    /// [`PurgeError::NotADevice`], [`PurgeError::Cannot`],
    /// [`PurgeError::Settings`].
    pub fn new(
        sys: &Sys,
        issue: &dyn Issue,
        want: &PurgeSettings,
        path: &Path,
    ) -> Result<Self, PurgeError> {
        let capabilities = Capabilities::find(sys, issue, path)?;
        let mut passed_over = Vec::new();
        for &method in want.choice.methods() {
            let offer = capabilities.offer(method, want);
            let wide = !offer.touches.is_empty() && want.choice.only().is_none();
            match offer.against {
                Some(reason) => passed_over.push((method, reason)),
                None if wide => {
                    let names = named(&offer.touches);
                    passed_over.push((
                        method,
                        format!("would take away the data of {names} as well"),
                    ));
                }
                None => {
                    // That a disk is no NVMe device goes without saying.
                    passed_over.retain(|&(method, _)| capabilities.is_of_kind(method));
                    return Self::of(sys, capabilities, offer, want, passed_over);
                }
            }
        }
        Err(PurgeError::Cannot {
            path: path.to_owned(),
            reasons: passed_over
                .iter()
                .map(|(method, reason)| format!("{method}: {reason}"))
                .collect(),
        })
    }

    /// The way that comes behind this one; `None` where it was named, or is the last of all,
    /// which writes every block.
    fn next(&self, issue: &dyn Issue) -> Option<Self> {
        let writes = matches!(self.method, PurgeMethod::Overwrite(_));
        let methods = self.want.choice.methods().iter().copied();
        let rest = methods.skip_while(|method| *method != self.method).skip(1);
        let rest: Vec<PurgeMethod> = rest.filter(|_| !writes).collect();
        let want = PurgeSettings {
            choice: PurgeMethods::of((!rest.is_empty()).then_some(rest)?),
            ..self.want.clone()
        };
        let next = Self::new(&self.sys, issue, &want, &self.capabilities.path).ok()?;
        next.touches.is_empty().then_some(next)
    }

    fn of(
        sys: &Sys,
        capabilities: Capabilities,
        offer: MethodSupport,
        want: &PurgeSettings,
        passed_over: Vec<(PurgeMethod, String)>,
    ) -> Result<Self, PurgeError> {
        let path = capabilities.path.clone();
        if let (PurgeMethod::NvmeFormat, Some(nvme)) = (offer.method, &capabilities.nvme) {
            let reasons = nvme.faults(&want.format, want.check);
            if !reasons.is_empty() {
                return Err(PurgeError::Settings { path, reasons });
            }
        }
        let block = capabilities.device.logical_block_bytes;
        let samples = Samples::choose(capabilities.size_bytes, block, want.samples);
        let samples = samples.map_err(|source| PurgeError::Io {
            path: path.clone(),
            doing: "no random numbers".to_owned(),
            source,
        })?;
        let over = (offer.method == PurgeMethod::Overwrite(OverwriteFill::Random))
            .then(|| samples.other_seed());
        let (steps, undo) = steps::of(&capabilities, offer.method, &want.format, &samples);
        Ok(Self {
            method: offer.method,
            promise: offer.promise,
            touches: offer.touches,
            passed_over,
            want: want.clone(),
            sys: sys.clone(),
            steps,
            undo,
            samples,
            over,
            capabilities,
        })
    }

    /// What is done, in order.
    pub fn commands(&self) -> &[PurgeStep] {
        &self.steps
    }

    /// Other devices of this machine whose data it takes away as well.
    pub fn touched(&self) -> impl Iterator<Item = &Path> {
        let others = self.touches.iter();
        others.filter_map(|other| other.path.as_deref())
    }

    /// Bytes that Fathom itself writes for it: the samples, and the data of an
    /// overwrite. What the device writes by itself nobody counts.
    pub fn write_bytes(&self) -> u64 {
        let overwrites = matches!(self.method, PurgeMethod::Overwrite(_));
        let data = if overwrites {
            self.capabilities.size_bytes
        } else {
            0
        };
        data.saturating_add(self.samples.total_bytes())
    }

    /// The command that does it, as a person would type it: what fio-tests
    /// has in its log.
    pub fn like(&self) -> String {
        let main = self.steps.iter().find(|step| step.is_main);
        main.map_or_else(String::new, |step| step.like.clone())
    }

    /// Whether the device, and every other namespace whose data would go, may be
    /// purged: nothing uses it, nothing on it looks wanted, and it was named.
    ///
    /// # Errors
    /// The [`Refusal`] of the first that may not.
    pub fn check(&self, confirmed: &Confirmations) -> Result<(), Refusal> {
        self.check_each(|path| safety::check_write(path, confirmed))
    }

    /// As [`Purge::check`], for a device that Fathom has written to itself since
    /// it passed that: data on it count as Fathom's own.
    pub(super) fn check_again(&self, confirmed: &Confirmations) -> Result<(), Refusal> {
        let judge = safety::WriteJudge::new(confirmed);
        let path = &self.capabilities.path;
        let known = &self.capabilities.device;
        // A link that was changed since, or a disk that was exchanged.
        let is_other = self.sys.by_path(path).is_some_and(|node| {
            let now = identity::block_device(&self.sys, &node);
            now.name != known.name || (known.has_identifier() && !known.is_same_drive(&now))
        });
        if is_other {
            return Err(Refusal::Unknown {
                path: path.clone(),
                reason: "it is another device than the one that was looked at".to_owned(),
            });
        }
        judge.write_again(path, &Claim::default())?;
        self.check_others(|path| judge.write(path))
    }

    fn check_each(&self, check: impl Fn(&Path) -> Result<(), Refusal>) -> Result<(), Refusal> {
        check(&self.capabilities.path)?;
        self.check_others(check)
    }

    fn check_others(&self, check: impl Fn(&Path) -> Result<(), Refusal>) -> Result<(), Refusal> {
        for other in &self.touches {
            match &other.path {
                Some(path) => check(path)?,
                None => {
                    return Err(Refusal::Unknown {
                        path: format!("namespace {} of the same drive", other.nsid).into(),
                        reason: format!(
                            "{} would take its data away too, and it is no device here",
                            self.method
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Namespaces by their names.
fn named(others: &[Other]) -> String {
    let name = |other: &Other| match &other.path {
        Some(path) => path.display().to_string(),
        None => format!("namespace {}", other.nsid),
    };
    let names: Vec<String> = others.iter().map(name).collect();
    names.join(", ")
}

/// What came of a command, for the log.
fn issued(step: &PurgeStep, answer: impl Into<String>, status: u32) -> Issued {
    Issued {
        command: step.like.clone(),
        issued: step.issued(),
        answer: answer.into(),
        status,
    }
}
