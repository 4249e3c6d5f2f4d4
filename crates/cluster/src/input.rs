//! What is wrong with a file of parameters.

use std::fmt;

/// A mistake in a file, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file, as messages name it.
    pub file: String,
    /// Counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl InputError {
    pub(super) fn new(file: &str, line: u32, message: String) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message,
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for InputError {}
