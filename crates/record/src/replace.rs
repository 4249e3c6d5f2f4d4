//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Puts a file of a record in place, or in the place of one, once `write` has written all of
/// it: whoever reads meanwhile reads the one of before, and a full disk costs
/// nothing. It is not synced; `write` does so where a power cut matters.
///
/// # Errors
/// Those of `write` and of the file system; nothing has changed then.
pub fn replace<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    // Left by a process of this number that was killed, or planted: in neither case is
    // anything written through it.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = File::create_new(&part)?;
    let done = write(&mut file).and_then(|made| {
        fs::rename(&part, path)?;
        Ok(made)
    });
    if done.is_err() {
        // The error itself is what matters.
        let _ = fs::remove_file(&part);
    }
    done
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
