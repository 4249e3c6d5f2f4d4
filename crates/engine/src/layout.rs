//! Making a file longer, so that it can be read to the end that a job wants.
//!
//! fio deletes a file that is too short for a reading job and makes it anew
//! (filesetup.c, extend_file). Whoever asked for reads is not to lose data by it:
//! what is there stays, and the rest is laid out behind it before fio looks.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

use fathom_model::mix::SplitMix;

/// Bytes written at once; before each, `stop` is asked.
pub const BLOCK: usize = 1 << 20;

/// Makes a file of `from` bytes `to` bytes long, with random bytes; `false` when `stop`
/// said not to. Then, and when it fails, the file is as it was.
///
/// # Errors
/// What the system says; that the file is not `from` bytes long any more.
pub fn extend(file: &mut File, from: u64, to: u64, stop: &dyn Fn() -> bool) -> io::Result<bool> {
    // No file system packs what looks random.
    let mut data = SplitMix(from ^ to);
    extend_with(file, from, to, stop, &mut |block| data.fill(block))
}

/// [`extend`] with bytes from `fill`.
pub fn extend_with(
    file: &mut File,
    from: u64,
    to: u64,
    stop: &dyn Fn() -> bool,
    fill: &mut dyn FnMut(&mut [u8]),
) -> io::Result<bool> {
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() != from {
        let what = format!("it had {from} bytes, and has changed since");
        return Err(io::Error::other(what));
    }
    file.seek(SeekFrom::Start(from))?;
    let written = append(file, to - from, stop, fill);
    match written {
        Ok(true) => file.sync_all().map(|()| true),
        other => file.set_len(from).and(other),
    }
}

/// Whether all was written: else it was stopped.
///
/// # Errors
/// What the system says.
pub fn append(
    file: &mut File,
    mut left: u64,
    stop: &dyn Fn() -> bool,
    fill: &mut dyn FnMut(&mut [u8]),
) -> io::Result<bool> {
    let mut block = vec![0; BLOCK];
    while left > 0 {
        if stop() {
            return Ok(false);
        }
        let part = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        fill(&mut block[..part]);
        file.write_all(&block[..part])?;
        left -= part as u64;
    }
    Ok(true)
}
