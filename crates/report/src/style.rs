//! How text is set: colours, width, line breaks.

use unicode_width::UnicodeWidthStr;

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

impl Style {
    /// `text` in the colour of `tone`.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        // SGR parameters of ECMA-48; the basic colours, which every theme maps
        // to something readable.
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
        };
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Columns to fill.
    pub(crate) fn columns(self) -> usize {
        self.width.map_or(usize::MAX, usize::from)
    }
}

/// Columns that `text` takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` cut to `columns`, with an ellipsis in place of what is left out.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        let mut longer = kept.clone();
        longer.push(c);
        if width(&longer) + 1 > columns {
            break;
        }
        kept = longer;
    }
    kept.push('…');
    kept
}

/// `text` broken at spaces into lines of at most `columns`; a word that is
/// longer has a line of its own. A no-break space holds words together.
#[must_use]
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
#[must_use]
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
    fn colours_only_when_asked() {
        let style = Style::default();
        assert_eq!(style.paint(Tone::Bad, "x"), "x");
        let style = Style {
            color: true,
            ..style
        };
        assert_eq!(style.paint(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
