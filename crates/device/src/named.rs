//! Files that the user names and Fathom writes: configurations, exports, pictures, pages.
//!
//! A new file takes the place of the old one as a whole, and only where that is what was
//! meant: never in that of a device, of a file that is a device to somebody, of a file in
//! another folder that a link leads to, or of one that holds something else.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::safety::{Confirmations, Refusal, WriteJudge};

/// Whether a file of this name may be written.
///
/// # Errors
/// The [`Refusal`]; nothing was written.
pub fn check(path: &Path) -> Result<(), Refusal> {
    place(path).map(drop)
}

/// Writes a file that the user named, whole or not at all: whoever reads meanwhile reads
/// the one of before. What is no file (a terminal, a pipe, /dev/stdout) is written to as
/// it is. It is not synced; `write` does so where a power cut matters.
///
/// # Errors
/// Those of `write` and of the file system, and a [`Refusal`] (see [`refusal`]). The file
/// is as it was then.
pub fn write<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let mut draft = Draft::begin(path)?;
    let made = write(draft.file())?;
    draft.finish()?;
    Ok(made)
}

/// Opens a log that the user named, to write at its end.
///
/// # Errors
/// As [`write()`].
pub fn append(path: &Path) -> io::Result<File> {
    let path = match place(path).map_err(io::Error::other)? {
        Place::Stream => return stream(path),
        Place::File(place) => place,
    };
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

fn stream(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let stream = options.append(true).custom_flags(libc::O_NOCTTY);
    stream.open(path)
}

/// A file that is being written, and not in place yet; dropped, it never is.
#[derive(Debug)]
pub struct Draft {
    named: PathBuf,
    to: DraftPlace,
}

#[derive(Debug)]
enum DraftPlace {
    Stream(File),
    File { part: NamedTempFile, place: PathBuf },
}

impl Draft {
    /// Begins a file that the user named.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn begin(path: &Path) -> io::Result<Self> {
        let to = match place(path).map_err(io::Error::other)? {
            Place::Stream => DraftPlace::Stream(stream(path)?),
            Place::File(place) => {
                let folder = place.parent().filter(|it| !it.as_os_str().is_empty());
                let part = tempfile::Builder::new()
                    .prefix(".fathom-")
                    .suffix(".part")
                    // Less what the umask takes away, as of any new file.
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(folder.unwrap_or(Path::new(".")))?;
                DraftPlace::File { part, place }
            }
        };
        Ok(Self {
            named: path.to_owned(),
            to,
        })
    }

    /// What is written to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.to {
            DraftPlace::Stream(file) => file,
            DraftPlace::File { part, .. } => part.as_file_mut(),
        }
    }

    /// Puts it in place.
    ///
    /// # Errors
    /// As [`write()`]: what is there already may be something else.
    pub fn finish(self) -> io::Result<()> {
        let DraftPlace::File { part, place } = self.to else {
            return Ok(());
        };
        if let (Some(old), Some(new)) = (content(&place)?, content(part.path())?)
            && old != new
        {
            return Err(io::Error::other(Refusal::OtherContent {
                path: self.named,
                has: old.told(),
            }));
        }
        part.persist(&place).map_err(|error| error.error)?;
        Ok(())
    }
}

impl io::Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// The refusal that an error of [`write`] carries.
#[must_use]
pub fn refusal(error: &io::Error) -> Option<&Refusal> {
    error.get_ref()?.downcast_ref()
}

/// What a name stands for.
enum Place {
    /// A file, which need not be there; no link any more.
    File(PathBuf),
    /// What takes text and keeps none.
    Stream,
}

fn place(path: &Path) -> Result<Place, Refusal> {
    WriteJudge::new(&Confirmations::default()).output(path)?;
    let is_other = |meta: fs::Metadata| !meta.is_file() && !meta.is_dir();
    if is_descriptor(path) || fs::metadata(path).is_ok_and(is_other) {
        return Ok(Place::Stream);
    }
    let Ok(link) = fs::read_link(path) else {
        return Ok(Place::File(path.to_owned()));
    };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A link that leads nowhere yet has no real path.
    let to = fs::canonicalize(path).unwrap_or_else(|_| folder.join(link));
    let beside = |to: &Path| fs::canonicalize(to.parent()?).ok();
    let is_beside = beside(&to).is_some_and(|it| fs::canonicalize(folder).is_ok_and(|f| f == it));
    match is_beside && !to.is_symlink() {
        true => Ok(Place::File(to)),
        false => Err(Refusal::LeadsElsewhere {
            path: path.to_owned(),
            to,
        }),
    }
}

/// Whether a name is that of what this process has open, such as /dev/stdout: the link
/// that it is must not be replaced.
fn is_descriptor(path: &Path) -> bool {
    let above = path.parent().and_then(|it| fs::canonicalize(it).ok());
    let is_fd = |dir: PathBuf| dir.starts_with("/proc") && dir.ends_with("fd");
    matches!(path.to_str(), Some("/dev/stdout" | "/dev/stderr")) || above.is_some_and(is_fd)
}

/// What a file holds, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Html,
    Picture,
    Json,
    Text,
    /// No text: a format begins with bytes of its own.
    Binary([u8; 4]),
}

impl Content {
    fn told(self) -> &'static str {
        match self {
            Self::Html => "a page",
            Self::Picture => "a picture",
            Self::Json => "JSON",
            Self::Text => "text",
            Self::Binary(_) => "no text",
        }
    }

    fn of(head: &[u8]) -> Self {
        let cut_off = 3;
        let text = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(wrong) if wrong.valid_up_to() + cut_off >= head.len() => "",
            Err(_) => return Self::binary(head),
        };
        if head.contains(&0) {
            return Self::binary(head);
        }
        let text = text.trim_start().to_ascii_lowercase();
        match text {
            text if text.starts_with("<!doctype html") || text.starts_with("<html") => Self::Html,
            text if text.starts_with("<svg") || text.starts_with("<?xml") => Self::Picture,
            text if text.starts_with(['{', '[']) => Self::Json,
            _ => Self::Text,
        }
    }

    fn binary(head: &[u8]) -> Self {
        // A tar file begins with a name (POSIX.1, pax: the magic is at 257).
        const TAR: &[u8] = b"ustar";
        match head.get(257..).is_some_and(|rest| rest.starts_with(TAR)) {
            true => Self::Binary(*b"usta"),
            false => Self::Binary(head.first_chunk().copied().unwrap_or_default()),
        }
    }
}

/// What a file holds; nothing of one that is empty or not there.
fn content(path: &Path) -> io::Result<Option<Content>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut head = Vec::new();
    file.take(512).read_to_end(&mut head)?;
    Ok((!head.is_empty()).then(|| Content::of(&head)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn put(path: &Path, text: &[u8]) -> io::Result<()> {
        write(path, |file| file.write_all(text))
    }

    #[test]
    fn a_file_is_replaced_by_one_of_its_content_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let contents: [&[u8]; 6] = [
            b"<!DOCTYPE html><p>",
            b"<svg>",
            b"{}",
            b"words, \xc3\xa4\n",
            b"\x89PNG\r\n\x1a\n\xff\xff\xff\xff\xff",
            b"PAR1\0\0\0\0\xff\xff\xff\xff\xff",
        ];
        for old in contents {
            for new in contents {
                fs::write(&file, old).unwrap();
                let written = put(&file, new);
                assert_eq!(written.is_ok(), old == new, "{old:?} {new:?}");
                if let Err(error) = written {
                    assert!(refusal(&error).is_some(), "{error}");
                }
                assert_eq!(fs::read(&file).unwrap(), old);
            }
            fs::write(&file, "").unwrap();
            put(&file, old).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_followed_within_its_folder_and_stays_one() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let [inside, outside] = ["in", "out"].map(|name| dir.path().join(name));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).unwrap();
        }
        let link = inside.join("link");
        for to in ["file", "new"] {
            symlink(to, &link).unwrap();
            put(&link, b"new").unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read(inside.join(to)).unwrap(), b"new");
            fs::remove_file(&link).unwrap();
        }
        for to in ["../out/file", "../out/new", "/proc/self/fd/../comm"] {
            fs::write(outside.join("file"), "old").unwrap();
            symlink(to, &link).unwrap();
            let error = put(&link, b"new").unwrap_err();
            let is_link = matches!(refusal(&error), Some(Refusal::LeadsElsewhere { .. }));
            assert!(is_link, "{to}: {error}");
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"old");
        assert!(!outside.join("new").exists());
    }
}
