//! Texts with placeholders: `{{ NAME }}`.

use crate::error::{Fault, FilePosition};

/// A text that waits for the values of its placeholders.
#[derive(Debug, Clone)]
pub(crate) struct TextPattern {
    place: FilePosition,
    parts: Vec<PatternPart>,
}

#[derive(Debug, Clone)]
enum PatternPart {
    Text(String),
    Name(String),
}

impl TextPattern {
    /// Reads one line of text.
    pub(crate) fn new(text: &str, place: &FilePosition) -> Result<Self, Fault> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                return Err(Fault::new(place, "{{ without its }}"));
            };
            let name = name.trim();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if name.is_empty() || !name.chars().all(plain) {
                let message = format!("{{{{ {name} }}}} holds no name of a placeholder");
                return Err(Fault::new(place, message));
            }
            if !before.is_empty() {
                parts.push(PatternPart::Text(before.to_owned()));
            }
            parts.push(PatternPart::Name(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(PatternPart::Text(rest.to_owned()));
        }
        Ok(Self {
            place: place.clone(),
            parts,
        })
    }

    /// Where it is written.
    pub(crate) fn place(&self) -> &FilePosition {
        &self.place
    }

    /// The names of its placeholders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PatternPart::Name(name) => Some(name.as_str()),
            PatternPart::Text(_) => None,
        })
    }

    /// The placeholder that the whole text is, blanks around it aside.
    pub(crate) fn only_name(&self) -> Option<&str> {
        let mut names = self.names();
        let name = names.next()?;
        let blank = |part: &PatternPart| match part {
            PatternPart::Text(text) => text.trim().is_empty(),
            PatternPart::Name(_) => true,
        };
        (names.next().is_none() && self.parts.iter().all(blank)).then_some(name)
    }

    /// The text before the first placeholder.
    pub(crate) fn start(&self) -> &str {
        match self.parts.first() {
            Some(PatternPart::Text(text)) => text,
            _ => "",
        }
    }

    /// The text with the values that `value` gives; what it says against a
    /// name is told with the place.
    pub(crate) fn fill(
        &self,
        value: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<String, Fault> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                PatternPart::Text(own) => text.push_str(own),
                PatternPart::Name(name) => {
                    text += &value(name).map_err(|message| Fault::new(&self.place, message))?;
                }
            }
        }
        Ok(text)
    }
}
