//! Files that a user names and a command writes: what may never become one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use fathom_device::safety::{Confirmations, WriteJudge};

/// Whether a path is a stream of this process, or something else that is written to and
/// never replaced: /dev/stdout, a pipe, a terminal.
#[must_use]
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
