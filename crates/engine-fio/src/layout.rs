//! How far fio is with files that it lays out before its jobs run.
//!
//! fio tells the size of what it lays out and nothing while it writes; its figures are 0
//! then, and the time that it says is left is that of jobs which have not begun. All of it
//! is written by fio's first process (`setup_files` in filesetup.c, called by
//! `run_threads` before jobs are started), so that its count of written bytes says how far
//! it is.

use fathom_model::{Event, units};

/// What a message of fio says before it lays out files.
const MARK: &str = ": Laying out IO file";

/// Files that fio lays out.
#[derive(Debug, Default)]
pub struct Layout {
    of_bytes: u64,
    /// What fio had written when it began.
    before: u64,
    is_over: bool,
}

impl Layout {
    /// Takes a message of fio; whether it is about laying out.
    pub fn message(&mut self, line: &str, pid: Option<u32>) -> bool {
        let Some((_, sizes)) = line.split_once(MARK) else {
            return false;
        };
        if self.of_bytes == 0 {
            self.before = pid.and_then(written).unwrap_or(0);
        }
        self.of_bytes = self.of_bytes.saturating_add(total(sizes).unwrap_or(0));
        true
    }

    /// How far it is, while it goes on.
    pub fn progress(&self, pid: Option<u32>) -> Option<Event> {
        if self.is_over || self.of_bytes == 0 {
            return None;
        }
        let written = pid.and_then(written)?.saturating_sub(self.before);
        Some(Event::LayingOut {
            done_bytes: written.min(self.of_bytes),
            of_bytes: self.of_bytes,
        })
    }

    /// Jobs have begun.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}

/// The bytes of `s (2 files / total 200MiB)`.
fn total(sizes: &str) -> Option<u64> {
    let (_, size) = sizes.trim_end().trim_end_matches(')').rsplit_once('/')?;
    units::parse_size(size.trim().trim_start_matches("total "))
}

/// Bytes that a process has passed to write(2) and the like (proc(5), `wchar`).
fn written(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_all_jobs_add_up() {
        let mut layout = Layout::default();
        assert!(!layout.message("Starting 1 process", None));
        assert!(layout.progress(Some(std::process::id())).is_none());
        let own = Some(std::process::id());
        assert!(layout.message("a: Laying out IO file (1 file / 3072MiB)", own));
        assert!(layout.message("b: Laying out IO files (2 files / total 200MiB)", own));
        let Some(Event::LayingOut { of_bytes, .. }) = layout.progress(own) else {
            panic!("{layout:?}");
        };
        assert_eq!(of_bytes, 3272 << 20);
        layout.end();
        assert!(layout.progress(own).is_none());
    }
}
