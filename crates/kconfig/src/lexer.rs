//! Lines and their tokens, each with its place.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Position};
use crate::macros::{Assign, ExpansionPlace, Macros, closing};

/// A file that is being read line by line.
pub(crate) struct LineReader {
    file: Arc<str>,
    text: String,
    offset: usize,
    line: u32,
}

/// A line after joining those that end with a backslash.
#[derive(Debug, Clone)]
pub(crate) struct LogicalLine {
    pub(crate) file: Arc<str>,
    pub(crate) text: String,
    /// Where in `text` each line of the file begins, and its number.
    starts: Vec<(usize, u32)>,
}

/// What sort of token it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, number or keyword.
    Word,
    /// A name that a macro took part in: never a keyword.
    Expanded,
    /// Something in quotes.
    Quoted,
    /// `&&`, `(` and the like.
    Operator,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) text: String,
    /// Where it begins in its line, in bytes.
    pub(crate) offset: usize,
}

impl Token {
    pub(crate) fn is_operator(&self, text: &str) -> bool {
        self.kind == TokenKind::Operator && self.text == text
    }

    pub(crate) fn is_keyword(&self, text: &str) -> bool {
        self.kind == TokenKind::Word && self.text == text
    }

    /// As it is named in a message.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            TokenKind::Quoted => format!("\"{}\"", self.text),
            _ => format!("'{}'", self.text),
        }
    }
}

impl LineReader {
    pub(crate) fn new(file: &str, text: String) -> Self {
        // A byte order mark is no part of the text.
        let offset = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            file: file.into(),
            text,
            offset,
            line: 0,
        }
    }

    /// The next line of the file as it stands, without its end.
    fn raw(&mut self) -> Option<&str> {
        if self.offset >= self.text.len() {
            return None;
        }
        let rest = &self.text[self.offset..];
        let line = rest.split('\n').next().unwrap_or_default();
        self.offset += line.len() + 1;
        self.line += 1;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// The next line, joined with those after it while they end with a backslash.
    pub(crate) fn next(&mut self) -> Option<LogicalLine> {
        let mut text = self.raw()?.to_owned();
        let mut starts = vec![(0, self.line)];
        while text.ends_with('\\') {
            text.pop();
            let at = text.len();
            let Some(more) = self.raw() else { break };
            text.push_str(more);
            starts.push((at, self.line));
        }
        Some(LogicalLine {
            file: self.file.clone(),
            text,
            starts,
        })
    }

    /// The help text that begins at the next line: what is indented at least as
    /// much as its first line, blank lines included. `None` when there is none.
    pub(crate) fn help(&mut self) -> Option<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut indent = None;
        loop {
            let (offset, number) = (self.offset, self.line);
            let Some(line) = self.raw() else { break };
            let line = expand_tabs(line.trim_end());
            let own = line.len() - line.trim_start_matches(' ').len();
            if line.is_empty() {
                if indent.is_some() {
                    lines.push(line);
                }
                continue;
            }
            let wanted = *indent.get_or_insert(own);
            if own < wanted || own == 0 {
                (self.offset, self.line) = (offset, number);
                break;
            }
            lines.push(line[wanted..].to_owned());
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Where the reading stands.
    pub(crate) fn position(&self) -> Position {
        Position {
            file: self.file.clone(),
            line: self.line,
            column: 1,
        }
    }
}

/// Tabs lead to the next column that divides by eight.
fn expand_tabs(line: &str) -> String {
    let (mut out, mut column) = (String::with_capacity(line.len()), 0);
    for c in line.chars() {
        if c == '\t' {
            let width = 8 - column % 8;
            out.extend(std::iter::repeat_n(' ', width));
            column += width;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$')
}

/// Where the word that begins `text` ends; `$(…)` belongs to it.
fn word_end(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with("$(") {
            at += 2 + closing(&text[at + 2..])? + 1;
        } else if is_word(c) {
            at += 1;
        } else {
            break;
        }
    }
    Some(at)
}

/// A line `name = value`, with the value as it stands.
pub(crate) struct Assignment<'l> {
    pub(crate) name: &'l str,
    pub(crate) how: Assign,
    pub(crate) value: &'l str,
}

impl LogicalLine {
    /// One line that stands somewhere in another file.
    pub(crate) fn single(text: &str, at: &Position) -> Self {
        // Columns are counted from where the line begins.
        let before = " ".repeat(at.column.saturating_sub(1) as usize);
        Self {
            file: at.file.clone(),
            text: before + &text.replace(['\n', '\r'], " "),
            starts: vec![(0, at.line)],
        }
    }

    pub(crate) fn place(&self) -> ExpansionPlace<'_> {
        ExpansionPlace {
            file: &self.file,
            line: self.starts[0].1,
        }
    }

    /// The place of a byte of this line.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let &(start, line) = self
            .starts
            .iter()
            .rev()
            .find(|&&(start, _)| start <= offset)
            .unwrap_or(&self.starts[0]);
        let before = self.text.get(start..offset).unwrap_or_default();
        let column = u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX);
        Position {
            file: self.file.clone(),
            line,
            column,
        }
    }

    pub(crate) fn is_blank(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty() || text.starts_with('#')
    }

    /// The assignment that this line is, if it is one.
    pub(crate) fn assignment(&self) -> Option<Assignment<'_>> {
        let text = self.text.trim_start();
        let end = word_end(text)?;
        let (name, rest) = text.split_at(end);
        let rest = rest.trim_start();
        let (how, value) = [
            (":=", Assign::Simple),
            ("+=", Assign::Append),
            ("=", Assign::Recursive),
        ]
        .into_iter()
        .find_map(|(sign, how)| Some((how, rest.strip_prefix(sign)?)))?;
        (!name.is_empty()).then(|| Assignment {
            name,
            how,
            value: value.trim_start(),
        })
    }

    fn error(&self, offset: usize, message: impl Into<String>) -> Error {
        Error::syntax(self.position(offset), message)
    }

    fn expand(&self, offset: usize, text: &str, macros: &mut Macros<'_>) -> Result<String, Error> {
        macros
            .expand(text, self.place())
            .map_err(|message| Error::new(ErrorKind::Macro, self.position(offset), message))
    }

    /// The tokens of this line, macros expanded, comment left out.
    pub(crate) fn tokens(&self, macros: &mut Macros<'_>) -> Result<Vec<Token>, Error> {
        let (text, mut at, mut tokens) = (self.text.as_str(), 0, Vec::new());
        while let Some(c) = text[at..].chars().next() {
            let start = at;
            if c.is_whitespace() {
                at += c.len_utf8();
                continue;
            }
            if c == '#' {
                break;
            }
            let (kind, value) = if c == '"' || c == '\'' {
                let (end, value) = self.quoted(start, c, macros)?;
                at = end;
                (TokenKind::Quoted, value)
            } else if is_word(c) {
                let end =
                    word_end(&text[at..]).ok_or_else(|| self.error(start, "$( without its )"))?;
                at += end;
                let raw = &text[start..at];
                if raw.contains('$') {
                    let value = self.expand(start, raw, macros)?;
                    if value.is_empty() {
                        continue;
                    }
                    (TokenKind::Expanded, value)
                } else {
                    (TokenKind::Word, raw.to_owned())
                }
            } else if let Some(operator) =
                ["&&", "||", "!=", "<=", ">=", "=", "<", ">", "!", "(", ")"]
                    .into_iter()
                    .find(|operator| text[at..].starts_with(operator))
            {
                at += operator.len();
                (TokenKind::Operator, operator.to_owned())
            } else {
                let hint = match c {
                    '&' => ": write && for and",
                    '|' => ": write || for or",
                    _ => "",
                };
                return Err(self.error(
                    start,
                    format!("the character {c:?} means nothing here{hint}"),
                ));
            };
            tokens.push(Token {
                kind,
                text: value,
                offset: start,
            });
        }
        Ok(tokens)
    }

    /// A quoted text that begins at `start`: where it ends, and its value. A
    /// backslash takes the next character as it is; `$(…)` is expanded.
    fn quoted(
        &self,
        start: usize,
        quote: char,
        macros: &mut Macros<'_>,
    ) -> Result<(usize, String), Error> {
        let (text, mut value, mut at) = (self.text.as_str(), String::new(), start + 1);
        loop {
            let rest = &text[at..];
            let Some(c) = rest.chars().next() else {
                return Err(self.error(start, format!("the text has no closing {quote}")));
            };
            if c == quote {
                return Ok((at + 1, value));
            }
            if c == '\\' {
                at += 1;
                if let Some(next) = text[at..].chars().next() {
                    value.push(next);
                    at += next.len_utf8();
                }
            } else if let Some(inner) = rest.strip_prefix("$(") {
                let end = closing(inner).ok_or_else(|| self.error(at, "$( without its )"))?;
                let end = at + 2 + end + 1;
                value.push_str(&self.expand(at, &text[at..end], macros)?);
                at = end;
            } else {
                value.push(c);
                at += c.len_utf8();
            }
        }
    }
}
