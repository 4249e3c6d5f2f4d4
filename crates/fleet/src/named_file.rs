//! Files that a user names and a command writes: what may never become one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use fathom_device::safety::{Confirmations, WriteJudge};

/// Whether a path is a stream of this process, or something else that is written to and
/// never replaced: /dev/stdout, a pipe, a terminal.
pub fn is_stream(path: &Path) -> bool {
    let of_process = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev/fd");
    let leads_to = fs::read_link(path).is_ok_and(|to| of_process(&to));
    of_process(path) || leads_to || (path.exists() && !path.is_file() && !path.is_dir())
}

/// Opens a stream, behind what others have written to it.
///
/// # Errors
/// When it cannot be opened.
pub fn stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Whether a file of this name may be made, or take the place of the one there: no device,
/// no file that is in use as one, and nothing that a link leads to in another folder.
///
/// # Errors
/// Why not, and what to do.
pub fn may_write(path: &Path) -> Result<(), String> {
    let judge = WriteJudge::new(&Confirmations::default());
    judge.output(path).map_err(|refusal| refusal.to_string())?;
    if is_stream(path) {
        return Ok(());
    }
    match fathom_record::destination(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(format!("{}: {error}; nothing was written", path.display()))
        }
        // Whatever else there is, who writes it is told.
        _ => Ok(()),
    }
}

/// A file that is not written, for what is there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    /// The refusal among the causes of an error.
    pub fn among<'e>(
        causes: impl IntoIterator<Item = &'e (dyn std::error::Error + 'static)>,
    ) -> Option<&'e Self> {
        let wrapped = |cause: &'e (dyn std::error::Error + 'static)| {
            let error: &io::Error = cause.downcast_ref()?;
            error.get_ref()?.downcast_ref()
        };
        causes
            .into_iter()
            .find_map(|cause| cause.downcast_ref().or_else(|| wrapped(cause)))
    }
}

/// Writes a file that the user named, whole or not at all: whoever reads meanwhile reads
/// the one of before. One that is there is replaced only by its like: a page by a page,
/// text by text. A stream is written to as it is.
///
/// # Errors
/// Those of `write` and of the file system, and [`Refused`]; the file is as it was then.
pub fn write<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    may_write(path).map_err(|why| io::Error::other(Refused(why)))?;
    if is_stream(path) {
        return write(&mut stream(path)?);
    }
    fathom_record::replace(path, |new| {
        let made = write(new)?;
        new.rewind()?;
        let new = content(new)?;
        let old = match File::open(path) {
            Ok(old) => content(old)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                Err(io::Error::other(Refused(old.stays(path))).into())
            }
            _ => Ok(made),
        }
    })
}

/// What a file holds, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Page,
    Picture,
    Json,
    Text,
    /// No text: a format begins with bytes of its own.
    Binary([u8; 4]),
}

impl Content {
    fn stays(self, path: &Path) -> String {
        let what = match self {
            Self::Page => "a page",
            Self::Picture => "a picture",
            Self::Json => "JSON",
            Self::Text => "text",
            Self::Binary(_) => "no text",
        };
        let path = path.display();
        format!(
            "{path} holds {what}, unlike what would take its place; it is as it was\n  to do: name another file, or remove this one"
        )
    }

    fn of(head: &[u8]) -> Self {
        // The last letter may be cut off.
        let cut_off = 3;
        let is_text = match std::str::from_utf8(head) {
            Ok(_) => !head.contains(&0),
            Err(wrong) => {
                wrong.error_len().is_none() && wrong.valid_up_to() + cut_off >= head.len()
            }
        };
        if !is_text {
            // A tar file begins with a name (POSIX.1, ustar: the magic is at 257).
            let is_tar = head
                .get(257..)
                .is_some_and(|rest| rest.starts_with(b"ustar"));
            let first = head.first_chunk().copied().unwrap_or_default();
            return Self::Binary(if is_tar { *b"usta" } else { first });
        }
        let text = head.trim_ascii_start().to_ascii_lowercase();
        let begins = |all: &[&str]| all.iter().any(|it| text.starts_with(it.as_bytes()));
        match () {
            () if begins(&["<!doctype html", "<html"]) => Self::Page,
            () if begins(&["<svg", "<?xml"]) => Self::Picture,
            () if begins(&["{", "["]) => Self::Json,
            () => Self::Text,
        }
    }
}

/// What a file holds; nothing of one that is empty.
fn content(file: impl io::Read) -> io::Result<Option<Content>> {
    let mut head = Vec::new();
    file.take(512).read_to_end(&mut head)?;
    Ok((!head.is_empty()).then(|| Content::of(&head)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_by_its_like_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let put = |text: &[u8]| write(&file, |file| file.write_all(text));
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
                let written = put(new);
                assert_eq!(written.is_ok(), old == new, "{old:?} {new:?}");
                if let Err(error) = written {
                    let error: &(dyn std::error::Error + 'static) = &error;
                    assert!(Refused::among([error]).is_some(), "{error}");
                }
                assert_eq!(fs::read(&file).unwrap(), old);
            }
            fs::write(&file, "").unwrap();
            put(old).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
