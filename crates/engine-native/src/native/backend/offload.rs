//! `io_submit_mode=offload`: as many threads as the queue is deep do the I/Os, each
//! with an engine of its own (rate-submit.c), so that one that is slow to be handed
//! over keeps none behind it.

use std::io;
use std::sync::Arc;

use super::pool::{Execute, IoPool};
use super::{Backend, Io, Op, OpenFile, calls};

/// The threads of one worker. `engine` makes the engine of one of them, for one I/O at a
/// time.
pub(in crate::native) fn threads<B, E>(
    files: &[OpenFile],
    depth: usize,
    engine: E,
) -> io::Result<IoPool>
where
    B: Backend + 'static,
    E: Fn() -> io::Result<B> + Clone + Send + 'static,
{
    let mut pool = IoPool::new(depth);
    let line = pool.add_line();
    let files: Arc<[OpenFile]> = files.into();
    for _ in 0..depth {
        let (engine, files) = (engine.clone(), Arc::clone(&files));
        let make = move || -> io::Result<Execute> {
            let mut engine = engine()?;
            Ok(Box::new(move |io| execute(&mut engine, &files, io)))
        };
        pool.add_thread(line, "offload", make)?;
    }
    Ok(pool)
}

/// One I/O from its begin to its end: bytes or -errno.
fn execute<B: Backend>(engine: &mut B, files: &[OpenFile], io: &Io) -> i64 {
    let by_call = match io.op {
        Op::Read | Op::Write => false,
        Op::Trim => true,
        Op::Fsync | Op::Fdatasync => !B::QUEUES_SYNCS,
    };
    // The null engine has no files.
    if let (true, Some(file)) = (by_call, files.get(io.file as usize)) {
        return calls::execute(file, io);
    }
    // It has one slot; the data stand where they stood.
    engine.push(Io { slot: 0, ..*io });
    let mut done = Vec::with_capacity(1);
    let waited = engine
        .submit(true)
        .and_then(|()| engine.reap(1, 1, None, &mut done));
    match (waited, done.first()) {
        (Ok(()), Some(over)) => over.result,
        (Ok(()), None) => -i64::from(libc::EIO),
        (Err(error), _) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}
