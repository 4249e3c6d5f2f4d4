//! The list of a folder of records, as a page: what was recorded, what of it is looked
//! for, and two to compare. It has the style of the reports that it leads to, and no
//! script.

use std::fmt::Write as _;

use fathom_model::{VerdictLevel, units};

use super::plain::plain_page;
use fathom_sheet::html::escape;

/// A run of the list.
#[derive(Debug, Clone, Default)]
pub struct ListedRow {
    /// Name of its folder.
    pub id: String,
    /// The run's name and its command, where they can be read.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// What its user calls it.
    pub label: Option<String>,
    /// As it ended, or that it cannot be read.
    pub status: String,
    /// Whether its figures are true; `None` where there are none.
    pub verdict: Option<VerdictLevel>,
    /// Start, RFC 3339 UTC.
    pub started: String,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// I/Os and bytes per second, where one figure stands for the run.
    pub rates: Option<(f64, f64)>,
    /// Its tags, `NAME=VALUE`.
    pub tags: Vec<String>,
    /// Why it cannot be read.
    pub reason: Option<String>,
}

/// What of a folder is shown, and what was asked for.
#[derive(Debug, Clone, Default)]
pub struct RunsPage {
    /// The folder, as it was named.
    pub folder: String,
    /// Words that runs have, a tag, a verdict; empty: whichever.
    pub text: String,
    /// `NAME=VALUE`, or a name.
    pub tag: String,
    /// The word for it.
    pub verdict: String,
    /// The runs in view.
    pub rows: Vec<ListedRow>,
    /// How many fit, and how many of them stand on pages before this one.
    pub found: usize,
    /// As [`RunsPage::found`].
    pub before: usize,
    /// Runs of a page.
    pub each: usize,
}

pub(super) const NONE_FOUND: &str = "<p class=\"nothing\">There is no run like that.</p>\n";

/// What belongs to a verdict of the list.
const VERDICTS: [(&str, &str); 5] = [
    ("", "all"),
    ("valid", "valid"),
    ("suspect", "suspect"),
    ("invalid", "invalid"),
    ("none", "without figures"),
];

/// The page.
pub fn runs_page(page: &RunsPage) -> String {
    let lead = format!(
        "<p class=\"lead\">{} in <code>{}</code></p>\n",
        units::counted(page.found, "run"),
        escape(&page.folder)
    );
    let rows = match page.rows.is_empty() {
        true => NONE_FOUND.to_owned(),
        false => table(page),
    };
    plain_page("Runs", &lead, &(choice(page) + &rows + &other_pages(page)))
}

/// What chooses among the runs.
fn choice(page: &RunsPage) -> String {
    let options: String = VERDICTS
        .iter()
        .map(|(value, text)| {
            let chosen = if page.verdict == *value {
                " selected"
            } else {
                ""
            };
            format!("<option value=\"{value}\"{chosen}>{text}</option>")
        })
        .collect();
    format!(
        "<form class=\"tools\" action=\"./\" role=\"search\">\n\
         <input type=\"search\" name=\"text\" value=\"{}\" placeholder=\"Name, command, tag\" aria-label=\"Only runs with these words\">\n\
         <input type=\"search\" name=\"tag\" value=\"{}\" placeholder=\"Tag NAME=VALUE\" aria-label=\"Only runs with this tag\">\n\
         <label>verdict <select name=\"verdict\">{options}</select></label>\n\
         <button>Show</button>\n<button formaction=\"history\">History</button>\n</form>\n",
        escape(&page.text),
        escape(&page.tag)
    )
}

fn table(page: &RunsPage) -> String {
    let rows: String = page.rows.iter().map(row).collect();
    let heads: String = [
        ("", "A"),
        ("", "B"),
        ("", "run"),
        ("", "command"),
        ("", "status"),
        ("", "verdict"),
        ("", "started"),
        ("n", "duration"),
        ("n", "IOPS"),
        ("n", "bandwidth"),
        ("", "tags"),
    ]
    .map(|(class, title)| format!("<th scope=\"col\" class=\"{class}\">{title}</th>"))
    .concat();
    format!(
        "<form action=\"compare\">\n<div class=\"scroll\"><table id=\"runs\"><thead><tr>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n\
         <button class=\"more\">Compare A with B</button>\n</form>\n"
    )
}

fn row(run: &ListedRow) -> String {
    let id = escape(&run.id);
    let mut html = "<tr>".to_owned();
    for side in ["a", "b"] {
        let _ = write!(
            html,
            "<td><input type=\"radio\" name=\"{side}\" value=\"{id}\" aria-label=\"{id} as {}\"></td>",
            side.to_uppercase()
        );
    }
    let link = match &run.reason {
        None => format!("<a href=\"runs/{}/\">{id}</a>", encoded(&run.id)),
        Some(reason) => format!("{id}<small>{}</small>", escape(reason)),
    };
    let tone = |word: &str| match word {
        "complete" | "valid" => "good",
        "failed" | "invalid" | "unreadable" => "bad",
        _ => "doubtful",
    };
    let toned = |word: &str| format!("<td class=\"{}\">{}</td>", tone(word), escape(word));
    let number = |text: Option<String>| {
        let text = text.unwrap_or_else(|| "–".to_owned());
        format!("<td class=\"n\">{}</td>", escape(&text))
    };
    let (iops, bw) = (run.rates.map(|it| it.0), run.rates.map(|it| it.1));
    let _ = write!(html, "<td>{link}<small>{}</small>", escape(&run.name));
    if let Some(label) = &run.label {
        let _ = write!(html, "<small class=\"label\">{}</small>", escape(label));
    }
    html += "</td>";
    let _ = write!(
        html,
        "<td>{}</td>{}",
        escape(&run.command),
        toned(&run.status)
    );
    html += &run
        .verdict
        .map_or("<td></td>".to_owned(), |level| toned(level.name()));
    let _ = write!(html, "<td>{}</td>", escape(&run.started));
    html += &number(run.duration_ms.map(units::duration));
    html += &number(iops.filter(|iops| *iops > 0.0).map(units::count));
    html += &number(bw.map(units::bytes_per_second));
    let _ = writeln!(html, "<td>{}</td></tr>", escape(&run.tags.join(" ")));
    html
}

/// Links to the runs that do not stand on this page.
fn other_pages(page: &RunsPage) -> String {
    let link = |from: usize, text: &str| {
        let asked = [
            ("text", &page.text),
            ("tag", &page.tag),
            ("verdict", &page.verdict),
        ];
        let asked = asked.map(|(name, value)| format!("{name}={}&amp;", encoded(value)));
        format!("<a href=\"./?{}from={from}\">{text}</a>\n", asked.concat())
    };
    let mut links = String::new();
    if page.before > 0 {
        links += &link(page.before.saturating_sub(page.each), "Newer runs");
    }
    if page.before + page.rows.len() < page.found {
        links += &link(page.before + page.each, "Older runs");
    }
    match links.is_empty() {
        true => links,
        false => format!("<p>{links}</p>\n"),
    }
}

/// Text as a part of an address: everything but what RFC 3986 reserves for nothing is
/// written by its bytes.
pub fn encoded(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            other => {
                let _ = write!(address, "%{other:02X}");
            }
        }
    }
    address
}
