//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Puts a file in place, or in the place of one, once `write` has written all of
/// it: whoever reads meanwhile reads the one of before, and a full disk costs
/// nothing. It is not synced; `write` does so where a power cut matters.
///
/// Only a regular file is ever replaced: see [`destination`].
///
/// # Errors
/// Those of `write`, of [`destination`] and of the file system; nothing has changed then.
pub fn replace<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let path = destination(path)?;
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let mut file = create(&part)?;
    let done = write(&mut file).and_then(|made| {
        // Somebody may have put something else there meanwhile.
        destination(&path)?;
        fs::rename(&part, &path)?;
        Ok(made)
    });
    if done.is_err() {
        // The error itself is what matters.
        let _ = fs::remove_file(&part);
    }
    done
}

/// A new file, whatever has its name: O_EXCL follows no link (open(2)).
fn create(part: &Path) -> io::Result<File> {
    let new = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).open(part)
    };
    match new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Left by a process of this number, or a link that somebody put there.
            fs::remove_file(part)?;
            new()
        }
        made => made,
    }
}

/// Where a file of this name is written: there, or where a link leads that stays in its
/// folder.
///
/// # Errors
/// What is there and is no regular file, such as a device; a link that leads nowhere or to
/// another folder: what it names is somebody else's.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()));
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path.to_owned()),
        meta => meta?.file_type(),
    };
    if kind.is_file() {
        return Ok(path.to_owned());
    }
    if !kind.is_symlink() {
        return refused("it is no regular file, and is not replaced by one");
    }
    let Ok(real) = fs::canonicalize(path) else {
        return refused("it is a link that leads nowhere; remove it, or name the file");
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::canonicalize(folder)?,
        _ => fs::canonicalize(".")?,
    };
    match real.parent() == Some(&*folder) && fs::metadata(&real)?.is_file() {
        true => Ok(real),
        false => refused("it is a link that leads out of its folder; name the file itself"),
    }
}

/// Removes from a folder what [`replace`] was kept from putting in place by a kill: for
/// who knows that nobody else writes there.
pub(crate) fn sweep(dir: &Path) {
    let is_part = |name: &str| {
        let pid = name
            .strip_suffix(".part")
            .and_then(|it| it.rsplit_once('.'));
        pid.is_some_and(|(of, pid)| of.contains('.') && pid.parse::<u32>().is_ok())
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_part) {
            // It costs its space and nothing else.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `config savedefconfig /dev/loop0` once made a regular file of the device.
    #[test]
    fn only_a_regular_file_of_this_folder_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let put = |name: &str| replace(&at(name), |file| file.write_all(b"new"));
        let text = |name: &str| fs::read_to_string(at(name)).unwrap();
        put("fresh").unwrap();
        assert_eq!(text("fresh"), "new");

        fs::create_dir(at("out")).unwrap();
        fs::write(at("out/precious"), "old").unwrap();
        fs::write(at("target"), "old").unwrap();
        for (link, to) in [
            ("in", "target"),
            ("away", "out/precious"),
            ("null", "/dev/null"),
        ] {
            symlink(to, at(link)).unwrap();
        }
        symlink("nowhere", at("dangling")).unwrap();
        put("in").unwrap();
        assert!(fs::symlink_metadata(at("in")).unwrap().is_symlink());
        assert_eq!(text("target"), "new");
        for refused in ["away", "null", "dangling", "out"] {
            put(refused).unwrap_err();
        }
        assert_eq!(text("out/precious"), "old");

        // What is planted where the new file is made is not written through.
        let part = format!("fresh.{}.part", std::process::id());
        symlink("out/precious", at(&part)).unwrap();
        put("fresh").unwrap();
        assert_eq!(
            (text("fresh"), text("out/precious")),
            ("new".into(), "old".into())
        );
        assert!(!at(&part).exists());
    }
}
