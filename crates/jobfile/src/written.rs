//! Lines as written, and the reports about them.

use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use fathom_model::{JobOption, Origin};

use super::diagnostic::{Diagnostic, Severity};
use fathom_model::value::ValueFault;

/// A line of a file, or an argument of a command line.
#[derive(Debug)]
pub struct SourceLine {
    pub path: Rc<PathBuf>,
    /// Counted from 1.
    pub number: u32,
    pub text: String,
    /// Place in the order of reading, over all included files.
    pub order: usize,
    pub on_command_line: bool,
}

impl SourceLine {
    /// The column of a byte, in characters, counted from 1.
    pub fn column(&self, at: usize) -> u32 {
        let before = self.text.get(..at).unwrap_or(&self.text);
        u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX)
    }

    pub fn origin(&self, at: usize) -> Origin {
        if self.on_command_line {
            Origin::CommandLine {
                argument: self.number,
            }
        } else {
            Origin::File {
                path: self.path.as_ref().clone(),
                line: self.number,
                column: self.column(at),
            }
        }
    }
}

/// An option with the place it was written at.
#[derive(Debug, Clone)]
pub struct WrittenOption {
    pub option: JobOption,
    pub line: Rc<SourceLine>,
    /// Bytes of the name in the line.
    pub name: Range<usize>,
    /// Bytes of the value in the line.
    pub value: Range<usize>,
    /// Whether the value stands in the line as it is used (nothing expanded).
    pub verbatim: bool,
}

impl WrittenOption {
    /// Where a part of the value stands; the whole value when it was expanded.
    pub fn part(&self, fault: &ValueFault) -> Range<usize> {
        if self.value.is_empty() {
            return self.name.clone();
        }
        if !self.verbatim {
            return self.value.clone();
        }
        let start = (self.value.start + fault.at).min(self.value.end);
        let end = if fault.len == 0 {
            self.value.end
        } else {
            (start + fault.len).min(self.value.end)
        };
        start..end
    }
}

/// Collects what is found; more than anyone reads is counted, not kept.
#[derive(Debug, Default)]
pub struct FindingList {
    found: Vec<(usize, Diagnostic)>,
    left_out: usize,
}

impl FindingList {
    const MOST: usize = 500;

    /// Whether further reports would only be counted.
    pub fn is_full(&self) -> bool {
        self.found.len() >= Self::MOST
    }

    pub fn add(
        &mut self,
        severity: Severity,
        line: &SourceLine,
        at: Range<usize>,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        let width = line
            .text
            .get(at.clone())
            .map_or(1, |part| part.chars().count());
        let diagnostic = Diagnostic {
            severity,
            path: line.path.as_ref().clone(),
            line: line.number,
            column: line.column(at.start),
            message: message.into(),
            suggestion,
            text: line.text.clone(),
            width: u32::try_from(width.max(1)).unwrap_or(u32::MAX),
        };
        self.found.push((line.order, diagnostic));
    }

    pub fn error(&mut self, line: &SourceLine, at: Range<usize>, message: impl Into<String>) {
        self.add(Severity::Error, line, at, message, None);
    }

    pub fn warning(&mut self, line: &SourceLine, at: Range<usize>, message: impl Into<String>) {
        self.add(Severity::Warning, line, at, message, None);
    }

    /// Everything found, in the order of the lines.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|(order, _)| *order);
        let mut found: Vec<Diagnostic> = self.found.into_iter().map(|(_, it)| it).collect();
        if let (Some(last), 1..) = (found.last(), self.left_out) {
            let message = format!("{} more are not shown", self.left_out);
            found.push(Diagnostic {
                severity: Severity::Error,
                message,
                suggestion: None,
                ..last.clone()
            });
        }
        found
    }
}
