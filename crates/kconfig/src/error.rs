//! What can be wrong with a tree, and where.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// The file as the loader names it.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What sort of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not the Kconfig language.
    Syntax,
    /// A macro cannot be expanded, or `$(error-if,…)` ended the reading.
    Macro,
    /// A file is missing or cannot be read.
    Source,
    /// A file sources itself.
    SourceLoop,
    /// The value of a symbol depends on itself.
    DependencyLoop,
    /// The tree is larger or nested deeper than this crate reads.
    Limit,
}

/// Why a tree could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Error {
    /// The sort.
    pub kind: ErrorKind,
    /// Where it was noticed.
    pub position: Option<Position>,
    /// What is wrong, in words.
    pub message: String,
    /// The word that may have been meant.
    pub suggestion: Option<String>,
    /// How it came about, step by step: the loop, or the files that source each other.
    pub chain: Vec<String>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, position: Position, message: impl Into<String>) -> Self {
        Self {
            kind,
            position: Some(position),
            message: message.into(),
            suggestion: None,
            chain: Vec::new(),
        }
    }

    pub(crate) fn syntax(position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, position, message)
    }

    /// Suggests the nearest of `known` to what was written.
    pub(crate) fn near(mut self, written: &str, known: &[&str]) -> Self {
        self.suggestion = nearest(written, known.iter().copied()).map(str::to_owned);
        self
    }

    pub(crate) fn with_chain(mut self, chain: Vec<String>) -> Self {
        self.chain = chain;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean {suggestion}?")?;
        }
        for step in &self.chain {
            write!(f, "\n  {step}")?;
        }
        Ok(())
    }
}

/// What sort of doubt it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// Something in the Kconfig files.
    Tree,
    /// A `.config` line that is not one.
    Malformed,
    /// A `.config` names a symbol that the tree does not define.
    Undefined,
    /// A `.config` gives a symbol a value that its type does not have.
    InvalidValue,
    /// A `.config` gives a symbol two values.
    AssignedTwice,
    /// A number outside its range.
    OutOfRange,
    /// A symbol is selected although what it depends on is off.
    UnmetSelect,
    /// A value that was set has no effect: no prompt, or it is not visible.
    NotApplied,
}

/// Something doubtful that does not stop the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The sort.
    pub kind: WarningKind,
    /// Where, if in a file.
    pub position: Option<Position>,
    /// What, in words.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The one of `known` that differs from `written` in the fewest letters, if
/// those are at most a third of it.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are not mistyped words, and the comparison is quadratic.
    if written.is_empty() || written.len() > 64 {
        return None;
    }
    let allowed = written.chars().count().div_ceil(3);
    known
        .filter(|word| word.len() <= 64)
        .map(|word| (strsim::levenshtein(written, word), word))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, word)| word)
}
