//! What is done for the safety of data right before each step on this machine: its
//! targets are judged again, its devices claimed, its files laid out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fathom_device::safety::{Confirmations, Refusal, WriteJudge};
use fathom_device::{Claim, Sys, space};
use fathom_engine::checked::{CheckedPaths, PathChanged};
use fathom_engine::existing::{self, Owner};
use fathom_engine::{Control, Request, layout};
use fathom_jobfile::JobFile;
use fathom_jobfile::resolve::{self, JobPathUse, PathUse};
use fathom_jobfile::variables::variable;
use fathom_model::{Failure, FailureKind, JobSpec, units};
use rustix::fs::OFlags;

/// The targets of a run's steps. From the first step that writes to a device on the
/// run is the device's only exclusive holder.
#[derive(Debug)]
pub struct TargetCheck {
    confirmed: Confirmations,
    /// When the run began, in all its starts: files that were made since are its own.
    began: SystemTime,
    claim: Claim,
    /// Devices that this run has written to, by the paths that led to them then: what
    /// they carry is its own.
    written: BTreeSet<(PathBuf, String)>,
    /// What could not be looked at, told once.
    unseen: Option<String>,
}

/// What came of making a step's targets ready.
#[derive(Debug, Default)]
pub(crate) struct PreparedTargets {
    /// What is to be known of them.
    pub(crate) notes: Vec<String>,
    /// Bytes that were laid out, or will be by the engine.
    pub(crate) laid_out_bytes: u64,
    /// What the step reads and writes.
    pub(crate) paths: Vec<PathBuf>,
    /// What its paths led to when they were judged.
    pub(crate) checked: CheckedPaths,
}

impl TargetCheck {
    /// For a run to which these words confirm devices.
    pub fn new(destroy: &[String], began: SystemTime) -> Self {
        Self {
            confirmed: Confirmations(destroy.to_vec()),
            began,
            claim: Claim::default(),
            written: BTreeSet::new(),
            unseen: None,
        }
    }

    /// Lets others claim the devices, until the next step that writes to them.
    pub fn release(&mut self) {
        self.claim.release();
    }

    /// Whether paths may still be written to, before a step is begun at all.
    ///
    /// # Errors
    /// As [`TargetCheck::before`].
    pub(crate) fn look(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        let judge = WriteJudge::new(&self.confirmed);
        let judged = paths.iter().try_for_each(|path| self.judge(&judge, path));
        judged.map_err(|refusal| failure(&refusal))
    }

    fn judge(&self, judge: &WriteJudge, path: &Path) -> Result<(), Refusal> {
        match device(path).is_some_and(|device| self.written.contains(&device)) {
            true => judge.write_again(path, &self.claim),
            false => judge.write_claimed(path, &self.claim),
        }
    }

    /// Makes a step's targets ready; gives what is to be known of them.
    ///
    /// # Errors
    /// A failure of the kind [`FailureKind::Refused`], or [`FailureKind::NoDevice`] for
    /// one that is gone: the step must not begin.
    pub(crate) fn before(
        &mut self,
        request: &Request,
        control: &Control,
    ) -> Result<PreparedTargets, Failure> {
        let jobs = jobs(request)?;
        let uses = resolve::all(&jobs, &request.work_dir)?;
        let checked = CheckedPaths::of_uses(&uses);
        let io = uses
            .iter()
            .filter(|used| !matches!(used.action, JobPathUse::Log));
        let mut prepared = PreparedTargets {
            paths: io.map(|used| used.path.clone()).collect(),
            checked,
            ..PreparedTargets::default()
        };
        let runs_programs = jobs.iter().any(fathom_jobfile::runs_programs);
        if runs_programs {
            // A mkfs among them would find the device in use.
            self.release();
        }
        let owner = Owner {
            destroy: &self.confirmed.0,
            began: self.began,
        };
        existing::check_at(&jobs, &request.work_dir, owner, &prepared.checked)
            .map_err(|what| Failure::new(FailureKind::Refused, what))?;
        let judge = WriteJudge::new(&self.confirmed);
        for used in &uses {
            // Judged is what will be opened, whatever the path leads to by now.
            let real = prepared.checked.real(&used.path);
            let judged = match used.action {
                JobPathUse::Read => Ok(()),
                JobPathUse::Log => judge.output(&real),
                JobPathUse::LayOut { .. } => judge.write(&real),
                JobPathUse::Write => self.write(&judge, &real, !runs_programs),
            };
            judged.map_err(|refusal| failure(&refusal.of(&used.path)))?;
        }
        if self.unseen.is_none() {
            self.unseen = judge.unseen();
            prepared.notes.extend(self.unseen.clone());
        }
        let readonly = request
            .extra_args
            .iter()
            .any(|arg| arg.ends_with("-readonly"));
        if !readonly {
            for used in &uses {
                prepared
                    .notes
                    .extend(lay_out(used, &prepared.checked, control)?);
                prepared.laid_out_bytes += used.layout_bytes();
            }
        }
        Ok(prepared)
    }

    fn write(&mut self, judge: &WriteJudge, path: &Path, claims: bool) -> Result<(), Refusal> {
        if claims {
            self.claim.add(path)?;
        }
        self.judge(judge, path)?;
        self.written.extend(device(path));
        Ok(())
    }
}

/// A block device and the path that leads to it, which may lead to another one later.
/// A device that is plugged in or set up anew under the same name has another sequence
/// number (Documentation/ABI/testing/sysfs-block, diskseq).
fn device(path: &Path) -> Option<(PathBuf, String)> {
    let node = Sys::live().by_path(path)?;
    let sequence = node.whole().text("diskseq").unwrap_or_default();
    Some((path.to_owned(), format!("{} {sequence}", node.name)))
}

/// The jobs that a step runs.
fn jobs(request: &Request) -> Result<Vec<JobSpec>, Failure> {
    let mut checked = JobFile::read(&request.job_file, &variable).map_err(|error| {
        let subject = request.job_file.display().to_string();
        Failure::new(FailureKind::Open, error.to_string()).about(subject)
    })?;
    checked.file.keep_sections(&request.sections);
    Ok(checked.file.jobs())
}

/// Makes a file longer that is there; one that is not is the engine's to make.
fn lay_out(
    used: &PathUse,
    checked: &CheckedPaths,
    control: &Control,
) -> Result<Option<String>, Failure> {
    let JobPathUse::LayOut {
        from: Some(from),
        to,
    } = used.action
    else {
        return Ok(None);
    };
    let about = |failure: Failure| failure.about(used.named.display().to_string());
    // Not until the disk is full, which others use as well.
    let missing = used.layout_bytes();
    if let Ok(free) = space::free_bytes(&checked.real(&used.path))
        && free < missing
    {
        let [missing, free] = [missing, free].map(|bytes| units::bytes(bytes as f64));
        let what =
            format!("the job reads {missing} more than it has, and {free} are free on its disk");
        return Err(about(Failure::new(FailureKind::NoSpace, what)));
    }
    let stop = || control.stop_requests() > 0;
    let opened = checked.open(&used.path, OFlags::WRONLY);
    let laid_out = opened.and_then(|mut file| layout::extend(&mut file, from, to, &stop));
    let laid_out = laid_out.map_err(|error| {
        let kind = match error.kind() {
            _ if PathChanged::is(&error) => FailureKind::Refused,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                FailureKind::NoSpace
            }
            std::io::ErrorKind::PermissionDenied => FailureKind::Permission,
            _ => FailureKind::Open,
        };
        let what =
            format!("it is shorter than the job reads, and could not be made longer: {error}");
        let failure = about(Failure::new(kind, what));
        match error.raw_os_error() {
            Some(errno) => failure.with_errno(errno),
            None => failure,
        }
    })?;
    let told = used.layout().filter(|_| laid_out);
    Ok(told.map(|text| text.replacen("will be", "were", 1)))
}

fn failure(refusal: &Refusal) -> Failure {
    let kind = match refusal {
        Refusal::NoSuchDevice { .. } => FailureKind::NoDevice,
        _ => FailureKind::Refused,
    };
    Failure::new(kind, refusal.to_string())
}
