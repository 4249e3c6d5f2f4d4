//! The job files as run: the first of a folder whole, of others the lines that differ.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::markup::PageSection;
use fathom_sheet::html::escape;

/// A longer job file is cut: it stands in the record.
const FILE_BYTES: usize = 64 << 10;
/// Job files together; the others stand in the record.
const FILES_BYTES: usize = 8 << 20;
/// A file that differs in more lines is shown whole.
const DIFFERING: usize = 6;

/// All job files, each closed. Of those that differ from the first of their folder in a
/// few lines, only these are shown.
pub fn section(dir: &Path) -> Option<PageSection> {
    let root = dir.join("jobs");
    let mut body = String::new();
    let mut left_out = 0;
    let mut any_alike = false;
    let mut whole: Option<(PathBuf, String)> = None;
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap_or(&path);
        let name = name.display().to_string();
        // What the user wrote before variables and includes were resolved.
        if name.ends_with(".as-written") {
            continue;
        }
        if body.len() > FILES_BYTES {
            left_out += 1;
            continue;
        }
        let text = read(&path);
        let folder = path.parent().unwrap_or(&root);
        let differing = whole
            .as_ref()
            .filter(|(of, _)| of == folder)
            .and_then(|(_, first)| differences(first, &text));
        let (class, shown) = match &differing {
            Some(lines) => (" class=alike", lines.join("\n")),
            None => ("", text.clone()),
        };
        let _ = writeln!(
            body,
            "<details{class}><summary>{}</summary><pre>{}</pre></details>",
            escape(&name),
            escape(&shown)
        );
        any_alike |= differing.is_some();
        if differing.is_none() {
            whole = Some((folder.to_owned(), text));
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">{left_out} more are in the record.</p>"
        );
    }
    if any_alike {
        body.insert_str(
            0,
            "<p class=\"lead\">Of files alike in a folder the first is whole; below it stand \
             only the lines in which others differ, by their numbers.</p>\n",
        );
    }
    PageSection::new("job-files", "Job files as run", body)
}

fn read(path: &Path) -> String {
    match fs::read(path) {
        Ok(bytes) => {
            let cut = if bytes.len() > FILE_BYTES {
                "\n… (cut)"
            } else {
                ""
            };
            let shown = &bytes[..bytes.len().min(FILE_BYTES)];
            String::from_utf8_lossy(shown).into_owned() + cut
        }
        Err(error) => format!("cannot be read: {error}"),
    }
}

/// The lines of `text` that differ from those of `first`, with their numbers from 1: none
/// where the files are not alike, line by line.
fn differences(first: &str, text: &str) -> Option<Vec<String>> {
    if first.lines().count() != text.lines().count() {
        return None;
    }
    let pairs = (1..).zip(first.lines().zip(text.lines()));
    let found = pairs.filter(|(_, (a, b))| a != b);
    let found: Vec<String> = found.map(|(n, (_, b))| format!("{n}: {b}")).collect();
    (found.len() <= DIFFERING).then_some(found)
}

/// All files below a folder by their names; none when it cannot be read.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}
