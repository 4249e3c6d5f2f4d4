//! Values of the variables that job files name.

use std::collections::BTreeSet;
use std::path::Path;

use super::JobFile;
use super::source::{DiskSources, read_limited};
use super::syntax;

/// Whether a text can be the name of a variable, as shells have it.
pub fn is_variable_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// The variables that a text names outside of comments.
pub fn named(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split("${").skip(1);
    parts.filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

impl JobFile {
    /// Reads a job file as it is to be sent to a machine that replaces variables
    /// and keywords itself: lines stay as written, included files stand in their
    /// place. Gives what it names; `env` is for the checks.
    ///
    /// # Errors
    /// When `path` itself cannot be read.
    pub fn read_unexpanded(
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> std::io::Result<super::CheckedJobFile> {
        let bytes = read_limited(path)?;
        Ok(Self::parse_unexpanded(&bytes, path, env))
    }

    /// As [`JobFile::read_unexpanded`], of a text that came from `path`.
    pub fn parse_unexpanded(
        text: &[u8],
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> super::CheckedJobFile {
        let sources = DiskSources { env, defers: true };
        let mut checked = syntax::parse(text, path, &sources);
        if checked.file.variables().iter().any(|it| env(it).is_none()) {
            // What only another machine knows may be wrong there alone.
            checked.diagnostics.clear();
        }
        checked
    }

    /// The variables that its options name.
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }
}
