//! The far side of a run over ssh: stdout carries [`Wire`] lines.

use fathom_fleet::hosts::wire::Wire;

use crate::out;

/// Writes a line.
pub fn send(wire: &Wire) {
    // Strings and numbers: there is nothing that JSON cannot hold.
    if let Ok(line) = serde_json::to_string(wire) {
        out::wire(&line);
    }
}
