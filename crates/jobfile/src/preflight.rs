//! What is refused before fio starts, because fio would not refuse it.
//!
//! fio takes the name of a device that does not exist for the name of a file,
//! creates it in memory (/dev is a tmpfs) and measures that; it creates missing
//! folders and measures whatever file system lies under them. Both end with
//! exit code 0 and figures that are nonsense.

use std::io;
use std::path::Path;

use fathom_device::Sys;
use fathom_device::cgroup::{self, GroupLimit};
use fathom_model::{Failure, FailureKind, JobOption, JobSpec, Origin, text, units};

use crate::resolve::{self, JobPathUse, PathUse};
use crate::{JobFile, spec, targets};

/// What keeps `jobs` from measuring what they name; relative names are meant
/// from `work_dir`.
pub fn refusals(jobs: &[JobSpec], work_dir: &Path) -> Vec<Failure> {
    let memory = cgroup::memory(&Sys::live());
    let mut refusals: Vec<Failure> = Vec::new();
    for job in jobs {
        if let Some(limit) = &memory {
            refusals.extend(over_memory(job, limit));
        }
        let uses = match resolve::of(job, work_dir) {
            Ok(uses) => uses,
            Err(failure) => {
                refusals.push(failure);
                continue;
            }
        };
        for used in uses.iter().filter(|used| used.action != JobPathUse::Log) {
            if let Some(refusal) = refusal(&used.named, work_dir)
                .or_else(|| share_of_nothing(jobs, job, &used.named, work_dir))
                .or_else(|| outside_zones(job, used))
                && !refusals.contains(&refusal)
            {
                refusals.push(refusal);
            }
        }
    }
    refusals
}

fn refusal(named: &Path, work_dir: &Path) -> Option<Failure> {
    let path = work_dir.join(named);
    let shown = named.display().to_string();
    match path.metadata() {
        Ok(_) => return None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // It may well be there.
        Err(error) => return Some(unseen(&error).about(shown)),
    }
    if is_in_dev(&path) {
        let what = "there is no such device; fio would create a file of this name in memory and measure that";
        return Some(Failure::new(FailureKind::NoDevice, what).about(shown));
    }
    let folder = path.parent().filter(|folder| !folder.exists())?;
    let what = format!(
        "the folder {} does not exist; fio would create it and measure the file system above it: make it, or mount what belongs there, first",
        folder.display()
    );
    Some(Failure::new(FailureKind::Open, what).about(shown))
}

/// A job whose buffers alone are more than its control group may have: the kernel would kill
/// it in mid-run.
fn over_memory(job: &JobSpec, limit: &GroupLimit<u64>) -> Option<Failure> {
    if spec::engine(job) == "cpuio" {
        return None;
    }
    let block = spec::bs(job)?.into_iter().max()?;
    let buffers = spec::numjobs(job).saturating_mul(spec::iodepth(job));
    let bytes = buffers.saturating_mul(block);
    (bytes > limit.most).then(|| {
        let of = |bytes: u64| units::bytes(bytes as f64);
        let what = format!(
            "its buffers need {} (numjobs × iodepth × bs), and the control group {} allows {} of memory",
            of(bytes),
            text::line(&limit.group),
            of(limit.most)
        );
        let to_do = "lower numjobs, iodepth or bs, or raise the group's limit (memory.max)";
        Failure::new(FailureKind::BadOption, what)
            .to_do(to_do)
            .about(format!("job {}", job.name))
    })
}

/// Of what cannot be looked at.
fn unseen(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => FailureKind::Permission,
        _ => FailureKind::Open,
    };
    let failure = Failure::new(kind, format!("cannot be looked at: {error}"));
    match error.raw_os_error() {
        Some(errno) => failure.with_errno(errno),
        None => failure,
    }
}

/// A job that writes anywhere, and a device that takes writes nowhere but where a zone has
/// been written up to: each of them would fail.
fn outside_zones(job: &JobSpec, used: &PathUse) -> Option<Failure> {
    let is_random = job.value("rw").is_some_and(|rw| rw.starts_with("rand"));
    let follows = job.value("zonemode") == Some("zbd");
    if used.action != JobPathUse::Write || !is_random || follows {
        return None;
    }
    let disk = Sys::live().by_path(&used.path)?.whole();
    let is_managed = disk.text("queue/zoned").as_deref() == Some("host-managed");
    is_managed.then(|| {
        let what = "the device is zoned (host-managed) and takes no writes at random";
        let to_do = "zonemode=zbd in the job; campaigns, SNIA tests and provisioning need a device without zones";
        let shown = used.named.display().to_string();
        Failure::new(FailureKind::BadOption, what).to_do(to_do).about(shown)
    })
}

/// A file that is not there and of which the job wants a share; unless another
/// job may make it first.
fn share_of_nothing(
    jobs: &[JobSpec],
    job: &JobSpec,
    named: &Path,
    work_dir: &Path,
) -> Option<Failure> {
    let share = share_of(job)?;
    let makes_it = |other: &JobSpec| {
        share_of(other).is_none() && targets(other).iter().any(|target| target.path == named)
    };
    if work_dir.join(named).exists() || jobs.iter().any(makes_it) {
        return None;
    }
    let what = format!("there is no such file, and size={share} is a share of it");
    Some(Failure::new(FailureKind::NoSize, what).about(named.display().to_string()))
}

/// The job's size, when it is a share of its target's.
fn share_of(job: &JobSpec) -> Option<&str> {
    let size = job.value("size").filter(|size| size.ends_with('%'));
    size.filter(|_| job.value("filesize").is_none())
}

/// /dev holds devices; only these folders in it are for files.
fn is_in_dev(path: &Path) -> bool {
    let for_files = ["/dev/shm", "/dev/mqueue", "/dev/hugepages"];
    path.starts_with("/dev") && !for_files.iter().any(|folder| path.starts_with(folder))
}

/// Forbids fio to create what a job that uses devices alone names: a device
/// may vanish between the check and the start. Gives the jobs it was added to.
pub fn forbid_creation(file: &mut JobFile) -> Vec<String> {
    let on_devices: Vec<usize> = file
        .jobs()
        .iter()
        .enumerate()
        .filter(|(_, job)| spec::option(job, "allow_file_create").is_none())
        .filter(|(_, job)| {
            let targets = targets(job);
            !targets.is_empty() && targets.iter().all(|target| is_in_dev(&target.path))
        })
        .map(|(nth, _)| nth)
        .collect();
    let option = JobOption {
        name: "allow_file_create".into(),
        value: Some("0".into()),
        origin: Origin::Fathom {
            reason: "a device that vanishes must not be created as a file".into(),
        },
    };
    for nth in &on_devices {
        file.add(*nth, &option);
    }
    let jobs = file.jobs();
    on_devices
        .iter()
        .map(|&nth| jobs[nth].name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> JobFile {
        JobFile::parse(text, Path::new("test.fio"), &|_| None).file
    }

    fn kinds(text: &str) -> Vec<FailureKind> {
        let refusals = refusals(&parsed(text).jobs(), Path::new("/tmp"));
        refusals.iter().map(|failure| failure.kind).collect()
    }

    #[test]
    fn a_mistyped_device_is_refused_and_a_file_is_not() {
        assert_eq!(
            kinds("[a]\nfilename=/dev/nvme99n9\n"),
            [FailureKind::NoDevice]
        );
        assert_eq!(
            kinds("[a]\nfilename=/dev/disk/by-id/x\n"),
            [FailureKind::NoDevice]
        );
        assert_eq!(
            kinds("[a]\nfilename=/dev/null\n[b]\nfilename=/dev/shm/fathom-new\n"),
            []
        );
        assert_eq!(kinds("[a]\nfilename=fathom-new\n"), []);
        assert_eq!(kinds("[a]\nioengine=net\nfilename=localhost\n"), []);
    }

    #[test]
    fn a_folder_that_is_missing_is_refused() {
        assert_eq!(
            kinds("[a]\nfilename=/mnt/fathom-no/x\n"),
            [FailureKind::Open]
        );
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_missing() {
        let name = "n".repeat(300);
        let refused = refusals(
            &parsed(&format!("[a]\nfilename={name}\n")).jobs(),
            Path::new("/tmp"),
        );
        assert!(
            refused[0].to_be_done().contains("255 bytes"),
            "{}",
            refused[0]
        );
    }

    #[test]
    fn buffers_beyond_the_memory_of_the_group_are_refused_with_both_numbers() {
        let jobs = parsed("[a]\nfilename=x\nbs=1m\niodepth=4\nnumjobs=2\n").jobs();
        let limit = |mib: u64| GroupLimit {
            most: mib << 20,
            group: "/lab".to_owned(),
        };
        let refused = over_memory(&jobs[0], &limit(7)).unwrap().to_string();
        assert!(
            refused.contains("8 MiB") && refused.contains("/lab allows 7 MiB"),
            "{refused}"
        );
        assert_eq!(over_memory(&jobs[0], &limit(8)), None);
    }

    #[test]
    fn a_share_of_a_file_that_is_missing_is_refused() {
        assert_eq!(
            kinds("[a]\nfilename=fathom-new\nsize=75%\n"),
            [FailureKind::NoSize]
        );
        let makes = "[m]\nrw=write\nfilename=fathom-new\nsize=1m\n";
        let shares = "[a]\nstonewall\nfilename=fathom-new\nsize=75%\n";
        assert_eq!(kinds(&format!("{makes}{shares}")), []);
        assert_eq!(kinds("[a]\nfilename=/dev/null\nsize=75%\n"), []);
        assert_eq!(
            kinds("[a]\nfilename=fathom-new\nfilesize=1m\nsize=75%\n"),
            []
        );
    }

    #[test]
    fn jobs_on_devices_may_not_create_files() {
        let mut file = parsed("[a]\nfilename=/dev/null\n[b]\nfilename=/tmp/x\n");
        assert_eq!(forbid_creation(&mut file), ["a"]);
        assert_eq!(file.jobs()[0].value("allow_file_create"), Some("0"));
        assert_eq!(file.jobs()[1].value("allow_file_create"), None);
        let again = parsed(&file.render());
        assert_eq!(again.jobs()[0].value("allow_file_create"), Some("0"));
    }
}
