//! What tells whether a record is still the one that was read.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::chain::Chain;
use crate::live::open;
use crate::segment::FOLDER;
use crate::tags::REMARKS;

/// So much of the end of a log is looked at: it has the check of all that stands before.
const END_BYTES: u64 = 4 << 10;

/// The stamp of a record's log and of what was said of it afterwards: size, place and times
/// of the files as the kernel has them, and the end of the live one. Another log has
/// another stamp, whoever wrote it and however; the same log that was copied has another
/// one, too. `None` where it cannot be looked at.
pub fn stamp(dir: &Path) -> Option<String> {
    let mut live = open(dir).ok()?;
    let kind = live.metadata().ok()?;
    let back = kind.len().min(END_BYTES);
    let mut end = Vec::new();
    live.seek(SeekFrom::Start(kind.len() - back)).ok()?;
    live.take(END_BYTES).read_to_end(&mut end).ok()?;
    let mut closed = Vec::new();
    for file in fs::read_dir(dir.join(FOLDER)).into_iter().flatten() {
        let file = file.ok()?;
        let name = file.file_name();
        closed.push(format!(
            "{} {}",
            name.display(),
            times(&file.metadata().ok()?)
        ));
    }
    // What was said of the run afterwards.
    if let Ok(kind) = fs::symlink_metadata(dir.join(REMARKS)) {
        closed.push(format!("{REMARKS} {}", times(&kind)));
    }
    closed.sort_unstable();
    let mut stamp = format!("{} {}", times(&kind), Chain::of(&end));
    if !closed.is_empty() {
        let all = Chain::of(closed.join("\n").as_bytes());
        // Writing to a String cannot fail.
        let _ = write!(stamp, " {} {all}", closed.len());
    }
    Some(stamp)
}

/// What changes with a file. The time of its last change of any kind (ctime) is not for
/// programs to set.
fn times(kind: &Metadata) -> String {
    format!(
        "{}.{} {} {}.{:09} {}.{:09}",
        kind.dev(),
        kind.ino(),
        kind.len(),
        kind.mtime(),
        kind.mtime_nsec(),
        kind.ctime(),
        kind.ctime_nsec()
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};

    use fathom_model::{Event, RunStatus};

    use super::*;
    use crate::{EVENTS, Header, Writer};

    #[test]
    fn what_is_written_another_way_has_another_stamp() {
        let runs = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(runs.path(), &Header::new("a", "job run")).unwrap();
        let text = "said".to_owned();
        writer.append(&Event::Note { text }).unwrap();
        let dir = writer.finish(RunStatus::Complete).unwrap();
        let first = stamp(&dir).unwrap();
        assert_eq!(stamp(&dir).unwrap(), first);
        // As long as before, and with its time of before.
        let path = dir.join(EVENTS);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let other = fs::read_to_string(&path).unwrap().replace("said", "SAID");
        fs::write(&path, other).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(modified))
            .unwrap();
        let second = stamp(&dir).unwrap();
        assert_ne!(second, first);
        fs::create_dir_all(dir.join(FOLDER)).unwrap();
        fs::write(dir.join(FOLDER).join("000001.jsonl"), "x").unwrap();
        assert_ne!(stamp(&dir).unwrap(), second);
        let third = stamp(&dir).unwrap();
        fs::write(dir.join(REMARKS), "{}").unwrap();
        assert_ne!(stamp(&dir).unwrap(), third);
        assert_eq!(stamp(runs.path()), None);
    }
}
