//! A figure over the runs of a folder, as a page.

use std::fmt::Write as _;

use fathom_model::units;

use super::plain::{drawn, plain_page};
use super::runs::{NONE_FOUND, encoded};
use crate::history::{HistoryDocument, HistorySeries, by, chart, differed, title, word};
use fathom_sheet::chart::Size;
use fathom_sheet::html::escape;

/// Series of a page: where figures changed comes first, and what is left is counted.
const SERIES_MOST: usize = 60;

/// What of a folder is asked for, where it is served.
#[derive(Debug, Clone, Default)]
pub struct HistoryPage {
    /// As of the list of runs, [`super::RunsPage`].
    pub text: String,
    /// Likewise.
    pub tag: String,
    /// Likewise.
    pub verdict: String,
    /// Words of jobs and steps.
    pub job: String,
    /// The figure's name, and the names of all there are.
    pub figure: &'static str,
    /// As [`HistoryPage::figure`].
    pub figures: Vec<&'static str>,
    /// What is to know of it, a sentence each.
    pub notes: Vec<String>,
}

/// The page, as a file of its own.
pub fn history_file(doc: &HistoryDocument) -> String {
    plain_page("History", "", &sections(doc, false))
}

/// The page, where runs are served.
pub fn history_page(page: &HistoryPage, doc: &HistoryDocument) -> String {
    let lead = "<p class=\"lead\"><a href=\"./\">All runs</a></p>\n";
    let mut html = choice(page);
    for note in &page.notes {
        let _ = writeln!(html, "<p class=\"doubtful\">{}</p>", escape(note));
    }
    plain_page("History", lead, &(html + &sections(doc, true)))
}

/// Each series; where runs are served with links to them.
fn sections(doc: &HistoryDocument, is_served: bool) -> String {
    let mut html = String::new();
    let mut series: Vec<&HistorySeries> = doc.series.iter().collect();
    series.sort_by_key(|one| one.changes.is_empty());
    for (place, one) in series.iter().take(SERIES_MOST).enumerate() {
        html += &section(one, place, is_served);
    }
    if series.is_empty() {
        html += NONE_FOUND;
    } else if series.len() > SERIES_MOST {
        let left = series.len() - SERIES_MOST;
        let _ = writeln!(html, "<p>{left} more: choose by a word of their jobs.</p>");
    }
    html
}

fn choice(page: &HistoryPage) -> String {
    let hidden = [
        ("text", &page.text),
        ("tag", &page.tag),
        ("verdict", &page.verdict),
    ];
    let hidden = hidden.map(|(name, value)| {
        format!(
            "<input type=\"hidden\" name=\"{name}\" value=\"{}\">",
            escape(value)
        )
    });
    let options = page.figures.iter().map(|figure| {
        let chosen = match *figure == page.figure {
            true => " selected",
            false => "",
        };
        format!("<option{chosen}>{figure}</option>")
    });
    format!(
        "<form class=\"tools\" action=\"history\" role=\"search\">{}\n\
         <label>figure <select name=\"figure\">{}</select></label>\n\
         <input type=\"search\" name=\"job\" value=\"{}\" placeholder=\"Job or step\" aria-label=\"Only jobs and steps with this in their name\">\n\
         <button>Show</button>\n</form>\n",
        hidden.concat(),
        options.collect::<String>(),
        escape(&page.job)
    )
}

fn section(series: &HistorySeries, place: usize, is_served: bool) -> String {
    let mut html = format!("<section>\n<h2>{}</h2>\n", escape(&title(series)));
    html += &drawn(
        &chart([series].into_iter()),
        Size::default(),
        &place.to_string(),
    );
    if !series.changes.is_empty() {
        html += "<ul class=\"verdicts\">\n";
        for change in &series.changes {
            let (is_good, word) = word(change);
            let class = if is_good { "good" } else { "bad" };
            let _ = write!(
                html,
                "<li class=\"{class}\">{word} from {} on: {}",
                escape(&change.run),
                escape(&by(change))
            );
            for said in differed(change) {
                let _ = write!(html, "; {}", escape(&said));
            }
            html += "</li>\n";
        }
        html += "</ul>\n";
    }
    let rows = series.runs.iter().map(|run| {
        let name = escape(&run.id);
        let name = match is_served {
            true => format!("<a href=\"runs/{}/\">{name}</a>", encoded(&run.id)),
            false => name,
        };
        format!(
            "<tr><td>{name}</td><td>{}</td><td class=\"n\">{}</td></tr>\n",
            escape(&run.started),
            escape(&series.figure.shown(run.value))
        )
    });
    let _ = write!(
        html,
        "<details><summary>{}</summary>\n<table><thead><tr><th scope=\"col\">run</th><th scope=\"col\">started</th>\
         <th scope=\"col\" class=\"n\">{}</th></tr></thead>\n<tbody>\n{}</tbody></table></details>\n</section>\n",
        units::counted(series.runs.len(), "run"),
        series.figure.name(),
        rows.collect::<String>()
    );
    html
}
