//! What a run was made to answer: sentences and a graph on the first screen, the figures
//! behind them below.

use std::fmt::Write as _;

use super::markup::PageSection;
use super::plain::drawn;
use fathom_sheet::answer::{AnswerSentence, RunAnswer};
use fathom_sheet::chart::Size;
use fathom_sheet::html::escape;

/// Sentences of the first screen; all stand below where there are more.
const FIRST: usize = 6;
/// Half of a page, and on a telephone it can still be read.
const SIZE: Size = Size {
    width: 460.0,
    height: 340.0,
};

/// The answers, for the first screen.
pub fn first(answer: &RunAnswer) -> String {
    let sentences = answer.said.iter().take(FIRST);
    let mut html: String = sentences.map(sentence).collect();
    if answer.said.len() > FIRST {
        let more = answer.said.len() - FIRST;
        let _ = writeln!(html, "<p><a href=\"#answer\">{more} more answers</a></p>");
    }
    html
}

fn sentence(one: &AnswerSentence) -> String {
    let class = one.tone.class();
    format!(
        "<p class=\"said-of-it {class}\">{}</p>\n",
        escape(&one.text)
    )
}

/// The graph beside them.
pub fn picture(answer: &RunAnswer) -> Option<String> {
    answer.graphs.first()?;
    Some(format!(
        "<div class=\"hero\">{}</div>\n",
        graphs(answer, 0, 1)
    ))
}

fn graphs(answer: &RunAnswer, from: usize, most: usize) -> String {
    let graphs = answer.graphs.iter().enumerate().skip(from).take(most);
    let each = graphs.map(|(place, graph)| drawn(&graph.chart, SIZE, &format!("answer{place}")));
    each.collect()
}

/// What is behind the answers.
pub fn section(answer: &RunAnswer) -> Option<PageSection> {
    let mut body = String::new();
    if answer.said.len() > FIRST {
        body.extend(answer.said.iter().map(sentence));
    }
    for table in &answer.tables {
        if !table.title.is_empty() {
            let _ = writeln!(body, "<h3>{}</h3>", escape(&table.title));
        }
        body += &table.grid.html();
    }
    let others = graphs(answer, 1, usize::MAX);
    if !others.is_empty() {
        let _ = writeln!(body, "<div class=\"cards\">\n{others}</div>");
    }
    PageSection::new("answer", "What it was made to answer", body)
}
