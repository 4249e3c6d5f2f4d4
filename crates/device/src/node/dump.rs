//! Prints files as [`super`] reads them: what `sh -c 'for f; do …'` does, for
//! images that hold nothing but this program.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::MARK;
use crate::sys::names_in;

/// Writes the files that match each pattern, behind a line that names the
/// pattern. A part of a path is a name, `*`, or `[0-9]*`: names that begin with
/// a digit. What cannot be read (a process that has ended) is left out, as `cat`
/// does it.
///
/// # Errors
/// Those of writing.
pub fn dump(patterns: &[String], out: &mut impl Write) -> io::Result<()> {
    for pattern in patterns {
        writeln!(out, "{MARK}{pattern}")?;
        for path in matching(pattern) {
            if let Ok(bytes) = fs::read(&path) {
                out.write_all(&bytes)?;
            }
        }
    }
    out.flush()
}

fn matching(pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let below = |dir: &PathBuf| -> Vec<PathBuf> {
            let wanted = |name: &String| match part {
                "*" => !name.starts_with('.'),
                _ => name.starts_with(|c: char| c.is_ascii_digit()),
            };
            let names = names_in(dir).into_iter().filter(wanted);
            names.map(|name| dir.join(name)).collect()
        };
        found = match part {
            "*" | "[0-9]*" => found.iter().flat_map(below).collect(),
            name => found.iter().map(|dir| dir.join(Path::new(name))).collect(),
        };
    }
    found
}
