//! What the kernel refuses before the first I/O: ways to it that are switched
//! off, limits that are reached.

use std::io;

use fathom_jobfile::spec;
use fathom_model::{FailureKind, JobSpec};

use super::backend::{libaio::Libaio, uring};
use super::job::{IoEngine, NativeJob};
use super::worker::engine_name;

/// A sentence for each job whose I/O engine this kernel does not offer; no
/// program can run it here. Touches nothing.
pub fn kernel_lacks(jobs: &[JobSpec]) -> Vec<String> {
    let tried = [
        (IoEngine::IoUring, uring::offered as fn() -> io::Result<()>),
        (IoEngine::IoUringCmd, uring::offered),
        (IoEngine::Libaio, || Libaio::new(Vec::new(), 1, 0).map(drop)),
    ];
    let mut lacks = Vec::new();
    for (engine, offered) in tried {
        let name = engine_name(engine);
        let mut wanting = jobs
            .iter()
            .filter(|job| spec::engine(job) == name)
            .peekable();
        let Some(error) = wanting.peek().and_then(|_| offered().err()) else {
            continue;
        };
        if !is_switched_off(&error) {
            // A limit may be free again when the job begins.
            continue;
        }
        let (_, message) = refusal(engine, 1, &error);
        lacks.extend(wanting.map(|job| {
            let place = job
                .option("ioengine")
                .map(|option| option.origin.to_string());
            let place = place.map_or_else(String::new, |place| format!("{place}: "));
            format!("{place}job {}: {message}", job.name)
        }));
    }
    lacks
}

fn is_switched_off(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES)
    )
}

/// Why an engine could not be set up for `depth` I/Os, in words that say what to do.
pub(super) fn refusal(engine: IoEngine, depth: u32, error: &io::Error) -> (FailureKind, String) {
    match (engine, error.raw_os_error()) {
        (IoEngine::Libaio, Some(libc::EAGAIN)) => {
            let (used, most) = (number("fs/aio-nr"), number("fs/aio-max-nr"));
            (
                FailureKind::AioLimit,
                format!(
                    "the kernel has no room for {depth} more asynchronous I/Os (io_setup: EAGAIN; fs.aio-nr is {used} of fs.aio-max-nr {most})"
                ),
            )
        }
        (IoEngine::Libaio, Some(libc::ENOSYS)) => (
            FailureKind::EngineMissing,
            "there is no Linux AIO here (the kernel was built without it, or a seccomp profile hides it); use ioengine=io_uring or psync".to_owned(),
        ),
        (IoEngine::Libaio, Some(libc::EPERM | libc::EACCES)) => (
            FailureKind::Permission,
            "Linux AIO is forbidden to this process, most likely by the seccomp profile of its container; use ioengine=psync".to_owned(),
        ),
        (IoEngine::IoUring | IoEngine::IoUringCmd, Some(libc::ENOSYS)) => (
            FailureKind::EngineMissing,
            "there is no io_uring here (the kernel is older than 5.1 or built without it, or a seccomp profile hides it); use ioengine=libaio or psync".to_owned(),
        ),
        (IoEngine::IoUring | IoEngine::IoUringCmd, Some(libc::EPERM | libc::EACCES)) => (
            FailureKind::Permission,
            format!(
                "io_uring is forbidden here ({}); use ioengine=libaio or psync",
                who_forbids(&number("kernel/io_uring_disabled"))
            ),
        ),
        (IoEngine::IoUring | IoEngine::IoUringCmd, Some(libc::ENOMEM)) => (
            FailureKind::Permission,
            "the limit on locked memory is too low for io_uring's ring, or for its buffers with fixedbufs; raise it (ulimit -l unlimited), or lower numjobs, iodepth or bs".to_owned(),
        ),
        (IoEngine::IoUring | IoEngine::IoUringCmd, Some(libc::EOPNOTSUPP | libc::EINVAL)) => (
            FailureKind::Other,
            format!("io_uring cannot be set up as asked (hipri, sqthread_poll): {error}"),
        ),
        _ => (
            FailureKind::Other,
            format!("{} cannot be set up: {error}", engine_name(engine)),
        ),
    }
}

/// By the value of kernel.io_uring_disabled (Documentation/admin-guide/sysctl/kernel.rst).
fn who_forbids(disabled: &str) -> &'static str {
    match disabled {
        "1" => "sysctl kernel.io_uring_disabled is 1: for root and one group only",
        "2" => "sysctl kernel.io_uring_disabled is 2: disabled for everyone",
        _ => "most likely by the seccomp profile of a container",
    }
}

/// A number below /proc/sys, as text.
fn number(name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/{name}"));
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// What an I/O's error has to do with how it was asked for, if anything.
pub(super) fn explains(job: &NativeJob, errno: i32) -> Option<&'static str> {
    if job.engine == IoEngine::IoUringCmd && errno == libc::EINVAL {
        return Some(
            "with ioengine=io_uring_cmd an I/O is whole blocks of the namespace, and no more than its queue/max_hw_sectors_kb",
        );
    }
    if job.engine == IoEngine::Sg && errno == libc::EINVAL {
        return Some(
            "with ioengine=sg an I/O is whole blocks of the disk, and no more than its queue/max_sectors_kb",
        );
    }
    // io_uring/rw.c and block/blk-core.c give EOPNOTSUPP to what cannot be polled.
    (job.queue.hipri && errno == libc::EOPNOTSUPP).then_some(
        "hipri needs direct=1 and a device with poll queues (NVMe: module parameter nvme.poll_queues)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_forbids_io_uring_is_named() {
        assert!(who_forbids("2").contains("kernel.io_uring_disabled is 2"));
        assert!(who_forbids("0").contains("seccomp"));
        let error = io::Error::from_raw_os_error(libc::EAGAIN);
        let (kind, message) = refusal(IoEngine::Libaio, 7, &error);
        assert_eq!(kind, FailureKind::AioLimit);
        let most = number("fs/aio-max-nr");
        assert!(
            most.parse::<u64>().is_ok() && message.ends_with(&format!("{most})")),
            "{message}"
        );
    }
}
