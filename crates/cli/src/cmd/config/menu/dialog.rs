//! What stands over the menu until it is answered: an edited value, a search, a
//! help text, the question about changes that are not saved.

use std::path::PathBuf;

use fathom_campaign::folder;
use fathom_kconfig::{Config, Hit, NodeId, SymbolId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::input::TextInput;
use super::state::{Effect, Menu, SaveTarget};
use crate::cmd::config::entry;

/// What is open over the menu.
#[derive(Debug)]
pub enum Dialog {
    Edit(Edit),
    Help(Help),
    Search(MenuSearch),
    /// Are the changes to be saved?
    Unsaved,
}

/// A line that is edited.
#[derive(Debug)]
pub struct Edit {
    pub purpose: Purpose,
    pub input: TextInput,
    /// Why the line was not taken.
    pub error: Option<String>,
}

/// What a line is edited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Value(SymbolId),
    Load,
    SaveAs,
    SaveShort,
}

/// A text about a node.
#[derive(Debug)]
pub struct Help {
    pub node: NodeId,
    /// The first line in the window.
    pub top: usize,
    /// What it was called from.
    back: Option<Box<Dialog>>,
}

/// A search and what it finds.
#[derive(Debug)]
pub struct MenuSearch {
    pub input: TextInput,
    pub hits: Vec<Hit>,
    pub at: usize,
}

impl Dialog {
    /// The value of a symbol.
    pub fn edit(config: &Config, id: SymbolId) -> Self {
        Self::line(Purpose::Value(id), config.text(id))
    }

    /// A file.
    pub fn path(purpose: Purpose) -> Self {
        let path = match purpose {
            Purpose::SaveShort => "defconfig",
            _ => folder::CONFIG,
        };
        Self::line(purpose, path)
    }

    fn line(purpose: Purpose, text: &str) -> Self {
        Self::Edit(Edit {
            purpose,
            input: TextInput::new(text),
            error: None,
        })
    }

    /// Everything about a node.
    pub fn help(node: NodeId) -> Self {
        Self::Help(Help {
            node,
            top: 0,
            back: None,
        })
    }

    /// The same, and then back to another dialog.
    fn help_from(node: NodeId, back: Self) -> Self {
        Self::Help(Help {
            node,
            top: 0,
            back: Some(Box::new(back)),
        })
    }

    /// A search that has found everything.
    pub fn search(config: &Config) -> Self {
        let mut search = MenuSearch {
            input: TextInput::default(),
            hits: Vec::new(),
            at: 0,
        };
        search.find(config);
        Self::Search(search)
    }
}

impl MenuSearch {
    fn find(&mut self, config: &Config) {
        self.at = 0;
        let words = self.input.text();
        self.hits = config.search(&words);
        if words.trim().is_empty() {
            let tree = config.tree();
            let all = tree.symbols().iter().filter_map(|&symbol| {
                let node = *tree.symbol(symbol).nodes.first()?;
                Some(Hit { symbol, node })
            });
            self.hits = all.collect();
        }
    }

    fn step(&mut self, by: isize) {
        let last = self.hits.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }
}

impl Menu {
    /// A key while a dialog is open.
    pub(super) fn dialog_key(&mut self, key: KeyEvent) -> Option<Effect> {
        match self.dialog.take()? {
            Dialog::Unsaved => self.unsaved_key(key),
            Dialog::Edit(edit) => self.edit_key(edit, key),
            Dialog::Help(help) => {
                self.help_key(help, key);
                None
            }
            Dialog::Search(search) => {
                self.search_key(search, key);
                None
            }
        }
    }

    fn unsaved_key(&mut self, key: KeyEvent) -> Option<Effect> {
        match key.code {
            KeyCode::Char('y' | 'Y' | 's') | KeyCode::Enter => {
                self.dialog = Some(Dialog::Unsaved);
                Some(self.save(SaveTarget::ConfigThenQuit))
            }
            KeyCode::Char('n' | 'N') => Some(Effect::Quit),
            KeyCode::Esc | KeyCode::Char('c' | 'q') => None,
            _ => {
                self.dialog = Some(Dialog::Unsaved);
                None
            }
        }
    }

    fn edit_key(&mut self, mut edit: Edit, key: KeyEvent) -> Option<Effect> {
        match key.code {
            KeyCode::Esc => return None,
            KeyCode::Enter => return self.take_line(edit),
            KeyCode::F(1 | 2) => {
                if let Purpose::Value(id) = edit.purpose
                    && let Some(node) = entry::node_of(&self.config, id)
                {
                    self.dialog = Some(Dialog::help_from(node, Dialog::Edit(edit)));
                    return None;
                }
            }
            _ => {
                if edit.input.key(key) {
                    edit.error = None;
                }
            }
        }
        self.dialog = Some(Dialog::Edit(edit));
        None
    }

    fn take_line(&mut self, mut edit: Edit) -> Option<Effect> {
        let text = edit.input.text();
        let path = PathBuf::from(&text);
        let effect = match edit.purpose {
            Purpose::Value(id) => {
                if let Err(error) = self.set_text(id, &text) {
                    edit.error = Some(error);
                    self.dialog = Some(Dialog::Edit(edit));
                }
                return None;
            }
            _ if text.is_empty() => {
                edit.error = Some("enter a file name".to_owned());
                None
            }
            Purpose::Load => Some(Effect::Load(path)),
            Purpose::SaveAs if path.as_os_str() == folder::CONFIG => {
                Some(self.save(SaveTarget::Config))
            }
            Purpose::SaveAs => Some(Effect::Save {
                path,
                text: self.config.write(""),
                target: SaveTarget::Elsewhere,
            }),
            Purpose::SaveShort => Some(Effect::Save {
                path,
                text: self.config.write_min(""),
                target: SaveTarget::Elsewhere,
            }),
        };
        // It closes when the file has been read or written.
        self.dialog = Some(Dialog::Edit(edit));
        effect
    }

    fn help_key(&mut self, mut help: Help, key: KeyEvent) {
        match key.code {
            KeyCode::Down | KeyCode::Char('j') => help.top += 1,
            KeyCode::Up | KeyCode::Char('k') => help.top = help.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => help.top += 10,
            KeyCode::PageUp => help.top = help.top.saturating_sub(10),
            KeyCode::Home | KeyCode::Char('g') => help.top = 0,
            // Whoever draws stops at the end.
            KeyCode::End | KeyCode::Char('G') => help.top = usize::MAX / 2,
            KeyCode::Esc
            | KeyCode::Enter
            | KeyCode::Left
            | KeyCode::Backspace
            | KeyCode::Char('q' | 'h' | '?')
            | KeyCode::F(1 | 2 | 5) => {
                self.dialog = help.back.map(|back| *back);
                return;
            }
            _ => {}
        }
        self.dialog = Some(Dialog::Help(help));
    }

    fn search_key(&mut self, mut search: MenuSearch, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return,
            KeyCode::Enter => match search.hits.get(search.at).copied() {
                Some(hit) => return self.jump(hit.node),
                None => return self.dialog = Some(Dialog::Search(search)),
            },
            KeyCode::F(1 | 2) => {
                if let Some(hit) = search.hits.get(search.at).copied() {
                    self.dialog = Some(Dialog::help_from(hit.node, Dialog::Search(search)));
                    return;
                }
            }
            KeyCode::Down => search.step(1),
            KeyCode::Up => search.step(-1),
            KeyCode::Char('n') if control => search.step(1),
            KeyCode::Char('p') if control => search.step(-1),
            KeyCode::PageDown => search.step(10),
            KeyCode::PageUp => search.step(-10),
            _ => {
                let before = search.input.text();
                if search.input.key(key) && search.input.text() != before {
                    search.find(&self.config);
                }
            }
        }
        self.dialog = Some(Dialog::Search(search));
    }
}
