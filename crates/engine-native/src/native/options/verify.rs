//! What blocks are verified by, when, and what a mismatch does.

use super::order::number_list;
use super::{OptionRow, differs, idle, pattern, same};
use crate::native::job::{DirIndex, NativeJob};
use crate::native::verify::{BlockLayout, Checksum};

pub(super) const VERIFY: &[OptionRow] = &[
    differs(
        &["verify"],
        "byte for byte in fio's layout: each engine checks what the other wrote; no sha512 (what fio stores there is a copy of a few of the data, no checksum); with time_based every whole pass is read back, with psync, sync, pvsync2 and mmap too (fio never does there)",
        |job, v| {
            job.verify.sum = match v.text()? {
                "0" | "none" => None,
                "sha512" => {
                    return Err(
                        "what fio 3.33 stores for sha512 does not depend on all of the data: sha256, sha3-512 or crc32c find what it does not"
                            .to_owned(),
                    );
                }
                text => {
                    let known = Checksum::NAMES.iter().find(|(name, ..)| *name == text);
                    let (_, sum, _) = known.ok_or_else(|| {
                        let names: Vec<_> = Checksum::NAMES.iter().map(|row| row.0).collect();
                        format!("'{text}' is not one of 0, {}", names.join(", "))
                    })?;
                    Some(*sum)
                }
            };
            Ok(())
        },
    ),
    field!(["do_verify"], verify.read_back = flag),
    field!(["verify_interval"], verify.interval = block),
    same(&["verify_offset"], |job, v| {
        job.verify.offset = v.number()?;
        // options.c, str_verify_offset_cb: a header alone has 40 bytes.
        match job.verify.offset {
            1..40 => Err("at least the 40 bytes of a header".to_owned()),
            _ => Ok(()),
        }
    }),
    differs(&["verify_pattern"], "no file names", |job, v| {
        job.verify.pattern = Some(pattern::parse(v.text()?)?);
        job.verify.sum = job.verify.sum.or(Some(Checksum::PatternHeader));
        Ok(())
    }),
    field!(["verify_fatal"], verify.fatal = flag),
    field!(
        ["verify_dump"],
        verify.dump = flag,
        "FILE.OFFSET.received, .expected and .hdr_fail are new files, never written through what has their name"
    ),
    field!(
        ["verify_backlog"],
        verify.backlog = number,
        "what is read back waits until all writes under way are over"
    ),
    field!(["verify_backlog_batch"], verify.backlog_batch = number),
    field!(
        ["verify_only"],
        verify.only = flag,
        "the writes that are left out are not counted as done; of a random order, that of this engine"
    ),
    idle(
        &["verify_async"],
        "no effect: each worker checks its blocks itself",
        |_, v| v.number::<u32>().map(|_| ()),
    ),
    idle(
        &["verify_async_cpus"],
        "no effect, as verify_async",
        |_, v| number_list(v.text()?).map(|_| ()),
    ),
    idle(
        &["experimental_verify"],
        "no effect: what was written is kept in memory all the same",
        |_, v| v.flag().map(|_| ()),
    ),
    field!(
        ["verify_state_save"],
        verify.state_save = flag,
        "0 unless it is asked for"
    ),
    field!(
        ["verify_state_load"],
        verify.state_load = flag,
        "of a random order, that of this engine"
    ),
];

/// What keeps a job's blocks from being verified as it wants.
pub(super) fn fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let Some(sum) = job.verify.sum else {
        let message = || "there is nothing to verify by: needs verify".to_owned();
        let asked = [
            (job.verify.only, "verify_only"),
            (job.verify.state_load, "verify_state_load"),
        ];
        let first = asked.into_iter().find(|(asked, _)| *asked);
        return first.map(|(_, option)| (option, message()));
    };
    if matches!(sum, Checksum::Pattern | Checksum::PatternHeader) && job.verify.pattern.is_none() {
        return Some(("verify", "needs a verify_pattern".to_owned()));
    }
    let used = job.writes() || job.pattern.uses(DirIndex::Read);
    let fault = BlockLayout::of(job).filter(|_| used)?.fault()?;
    let option = match job.verify.offset {
        0 => "verify",
        _ => "verify_offset",
    };
    Some((option, fault))
}
