//! What the engine itself wrote, as it wrote it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_fio_output::raw::ERR;
use fathom_fio_output::stream::select;
use fathom_model::Exit;

use crate::cmd::ExitError;
use crate::format::FioOutputFormat;
use crate::out;

/// Writes what fio wrote in this format, step by step.
pub fn show(dir: &Path, format: FioOutputFormat) -> anyhow::Result<Exit> {
    let mut any = false;
    for file in outputs(&dir.join("raw"))? {
        let kept = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let written = select(&kept, &[format.into()]);
        any |= !written.is_empty();
        out::bytes(&written);
    }
    if any {
        return Ok(Exit::Success);
    }
    let message = format!(
        "{} holds no output of the engine in this format: it wrote none before it was stopped, \
         or the record was made from another",
        dir.display()
    );
    Err(ExitError::new(Exit::Missing, message).into())
}

/// The engine's outputs: those of a run of one step lie in the folder itself,
/// those of several in a folder for each.
fn outputs(raw: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![raw.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.with_context(|| folder.display().to_string())?,
        };
        for entry in entries {
            let entry = entry.with_context(|| folder.display().to_string())?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.file_name() != ERR => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort_by_cached_key(|file| order(file.strip_prefix(raw).unwrap_or(file)));
    Ok(files)
}

/// By number where a name begins with one: `10-x` follows `9-x`.
fn order(path: &Path) -> (u64, PathBuf) {
    let name = path.to_string_lossy();
    let digits = name
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(name.len());
    (name[..digits].parse().unwrap_or(0), path.to_owned())
}
