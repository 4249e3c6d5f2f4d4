//! What Fathom does in its own pods, where there is no shell and no other
//! program: looks around, and drops the page cache of the node.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use fathom_model::units;
use serde::{Deserialize, Serialize};

/// The kernel's switch: 3 drops the page cache, dentries and inodes
/// (Documentation/admin-guide/sysctl/vm.rst).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What a server sees of its volume and its surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodLook {
    /// Fathom's version there.
    pub version: String,
    /// Texts for people, by the names of their files in the record.
    pub files: BTreeMap<String, String>,
}

/// The files of a [`PodLook`]: other names are not kept.
pub const FILES: [&str; 5] = [
    "df_h.txt",
    "mount.txt",
    "ls_l.txt",
    "env.txt",
    "versions.txt",
];

impl PodLook {
    /// Looks around; what cannot be seen is said in its place.
    pub fn around(version: &str, folder: &Path) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts");
        let texts = [
            mounts.as_deref().map(free).map_err(again),
            mounts.as_deref().map(str::to_owned).map_err(again),
            listed(folder),
            surroundings(),
            versions(version),
        ];
        let told = texts
            .into_iter()
            .map(|text| text.unwrap_or_else(|error| format!("{error}\n")));
        Self {
            version: version.to_owned(),
            files: FILES.map(str::to_owned).into_iter().zip(told).collect(),
        }
    }
}

fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// How full the mounted file systems are; those without blocks are left out.
fn free(mounts: &str) -> String {
    let mut table = String::from("FILESYSTEM\tSIZE\tUSED\tAVAILABLE\tUSED%\tMOUNTED ON\n");
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(path)) = (words.next(), words.next()) else {
            continue;
        };
        // Blanks are \040 there (proc(5)); such a mount is not looked at.
        let Ok(all) = rustix::fs::statvfs(path) else {
            continue;
        };
        if all.f_blocks == 0 {
            continue;
        }
        let size = |blocks: u64| units::bytes(blocks as f64 * all.f_frsize as f64);
        let used = all.f_blocks.saturating_sub(all.f_bfree);
        // As df(1) does it: of what those may use who are not root, rounded up.
        let share = (used * 100).div_ceil((used + all.f_bavail).max(1));
        table.push_str(&format!(
            "{device}\t{}\t{}\t{}\t{share}%\t{path}\n",
            size(all.f_blocks),
            size(used),
            size(all.f_bavail)
        ));
    }
    table
}

/// The entries of a folder: kind and permissions, links, owner, group, bytes,
/// time of the last change, name.
fn listed(folder: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        let changed = jiff::Timestamp::from_second(about.mtime());
        lines.push(format!(
            "{} {} {} {} {} {} {}\n",
            mode(&about),
            about.nlink(),
            about.uid(),
            about.gid(),
            about.len(),
            changed.map_or_else(|_| "?".to_owned(), |at| at.to_string()),
            entry.file_name().to_string_lossy()
        ));
    }
    lines.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    Ok(lines.concat())
}

fn name(line: &str) -> &str {
    line.splitn(7, ' ').last().unwrap_or_default()
}

/// `drwxr-xr-x`.
fn mode(about: &Metadata) -> String {
    let kind = about.file_type();
    let first = match () {
        () if kind.is_dir() => 'd',
        () if kind.is_symlink() => 'l',
        () if kind.is_block_device() => 'b',
        () if kind.is_char_device() => 'c',
        () if kind.is_fifo() => 'p',
        () if kind.is_socket() => 's',
        () => '-',
    };
    let right = |nth: u32| match about.mode() >> (8 - nth) & 1 {
        1 => ['r', 'w', 'x'][nth as usize % 3],
        _ => '-',
    };
    std::iter::once(first).chain((0..9).map(right)).collect()
}

/// Kernel, processors and memory.
fn surroundings() -> io::Result<String> {
    let kernel = fs::read_to_string("/proc/version")?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let total = memory.lines().next().unwrap_or_default();
    let cpus = std::thread::available_parallelism()?;
    Ok(format!("{kernel}processors: {cpus}\n{total}\n"))
}

/// Fathom, the kernel, and the distribution where the image has one.
fn versions(version: &str) -> io::Result<String> {
    let kernel = fs::read_to_string("/proc/version")?;
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    Ok(format!("fathom-{version}\n{kernel}{system}"))
}

/// Drops the page cache of this machine, once what is dirty in it is written.
///
/// # Errors
/// When the kernel does not let this process.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    let mut switch = File::options().write(true).open(DROP_CACHES)?;
    io::Write::write_all(&mut switch, b"3\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_tells_space_mounts_files_and_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f.0.0"), "abc").unwrap();
        fs::create_dir(dir.path().join("a b")).unwrap();
        let look = PodLook::around("1", dir.path());
        let of = |name: &str| look.files[name].as_str();
        assert!(of("df_h.txt").lines().any(|line| line.ends_with("\t/")));
        assert!(of("mount.txt").contains(" / "));
        assert!(of("env.txt").contains("MemTotal"));
        assert!(of("versions.txt").starts_with("fathom-1\nLinux version "));
        let files: Vec<_> = of("ls_l.txt").lines().collect();
        assert!(files[0].starts_with("drwx") && files[0].ends_with(" a b"));
        assert!(files[1].starts_with("-rw-") && files[1].contains(" 3 "));
        let gone = PodLook::around("1", &dir.path().join("gone"));
        assert!(gone.files["ls_l.txt"].contains("No such file"));
    }
}
