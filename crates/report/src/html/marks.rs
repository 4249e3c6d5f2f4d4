//! The numbers that stand at doubtful figures and before their sentences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_analysis::{PointResult, SweepOutcome, verdict};
use fathom_model::ReasonKind;

use super::markup::{PageSection, escape};
use super::story::Story;

/// Every doubt of a run with its number.
#[derive(Debug)]
pub struct DoubtMarks {
    /// Numbers, from 1, by what the doubt means.
    numbers: BTreeMap<String, usize>,
    /// What is told of each, by number - 1.
    sentences: Vec<String>,
}

impl DoubtMarks {
    /// The doubts about the jobs and points of a run.
    pub fn of(story: &Story) -> Self {
        let mut marks = Self {
            numbers: BTreeMap::new(),
            sentences: Vec::new(),
        };
        for (doubt, sentence) in verdict::sentences(&story.doc.jobs) {
            marks.add(doubt.meaning(), &sentence);
        }
        for doubt in story.points().flat_map(|point| &point.doubts) {
            marks.add(doubt, doubt);
        }
        marks
    }

    fn add(&mut self, meaning: &str, sentence: &str) {
        if !self.numbers.contains_key(meaning) {
            self.sentences.push(sentence.to_owned());
            self.numbers
                .insert(meaning.to_owned(), self.sentences.len());
        }
    }

    /// The marks of a direction of a job, as HTML.
    pub fn of_doubts(&self, doubts: &[ReasonKind]) -> String {
        self.html(doubts.iter().map(|doubt| doubt.meaning()))
    }

    /// The marks of points, as HTML.
    pub fn of_points<'p>(&self, points: impl IntoIterator<Item = &'p PointResult>) -> String {
        // Others have no figures that could be doubted.
        let measured = (points.into_iter()).filter(|point| point.outcome == SweepOutcome::Done);
        let meanings = measured.flat_map(|point| &point.doubts);
        self.html(meanings.map(String::as_str))
    }

    fn html<'m>(&self, meanings: impl Iterator<Item = &'m str>) -> String {
        let mut numbers: Vec<usize> = meanings
            .filter_map(|meaning| self.numbers.get(meaning).copied())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut html = String::new();
        for n in numbers {
            let sentence = escape(&self.sentences[n - 1]);
            let _ = write!(
                html,
                "<sup><a href=\"#doubt-{n}\" title=\"{sentence}\">{n}</a></sup>"
            );
        }
        html
    }

    /// What is to know of the figures: first the doubts by their numbers, then
    /// the notes.
    pub fn section(&self, story: &Story) -> Option<PageSection> {
        let mut body = String::new();
        if !self.sentences.is_empty() {
            body += "<ol class=\"notes\">\n";
            for (n, sentence) in (1..).zip(&self.sentences) {
                let _ = writeln!(body, "<li id=\"doubt-{n}\">{}</li>", escape(sentence));
            }
            body += "</ol>\n";
        }
        let others: String = (story.doc.notes.iter())
            .filter(|note| !self.sentences.contains(note))
            .map(|note| format!("<li>{}</li>\n", escape(note)))
            .collect();
        if !others.is_empty() {
            let _ = write!(body, "<ul class=\"notes plain\">\n{others}</ul>\n");
        }
        PageSection::new("doubts", "Before you use these figures", body)
    }
}
