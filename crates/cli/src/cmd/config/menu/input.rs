//! One line of text, edited.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A text and the place in it where keys write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextInput {
    chars: Vec<char>,
    at: usize,
}

impl TextInput {
    /// A text to edit, from its end.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self {
            at: chars.len(),
            chars,
        }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// What stands before the place of writing, and what behind it.
    pub fn parts(&self) -> (String, String) {
        let (before, behind) = self.chars.split_at(self.at);
        (before.iter().collect(), behind.iter().collect())
    }

    /// Takes a key, as shells and dialogs take it; says whether it was one of
    /// an editor.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.chars.len(),
            KeyCode::Char('u') if control => drop(self.chars.drain(..std::mem::take(&mut self.at))),
            KeyCode::Char('k') if control => self.chars.truncate(self.at),
            KeyCode::Char('w') if control => self.cut_word(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.chars.insert(self.at, c);
                self.at += 1;
            }
            // Terminals differ in what Backspace sends.
            KeyCode::Backspace | KeyCode::Char('h') if self.at > 0 => {
                self.at -= 1;
                self.chars.remove(self.at);
            }
            KeyCode::Delete if self.at < self.chars.len() => drop(self.chars.remove(self.at)),
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.chars.len()),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.chars.len(),
            KeyCode::Backspace | KeyCode::Delete => {}
            _ => return false,
        }
        true
    }

    fn cut_word(&mut self) {
        let before = &self.chars[..self.at];
        let end = before.iter().rposition(|c| !c.is_whitespace());
        let end = end.map_or(0, |at| at + 1);
        let start = before[..end].iter().rposition(|c| c.is_whitespace());
        let start = start.map_or(0, |at| at + 1);
        self.chars.drain(start..self.at);
        self.at = start;
    }
}
