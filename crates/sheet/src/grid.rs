//! Aligned columns that give way to the width there is: they continue below, or a line says
//! which of them are not shown.

use std::borrow::Cow;

use fathom_model::text;

use crate::html::escape;
use crate::style::{Style, Tone, cut, width, wrap};

/// Between two columns.
const GAP: usize = 2;
/// The first column keeps at least this much of its text.
const LABEL_MIN: usize = 16;

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    left: bool,
    spare: u8,
}

/// A column of figures, aligned right; the higher `spare`, the sooner it goes
/// when there is no room, and of equal ones the last.
pub const fn figures(title: &'static str, spare: u8) -> Column {
    Column {
        title,
        left: false,
        spare,
    }
}

/// A column of words, aligned left; `spare` as for [`figures`].
pub const fn words(title: &'static str, spare: u8) -> Column {
    Column {
        title,
        left: true,
        spare,
    }
}

/// One field: its text, in one line, and a mark behind it that does not disturb
/// the alignment.
#[derive(Debug, Clone, Default)]
pub struct GridCell {
    text: String,
    tone: Tone,
    mark: String,
    mark_tone: Tone,
}

impl GridCell {
    /// A field in a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            text: text::line(&text.into()).into_owned(),
            tone,
            ..Self::default()
        }
    }

    /// Adds a mark behind the text.
    #[must_use]
    pub fn marked(mut self, tone: Tone, mark: impl Into<String>) -> Self {
        self.mark = text::line(&mark.into()).into_owned();
        self.mark_tone = tone;
        self
    }
}

impl From<String> for GridCell {
    fn from(text: String) -> Self {
        Self::new(Tone::Plain, text)
    }
}

impl From<&str> for GridCell {
    fn from(text: &str) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// A line of a grid.
#[derive(Debug, Clone)]
enum GridLine {
    Cells(Vec<GridCell>),
    Heading(String),
}

/// Columns, their titles and lines.
#[derive(Debug, Clone)]
pub struct Grid {
    columns: Vec<Column>,
    titles: Vec<Cow<'static, str>>,
    lines: Vec<GridLine>,
    /// How many columns tell lines apart, where the others may continue below them.
    keys: usize,
}

/// Widths of one column.
#[derive(Debug, Clone, Copy)]
struct Measure {
    text: usize,
    mark: usize,
}

impl Measure {
    fn whole(self) -> usize {
        self.text + self.mark
    }
}

impl Grid {
    /// An empty grid.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        let columns = columns.into();
        Self {
            titles: columns.iter().map(|it| Cow::Borrowed(it.title)).collect(),
            columns,
            lines: Vec::new(),
            keys: 0,
        }
    }

    /// An empty grid whose columns somebody else has named: titles, and whether figures
    /// stand below.
    pub fn named<'t>(columns: impl IntoIterator<Item = (&'t str, bool)>) -> Self {
        let mut grid = Self::new([]);
        for (title, is_figures) in columns {
            let column = if is_figures {
                figures("", 0)
            } else {
                words("", 0)
            };
            grid.columns.push(column);
            let title = text::line(title).into_owned();
            grid.titles.push(Cow::Owned(title));
        }
        grid
    }

    /// A grid that loses nothing: columns without room stand below the others, behind the
    /// first `keys` columns once more.
    #[must_use]
    pub fn continued(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Adds a line; it has a cell for each column.
    pub fn line(&mut self, cells: impl Into<Vec<GridCell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.lines.push(GridLine::Cells(cells));
    }

    /// Adds a line of text over the whole width.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.lines
            .push(GridLine::Heading(text::line(&text.into()).into_owned()));
    }

    /// The grid as text, a newline after every line. Columns that hold nothing
    /// are left out; those that do not fit go by their order, and are named.
    pub fn render(&self, style: Style) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let measures: Vec<Measure> = (0..self.columns.len()).map(|c| self.measure(c)).collect();
        let all: Vec<usize> = (0..self.columns.len())
            .filter(|&column| column == 0 || measures[column].whole() > 0)
            .collect();
        let shown = self.fitting(&all, &measures, style);
        let mut text = self.block(&shown, &measures, style);
        let mut left: Vec<usize> = all.iter().copied().filter(|c| !shown.contains(c)).collect();
        if self.keys == 0 {
            return text + &self.not_shown(&left, self.needed(&all, &measures), style);
        }
        while !left.is_empty() {
            let wanted: Vec<usize> = (0..self.keys).chain(left.iter().copied()).collect();
            let shown = self.fitting(&wanted, &measures, style);
            left.retain(|column| !shown.contains(column));
            text.push('\n');
            text += &self.block(&shown, &measures, style);
        }
        text
    }

    /// The grid as a table of a page; nothing without lines.
    pub fn html(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let cell = |tag: &str, column: &Column, tone: Tone, text: &str| {
            let class = match (column.left, tone.class()) {
                (true, tone) => tone.to_owned(),
                (false, tone) => format!("n {tone}"),
            };
            format!(
                "<{tag} class=\"{}\">{}</{tag}>",
                class.trim_end(),
                escape(text)
            )
        };
        // As on a terminal, columns that hold nothing are left out.
        let holds = |n: usize| n == 0 || self.measure(n).whole() > 0;
        let shown: Vec<usize> = (0..self.columns.len()).filter(|&n| holds(n)).collect();
        let head = shown.iter().map(|&n| {
            let title = self.titles[n].as_ref();
            let tag = if title.is_empty() { "td" } else { "th" };
            cell(tag, &self.columns[n], Tone::Plain, title)
        });
        let mut table = format!(
            "<div class=\"scroll fit\" tabindex=\"0\"><table class=\"answer\"><thead><tr>{}</tr></thead>\n<tbody>\n",
            head.collect::<String>()
        );
        for line in &self.lines {
            table += "<tr>";
            table += &match line {
                GridLine::Heading(text) => {
                    format!("<th colspan=\"{}\">{}</th>", shown.len(), escape(text))
                }
                GridLine::Cells(cells) => {
                    let cells = shown.iter().map(|&n| {
                        let one = &cells[n];
                        let text = format!("{}{}", one.text, one.mark);
                        cell("td", &self.columns[n], one.tone, &text)
                    });
                    cells.collect::<String>()
                }
            };
            table += "</tr>\n";
        }
        table + "</tbody></table></div>\n"
    }

    /// Which columns are missing, and how wide a window shows them.
    fn not_shown(&self, left: &[usize], needed: usize, style: Style) -> String {
        let titles: Vec<&str> = left
            .iter()
            .map(|&column| self.titles[column].as_ref())
            .filter(|title| !title.is_empty())
            .collect();
        if titles.is_empty() {
            return String::new();
        }
        let told = format!("not shown: {} ({needed} columns)", titles.join(", "));
        let lines = wrap(&told, style.columns());
        let faint = |line: &String| style.paint(Tone::Faint, line) + "\n";
        lines.iter().map(faint).collect()
    }

    /// The columns that these need.
    fn needed(&self, shown: &[usize], measures: &[Measure]) -> usize {
        let label = measures[0].whole().max(self.title(0));
        label + self.beside(shown, measures)
    }

    /// Likewise without the first.
    fn beside(&self, shown: &[usize], measures: &[Measure]) -> usize {
        let one = |&column: &usize| GAP + measures[column].whole().max(self.title(column));
        shown.iter().skip(1).map(one).sum()
    }

    /// Those of the columns that have room.
    fn fitting(&self, wanted: &[usize], measures: &[Measure], style: Style) -> Vec<usize> {
        let mut shown = wanted.to_vec();
        let label = measures[0].whole().max(self.title(0)).min(LABEL_MIN);
        while label + self.beside(&shown, measures) > style.columns() {
            let Some(least) = shown
                .iter()
                .copied()
                .skip(self.keys.max(1))
                // What has no title could not be named.
                .filter(|&c| self.keys > 0 || self.title(c) > 0)
                .max_by_key(|&c| (self.columns[c].spare, c))
            else {
                break;
            };
            if shown.len() <= self.keys.max(1) + 1 {
                break;
            }
            shown.retain(|&c| c != least);
        }
        shown
    }

    /// Some of the columns, with the first cut to what they leave.
    fn block(&self, shown: &[usize], measures: &[Measure], style: Style) -> String {
        let room = style.columns().saturating_sub(self.beside(shown, measures));
        let mut measures = measures.to_vec();
        for &column in shown {
            let title = self.title(column);
            let measure = &mut measures[column];
            measure.text = measure.text.max(title.saturating_sub(measure.mark));
        }
        measures[0].text = measures[0].text.min(room.saturating_sub(measures[0].mark));
        self.lines_of(shown, &measures, style)
    }

    fn title(&self, column: usize) -> usize {
        width(&self.titles[column])
    }

    fn measure(&self, column: usize) -> Measure {
        let mut measure = Measure { text: 0, mark: 0 };
        for line in &self.lines {
            if let GridLine::Cells(cells) = line {
                measure.text = measure.text.max(width(&cells[column].text));
                measure.mark = measure.mark.max(width(&cells[column].mark));
            }
        }
        measure
    }

    fn lines_of(&self, shown: &[usize], measures: &[Measure], style: Style) -> String {
        let mut text = String::new();
        let titles: Vec<GridCell> = self
            .titles
            .iter()
            .map(|title| GridCell::new(Tone::Faint, title.as_ref()))
            .collect();
        if shown.iter().any(|&column| self.title(column) > 0) {
            text += &self.line_of(&titles, shown, measures, style, true);
        }
        for line in &self.lines {
            match line {
                GridLine::Cells(cells) => {
                    text += &self.line_of(cells, shown, measures, style, false)
                }
                GridLine::Heading(heading) => {
                    text += &style.paint(Tone::Strong, &cut(heading, style.columns()));
                    text.push('\n');
                }
            }
        }
        text
    }

    fn line_of(
        &self,
        cells: &[GridCell],
        shown: &[usize],
        measures: &[Measure],
        style: Style,
        title: bool,
    ) -> String {
        let mut line = String::new();
        let mut pending = 0;
        for &column in shown {
            let cell = &cells[column];
            // Titles stand over the figures and may reach into the marks' room.
            let (room, mark_room) = match (title, measures[column]) {
                (true, measure) if width(&cell.text) > measure.text => (measure.whole(), 0),
                (_, measure) => (measure.text, measure.mark),
            };
            let shown_text = cut(&cell.text, room);
            let fill = room - width(&shown_text);
            if !self.columns[column].left {
                pending += fill;
            }
            if !cell.text.is_empty() || !cell.mark.is_empty() {
                line.push_str(&" ".repeat(pending));
                pending = 0;
                line += &style.paint(cell.tone, &shown_text);
                line += &style.paint(cell.mark_tone, &cell.mark);
                pending += mark_room - width(&cell.mark).min(mark_room);
            } else {
                pending += width(&shown_text) + mark_room;
            }
            if self.columns[column].left {
                pending += fill;
            }
            pending += GAP;
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Grid {
        let mut grid = Grid::new([words("job", 0), figures("IOPS", 0), figures("moved", 1)]);
        grid.line([
            GridCell::from("a"),
            GridCell::from("140k").marked(Tone::Doubtful, "¹"),
            GridCell::from("1 GiB"),
        ]);
        grid.line([
            GridCell::from("quite a long name"),
            GridCell::from("7"),
            GridCell::from("20 GiB"),
        ]);
        grid
    }

    #[test]
    fn marks_do_not_disturb_the_alignment() {
        assert_eq!(
            sample().render(Style::default()),
            "job                IOPS    moved\n\
             a                  140k¹   1 GiB\n\
             quite a long name     7   20 GiB\n"
        );
    }

    #[test]
    fn columns_give_way_before_the_name_is_cut() {
        let narrow = |width| {
            sample().render(Style {
                color: false,
                width: Some(width),
            })
        };
        assert_eq!(
            narrow(31).lines().last(),
            Some("quite a long na…     7   20 GiB")
        );
        assert_eq!(narrow(28).lines().nth(2), Some("quite a long name     7"));
        assert_eq!(
            narrow(28).lines().skip(3).collect::<Vec<_>>(),
            ["not shown: moved (32", "columns)"]
        );
        assert_eq!(narrow(20).lines().nth(2), Some("quite a long…     7"));
        for line in narrow(20).lines() {
            assert!(width(line) <= 20);
        }
    }

    #[test]
    fn no_window_is_too_narrow() {
        for columns in 0..40 {
            let style = Style {
                color: false,
                width: Some(columns),
            };
            let text = sample().render(style);
            let names = text.lines().filter(|line| line.contains("140k")).count();
            assert_eq!(names, 1, "{columns}: {text}");
            let continued = sample().continued(1).render(style);
            assert!(continued.contains("7"), "{columns}: {continued}");
        }
    }

    #[test]
    fn a_grid_that_continues_loses_nothing() {
        let style = Style {
            color: false,
            width: Some(16),
        };
        let mut grid = Grid::new([
            figures("QD", 0),
            words("I/Os", 0),
            figures("IOPS", 0),
            figures("p99", 1),
        ]);
        grid.line(["1", "all", "140k", "1.2 ms"].map(GridCell::from));
        assert_eq!(
            grid.continued(2).render(style),
            "QD  I/Os  IOPS\n 1  all   140k\n\nQD  I/Os     p99\n 1  all   1.2 ms\n"
        );
    }

    #[test]
    fn a_mark_stays_where_its_text_is_cut() {
        let mut grid = Grid::new([words("", 0), figures("mean", 0)]);
        for (name, unit, mean) in [
            ("read clat from issue", ", ms", "1.20"),
            ("slat", ", µs", "3"),
        ] {
            grid.line([
                GridCell::from(name).marked(Tone::Plain, unit),
                GridCell::from(mean),
            ]);
        }
        let narrow = Style {
            color: false,
            width: Some(22),
        };
        assert_eq!(
            grid.render(narrow),
            "                  mean\nread clat f…, ms  1.20\nslat, µs             3\n"
        );
    }

    #[test]
    fn a_column_of_nothing_is_left_out() {
        let mut grid = Grid::new([words("job", 0), figures("trims", 0), figures("IOPS", 0)]);
        grid.line([
            GridCell::from("a"),
            GridCell::default(),
            GridCell::from("1"),
        ]);
        assert_eq!(grid.render(Style::default()), "job  IOPS\na       1\n");
    }
}
