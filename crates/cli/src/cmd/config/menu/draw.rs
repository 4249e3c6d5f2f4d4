//! The menu on a terminal.

use fathom_kconfig::{Item, MenuRow, NodeId};
use fathom_sheet::style::{Tone, cut, width, wrap};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::dialog::{Dialog, Edit, Help, MenuSearch, Purpose};
use super::input::TextInput;
use super::state::Menu;
use crate::cmd::config::{change, entry, explain};

/// From this height on the help of the row is shown at the bottom.
const HEIGHT_WITH_HELP: u16 = 18;
/// Lines of that help.
const HELP_LINES: u16 = 5;
/// Below this height there is no room for lines between the parts.
const HEIGHT_WITH_LINES: u16 = 9;

/// How things look. Only colours that themes map to something readable on light
/// and on dark ground, and what matters is never told by colour alone.
#[derive(Debug, Clone, Copy)]
pub struct MenuStyle {
    /// Whether colours are wanted.
    pub color: bool,
}

impl MenuStyle {
    fn color(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Good => self.color(Color::Green),
            Tone::Doubtful => self.color(Color::Magenta),
            Tone::Bad => self.color(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}

/// The parts of the screen, from the top down.
struct MenuAreas {
    title: Rect,
    upper: Option<Rect>,
    body: Rect,
    lower: Option<Rect>,
    help: Option<Rect>,
    foot: Rect,
}

fn parts(area: Rect, help: bool) -> MenuAreas {
    let row = |y: u16, height: u16| Rect {
        y: area.y + y,
        height,
        ..area
    };
    let lines = u16::from(area.height >= HEIGHT_WITH_LINES);
    let help = match help && area.height >= HEIGHT_WITH_HELP {
        true => HELP_LINES + 1,
        false => 0,
    };
    let top = 1 + lines;
    let bottom = 1 + lines + help;
    let body = area.height.saturating_sub(top + bottom);
    let line = |y| (lines > 0).then(|| row(y, 1));
    MenuAreas {
        title: row(0, 1),
        upper: line(1),
        body: row(top, body),
        lower: line(top + body),
        help: (help > 0).then(|| row(top + body + 1, HELP_LINES)),
        foot: row(area.height.saturating_sub(1), 1),
    }
}

/// Draws everything.
pub fn draw(frame: &mut Frame, menu: &mut Menu, look: MenuStyle) {
    let area = frame.area();
    if area.height < 4 || area.width < 20 {
        frame.render_widget("too small", area);
        return;
    }
    let mut canvas = Canvas { frame, look, area };
    // The help scrolls and knows only here where it ends.
    let mut dialog = menu.dialog.take();
    match &mut dialog {
        Some(Dialog::Help(help)) => canvas.help(menu, help),
        Some(Dialog::Search(search)) => canvas.search(menu, search),
        Some(Dialog::Edit(edit)) => {
            canvas.menu(menu);
            canvas.edit(menu, edit);
        }
        Some(Dialog::Unsaved) => {
            canvas.menu(menu);
            canvas.unsaved(menu);
        }
        None => canvas.menu(menu),
    }
    menu.dialog = dialog;
}

struct Canvas<'f, 'b> {
    frame: &'f mut Frame<'b>,
    look: MenuStyle,
    area: Rect,
}

impl Canvas<'_, '_> {
    fn put<'t>(&mut self, line: impl Into<Line<'t>>, area: Rect) {
        self.frame.render_widget(line.into(), area);
    }

    /// A line across, with a word at its right end.
    fn rule(&mut self, area: Option<Rect>, word: &str) {
        let Some(area) = area else { return };
        let columns = usize::from(area.width);
        let word = match word {
            "" => String::new(),
            word => format!(" {word} ──"),
        };
        let rule = "─".repeat(columns.saturating_sub(width(&word)));
        let style = self.look.tone(Tone::Faint);
        self.put(Span::styled(format!("{rule}{word}"), style), area);
    }

    fn title(&mut self, area: Rect, title: &str, mark: &str) {
        let room = usize::from(area.width).saturating_sub(width(mark) + 3);
        let strong = self.look.tone(Tone::Strong);
        // The last part says where one is: the first ones go.
        let mut title = title;
        while width(title) > room
            && let Some((_, rest)) = title.split_once(" › ")
        {
            title = rest;
        }
        self.put(Span::styled(format!(" {}", cut(title, room)), strong), area);
        let mark_area = Rect {
            x: area.x
                + area
                    .width
                    .saturating_sub(u16::try_from(width(mark) + 1).unwrap_or(0)),
            width: u16::try_from(width(mark)).unwrap_or(0).min(area.width),
            ..area
        };
        self.put(
            Span::styled(mark.to_owned(), self.look.tone(Tone::Doubtful)),
            mark_area,
        );
    }

    /// What the last key did, else the keys that there are: as many as fit.
    fn foot(&mut self, area: Rect, note: Option<&(Tone, String)>, keys: &[(&str, &str)]) {
        let columns = usize::from(area.width);
        if let Some((tone, note)) = note {
            return self.note(area, *tone, note);
        }
        let mut spans = Vec::new();
        let mut used = 0;
        for (key, what) in keys {
            let more = width(key) + width(what) + 3;
            if used + more > columns + 1 {
                break;
            }
            used += more;
            spans.push(Span::styled(
                format!(" {key}"),
                self.look.tone(Tone::Strong),
            ));
            spans.push(Span::styled(
                format!(" {what} "),
                self.look.tone(Tone::Faint),
            ));
        }
        self.put(Line::from(spans), area);
    }

    /// What the last key did; a long text covers what stands above.
    fn note(&mut self, foot: Rect, tone: Tone, note: &str) {
        let lines = wrap(note, usize::from(foot.width).saturating_sub(2));
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(foot.y);
        let area = Rect {
            y: foot.y + 1 - height.min(foot.y + 1),
            height,
            ..foot
        };
        let style = self.look.tone(tone);
        let lines: Vec<Line> = lines
            .iter()
            .map(|line| Line::styled(format!(" {line}"), style))
            .collect();
        self.frame.render_widget(Clear, area);
        self.frame.render_widget(Paragraph::new(lines), area);
    }

    fn menu(&mut self, menu: &mut Menu) {
        let parts = parts(self.area, menu.help);
        menu.fit(usize::from(parts.body.height));
        let rows = menu.rows();
        let (at, top) = menu.place();
        let tree = std::sync::Arc::clone(menu.config.tree());
        let titles: Vec<String> = menu
            .open_menus()
            .filter_map(|node| match tree.node(node).item {
                _ if node == tree.root() => Some(tree.title().to_owned()),
                _ => entry::prompt(&menu.config, node),
            })
            .collect();
        let mark = match (menu.has_file(), menu.is_changed()) {
            (_, false) => "",
            (true, true) => "not saved",
            (false, true) => "no .config yet",
        };
        self.title(parts.title, &titles.join(" › "), mark);
        let body = usize::from(parts.body.height);
        let below = rows.len().saturating_sub(top + body);
        self.rule(parts.upper, &more("↑", top));
        self.rule(parts.lower, &more("↓", below));
        for (n, row) in rows.iter().skip(top).take(body).enumerate() {
            let area = Rect {
                y: parts.body.y + u16::try_from(n).unwrap_or(u16::MAX),
                height: 1,
                ..parts.body
            };
            let line = self.row(menu, row, top + n == at);
            self.put(line, area);
        }
        if rows.is_empty() {
            let none = "nothing here can be set now; a shows everything";
            self.put(
                Span::styled(format!("   {none}"), self.look.tone(Tone::Faint)),
                parts.body,
            );
        }
        if let (Some(area), Some(row)) = (parts.help, rows.get(at)) {
            self.short_help(menu, row.node, area);
        }
        let keys = [
            ("Enter", "open"),
            ("Esc", "back"),
            ("/", "find"),
            ("?", "help"),
            ("s", "save"),
            ("q", "end"),
            ("Space", "change"),
            ("o", "load"),
            ("a", if menu.hidden { "hide" } else { "show all" }),
            ("c", "names"),
            ("r", "default"),
            ("S", "save as"),
            ("d", "save short"),
            ("f", "help below"),
        ];
        self.foot(parts.foot, menu.note.as_ref(), &keys);
    }

    /// One row: mark, prompt, value, and whether it can be entered.
    fn row(&self, menu: &Menu, row: &MenuRow, is_current: bool) -> Line<'static> {
        let config = &menu.config;
        let item = config.tree().node(row.node).item;
        let strong = self.look.tone(Tone::Strong);
        // What is a switch has its value in front, everything else behind.
        let is_mark = width(&row.value) == 3
            && match item {
                Item::Symbol(id) => config.tree().symbol(id).kind.is_logical(),
                Item::Choice(_) => !row.value.starts_with('('),
                _ => false,
            };
        let (mark, value) = match is_mark {
            true => (row.value.clone(), String::new()),
            false => ("   ".to_owned(), row.value.clone()),
        };
        let columns = usize::from(self.area.width);
        let mut spans = vec![
            Span::raw(format!("  {}", "  ".repeat(row.indent))),
            Span::styled(mark, strong),
            Span::raw(" "),
        ];
        if let (true, Item::Symbol(id)) = (menu.names, item) {
            let name = format!("{} ", config.tree().symbol(id).name);
            spans.push(Span::styled(name, self.look.tone(Tone::Faint)));
        }
        let arrow = if row.enters { "  --->" } else { "" };
        let new = if menu.is_new(row.node) { "  (NEW)" } else { "" };
        let room = |spans: &[Span]| {
            let used: usize = spans.iter().map(|span| width(&span.content)).sum();
            columns.saturating_sub(used + width(arrow) + width(new))
        };
        let text = match item {
            Item::Comment => format!("*** {} ***", row.text),
            _ => row.text.clone(),
        };
        spans.push(Span::raw(cut(&text, room(&spans))));
        let room = room(&spans).saturating_sub(3);
        if !value.is_empty() {
            spans.push(Span::styled(format!("  {}", cut(&value, room)), strong));
        }
        spans.push(Span::raw(arrow));
        spans.push(Span::styled(new, self.look.tone(Tone::Doubtful)));
        let used: usize = spans.iter().map(|span| width(&span.content)).sum();
        let mut style = Style::new();
        if !row.visible {
            style = style.add_modifier(Modifier::DIM);
        }
        if is_current {
            style = style.add_modifier(Modifier::REVERSED);
            spans.push(Span::raw(" ".repeat(columns.saturating_sub(used))));
        }
        Line::from(spans).style(style)
    }

    /// What a row is, in a few lines.
    fn short_help(&mut self, menu: &Menu, node: NodeId, area: Rect) {
        let config = &menu.config;
        let columns = usize::from(area.width).saturating_sub(2);
        let mut lines = Vec::new();
        if let Item::Symbol(id) = config.tree().node(node).item {
            let symbol = config.tree().symbol(id);
            let value = change::quoted(symbol.kind, config.text(id));
            lines.push(Line::styled(
                format!(" {}", cut(&format!("{}={value}", symbol.name), columns)),
                self.look.tone(Tone::Strong),
            ));
        }
        let help = config.tree().node(node).help.clone().unwrap_or_default();
        let first = help.split("\n\n").next().unwrap_or_default();
        let room = usize::from(area.height) - lines.len();
        let wrapped = wrap(first, columns);
        let rest = wrapped.len() > room || help.contains("\n\n");
        for (n, text) in wrapped.iter().take(room).enumerate() {
            let is_last = n + 1 == wrapped.len().min(room);
            let text = match is_last && rest {
                true => cut(&format!("{text} …"), columns),
                false => text.clone(),
            };
            lines.push(Line::raw(format!(" {text}")));
        }
        self.frame.render_widget(Paragraph::new(lines), area);
        let below = Rect {
            y: area.y + area.height,
            height: 1,
            ..area
        };
        self.rule(Some(below), "");
    }

    fn help(&mut self, menu: &Menu, help: &mut Help) {
        let parts = parts(self.area, false);
        let columns = usize::from(self.area.width).saturating_sub(2);
        let lines = explain::lines(&menu.config, help.node, columns);
        let body = usize::from(parts.body.height);
        help.top = help.top.min(lines.len().saturating_sub(body));
        let shown = lines.iter().skip(help.top).take(body);
        let shown: Vec<Line> = shown.map(|line| Line::raw(format!(" {line}"))).collect();
        self.title(parts.title, "Help", "");
        self.rule(parts.upper, &more("↑", help.top));
        self.rule(
            parts.lower,
            &more("↓", lines.len().saturating_sub(help.top + body)),
        );
        self.frame.render_widget(Paragraph::new(shown), parts.body);
        self.foot(parts.foot, None, &[("Esc", "back"), ("↑ ↓", "scroll")]);
    }

    fn search(&mut self, menu: &Menu, search: &MenuSearch) {
        let parts = parts(self.area, menu.help);
        let config = &menu.config;
        let label = " Search: ";
        self.put(
            Span::styled(label, self.look.tone(Tone::Strong)),
            parts.title,
        );
        self.input(&search.input, label, parts.title);
        self.rule(parts.upper, &format!("{} found", search.hits.len()));
        let body = usize::from(parts.body.height).max(1);
        let top = (search.at + 1).saturating_sub(body);
        let below = search.hits.len().saturating_sub(top + body);
        self.rule(parts.lower, &more("↓", below));
        let columns = usize::from(self.area.width);
        let name = |n: usize| &*config.tree().symbol(search.hits[n].symbol).name;
        let shown = top..search.hits.len().min(top + body);
        let names = shown.clone().map(|n| width(name(n))).max().unwrap_or(0);
        for (line, n) in shown.enumerate() {
            let hit = search.hits[n];
            let menus = entry::menus(config, hit.node).join(" › ");
            let text = match &*entry::about(config, hit.symbol) {
                "" => format!("  {:names$}  ({menus})", name(n)),
                about => format!("  {:names$}  {about}  ({menus})", name(n)),
            };
            let mut style = match config.is_visible(hit.node) {
                true => Style::new(),
                false => self.look.tone(Tone::Faint),
            };
            if n == search.at {
                style = style.add_modifier(Modifier::REVERSED);
            }
            let area = Rect {
                y: parts.body.y + u16::try_from(line).unwrap_or(u16::MAX),
                height: 1,
                ..parts.body
            };
            let text = cut(&text, columns.saturating_sub(1));
            self.put(Span::styled(format!("{text:columns$}"), style), area);
        }
        if let (Some(area), Some(hit)) = (parts.help, search.hits.get(search.at)) {
            self.short_help(menu, hit.node, area);
        }
        let keys = [
            ("Enter", "go there"),
            ("↑ ↓", "choose"),
            ("F1", "help"),
            ("Esc", "back"),
        ];
        self.foot(parts.foot, None, &keys);
    }

    /// A line that is edited, behind its label; the terminal's cursor in it.
    fn input(&mut self, input: &TextInput, label: &str, area: Rect) {
        let start = u16::try_from(width(label)).unwrap_or(0).min(area.width);
        let room = usize::from(area.width - start).saturating_sub(2);
        let (mut before, behind) = input.parts();
        // The place of writing stays in sight.
        while width(&before) > room && !before.is_empty() {
            before.remove(0);
        }
        let column = start + u16::try_from(width(&before)).unwrap_or(0);
        let text = cut(&format!("{before}{behind}"), room + 1);
        let area = Rect {
            x: area.x + start,
            width: area.width - start,
            ..area
        };
        self.put(Span::raw(text), area);
        self.frame
            .set_cursor_position(Position::new(area.x + column - start, area.y));
    }

    /// A box in the middle, cleared; gives what is inside it.
    fn dialog(&mut self, title: &str, height: u16) -> Rect {
        let width = self.area.width.saturating_sub(4).min(72);
        let height = (height + 2).min(self.area.height);
        let area = Rect {
            x: self.area.x + (self.area.width - width) / 2,
            y: self.area.y + (self.area.height - height) / 2,
            width,
            height,
        };
        let room = usize::from(width).saturating_sub(4);
        let title = format!(" {} ", cut(title, room.saturating_sub(2)));
        let block = Block::bordered().title(Span::styled(title, self.look.tone(Tone::Strong)));
        let inner = block.inner(area);
        self.frame.render_widget(Clear, area);
        self.frame.render_widget(block, area);
        Rect {
            x: inner.x + 1,
            width: inner.width.saturating_sub(2),
            ..inner
        }
    }

    fn edit(&mut self, menu: &Menu, edit: &Edit) {
        let config = &menu.config;
        let (title, about) = match edit.purpose {
            Purpose::Value(id) => {
                let symbol = config.tree().symbol(id);
                let node = entry::node_of(config, id);
                let prompt = node.and_then(|node| entry::prompt(config, node));
                let range = config
                    .range(id)
                    .map(|(low, high)| format!(" from {}", explain::range(symbol.kind, low, high)));
                let kind = match symbol.kind {
                    fathom_kconfig::SymbolKind::Int => "a number",
                    fathom_kconfig::SymbolKind::Hex => "a hexadecimal number",
                    _ => "text",
                };
                let about = format!("{}: {kind}{}", symbol.name, range.unwrap_or_default());
                (prompt.unwrap_or_else(|| symbol.name.clone()), about)
            }
            Purpose::Load if menu.is_changed() && menu.has_file() => (
                "Load".to_owned(),
                "the file; changes that are not saved are lost".to_owned(),
            ),
            Purpose::Load => ("Load".to_owned(), "the file".to_owned()),
            Purpose::SaveAs => ("Save as".to_owned(), "the file".to_owned()),
            Purpose::SaveShort => {
                let about = "the file for what differs from the defaults";
                ("Save short".to_owned(), about.to_owned())
            }
        };
        let columns = usize::from(self.area.width.saturating_sub(8).min(68));
        let error = wrap(edit.error.as_deref().unwrap_or_default(), columns);
        let errors = u16::try_from(error.len()).unwrap_or(u16::MAX).clamp(1, 4);
        let inner = self.dialog(&title, 4 + errors);
        let line = |n: u16| Rect {
            y: inner.y + n.min(inner.height.saturating_sub(1)),
            height: 1,
            ..inner
        };
        self.put(
            Span::styled(cut(&about, columns), self.look.tone(Tone::Faint)),
            line(0),
        );
        self.input(&edit.input, "> ", line(2));
        self.put(Span::styled("> ", self.look.tone(Tone::Strong)), line(2));
        if error.is_empty() {
            let keys = "Enter takes it, Esc leaves it as it was";
            self.put(Span::styled(keys, self.look.tone(Tone::Faint)), line(4));
        }
        for (n, text) in (4u16..).zip(error.iter().take(usize::from(errors))) {
            self.put(
                Span::styled(text.clone(), self.look.tone(Tone::Bad)),
                line(n),
            );
        }
    }

    fn unsaved(&mut self, menu: &Menu) {
        let title = if menu.has_file() {
            "Changes are not saved"
        } else {
            "There is no .config yet"
        };
        let inner = self.dialog(title, 3);
        let keys = [
            ("y", "write .config"),
            ("n", "leave without"),
            ("Esc", "back"),
        ];
        for (n, (key, what)) in (0u16..).zip(keys) {
            let line = Line::from(vec![
                Span::styled(format!("{key:>4}  "), self.look.tone(Tone::Strong)),
                Span::raw(what),
            ]);
            let area = Rect {
                y: inner.y + n.min(inner.height.saturating_sub(1)),
                height: 1,
                ..inner
            };
            self.put(line, area);
        }
    }
}

/// What lies outside the window.
fn more(arrow: &str, rows: usize) -> String {
    match rows {
        0 => String::new(),
        rows => format!("{arrow} {rows} more"),
    }
}
