//! Files of others that are read whole: none is waited for, none taken in without end.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// The content of a regular file of at most `most` bytes. Its size is looked at before
/// it is read: files of /proc have none, and some of them (`/proc/kmsg`) are waited for.
///
/// # Errors
/// Those of the file system; of kind [`io::ErrorKind::Unsupported`] for what is no regular
/// file, and [`io::ErrorKind::FileTooLarge`] for one that is too large.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let kind = kind(path)?;
    if kind.len() == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    if kind.len() <= most {
        let limit = most.saturating_add(1);
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    if kind.len().max(bytes.len() as u64) > most {
        let what = format!("larger than {}", fathom_model::units::bytes(most as f64));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Opens a regular file, whatever its size.
///
/// # Errors
/// Those of the file system; of kind [`io::ErrorKind::Unsupported`] for what is no regular
/// file.
pub fn open(path: &Path) -> io::Result<File> {
    kind(path)?;
    File::open(path)
}

/// What stands there, when it is a regular file.
fn kind(path: &Path) -> io::Result<Metadata> {
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        let what = "no regular file: it might be waited for";
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_or_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        let kind = |path: &Path| read(path, 4).unwrap_err().kind();
        assert_eq!(kind(&fifo), io::ErrorKind::Unsupported);
        assert_eq!(open(&fifo).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::Unsupported);
        assert_eq!(kind(dir.path()), io::ErrorKind::IsADirectory);
        let link = dir.path().join("kmsg");
        std::os::unix::fs::symlink("/proc/kmsg", &link).unwrap();
        assert_eq!(read(&link, 4).unwrap(), b"");
        let file = dir.path().join("f");
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert_eq!(read(&file, 3).unwrap_err().to_string(), "larger than 3 B");
        // A size that no disk here has: told without reading.
        File::create(&file).unwrap().set_len(1 << 42).unwrap();
        assert_eq!(kind(&file), io::ErrorKind::FileTooLarge);
    }
}
