//! Where variables and included files come from.

use std::io;
use std::path::Path;

/// Job files are written by people; all that is read for one, included files
/// and expanded variables counted, stays below this.
pub const MAX_BYTES: usize = 4 << 20;

/// What a job file needs from outside itself.
pub trait Sources {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The bytes of an included file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// What `$pagesize`, `$mb_memory` and `$ncpus` stand for; `None` where it
    /// cannot be told.
    fn keyword(&self, keyword: Keyword) -> Option<u64>;

    /// Whether lines stay as they were written, for a machine that replaces
    /// variables and keywords itself.
    fn defers(&self) -> bool {
        false
    }

    /// Whether the engine cannot look the variable up itself.
    fn is_given(&self, _name: &str) -> bool {
        false
    }
}

/// fio's reserved words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    /// `$pagesize`, bytes.
    PageSize,
    /// `$mb_memory`, MiB.
    MemoryMib,
    /// `$ncpus`, CPUs that are online.
    Cpus,
}

impl Keyword {
    /// Every keyword with its word.
    pub const ALL: [(&'static str, Self); 3] = [
        ("$pagesize", Self::PageSize),
        ("$mb_memory", Self::MemoryMib),
        ("$ncpus", Self::Cpus),
    ];
}

/// Included files from the disk, variables from a function, keywords from the machine.
pub struct DiskSources<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub defers: bool,
}

impl Sources for DiskSources<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_limited(path)
    }

    fn defers(&self) -> bool {
        self.defers
    }

    fn is_given(&self, name: &str) -> bool {
        crate::variables::is_given(name)
    }

    fn keyword(&self, keyword: Keyword) -> Option<u64> {
        match keyword {
            Keyword::PageSize => Some(rustix::param::page_size() as u64),
            Keyword::MemoryMib => memory_mib(),
            Keyword::Cpus => cpus(),
        }
    }
}

/// Reads a file, but not more of it than a job file may have, so that a device
/// or an endless pipe given by mistake does no harm.
pub fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(target_os = "linux")]
fn memory_mib() -> Option<u64> {
    let info = rustix::system::sysinfo();
    let bytes = u128::from(info.totalram) * u128::from(info.mem_unit.max(1));
    u64::try_from(bytes / (1024 * 1024)).ok()
}

#[cfg(not(target_os = "linux"))]
fn memory_mib() -> Option<u64> {
    None
}

/// CPUs online, whatever of them this process may use: so does fio count.
fn cpus() -> Option<u64> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    list.as_deref().and_then(count_list).or_else(|| {
        let n = std::thread::available_parallelism().ok()?;
        Some(n.get() as u64)
    })
}

/// How many numbers a list as `0-3,5` holds.
fn count_list(list: &str) -> Option<u64> {
    let mut count = 0u64;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(super::count_list("0-3,5\n"), Some(5));
        assert_eq!(super::count_list("0"), Some(1));
        assert_eq!(super::count_list("3-1"), None);
    }
}
