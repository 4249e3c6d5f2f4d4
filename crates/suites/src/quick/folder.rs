//! The folder of the test files on this machine: made with a tag, removed only
//! when it carries it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_device::{Hold, cow, mounts};
use fathom_model::text;

use super::QuickError;
use super::host::FolderState;

/// Name of the tag (<https://bford.info/cachedir/>): backup tools leave out a
/// folder that holds it, and Fathom removes none without.
pub const TAG: &str = "CACHEDIR.TAG";
/// The tag's first line.
pub const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

/// What stands at `folder`.
///
/// # Errors
/// When it exists and cannot be read.
pub fn state(folder: &Path) -> Result<FolderState, QuickError> {
    let problem = |source| QuickError::file(folder, source);
    match folder.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FolderState::Absent),
        Err(error) => return Err(problem(error)),
        // A link could point anywhere: it is not a folder of ours.
        Ok(meta) if !meta.is_dir() => return Ok(FolderState::Foreign),
        Ok(_) => {}
    }
    let (mut held_bytes, mut files) = (0, Vec::new());
    for entry in fs::read_dir(folder).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let meta = entry.metadata().map_err(problem)?;
        // st_blocks counts 512 bytes whatever the file system's block (stat(2)).
        held_bytes += meta.blocks() * 512;
        files.push((entry.file_name().to_string_lossy().into_owned(), meta.len()));
    }
    if files.is_empty() || is_tagged(folder) {
        Ok(FolderState::Ours { held_bytes, files })
    } else {
        Ok(FolderState::Foreign)
    }
}

/// Makes the folder and its tag, and takes the lock on it; with `nocow` new files in it are
/// not copied on write.
///
/// # Errors
/// When it cannot be made, is not ours, holds files that are copied on write, or another run
/// holds it.
pub fn prepare(folder: &Path, nocow: bool) -> Result<Hold, QuickError> {
    let problem = |source| QuickError::file(folder, source);
    let found = state(folder)?;
    let is_new = found == FolderState::Absent;
    let files = match found {
        FolderState::Foreign => return Err(QuickError::NotOurs(folder.to_owned())),
        FolderState::Absent => {
            fs::create_dir(folder).map_err(problem)?;
            Vec::new()
        }
        FolderState::Ours { files, .. } => files,
    };
    if nocow && !cow::is_nocow(folder) {
        if files.iter().any(|(name, _)| is_test_file(name)) {
            return Err(copied(folder));
        }
        cow::set_nocow(folder).map_err(|source| {
            if is_new {
                let _ = fs::remove_dir(folder);
            }
            problem(source)
        })?;
    }
    let tag = folder.join(TAG);
    if !is_tagged(folder) {
        fs::write(&tag, format!("{SIGNATURE}\n"))
            .map_err(|source| QuickError::file(&tag, source))?;
    }
    hold(folder)
}

/// Removes the folder; `false` when there was none. Nothing but files of the series'
/// names is deleted, and nothing through a mount or a link.
///
/// # Errors
/// When it does not carry the tag, holds or is what is not ours, a run holds it, or it
/// cannot be removed.
pub fn clean(folder: &Path) -> Result<bool, QuickError> {
    match state(folder)? {
        FolderState::Absent => Ok(false),
        FolderState::Ours { .. } if is_tagged(folder) => {
            let _hold = hold(folder)?;
            let files = ours(folder)?;
            for path in files.iter().map(|name| folder.join(name)) {
                fs::remove_file(&path).map_err(|source| QuickError::file(&path, source))?;
            }
            fs::remove_dir(folder).map_err(|source| QuickError::file(folder, source))?;
            Ok(true)
        }
        _ => Err(QuickError::NotOurs(folder.to_owned())),
    }
}

/// The names in the folder, the tag last: as long as it stands the rest can be removed
/// another time.
fn ours(folder: &Path) -> Result<Vec<OsString>, QuickError> {
    let problem = |source| QuickError::file(folder, source);
    let real = fs::canonicalize(folder).map_err(problem)?;
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    if let Some(mount) = mounts::parse(&mounts)
        .iter()
        .find(|mount| mount.point.starts_with(&real))
    {
        return Err(strange(folder, &mount.point, "is a mount point"));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let name = entry.file_name();
        let is_file = entry.file_type().map_err(problem)?.is_file();
        if !is_file
            || !name
                .to_str()
                .is_some_and(|name| name == TAG || is_test_file(name))
        {
            return Err(strange(folder, &entry.path(), "is no file of this series"));
        }
        names.push(name);
    }
    names.sort_by_key(|name| name == TAG);
    Ok(names)
}

/// Whether a name is one that the series gives its files: `1file.0`, `16files.3`.
pub(super) fn is_test_file(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name.split_once('.').is_some_and(|(set, file)| {
        let files = set
            .strip_suffix("files")
            .or_else(|| set.strip_suffix("file"));
        files.is_some_and(is_number) && is_number(file)
    })
}

/// The refusal of a folder with something in it that is not ours.
pub(super) fn strange(folder: &Path, what: &Path, is: &str) -> QuickError {
    let name = what.display().to_string();
    QuickError::Refused(format!(
        "{} {is}; nothing was removed\n  to do: move it away, or remove {} yourself",
        text::line(&name),
        folder.display()
    ))
}

/// A file with data stays what it was made as.
pub(super) fn copied(folder: &Path) -> QuickError {
    let folder = folder.display();
    QuickError::Refused(format!(
        "{folder} holds test files that are copied on write, and --nocow is for new files\n  \
         to do: remove them with the word cleanup, or leave out --nocow"
    ))
}

fn is_tagged(folder: &Path) -> bool {
    let tag = folder.join(TAG);
    if !tag.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut start = Vec::new();
    let read =
        File::open(&tag).and_then(|file| file.take(SIGNATURE.len() as u64).read_to_end(&mut start));
    read.is_ok() && start == SIGNATURE.as_bytes()
}

/// Takes the lock on the tag. Two runs in one folder would measure each other.
fn hold(folder: &Path) -> Result<Hold, QuickError> {
    let tag = folder.join(TAG);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&tag)
        .map_err(|source| QuickError::file(&tag, source))?;
    match file.try_lock() {
        Ok(()) => Ok(Hold::of_locked(file)),
        Err(TryLockError::WouldBlock) => Err(QuickError::Refused(format!(
            "another run uses {}; wait for its end",
            folder.display()
        ))),
        // Some network file systems have no locks: then nobody can hold one.
        Err(TryLockError::Error(_)) => Ok(Hold::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_held_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("stb-testdir");
        assert_eq!(state(&folder).unwrap(), FolderState::Absent);
        assert!(!clean(&folder).unwrap());
        let hold = prepare(&folder, false).unwrap();
        let tag = fs::read_to_string(folder.join(TAG)).unwrap();
        assert_eq!(tag, format!("{SIGNATURE}\n"));
        assert!(
            prepare(&folder, false)
                .unwrap_err()
                .to_string()
                .contains("another run uses")
        );
        assert!(
            clean(&folder)
                .unwrap_err()
                .to_string()
                .contains("another run uses")
        );
        drop(hold);
        fs::write(folder.join("1file.0"), [1; 5000]).unwrap();
        let FolderState::Ours { held_bytes, files } = state(&folder).unwrap() else {
            panic!()
        };
        assert!(held_bytes >= 5000, "{held_bytes}");
        assert!(files.contains(&("1file.0".into(), 5000)));
        assert!(clean(&folder).unwrap());
        assert!(!folder.exists());
    }

    #[test]
    fn what_does_not_carry_the_tag_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("stb-testdir");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("thesis.txt"), "years of work").unwrap();
        for tag in [None, Some("Signature: something else")] {
            if let Some(tag) = tag {
                fs::write(folder.join(TAG), tag).unwrap();
            }
            assert_eq!(state(&folder).unwrap(), FolderState::Foreign);
            assert!(
                clean(&folder)
                    .unwrap_err()
                    .to_string()
                    .contains("not removed")
            );
            assert!(prepare(&folder, false).is_err());
        }
        assert!(folder.join("thesis.txt").exists());
        // An empty folder may be used, but is not removed: nobody tagged it.
        let empty = dir.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(clean(&empty).is_err());
    }

    #[test]
    fn nothing_is_removed_from_a_folder_that_holds_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("stb-testdir");
        drop(prepare(&folder, false).unwrap());
        fs::write(folder.join("16files.3"), "x").unwrap();
        let refused = |name: &str| {
            let told = clean(&folder).unwrap_err().to_string();
            assert!(
                told.contains(name) && told.contains("nothing was removed"),
                "{told}"
            );
            assert!(folder.join("16files.3").exists() && folder.join(TAG).exists());
        };
        fs::create_dir(folder.join("4files.0")).unwrap();
        refused("4files.0");
        fs::remove_dir(folder.join("4files.0")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("1file.0")).unwrap();
        refused("1file.0");
        fs::remove_file(folder.join("1file.0")).unwrap();
        for name in ["thesis.txt", "file.0", "1file.", "1file.0x", "xfile.0"] {
            fs::write(folder.join(name), "years of work").unwrap();
            refused(name);
            fs::remove_file(folder.join(name)).unwrap();
        }
        assert!(clean(&folder).unwrap());
    }

    #[test]
    fn a_link_of_the_name_is_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        drop(prepare(&real, false).unwrap());
        let link = dir.path().join("stb-testdir");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(clean(&link).is_err());
        assert!(real.join(TAG).exists());
    }
}
