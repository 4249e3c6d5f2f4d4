//! The memory of the I/Os.

use super::{OptionRow, differs, same};
use crate::native::job::MemoryKind;

pub(super) const MEMORY: &[OptionRow] = &[
    differs(
        &["iomem", "mem"],
        "no file names, and without one mmap and mmapshared are what malloc is: mapped pages of the process",
        |job, v| {
            (job.memory.kind, job.memory.huge) = match v.text()? {
                "malloc" | "mmap" | "mmapshared" => (MemoryKind::Own, false),
                "mmaphuge" => (MemoryKind::Own, true),
                "shm" => (MemoryKind::Segment, false),
                "shmhuge" => (MemoryKind::Segment, true),
                other if other.contains(':') => {
                    return Err("the memory of the native engine lies in no file".to_owned());
                }
                other => {
                    return Err(format!(
                        "'{other}' is not one of malloc, shm, shmhuge, mmap, mmapshared, mmaphuge"
                    ));
                }
            };
            Ok(())
        },
    ),
    field!(["iomem_align", "mem_align"], memory.offset = number),
    same(&["hugepage-size"], |job, v| {
        job.memory.huge_bytes = v.number()?;
        match job.memory.huge_bytes.is_power_of_two() {
            true => Ok(()),
            false => Err("no page has this size".to_owned()),
        }
    }),
    field!(["lockmem"], memory.locked = number),
];
