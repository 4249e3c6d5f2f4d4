//! What a machine does and what its volumes move, read from the texts of /proc
//! and /sys: of this machine, or as a pod of another one prints them.
//!
//! One text holds several files, each behind a line `==> PATH` ([`dump()`] writes
//! it, and so does a shell in a pod). Counters and the clock they are divided by
//! come from the same text, so that it does not matter how long it was under
//! way. [`NodeReading`] is one reading of the machine, [`NodeReading::since`] what it did
//! between two; [`VolumeReading`] are the counters under a mount point.

mod dump;
mod reading;
mod volume;

pub use dump::dump;
pub use reading::{NodeReading, files};
pub use volume::{VOLUME_FILES, VolumeReading};

/// What a line begins with behind which a file follows.
pub const MARK: &str = "==> ";

/// The files of a text with their names.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let marked = |at: usize| at == 0 || text.as_bytes()[at - 1] == b'\n';
    let begins = text.match_indices(MARK).map(|(at, _)| at);
    let begins: Vec<usize> = begins.filter(|&at| marked(at)).collect();
    let ends: Vec<usize> = begins.iter().skip(1).copied().chain([text.len()]).collect();
    begins.into_iter().zip(ends).map(|(begin, end)| {
        let section = &text[begin + MARK.len()..end];
        section.split_once('\n').unwrap_or((section, ""))
    })
}

/// The counters of a line of `/proc/diskstats`, with the device's number
/// (Documentation/admin-guide/iostats.rst). Sectors are 512 bytes whatever the
/// device's own are.
fn disk_line(line: &str) -> Option<((u32, u32), fathom_model::node::DeviceCounts)> {
    const SECTOR_BYTES: u64 = 512;
    let mut fields = line.split_ascii_whitespace();
    let number = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let name = fields.next()?.to_owned();
    let counts: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [
        reads,
        _,
        read,
        read_ms,
        writes,
        _,
        written,
        write_ms,
        _,
        busy_ms,
        queue_ms,
        ..,
    ] = counts[..]
    else {
        return None;
    };
    let counts = fathom_model::node::DeviceCounts {
        name,
        read_ios: reads,
        read_bytes: read.saturating_mul(SECTOR_BYTES),
        read_ms,
        write_ios: writes,
        write_bytes: written.saturating_mul(SECTOR_BYTES),
        write_ms,
        busy_ms,
        queue_ms,
    };
    Some((number, counts))
}
