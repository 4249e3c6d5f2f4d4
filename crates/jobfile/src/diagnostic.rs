//! What is wrong with a job file, and where.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;

use fathom_model::text;
use serde::Serialize;

/// Whether a job can run nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It cannot, or it would not do what was written.
    Error,
    /// It can, and fio says nothing; but it is hardly what was meant: a check
    /// refuses it, a run goes on.
    Mistake,
    /// It can; it may not be what was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Mistake | Self::Warning => "warning",
        })
    }
}

/// One thing that is wrong, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The file; `command line` for options given there.
    pub path: PathBuf,
    /// Line, counted from 1; on a command line the argument's place; 0 when it
    /// is about the file as a whole.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What was probably meant: a name, a value or a whole option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The line itself, to show.
    pub text: String,
    /// How many characters from `column` on are meant.
    pub width: u32,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place(), self.severity, self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean {suggestion}?")?;
        }
        Ok(())
    }
}

impl Diagnostic {
    /// `file:line:column`, or the file alone.
    pub fn place(&self) -> String {
        let path = self.path.display();
        match self.line {
            0 => path.to_string(),
            line => format!("{path}:{line}:{}", self.column),
        }
    }

    /// The line with the meant part marked under it, two lines; long lines are
    /// cut around the mark.
    pub fn excerpt(&self) -> String {
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let column = self.column.saturating_sub(1) as usize;
        let first = column.saturating_sub(BEFORE);
        // It replaces characters one by one, so that the mark stays in place.
        let shown: String = text::line(&self.text)
            .chars()
            .skip(first)
            .take(SHOWN)
            .collect();
        let (cut, more) = (
            if first > 0 { "…" } else { "" },
            if self.text.chars().count() > first + SHOWN {
                "…"
            } else {
                ""
            },
        );
        let indent = column - first + cut.chars().count();
        let room = (shown.chars().count() + cut.chars().count()).saturating_sub(indent);
        let width = (self.width as usize).clamp(1, room.max(1));
        let number = self.line.to_string();
        let mut text = String::new();
        let _ = writeln!(text, "{number:>5} | {cut}{}{more}", shown.trim_end());
        let _ = write!(text, "{:>5} | {:indent$}{}", "", "", "^".repeat(width));
        text
    }
}
