//! Files of a record on their way between machines, part by part.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

/// A part of a file that travels in one line. Logs may be larger than memory.
const PART_BYTES: u64 = 1 << 20;

/// Gives the files below `dir` to `take`, part by part: path below it, text, and
/// whether it goes behind the part before. `wanted` is asked of each path.
///
/// # Errors
/// When a file cannot be read.
pub fn read_files(
    dir: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    take: &mut dyn FnMut(String, String, bool),
) -> io::Result<()> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(&folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        paths.sort();
        for path in paths {
            let name = path.strip_prefix(dir).unwrap_or(&path);
            // Links could lead anywhere, pipes nowhere.
            let kind = path.symlink_metadata()?.file_type();
            if !wanted(name) || !(kind.is_dir() || kind.is_file()) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let mut file = BufReader::new(fs::File::open(&path)?);
            let mut more = false;
            loop {
                let mut part = Vec::new();
                file.by_ref().take(PART_BYTES).read_to_end(&mut part)?;
                // To the end of the line: no character is cut.
                file.by_ref()
                    .take(PART_BYTES)
                    .read_until(b'\n', &mut part)?;
                if part.is_empty() && more {
                    break;
                }
                let text = String::from_utf8_lossy(&part).into_owned();
                take(name.to_string_lossy().into_owned(), text, more);
                more = true;
            }
        }
    }
    Ok(())
}

/// Writes a part of a file that came from another machine.
///
/// # Errors
/// When it cannot be written.
pub fn write_part(path: &Path, text: &str, more: bool) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).write(true);
    options.append(more).truncate(!more);
    options.open(path)?.write_all(text.as_bytes())
}

/// A path that came from another machine, if it is of plain names only: it stays
/// below the folder it is meant for.
pub fn plain(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let mut parts = path.components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    (is_plain && path.components().next().is_some()).then(|| path.to_owned())
}
