//! Text as HTML, tables, and what is embedded for the script.
//!
//! Everything that comes from a record goes through [`escape`] or [`json`]: job
//! names and device strings may hold anything.

use std::fmt::Write as _;

use fathom_model::text::{REPLACEMENT, is_hidden};
use fathom_sheet::html::escape;
use serde::Serialize;

/// JSON that can stand in a script element: nothing in it ends the element or
/// begins a comment. The escapes mean the same characters to every JSON reader.
/// Hidden characters become U+FFFD, as in [`escape`].
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // They occur within strings only.
            '<' | '>' | '&' => {
                let _ = write!(safe, "\\u{:04x}", c as u32);
            }
            c if is_hidden(c) => safe.push(REPLACEMENT),
            c => safe.push(c),
        }
    }
    Ok(safe)
}

/// A section of the page: the anchor, the heading, what stands below it.
#[derive(Debug)]
pub struct PageSection {
    /// Where links to it lead.
    pub id: &'static str,
    /// The heading, as text.
    pub title: &'static str,
    /// HTML.
    pub body: String,
}

impl PageSection {
    /// A section; `None` when it has nothing to say.
    pub fn new(id: &'static str, title: &'static str, body: String) -> Option<Self> {
        (!body.is_empty()).then_some(Self { id, title, body })
    }

    /// The section as HTML.
    pub fn html(&self) -> String {
        let Self { id, title, body } = self;
        format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")
    }
}

/// One cell of a table.
#[derive(Debug, Default)]
pub struct HtmlCell {
    html: String,
    /// What it is sorted by, when not by its text.
    key: Option<f64>,
    class: &'static str,
}

impl HtmlCell {
    /// Text, to be escaped.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self {
            html: escape(text.as_ref()),
            ..Self::default()
        }
    }

    /// A number as people read it, sorted by what it is; missing is a dash.
    pub fn number(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        match value.filter(|value| value.is_finite()) {
            Some(value) => {
                let text = text(value);
                // A plain number is sorted by its text.
                let key = Some(value).filter(|_| text.parse() != Ok(value));
                Self {
                    html: escape(&text),
                    key,
                    class: "n",
                }
            }
            None => Self {
                html: "–".into(),
                key: None,
                class: "n",
            },
        }
    }

    /// The same with HTML behind its text.
    #[must_use]
    pub fn and(mut self, html: &str) -> Self {
        self.html += html;
        self
    }

    /// The same with a text that shows where the pointer rests.
    #[must_use]
    pub fn hint(mut self, text: &str) -> Self {
        self.html = format!("<span title=\"{}\">{}</span>", escape(text), self.html);
        self
    }

    /// The same as a link to an anchor of the page.
    #[must_use]
    pub fn link(mut self, anchor: &str) -> Self {
        self.html = format!("<a href=#{anchor}>{}</a>", self.html);
        self
    }

    /// The same with a class of the style sheet.
    #[must_use]
    pub fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

/// A number to sort by, of five digits where that is shorter: its text has three.
fn sort_key(key: f64) -> String {
    let (plain, short) = (key.to_string(), format!("{key:.4e}"));
    if plain.len() <= short.len() {
        plain
    } else {
        short
    }
}

/// As many columns have a rule of the style sheet that they hold numbers.
const STYLED_COLUMNS: usize = 16;

/// A table whose columns can be sorted.
#[derive(Debug)]
pub struct HtmlTable {
    id: String,
    /// Columns of numbers, whose cells need no class of their own.
    numbers: Vec<bool>,
    head: String,
    rows: String,
    count: usize,
}

impl HtmlTable {
    /// A table with these columns; those of numbers begin with a `#`.
    pub fn new(id: &str, columns: &[&str]) -> Self {
        let mut head = String::new();
        let mut numbers = Vec::new();
        for title in columns {
            numbers.push(title.starts_with('#') && numbers.len() < STYLED_COLUMNS);
            let (class, title) = match title.strip_prefix('#') {
                Some(title) => (" class=\"n\"", title),
                None => ("", *title),
            };
            let _ = write!(
                head,
                "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>",
                escape(title)
            );
        }
        Self {
            id: id.to_owned(),
            numbers,
            head,
            rows: String::new(),
            count: 0,
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = HtmlCell>) {
        self.row_with("", cells);
    }

    /// Adds a row about a point, by its number on the page; links lead to the first.
    pub fn row_of_point(
        &mut self,
        point: usize,
        is_first: bool,
        cells: impl IntoIterator<Item = HtmlCell>,
    ) {
        let of = match is_first {
            true => format!(" id=p{point}"),
            false => format!(" data-p={point}"),
        };
        self.row_with(&of, cells);
    }

    /// Ends of cells and rows, and quotes around words, are left out as HTML allows: a
    /// campaign has ten thousand cells.
    fn row_with(&mut self, attributes: &str, cells: impl IntoIterator<Item = HtmlCell>) {
        let _ = write!(self.rows, "<tr{attributes}>");
        for (column, HtmlCell { html, key, class }) in cells.into_iter().enumerate() {
            self.rows += "<td";
            // What has a key or stands in a column of numbers is one by the style sheet.
            let is_known = key.is_some() || self.numbers.get(column) == Some(&true);
            let class = if class == "n" && is_known { "" } else { class };
            if !class.is_empty() {
                let _ = write!(self.rows, " class={class}");
            }
            if let Some(key) = key {
                let _ = write!(self.rows, " data-v={}", sort_key(key));
            }
            let _ = write!(self.rows, ">{html}");
        }
        self.rows.push('\n');
        self.count += 1;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The table as HTML; nothing without rows.
    pub fn finish(self) -> String {
        let Self { id, head, rows, .. } = self;
        if self.count == 0 {
            return String::new();
        }
        let columns = self.numbers.iter().enumerate();
        let columns = columns.filter(|(_, is_number)| **is_number);
        let columns: String = columns.map(|(n, _)| format!(" n{}", n + 1)).collect();
        format!(
            "<div class=\"scroll\"><table class=\"sortable{columns}\" id=\"{id}\"><thead><tr>{head}</tr></thead>\
             <tbody>\n{rows}</tbody></table></div>\n"
        )
    }

    /// The table with a field that filters its rows when there are many, closed at
    /// first when there are very many.
    pub fn finish_searchable(self, what: &str) -> String {
        const SEARCHED: usize = 12;
        const CLOSED: usize = 100;
        let (count, id) = (self.count, self.id.clone());
        let table = self.finish();
        if count <= SEARCHED {
            return table;
        }
        let open = if count <= CLOSED { " open" } else { "" };
        format!(
            "<details class=\"table\"{open}><summary>{count} {what}</summary>\
             <div class=\"tools\"><input type=\"search\" data-table=\"{id}\" \
             placeholder=\"Show only rows with …\" aria-label=\"Show only rows with these words\"></div>\n\
             {table}</details>\n"
        )
    }
}

/// A table of names and values, those without a value left out.
pub fn facts<'f>(pairs: impl IntoIterator<Item = (&'f str, Option<String>)>) -> String {
    let mut rows = String::new();
    for (name, value) in pairs {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            continue;
        };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escape(name),
            escape(&value)
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<div class=\"scroll\"><table class=\"facts\"><tbody>\n{rows}</tbody></table></div>\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_can_leave_its_place() {
        assert_eq!(
            escape("</td><script>alert(\"x\" & 'y')</script>"),
            "&lt;/td&gt;&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;"
        );
        assert_eq!(escape("Ä\u{0}\u{1b}[31m\r\n"), "Ä\u{fffd}\u{fffd}[31m\n");
        assert_eq!(escape("a\u{202e}b"), "a\u{fffd}b");
        let text = json(&["</script><!--", "a b & \"c\"", "d\u{2028}\u{202e}e"]).unwrap();
        assert_eq!(
            text,
            r#"["\u003c/script\u003e\u003c!--","a b \u0026 \"c\"","d��e"]"#
        );
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, ["</script><!--", "a b & \"c\"", "d\u{fffd}\u{fffd}e"]);
    }
}
