//! verify_state_save and verify_state_load: how far a job's writes came, in fio's file
//! (verify-state.h), so that a later job verifies no further.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fathom_device::regular;
use fathom_model::{Failure, FailureKind};

use crate::native::crc32c::crc32c;
use crate::native::files::FilePlace;
use crate::native::job::NativeJob;

/// The only version of the file that there is now.
const VERSION: u64 = 3;
/// Bytes before the list, and of the list before its offsets.
const HEADER: usize = 24;
const LIST: usize = 152;
/// Where the name stands in the list, and its bytes with a last 0. Before it is the state
/// of fio's random generator, which nothing reads.
const NAME: usize = 88;
const NAME_BYTES: usize = 64;
/// Most writes of which the offsets are kept: as many as are under way, for each file.
const MOST_OFFSETS: usize = 1 << 20;

/// How far the writes of a job came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) struct VerifyState {
    /// Writes that may have been under way.
    depth: u32,
    files: u32,
    /// Writes that were begun.
    writes: u64,
    /// (file, offset) of the last writes that were over.
    over: Vec<(u64, u64)>,
}

/// Where fio keeps the state of the job at this place of the run.
fn path(folder: &Path, job: &str, place: usize) -> PathBuf {
    let name = job.replace('/', ".");
    folder.join(format!("local-{name}-{place}-verify.state"))
}

impl VerifyState {
    fn bytes(&self, job: &str, place: usize) -> Vec<u8> {
        let room = self.depth as usize * self.files as usize;
        let mut list = vec![0; LIST + room * 16];
        let mut put = |at: usize, bytes: &[u8]| list[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(self.over.len() as u64).to_le_bytes());
        put(8, &self.depth.to_le_bytes());
        put(12, &self.files.to_le_bytes());
        put(16, &self.writes.to_le_bytes());
        put(24, &(place as u64).to_le_bytes());
        let name = job.as_bytes();
        put(NAME, &name[..name.len().min(NAME_BYTES - 1)]);
        for (place, (file, offset)) in self.over.iter().enumerate() {
            put(LIST + place * 16, &file.to_le_bytes());
            put(LIST + place * 16 + 8, &offset.to_le_bytes());
        }
        let mut bytes = Vec::with_capacity(HEADER + list.len());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((list.len() as u64).to_le_bytes());
        bytes.extend(u64::from(crc32c(&list)).to_le_bytes());
        bytes.extend(list);
        bytes
    }

    fn of(bytes: &[u8]) -> Result<Self, &'static str> {
        let (header, list) = bytes.split_at_checked(HEADER).ok_or("it is too short")?;
        let eight = |from: &[u8], at: usize| {
            let field = from.get(at..at + 8).and_then(|field| field.try_into().ok());
            field.map_or(0, u64::from_le_bytes)
        };
        if eight(header, 0) != VERSION {
            return Err("it is of another version");
        }
        if eight(header, 8) != list.len() as u64 || list.len() < LIST {
            return Err("it is not as long as it says");
        }
        if eight(header, 16) != u64::from(crc32c(list)) {
            return Err("its checksum is wrong");
        }
        let counts = eight(list, 8);
        let (depth, files) = (counts as u32, (counts >> 32) as u32);
        let offsets = list[LIST..].chunks_exact(16);
        let count = usize::try_from(eight(list, 0)).unwrap_or(usize::MAX);
        if count > offsets.len() {
            return Err("it has fewer offsets than it says");
        }
        let offsets = offsets.take(count);
        Ok(Self {
            depth,
            files,
            writes: eight(list, 16),
            over: offsets.map(|one| (eight(one, 0), eight(one, 8))).collect(),
        })
    }

    /// The state that a job is to go by; `None`: it goes by none.
    pub(in crate::native) fn load(
        job: &NativeJob,
        folder: &Path,
        place: usize,
    ) -> Result<Option<Self>, Failure> {
        if !job.verify.state_load {
            return Ok(None);
        }
        let path = path(folder, &job.name, place);
        let most = (HEADER + LIST + MOST_OFFSETS * 16) as u64;
        let refused = |what: String| {
            let what = format!("verify_state_load: {what}");
            Failure::new(FailureKind::Open, what).about(path.display().to_string())
        };
        let bytes = regular::read(&path, most).map_err(|error| refused(error.to_string()))?;
        let state = Self::of(&bytes).map_err(|what| refused(what.to_owned()))?;
        Ok(Some(state))
    }

    /// Writes it in place of one that is there.
    pub(in crate::native) fn save(
        &self,
        job: &str,
        at: &FilePlace,
        place: usize,
    ) -> Result<(), Failure> {
        let path = path(&at.work_dir, job, place);
        let written = at.checked.create(&path);
        let written = written.and_then(|mut file| file.write_all(&self.bytes(job, place)));
        written.map_err(|error| {
            let what = format!("verify_state_save: {error}");
            Failure::new(FailureKind::Open, what).about(path.display().to_string())
        })
    }

    /// Whether a job that has read `done` blocks ends before this one: it is among the
    /// last that were begun, and not of those that were over (verify.c,
    /// verify_state_should_stop).
    pub(in crate::native) fn ends_before(&self, done: u64, file: u32, offset: u64) -> bool {
        let depth = u64::from(self.depth);
        let sure = done < depth || self.writes.wrapping_sub(done) > depth;
        let goes_on = sure && self.writes > depth;
        !goes_on && !self.over.contains(&(u64::from(file), offset))
    }
}

/// The last writes of each file that were over, while they are made.
#[derive(Debug)]
pub(in crate::native) struct WriteMarks {
    files: Vec<Vec<u64>>,
    next: Vec<usize>,
    over: u64,
    depth: usize,
}

impl WriteMarks {
    /// For a job of so many files; `None` where it saves no state.
    pub(in crate::native) fn new(job: &NativeJob, files: usize) -> Option<Self> {
        let depth = job.queue.depth.max(1) as usize;
        let wanted = job.verify.state_save && job.writes() && !job.verify.only;
        (wanted && depth.saturating_mul(files) <= MOST_OFFSETS).then(|| Self {
            files: vec![vec![0; depth]; files],
            next: vec![0; files],
            over: 0,
            depth,
        })
    }

    /// A write is over.
    pub(in crate::native) fn wrote(&mut self, file: u32, offset: u64) {
        let file = file as usize;
        self.files[file][self.next[file]] = offset;
        self.next[file] = (self.next[file] + 1) % self.depth;
        self.over += 1;
    }

    /// The state behind `writes` that were begun, newest writes first (verify.c,
    /// fill_file_completions).
    pub(in crate::native) fn state(&self, writes: u64) -> VerifyState {
        let count = usize::try_from(self.over)
            .unwrap_or(usize::MAX)
            .min(self.depth);
        let places = self.files.iter().zip(&self.next).enumerate();
        let over = places.flat_map(|(file, (offsets, next))| {
            let newest = (0..count).map(move |back| (next + self.depth - 1 - back) % self.depth);
            newest.map(move |place| (file as u64, offsets[place]))
        });
        VerifyState {
            depth: self.depth as u32,
            files: self.files.len() as u32,
            writes,
            over: over.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(depth: u32) -> WriteMarks {
        let mut job = NativeJob::new("j");
        job.pattern.dirs = [false, true, false];
        (job.verify.state_save, job.queue.depth) = (true, depth);
        WriteMarks::new(&job, 1).unwrap()
    }

    #[test]
    fn a_state_comes_back_and_a_damaged_one_does_not() {
        let mut marks = marks(4);
        (0..10).for_each(|n| marks.wrote(0, n * 4096));
        let state = marks.state(12);
        assert_eq!(state.over[..2], [(0, 9 * 4096), (0, 8 * 4096)]);
        let bytes = state.bytes("a/b", 7);
        assert_eq!(bytes.len(), HEADER + LIST + 4 * 16);
        assert_eq!(VerifyState::of(&bytes), Ok(state));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(VerifyState::of(&damaged).is_err(), "{at}");
            assert!(VerifyState::of(&bytes[..at]).is_err(), "{at}");
        }
        let shown = path(Path::new("f"), "a/b", 7);
        assert_eq!(shown, Path::new("f/local-a.b-7-verify.state"));
    }

    #[test]
    fn reading_ends_at_the_first_write_that_was_not_over() {
        let mut marks = marks(4);
        // The eleventh was begun before the tenth, which was not over, and is.
        (0..9).chain([10]).for_each(|n| marks.wrote(0, n * 4096));
        let state = marks.state(12);
        let ends = |done: u64| state.ends_before(done, 0, done * 4096);
        let found: Vec<u64> = (0..12).filter(|&done| ends(done)).collect();
        assert_eq!(found, [9, 11]);
    }
}
