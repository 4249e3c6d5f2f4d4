//! How many I/Os are handed over and taken back at once.

use crate::native::job::{IoEngine, NativeJob};

/// Most I/Os handed over at once where the job does not say: a quarter of the
/// queue, up to this. A disk that reports a whole queue at once (virtio does)
/// then begins with the first part while the next is made; handed over whole, it
/// idles meanwhile. More in one call saves no time that could be measured
/// (docs/decisions/0005-parts-of-a-queue.md).
const PART: usize = 8;

/// io_uring/io_uring.h, IORING_MAX_ENTRIES.
const RING_ENTRIES: usize = 32_768;

/// The queue's options as the loop asks for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    /// Most I/Os handed over at once.
    pub(super) submit: usize,
    /// The queue is filled when it has run down to this; its depth, where it always is.
    pub(super) low: usize,
    /// Fewest completions waited for when the queue is full, and most that are taken.
    pub(super) complete_min: usize,
    pub(super) complete_max: usize,
}

impl BatchLimits {
    pub(super) fn of(job: &NativeJob, depth: usize) -> Self {
        let submit = most(job, depth);
        let queue = &job.queue;
        Self {
            submit,
            low: queue.low.map_or(depth, |low| low as usize),
            complete_min: queue.complete_min.max(1) as usize,
            complete_max: queue.complete_max.map_or(submit, |max| max as usize),
        }
    }
}

fn most(job: &NativeJob, depth: usize) -> usize {
    match (job.queue.submit, job.engine) {
        // A ring has no room for more.
        (Some(submit), engine) if engine.is_ring() => (submit as usize).min(RING_ENTRIES),
        (Some(submit), _) => submit as usize,
        // No device idles.
        (None, IoEngine::Null) => depth,
        // What the page cache answers, libaio does within io_submit, one after
        // the other; several in one call would share a plug (fs/aio.c) that
        // holds back each read until a kernel thread flushes it.
        (None, IoEngine::Libaio) if !job.files.direct => 1,
        (None, _) => (depth / 4).clamp(1, PART),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of a cold page cache fell to a twentieth when sixteen shared one
    /// io_submit.
    #[test]
    fn buffered_libaio_hands_over_one_io_at_a_time() {
        let mut job = NativeJob::new("j");
        job.engine = IoEngine::Libaio;
        assert_eq!(most(&job, 16), 1);
        job.files.direct = true;
        assert_eq!(most(&job, 16), 4);
        job.queue.submit = Some(4);
        assert_eq!(most(&job, 64), 4);
    }

    /// A virtio disk did 70 k instead of 80 k IOPS when its whole queue came in
    /// one call.
    #[test]
    fn a_queue_is_handed_over_in_parts() {
        let mut job = NativeJob::new("j");
        job.engine = IoEngine::IoUring;
        let of = |depth| most(&job, depth);
        assert_eq!([1, 2, 8, 16, 32, 128].map(of), [1, 1, 2, 4, 8, 8]);
        job.queue.submit = Some(u32::MAX);
        assert_eq!(most(&job, 1 << 20), RING_ENTRIES);
        job.queue.submit = None;
        job.engine = IoEngine::Null;
        assert_eq!(most(&job, 32), 32);
    }
}
