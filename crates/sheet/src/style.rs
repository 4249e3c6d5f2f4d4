//! How text is set: colours, width, line breaks.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use fathom_model::text;
use unicode_width::UnicodeWidthStr;

/// Ends the colours of [`Style::paint`] until [`on_terminal`] takes it away.
/// Foreign text cannot know it, so that colours of its own stay behind.
static KEY: LazyLock<String> =
    LazyLock::new(|| format!(";{}m", RandomState::new().hash_one(std::process::id())));

/// How a table is to look. Whether colours are wanted and how wide the
/// terminal is only the command line knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Use colours.
    pub color: bool,
    /// Columns there are; `None` sets no limit.
    pub width: Option<u16>,
}

/// What a piece of text is, which decides its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A name that heads others, the figure that matters most.
    Strong,
    /// Labels and column titles.
    Faint,
    /// It went well.
    Good,
    /// It is to be doubted.
    Doubtful,
    /// It failed.
    Bad,
}

impl Tone {
    /// Its class in the style sheet of pages; empty of ordinary text.
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "sum",
            Self::Faint => "faint",
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

impl Style {
    /// `text`, one line, in the colour of `tone`; [`on_terminal`] makes the
    /// colours real.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        // SGR parameters of ECMA-48; the basic colours, which every theme maps
        // to something readable.
        let code = match tone {
            Tone::Plain => return text::line(text).into_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
        };
        let text = text::line(text);
        if !self.color || text.is_empty() {
            return text.into_owned();
        }
        format!("\x1b[{code}{}{text}\x1b[0{}", *KEY, *KEY)
    }

    /// Columns to fill.
    pub fn columns(self) -> usize {
        self.width.map_or(usize::MAX, usize::from)
    }
}

/// Text as a terminal may have it: in the colours of [`Style::paint`], and with
/// nothing else that it would obey. All output goes through here.
pub fn on_terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(KEY.as_str()) {
        return text::lines(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (plain, colour) in pieces(text) {
        shown += &text::lines(plain);
        if !colour.is_empty() {
            shown += colour;
            shown.push('m');
        }
    }
    Cow::Owned(shown)
}

/// Text between the colours of [`Style::paint`], each with the colour behind it, which
/// lacks the key.
fn pieces(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut parts = text.split(KEY.as_str()).peekable();
    std::iter::from_fn(move || {
        let part = parts.next()?;
        // A number of one or two digits stands behind the last escape.
        let colour = part.rfind("\x1b[").filter(|_| parts.peek().is_some());
        Some(part.split_at(colour.unwrap_or(part.len())))
    })
}

/// Columns that `text` takes on a terminal; colours take none.
pub fn width(text: &str) -> usize {
    match text.contains('\x1b') {
        true => pieces(text)
            .map(|(plain, _)| UnicodeWidthStr::width(plain))
            .sum(),
        false => UnicodeWidthStr::width(text),
    }
}

/// `text` cut to `columns`, with an ellipsis in place of what is left out. Colours
/// stay.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let (mut words, mut kept) = (String::new(), String::new());
    let mut is_full = false;
    for (plain, colour) in pieces(text) {
        for c in plain.chars() {
            if is_full {
                break;
            }
            words.push(c);
            is_full = width(&words) + 1 > columns;
            kept.push(if is_full { '…' } else { c });
        }
        if !colour.is_empty() {
            kept += colour;
            kept += &KEY;
        }
    }
    kept
}

/// `parts` behind one another, as many of the first as there are columns for.
pub fn fitting(style: Style, parts: impl IntoIterator<Item = String>) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { "  " };
        if !line.is_empty() && width(&line) + 2 + width(&part) > style.columns() {
            break;
        }
        line = line + gap + &part;
    }
    line
}

/// `text` broken at spaces into lines of at most `columns`; a word that is
/// longer has a line of its own. A no-break space holds words together.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text
        .split([' ', '\n', '\t'])
        .filter(|word| !word.is_empty())
    {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    for line in &mut lines {
        *line = line.replace('\u{a0}', " ");
    }
    lines
}

/// `facts` behind one another, separated by commas, for [`wrap`]: breaks fall
/// between two facts, and within one only when it is long.
pub fn facts(facts: &[String]) -> String {
    /// A fact up to this long stays in one piece.
    const WHOLE: usize = 36;
    let fixed = facts.iter().map(|fact| {
        if width(fact) <= WHOLE {
            fact.replace(' ', "\u{a0}")
        } else {
            fact.clone()
        }
    });
    fixed.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_broken_by_columns_not_bytes() {
        assert_eq!(cut("µµµµ", 4), "µµµµ");
        assert_eq!(cut("µµµµµ", 4), "µµµ…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(wrap("a bb ccc dddddd", 4), ["a bb", "ccc", "dddddd"]);
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn colours_take_no_columns_and_outlive_a_cut() {
        let color = true;
        let style = Style { color, width: None };
        let painted = style.paint(Tone::Bad, "four") + " words";
        assert_eq!(width(&painted), 10);
        assert_eq!(cut(&painted, 10), painted);
        assert_eq!(
            on_terminal(&cut(&painted, 3)),
            "\x1b[31mfo…\x1b[0m",
            "what follows keeps its colour"
        );
        let narrow = Style {
            color,
            width: Some(10),
        };
        let parts = || [style.paint(Tone::Bad, "four"), "five".into(), "!".into()];
        assert_eq!(
            on_terminal(&fitting(narrow, parts())),
            "\x1b[31mfour\x1b[0m  five"
        );
        assert_eq!(width(&fitting(style, parts())), 13);
    }

    #[test]
    fn colours_only_when_asked() {
        let style = Style::default();
        assert_eq!(style.paint(Tone::Bad, "x"), "x");
        let style = Style {
            color: true,
            ..style
        };
        let painted = style.paint(Tone::Bad, "x");
        assert_eq!(on_terminal(&painted), "\x1b[31mx\x1b[0m");
    }

    #[test]
    fn only_colours_of_our_own_reach_a_terminal() {
        let style = Style {
            color: true,
            width: None,
        };
        let hostile = "a\x1b[31mb\x1b[0;1m\x1b]0;t\x07\u{202e}\nc";
        let painted = format!("{} {hostile}", style.paint(Tone::Good, hostile));
        assert_eq!(
            on_terminal(&painted),
            "\x1b[32ma\u{fffd}[31mb\u{fffd}[0;1m\u{fffd}]0;t\u{fffd}\u{fffd} c\x1b[0m \
             a\u{fffd}[31mb\u{fffd}[0;1m\u{fffd}]0;t\u{fffd}\u{fffd}\nc"
        );
    }
}
