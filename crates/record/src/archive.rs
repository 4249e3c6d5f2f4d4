//! Runs in one file, to keep or to give away: a tar, compressed by Zstandard, with a folder
//! for each run. Whatever reads such files reads it; what others made of it is hostile.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header};

use crate::first_line::{id_of, not_a_record};
use crate::removal::hold;
use crate::segment::regular;
use crate::{EVENTS, RecordError};

/// How the names of these files end.
pub const ENDING: &str = ".tar.zst";
/// As `zstd -9`: records become half as long as by the least, in a time nobody waits for.
const LEVEL: i32 = 9;
/// What reading may take of memory, as a power of two: what `zstd -d` allows.
const WINDOW_LOG_MAX: u32 = 27;
/// More files and folders than a campaign of 50,000 points has.
const ENTRIES_MAX: u64 = 200_000;
/// Deeper folders, and longer names, than any record has.
const DEPTH_MAX: usize = 16;
const PATH_BYTES_MAX: u64 = 4 << 10;
/// So much stays free where an archive is unpacked.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// More zeros than any tar fills its last block with.
const PADDING_BYTES_MAX: u64 = 1 << 20;
/// The room is looked at again after so much.
const LOOK_AGAIN_BYTES: usize = 1 << 20;

/// What was put into an archive.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ArchivedRuns {
    /// Bytes of the files of all runs.
    pub bytes: u64,
    /// Links and other things that are no files, left out.
    pub left_out: Vec<PathBuf>,
}

/// Writes runs into one archive. All of them have ended, and nobody goes on with one
/// meanwhile.
///
/// # Errors
/// When somebody writes to one of them, or a file cannot be read or written.
pub fn pack(dirs: &[PathBuf], to: impl Write) -> Result<ArchivedRuns, RecordError> {
    let mut locks = Vec::new();
    for dir in dirs {
        locks.push(hold(dir)?);
    }
    let failed = |e| RecordError::file(Path::new("the archive"), e);
    let mut encoder = zstd::Encoder::new(BufWriter::new(to), LEVEL).map_err(failed)?;
    encoder.include_checksum(true).map_err(failed)?;
    let mut tar = Builder::new(encoder);
    let mut archived = ArchivedRuns::default();
    for dir in dirs {
        add_folder(&mut tar, dir, Path::new(&id_of(dir)), &mut archived)?;
    }
    let done = tar.into_inner().and_then(zstd::Encoder::finish);
    done.and_then(|mut to| to.flush()).map_err(failed)?;
    Ok(archived)
}

/// Adds a folder and what is below it, in an order that is always the same.
fn add_folder(
    tar: &mut Builder<impl Write>,
    dir: &Path,
    name: &Path,
    archived: &mut ArchivedRuns,
) -> Result<(), RecordError> {
    let failed = |e| RecordError::file(dir, e);
    let mut header = header_of(EntryType::Directory, 0o755, dir).map_err(failed)?;
    tar.append_data(&mut header, name, io::empty())
        .map_err(failed)?;
    let entries = fs::read_dir(dir).map_err(failed)?;
    let entries: io::Result<BTreeSet<PathBuf>> = entries.map(|it| Ok(it?.path())).collect();
    for path in entries.map_err(failed)? {
        let failed = |e| RecordError::file(&path, e);
        let name = name.join(path.file_name().unwrap_or_default());
        let kind = fs::symlink_metadata(&path).map_err(failed)?;
        if kind.is_dir() {
            add_folder(tar, &path, &name, archived)?;
        } else if kind.is_file() {
            let file = File::open(&path).map_err(failed)?;
            let mut header = header_of(EntryType::Regular, 0o644, &path).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len();
            header.set_size(size);
            tar.append_data(&mut header, name, Exactly::of(file, size))
                .map_err(failed)?;
            archived.bytes += size;
        } else {
            archived.left_out.push(path);
        }
    }
    Ok(())
}

/// Of whom it is, and who may read it, is nobody's business elsewhere.
fn header_of(kind: EntryType, mode: u32, path: &Path) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    let mtime = fs::symlink_metadata(path)?.mtime();
    header.set_mtime(u64::try_from(mtime).unwrap_or(0));
    Ok(header)
}

/// A file of which exactly so much is read: less would shift everything behind it.
struct Exactly {
    file: io::Take<File>,
}

impl Exactly {
    fn of(file: File, size: u64) -> Self {
        Self {
            file: file.take(size),
        }
    }
}

impl Read for Exactly {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buf)? {
            0 if self.file.limit() > 0 && !buf.is_empty() => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter",
            )),
            read => Ok(read),
        }
    }
}

/// Unpacks an archive into an empty folder, which is then a folder of runs.
///
/// # Errors
/// When it is no archive of runs, has anything in it but files and folders of runs, would
/// fill the file system, or cannot be read or written.
pub fn unpack(archive: &Path, to: &Path) -> Result<(), RecordError> {
    let refused = |reason: String| not_a_record(archive, reason);
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => RecordError::file(archive, e),
        _ => refused(format!("no archive of runs, or a damaged one: {e}")),
    };
    let file = BufReader::new(regular(archive).map_err(failed)?);
    let mut decoder = zstd::Decoder::with_buffer(file).map_err(failed)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
    let mut tar = Archive::new(decoder);
    // Raw: what else a tar may say of its files is read without a bound there.
    let entries = tar.entries().map_err(failed)?.raw(true);
    let mut long_name = None;
    for (number, entry) in (1..).zip(entries) {
        let mut entry = entry.map_err(failed)?;
        if number > ENTRIES_MAX {
            return Err(refused(format!("it has more than {ENTRIES_MAX} files")));
        }
        let name = long_name
            .take()
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&name).into_owned();
        match entry.header().entry_type() {
            EntryType::GNULongName if entry.size() <= PATH_BYTES_MAX => {
                let mut name = Vec::new();
                entry.read_to_end(&mut name).map_err(failed)?;
                name.truncate(name.iter().position(|&b| b == 0).unwrap_or(name.len()));
                long_name = Some(name);
            }
            kind @ (EntryType::Directory | EntryType::Regular | EntryType::Continuous) => {
                let path = inside(&name).ok_or_else(|| {
                    refused(format!("'{shown}' in it is no path within a run's folder"))
                })?;
                let path = to.join(path);
                let done = match kind {
                    EntryType::Directory => folder(&path),
                    _ => write(&mut entry, &path),
                };
                done.map_err(|e| refused(format!("'{shown}': {e}")))?;
            }
            _ => {
                return Err(refused(format!(
                    "'{shown}' in it is neither a file nor a folder: Fathom reads archives that \
                     'fathom runs archive' makes"
                )));
            }
        }
    }
    // The check of the whole stands behind the last file.
    let mut rest = tar.into_inner().take(PADDING_BYTES_MAX);
    let read = io::copy(&mut rest, &mut io::sink()).map_err(failed)?;
    match read < PADDING_BYTES_MAX {
        true => Ok(()),
        false => Err(refused("something follows the end of it".to_owned())),
    }
}

/// A path below the folder of the archive that leads nowhere else.
fn inside(name: &[u8]) -> Option<&Path> {
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let parts: Vec<Component> = path.components().collect();
    let is_plain = |part: &Component| match part {
        Component::Normal(name) => !name.as_bytes().contains(&0) && name.len() <= 255,
        _ => false,
    };
    let fits = (1..=DEPTH_MAX).contains(&parts.len());
    (fits && parts.iter().all(is_plain)).then_some(path)
}

/// Makes a folder, and those above it. There are no links on the way: nothing makes one.
fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes one file as long as there is room. A second one of its name is an error.
fn write(from: &mut impl Read, path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        folder(above)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut block = vec![0; LOOK_AGAIN_BYTES];
    loop {
        let read = from.read(&mut block)?;
        if read == 0 {
            return Ok(());
        }
        let room = rustix::fs::fstatvfs(&file)?;
        if room.f_bavail.saturating_mul(room.f_frsize) < FREE_BYTES_MIN + read as u64 {
            return Err(io::Error::other(
                "there is no room to unpack it; name a larger folder with TMPDIR",
            ));
        }
        file.write_all(&block[..read])?;
    }
}

/// Whether an unpacked folder has a run in it.
pub fn has_runs(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path().join(EVENTS));
    paths.any(|log| log.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fathom_model::RunStatus;

    use super::*;
    use crate::{Entries, Writer};

    fn archive_of(dir: &Path, fill: impl FnOnce(&mut Builder<zstd::Encoder<'_, File>>)) -> PathBuf {
        let path = dir.join("x.tar.zst");
        let encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
        let mut tar = Builder::new(encoder);
        fill(&mut tar);
        tar.into_inner().unwrap().finish().unwrap();
        path
    }

    fn entry(kind: EntryType, name: &[u8], size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        header
    }

    fn unpacked(archive: &Path) -> (tempfile::TempDir, Result<(), RecordError>) {
        let to = tempfile::tempdir().unwrap();
        let done = unpack(archive, to.path());
        (to, done)
    }

    #[test]
    fn a_run_comes_out_as_it_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let header = crate::Header::new("a", "job run");
        let writer = Writer::create(&folder.path().join("runs"), &header).unwrap();
        let running = writer.dir().to_owned();
        let file = |bytes: &[PathBuf]| pack(bytes, Vec::new());
        assert!(matches!(
            file(std::slice::from_ref(&running)),
            Err(RecordError::Busy { .. })
        ));
        let dir = writer.finish(RunStatus::Complete).unwrap();
        let long = "n".repeat(200);
        fs::create_dir_all(dir.join("jobs").join(&long)).unwrap();
        let long = dir.join("jobs").join(&long).join(&long);
        fs::write(&long, vec![7; 100_000]).unwrap();
        symlink("/etc/passwd", dir.join("link")).unwrap();

        let path = folder.path().join("a.tar.zst");
        let archived = pack(std::slice::from_ref(&dir), File::create(&path).unwrap()).unwrap();
        assert_eq!(archived.left_out, [dir.join("link")]);
        let (to, done) = unpacked(&path);
        done.unwrap();
        assert!(has_runs(to.path()));
        let copy = to.path().join(id_of(&dir));
        assert_eq!(
            Entries::open(&copy).unwrap().status,
            Some(RunStatus::Complete)
        );
        let long = long.strip_prefix(&dir).unwrap();
        assert_eq!(fs::read(copy.join(long)).unwrap(), vec![7; 100_000]);
        // Cut anywhere, it is told.
        let whole = fs::read(&path).unwrap();
        for len in [0, 10, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let is_told = unpacked(&path).1.is_err();
            assert!(is_told, "{len}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("out");
        let names: [&[u8]; 5] = [b"../out", b"/tmp/out", b"run/../../out", b"", b"run/./.."];
        for name in names {
            let path = archive_of(folder.path(), |tar| {
                tar.append(&entry(EntryType::Regular, name, 1), &b"x"[..])
                    .unwrap();
            });
            let error = unpacked(&path).1.unwrap_err().to_string();
            assert!(error.contains("no path within"), "{error}");
        }
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Char,
            EntryType::Fifo,
            EntryType::GNUSparse,
            EntryType::XHeader,
            EntryType::XGlobalHeader,
        ] {
            let path = archive_of(folder.path(), |tar| {
                tar.append(&entry(kind, b"run/a", 0), io::empty()).unwrap();
            });
            let error = unpacked(&path).1.unwrap_err().to_string();
            assert!(error.contains("neither a file nor"), "{kind:?}: {error}");
        }
        // One name twice, a file as a folder, a name without end.
        let twice = archive_of(folder.path(), |tar| {
            for _ in 0..2 {
                tar.append(&entry(EntryType::Regular, b"run/a", 1), &b"x"[..])
                    .unwrap();
            }
        });
        assert!(unpacked(&twice).1.is_err());
        let long = archive_of(folder.path(), |tar| {
            let size = 1 << 20;
            let header = entry(EntryType::GNULongName, b"L", size);
            tar.append(&header, io::repeat(b'a').take(size)).unwrap();
        });
        assert!(unpacked(&long).1.is_err());
        assert!(!outside.exists());
    }

    #[test]
    fn an_archive_of_endless_zeros_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = archive_of(folder.path(), |tar| {
            let header = entry(EntryType::Regular, b"run/a", 1 << 50);
            // Far less than it says.
            let _ = tar.append(&header, io::repeat(0).take(1 << 20));
        });
        assert!(unpacked(&path).1.is_err());
        fs::write(&path, b"no archive").unwrap();
        let error = unpacked(&path).1.unwrap_err().to_string();
        assert!(error.contains("no archive of runs"), "{error}");
    }
}
