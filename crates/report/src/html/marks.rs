//! The numbers that stand at doubtful figures and before their sentences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_analysis::{PointResult, SweepOutcome, verdict};
use fathom_model::ReasonKind;

use super::markup::PageSection;
use super::story::Story;
use fathom_document::folding::{Folded, cause, times};
use fathom_sheet::html::escape;

/// Every doubt of a run with its number; sentences that differ in numbers alone are one.
#[derive(Debug)]
pub struct DoubtMarks {
    /// Numbers, from 1, by what the doubt means.
    numbers: BTreeMap<String, usize>,
    /// What is told of each, by number - 1.
    sentences: Vec<String>,
    /// Points that have it, by number - 1.
    points: Vec<usize>,
}

impl DoubtMarks {
    /// The doubts about the jobs and points of a run.
    pub fn of(story: &Story) -> Self {
        let mut marks = Self {
            numbers: BTreeMap::new(),
            sentences: Vec::new(),
            points: Vec::new(),
        };
        for (doubt, sentence) in verdict::sentences(&story.doc.jobs) {
            marks.add(cause(doubt.meaning()), sentence, 0);
        }
        let measured = story.points().filter(|point| is_measured(point));
        let doubts = measured.flat_map(|point| &point.doubts);
        for each in Folded::of(doubts.map(String::as_str)).causes() {
            marks.add(cause(each.first()), each.sentence(), each.count);
        }
        marks
    }

    fn add(&mut self, meaning: String, sentence: String, points: usize) {
        match self.numbers.get(&meaning) {
            Some(&number) => self.points[number - 1] += points,
            None => {
                self.sentences.push(sentence);
                self.points.push(points);
                self.numbers.insert(meaning, self.sentences.len());
            }
        }
    }

    /// The marks of a direction of a job, as HTML.
    pub fn of_doubts(&self, doubts: &[ReasonKind]) -> String {
        self.html(self.numbers(doubts.iter().map(|doubt| doubt.meaning())))
    }

    /// The marks of points, as HTML.
    pub fn of_points<'p>(&self, points: impl IntoIterator<Item = &'p PointResult>) -> String {
        self.html(self.numbers_of(points))
    }

    /// The numbers of the doubts about points, ascending.
    pub fn numbers_of<'p>(&self, points: impl IntoIterator<Item = &'p PointResult>) -> Vec<usize> {
        let measured = points.into_iter().filter(|point| is_measured(point));
        let meanings = measured.flat_map(|point| &point.doubts);
        self.numbers(meanings.map(String::as_str))
    }

    fn numbers<'m>(&self, meanings: impl Iterator<Item = &'m str>) -> Vec<usize> {
        let mut numbers: Vec<usize> = meanings
            .filter_map(|meaning| self.numbers.get(&cause(meaning)).copied())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    fn html(&self, numbers: Vec<usize>) -> String {
        let mut html = String::new();
        for n in numbers {
            let _ = write!(html, "<sup><a href=\"#doubt-{n}\">{n}</a></sup>");
        }
        html
    }

    /// What each doubt says, by its number - 1.
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }

    /// What is to know of the figures: first the doubts by their numbers, then
    /// the notes.
    pub fn section(&self, story: &Story) -> Option<PageSection> {
        let mut body = String::new();
        if !self.sentences.is_empty() {
            body += "<ol class=\"notes\">\n";
            for (n, (sentence, points)) in (1..).zip(self.sentences.iter().zip(&self.points)) {
                let points = match points {
                    0 => String::new(),
                    1 => " (1 point)".to_owned(),
                    many => format!(" ({many} points)"),
                };
                let _ = writeln!(
                    body,
                    "<li id=\"doubt-{n}\">{}{points}</li>",
                    escape(sentence)
                );
            }
            body += "</ol>\n";
        }
        let notes = story.doc.notes.iter();
        let others = notes.filter(|note| {
            !self.sentences.contains(note) && !self.numbers.contains_key(&cause(note))
        });
        let others: String = (Folded::of(others.map(String::as_str)).causes().iter())
            .map(|note| {
                format!(
                    "<li>{}{}</li>\n",
                    escape(&note.sentence()),
                    times(note.count)
                )
            })
            .collect();
        if !others.is_empty() {
            let _ = write!(body, "<ul class=\"notes plain\">\n{others}</ul>\n");
        }
        PageSection::new("doubts", "Before you use these figures", body)
    }
}

/// Others have no figures that could be doubted.
fn is_measured(point: &PointResult) -> bool {
    point.outcome == SweepOutcome::Done
}
