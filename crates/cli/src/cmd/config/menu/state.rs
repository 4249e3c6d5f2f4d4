//! The menu without a terminal: keys change a state, and the state says which
//! rows there are. Nothing here draws, reads or writes.

use std::path::PathBuf;

use fathom_campaign::folder;
use fathom_kconfig::{Config, Item, MenuRow, NodeId, SymbolId, Tri};
use fathom_sheet::style::Tone;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dialog::{Dialog, Purpose};

/// What the terminal's side is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write a file.
    Save {
        path: PathBuf,
        text: String,
        /// What becomes of it.
        target: SaveTarget,
    },
    /// Read a file and call [`Menu::load`].
    Load(PathBuf),
    /// End.
    Quit,
    /// End as a signal ends it.
    Interrupt,
}

/// What a saved file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveTarget {
    /// `.config`; the old one is kept.
    Config,
    /// The same, and then the end.
    ConfigThenQuit,
    /// Another file.
    Elsewhere,
}

/// A menu that is open.
#[derive(Debug, Clone, Copy)]
struct OpenMenu {
    menu: NodeId,
    /// The row that keys act on.
    at: usize,
    /// The first row in the window.
    top: usize,
}

/// The whole state.
#[derive(Debug)]
pub struct Menu {
    pub config: Config,
    /// The text of `.config` as it was read or written; `None` before there is one.
    saved: Option<String>,
    frames: Vec<OpenMenu>,
    /// Show what cannot be set now.
    pub hidden: bool,
    /// Show names before prompts.
    pub names: bool,
    /// Show the help of the row at the bottom.
    pub help: bool,
    pub dialog: Option<Dialog>,
    /// What the last key did; gone with the next one.
    pub note: Option<(Tone, String)>,
    /// Rows that the window has; set by whoever draws.
    window: usize,
}

impl Menu {
    /// The main menu; `saved` is the text of `.config`, if there is one.
    pub fn new(config: Config, saved: Option<String>) -> Self {
        let root = config.tree().root();
        Self {
            config,
            saved,
            frames: vec![OpenMenu::new(root)],
            hidden: false,
            names: false,
            help: true,
            dialog: None,
            note: None,
            window: 1,
        }
    }

    /// Whether there is something to save.
    pub fn is_changed(&self) -> bool {
        self.saved.as_deref() != Some(&self.config.write(""))
    }

    /// Whether `.config` has been read or written: only then is anything new.
    pub fn has_file(&self) -> bool {
        self.saved.is_some()
    }

    fn frame(&self) -> &OpenMenu {
        self.frames.last().expect("the main menu stays")
    }

    fn frame_mut(&mut self) -> &mut OpenMenu {
        self.frames.last_mut().expect("the main menu stays")
    }

    /// The open menus, from the main menu on.
    pub fn open_menus(&self) -> impl Iterator<Item = NodeId> {
        self.frames.iter().map(|frame| frame.menu)
    }

    /// The rows of the open menu.
    pub fn rows(&self) -> Vec<MenuRow> {
        self.config.rows(self.frame().menu, self.hidden)
    }

    /// Which row keys act on, and which is the first in the window.
    pub fn place(&self) -> (usize, usize) {
        (self.frame().at, self.frame().top)
    }

    /// The row that keys act on.
    pub fn current(&self) -> Option<MenuRow> {
        self.rows().into_iter().nth(self.frame().at)
    }

    /// Whether `.config` does not say yet what a node is to be.
    pub fn is_new(&self, node: NodeId) -> bool {
        let config = &self.config;
        let is_new = |id: SymbolId| config.user_value(id).is_none() && config.can_change(id);
        self.has_file()
            && match config.tree().node(node).item {
                Item::Symbol(id) => is_new(id),
                Item::Choice(id) => config
                    .tree()
                    .choice(id)
                    .members
                    .iter()
                    .any(|&id| is_new(id)),
                _ => false,
            }
    }

    /// Tells how many rows the window has, and scrolls to the current one.
    pub fn fit(&mut self, window: usize) {
        self.window = window.max(1);
        let (rows, window) = (self.rows().len(), self.window);
        let frame = self.frame_mut();
        frame.at = frame.at.min(rows.saturating_sub(1));
        // A row above and below stays in sight, where there is room for it.
        let margin = usize::from(window > 2);
        let first = (frame.at + margin + 1).saturating_sub(window);
        frame.top = frame
            .top
            .clamp(first, frame.at.saturating_sub(margin).max(first));
        frame.top = frame.top.min(rows.saturating_sub(window));
    }

    /// What a key does.
    pub fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.note = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Some(Effect::Interrupt);
        }
        if self.dialog.is_some() {
            return self.dialog_key(key);
        }
        match key.code {
            KeyCode::Char('d') if control => self.step(self.half()),
            KeyCode::Char('u') if control => self.step(-self.half()),
            KeyCode::Char(_) if control => {}
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-self.page()),
            KeyCode::PageDown => self.step(self.page()),
            KeyCode::Home | KeyCode::Char('g') => self.frame_mut().at = 0,
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.enter(),
            KeyCode::Char(' ') => self.turn(),
            KeyCode::Char('y') => self.put(Tri::Y),
            KeyCode::Char('m') => self.put(Tri::M),
            KeyCode::Char('n') => self.put(Tri::N),
            KeyCode::Char('r') => self.reset(),
            KeyCode::Left | KeyCode::Backspace | KeyCode::Char('h') => drop(self.leave()),
            KeyCode::Esc | KeyCode::F(5) => {
                if !self.leave() {
                    return self.quit();
                }
            }
            KeyCode::Char('q') | KeyCode::F(9) => return self.quit(),
            _ => return self.command(key.code),
        }
        None
    }

    /// The keys that do not act on a row.
    fn command(&mut self, code: KeyCode) -> Option<Effect> {
        match code {
            KeyCode::Char('/') | KeyCode::F(8) => self.dialog = Some(Dialog::search(&self.config)),
            KeyCode::Char('?') | KeyCode::F(1 | 2) => {
                let node = self.current().map_or(self.frame().menu, |row| row.node);
                self.dialog = Some(Dialog::help(node));
            }
            KeyCode::Char('s') | KeyCode::F(6) => return Some(self.save(SaveTarget::Config)),
            KeyCode::Char('S') => self.dialog = Some(Dialog::path(Purpose::SaveAs)),
            KeyCode::Char('d') => self.dialog = Some(Dialog::path(Purpose::SaveShort)),
            KeyCode::Char('o') | KeyCode::F(7) => self.dialog = Some(Dialog::path(Purpose::Load)),
            KeyCode::Char('a') | KeyCode::F(4) => self.show_hidden(!self.hidden),
            KeyCode::Char('c') => self.names = !self.names,
            KeyCode::Char('f') => self.help = !self.help,
            _ => {}
        }
        None
    }

    fn page(&self) -> isize {
        isize::try_from(self.window).unwrap_or(isize::MAX)
    }

    fn half(&self) -> isize {
        (self.page() / 2).max(1)
    }

    fn step(&mut self, by: isize) {
        let last = self.rows().len().saturating_sub(1);
        let frame = self.frame_mut();
        frame.at = frame.at.saturating_add_signed(by).min(last);
    }

    /// Changes what there is to see, and stays on the same entry.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let node = self.current().map(|row| row.node);
        let done = change(self);
        if let Some(node) = node {
            self.stand_on(node);
        }
        done
    }

    fn stand_on(&mut self, node: NodeId) -> bool {
        let found = self.rows().iter().position(|row| row.node == node);
        if let Some(at) = found {
            self.frame_mut().at = at;
        }
        found.is_some()
    }

    fn show_hidden(&mut self, hidden: bool) {
        self.change(|menu| menu.hidden = hidden);
        let said = match hidden {
            true => "all entries are shown, also those that cannot be set now",
            false => "entries that cannot be set now are hidden",
        };
        self.note = Some((Tone::Plain, said.to_owned()));
    }

    /// Whether a row is a menu to go into; shown on demand, so is one that is off.
    fn can_enter(&self, row: &MenuRow) -> bool {
        let node = self.config.tree().node(row.node);
        let is_menu = node.is_menuconfig || matches!(node.item, Item::Choice(_));
        row.enters || self.hidden && is_menu && !node.children.is_empty()
    }

    /// Enter: goes into what can be gone into, turns or edits the rest.
    fn enter(&mut self) {
        match self.current() {
            Some(row) if self.can_enter(&row) => self.frames.push(self.opened(row.node)),
            Some(_) => self.turn(),
            None => {}
        }
    }

    /// A menu as it is when it is opened: in a choice on what is picked.
    fn opened(&self, menu: NodeId) -> OpenMenu {
        let mut frame = OpenMenu::new(menu);
        if let Item::Choice(choice) = self.config.tree().node(menu).item {
            let picked = self.config.selection(choice).map(Item::Symbol);
            let rows = self.config.rows(menu, self.hidden);
            let item = |row: &MenuRow| Some(self.config.tree().node(row.node).item);
            let at = rows.iter().position(|row| item(row) == picked);
            frame.at = at.unwrap_or(0);
        }
        frame
    }

    /// Goes one menu up; says whether there was one.
    fn leave(&mut self) -> bool {
        if self.frames.len() == 1 {
            return false;
        }
        let left = self.frames.pop().map(|frame| frame.menu);
        if let Some(node) = left {
            self.stand_on(node);
        }
        true
    }

    fn quit(&mut self) -> Option<Effect> {
        if !self.is_changed() {
            return Some(Effect::Quit);
        }
        self.dialog = Some(Dialog::Unsaved);
        None
    }

    /// The order to write `.config`.
    pub fn save(&self, target: SaveTarget) -> Effect {
        Effect::Save {
            path: folder::CONFIG.into(),
            text: self.config.write(""),
            target,
        }
    }

    /// Space: the next value of a switch, the member of a choice, the dialog of
    /// a value.
    fn turn(&mut self) {
        let Some(row) = self.current() else { return };
        match self.config.tree().node(row.node).item {
            Item::Symbol(id) if self.config.tree().symbol(id).kind.is_logical() => {
                let possible = self.config.assignable(id);
                let now = possible
                    .iter()
                    .position(|&value| value == self.config.tri(id));
                let next = now.map_or(0, |now| now + 1) % possible.len().max(1);
                // With nothing possible the other value is asked for, and refused.
                let other = if self.config.tri(id) == Tri::N {
                    Tri::Y
                } else {
                    Tri::N
                };
                let next = match possible.len() {
                    0 | 1 if now.is_some() && !self.is_member(id) => other,
                    _ => possible.get(next).copied().unwrap_or(other),
                };
                self.set_switch(id, next);
            }
            Item::Symbol(id) => self.edit(id),
            Item::Choice(choice) => {
                let modes = self.config.choice_assignable(choice);
                let now = modes
                    .iter()
                    .position(|&mode| mode == self.config.mode(choice));
                match modes.len() {
                    0 | 1 if self.can_enter(&row) => self.frames.push(self.opened(row.node)),
                    0 | 1 => {}
                    modes_len => {
                        let next = modes[now.map_or(0, |now| now + 1) % modes_len];
                        // One of the modes that it can have.
                        self.change(|menu| drop(menu.config.set_mode(choice, next)));
                    }
                }
            }
            Item::Menu => self.frames.push(self.opened(row.node)),
            Item::Comment | Item::If => {}
        }
    }

    fn is_member(&self, id: SymbolId) -> bool {
        let choice = self.config.tree().symbol(id).choice;
        choice.is_some_and(|choice| self.config.mode(choice) == Tri::Y)
    }

    /// A key that names a value.
    fn put(&mut self, value: Tri) {
        let Some(row) = self.current() else { return };
        match self.config.tree().node(row.node).item {
            Item::Symbol(id) if self.config.tree().symbol(id).kind.is_logical() => {
                self.set_switch(id, value);
            }
            Item::Choice(choice) if self.config.choice_assignable(choice).contains(&value) => {
                // One of the modes that it can have.
                self.change(|menu| drop(menu.config.set_mode(choice, value)));
            }
            _ => {}
        }
    }

    fn set_switch(&mut self, id: SymbolId, value: Tri) {
        if let Some(refusal) = self.config.refusal(id, value.as_str()) {
            self.note = Some((Tone::Bad, refusal.to_string()));
            return;
        }
        let picks = value == Tri::Y && self.is_member(id);
        self.change(|menu| {
            let set = menu.config.set(id, value.as_str());
            debug_assert!(set.is_ok(), "it was not refused");
        });
        // As everywhere: picking a member of a choice is the end of choosing.
        if picks {
            self.leave();
        }
    }

    fn edit(&mut self, id: SymbolId) {
        match self.config.obstacle(id) {
            Some(refusal) => self.note = Some((Tone::Bad, refusal.to_string())),
            None => self.dialog = Some(Dialog::edit(&self.config, id)),
        }
    }

    /// Takes an edited value, or says why not.
    pub fn set_text(&mut self, id: SymbolId, value: &str) -> Result<(), String> {
        if let Some(refusal) = self.config.refusal(id, value) {
            return Err(refusal.to_string());
        }
        let set = self.change(|menu| menu.config.set(id, value).map(drop));
        set.map_err(|error| error.to_string())
    }

    /// Back to the default.
    fn reset(&mut self) {
        let Some(row) = self.current() else { return };
        let tree = std::sync::Arc::clone(self.config.tree());
        match tree.node(row.node).item {
            Item::Symbol(id) => self.change(|menu| menu.config.unset(id)),
            Item::Choice(id) => self.change(|menu| {
                for &member in &tree.choice(id).members {
                    menu.config.unset(member);
                }
            }),
            _ => return,
        }
        self.note = Some((Tone::Plain, "back to the default".to_owned()));
    }

    /// Goes to where a node is shown.
    pub fn jump(&mut self, node: NodeId) {
        self.dialog = None;
        if !self.try_jump(node) {
            self.hidden = true;
            self.try_jump(node);
        }
    }

    fn try_jump(&mut self, node: NodeId) -> bool {
        let tree = std::sync::Arc::clone(self.config.tree());
        let mut frames = vec![OpenMenu::new(tree.root())];
        for menu in self.config.path(node).into_iter().skip(1) {
            let entry = tree.node(menu);
            let is_menu = entry.is_menuconfig || matches!(entry.item, Item::Menu | Item::Choice(_));
            // What is not shown has its entries shown in the menu above.
            if is_menu && (self.hidden || self.config.is_visible(menu)) {
                let above = frames.last_mut().expect("the main menu is there");
                let rows = self.config.rows(above.menu, self.hidden);
                above.at = rows.iter().position(|row| row.node == menu).unwrap_or(0);
                frames.push(OpenMenu::new(menu));
            }
        }
        let before = std::mem::replace(&mut self.frames, frames);
        let found = self.stand_on(node);
        if !found {
            self.frames = before;
        }
        found
    }

    /// Told by the terminal's side: a file was written, or not.
    pub fn saved(
        &mut self,
        path: &str,
        target: SaveTarget,
        text: String,
        written: Result<bool, String>,
    ) {
        self.note = Some(match &written {
            Ok(true) => (Tone::Good, format!("saved to {path}")),
            Ok(false) => (Tone::Plain, format!("{path} is as it was")),
            Err(error) => (Tone::Bad, error.clone()),
        });
        match (written, &mut self.dialog) {
            (Ok(_), _) => {
                self.dialog = None;
                if target != SaveTarget::Elsewhere {
                    self.saved = Some(text);
                }
            }
            // The question stays open, and a path can be corrected.
            (Err(error), Some(Dialog::Edit(edit))) => edit.error = Some(error),
            (Err(_), dialog) => *dialog = None,
        }
    }

    /// Told by the terminal's side: what a file says, or why it cannot be read.
    pub fn load(&mut self, path: &str, text: Result<String, String>) {
        let mut config = self.config.clone();
        let taken = text.and_then(|text| {
            folder::take(&mut config, &text, path).map_err(|error| error.to_string())
        });
        match taken {
            Ok(warnings) => {
                self.change(|menu| menu.config = config);
                self.leave_what_is_gone();
                self.dialog = None;
                self.note = Some(match warnings.first() {
                    None => (Tone::Good, format!("{path} loaded")),
                    Some(first) => (Tone::Doubtful, format!("{path} loaded; {first}")),
                });
            }
            Err(error) => match &mut self.dialog {
                Some(Dialog::Edit(edit)) => edit.error = Some(error),
                _ => self.note = Some((Tone::Bad, error)),
            },
        }
    }

    /// After everything may have changed: closes menus that are not there.
    fn leave_what_is_gone(&mut self) {
        let there = |frame: &OpenMenu| self.hidden || self.config.is_visible(frame.menu);
        let gone = self.frames.iter().skip(1).position(|frame| !there(frame));
        if let Some(gone) = gone {
            self.frames.truncate(gone + 1);
        }
    }
}

impl OpenMenu {
    fn new(menu: NodeId) -> Self {
        Self {
            menu,
            at: 0,
            top: 0,
        }
    }
}
