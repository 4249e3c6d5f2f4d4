//! Templates: job files with placeholders.

use fathom_jobfile::table::table;

use super::TextPattern;
use crate::error::{Fault, FilePosition};

/// Stands for the options of the test that have no line of their own.
pub(crate) const TEST_OPTIONS: &str = "test.options";
/// Stands for those of the profile.
pub(crate) const PROFILE_OPTIONS: &str = "profile.options";

/// A template.
#[derive(Debug)]
pub(crate) struct Template {
    /// The file's name in its folder.
    pub(crate) name: String,
    pub(crate) place: FilePosition,
    pub(crate) lines: Vec<TemplateLine>,
}

/// A line of a template.
#[derive(Debug)]
pub(crate) enum TemplateLine {
    /// `{{ test.options }}` or `{{ profile.options }}`.
    Block(OptionsOf),
    /// Anything else.
    Text {
        /// The option that the line sets, by fio's own name for it.
        option: Option<String>,
        pattern: TextPattern,
    },
}

/// Whose options stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionsOf {
    Test,
    Profile,
}

impl Template {
    pub(super) fn parse(file: &str, text: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        let place = |line| FilePosition {
            file: file.into(),
            line,
            column: 0,
        };
        let mut lines = Vec::new();
        for (n, text) in text.lines().enumerate() {
            let number = u32::try_from(n + 1).unwrap_or(u32::MAX);
            match line(text, &place(number)) {
                Ok(line) => lines.push(line),
                Err(fault) => faults.push(fault),
            }
        }
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        Some(Self {
            name,
            place: place(0),
            lines,
        })
    }

    /// The line that sets an option.
    pub(crate) fn line_of(&self, option: &str) -> Option<&TextPattern> {
        let canonical = table().canonical(option);
        self.lines.iter().find_map(|line| match line {
            TemplateLine::Text {
                option: Some(own),
                pattern,
            } if own == canonical => Some(pattern),
            _ => None,
        })
    }

    /// Whether it has a place for the other options of a test or profile.
    pub(crate) fn has(&self, block: OptionsOf) -> bool {
        let is_it = |line: &TemplateLine| matches!(line, TemplateLine::Block(own) if *own == block);
        self.lines.iter().any(is_it)
    }
}

fn line(text: &str, place: &FilePosition) -> Result<TemplateLine, Fault> {
    let pattern = TextPattern::new(text, place)?;
    match pattern.only_name() {
        Some(TEST_OPTIONS) => return Ok(TemplateLine::Block(OptionsOf::Test)),
        Some(PROFILE_OPTIONS) => return Ok(TemplateLine::Block(OptionsOf::Profile)),
        _ => {}
    }
    if let Some(name) = pattern
        .names()
        .find(|name| matches!(*name, TEST_OPTIONS | PROFILE_OPTIONS))
    {
        let message = format!("{{{{ {name} }}}} stands for lines: it needs a line of its own");
        return Err(Fault::new(place, message));
    }
    let start = pattern.start().trim_start();
    let is_option = !start.starts_with(['#', ';', '[']);
    let option = start
        .split_once('=')
        .map_or_else(|| start.trim(), |(name, _)| name.trim());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let option = (is_option && !option.is_empty() && option.chars().all(plain))
        .then(|| table().canonical(option).to_owned());
    Ok(TemplateLine::Text { option, pattern })
}
