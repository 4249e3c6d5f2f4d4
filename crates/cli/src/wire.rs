//! The far side of a run over ssh: stdout carries [`Wire`] lines.

use std::fs;
use std::path::Path;

use fathom_fleet::ssh::carry::Wire;

use crate::out;

/// Writes a line.
pub fn send(wire: &Wire) {
    // Strings and numbers: there is nothing that JSON cannot hold.
    if let Ok(line) = serde_json::to_string(wire) {
        out::line(line);
    }
}

/// Gives the files of a record beside its events to `send`: job files and raw
/// outputs, which lie in a folder for each test.
pub fn send_files(dir: &Path, send: &dyn Fn(&Wire)) -> anyhow::Result<()> {
    let mut folders = vec![dir.join("jobs"), dir.join("raw")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            let name = path.strip_prefix(dir)?.to_string_lossy().into_owned();
            send(&Wire::File { path: name, text });
        }
    }
    Ok(())
}
