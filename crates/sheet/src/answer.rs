//! What a run was made to answer: the load that a limit allows, the setting that is faster.
//!
//! What was asked stands in the plan of a run, and only who makes plans can read it, so that
//! commands make these. The report of a run shows them first, `fathom graph` draws them.

use crate::chart::{Chart, Size};
use crate::graph::Graph;
use crate::grid::Grid;
use crate::style::Tone;

/// What a run was made to answer; empty of a run that only measured.
#[derive(Debug, Clone, Default)]
pub struct RunAnswer {
    /// The answers, a sentence each.
    pub said: Vec<AnswerSentence>,
    /// What is behind them, the one that says most first.
    pub graphs: Vec<Graph>,
    /// The figures of these.
    pub tables: Vec<AnswerTable>,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct AnswerSentence {
    /// Whether there is one, and whether it is to be doubted.
    pub tone: Tone,
    /// In words.
    pub text: String,
}

/// Figures behind an answer.
#[derive(Debug, Clone)]
pub struct AnswerTable {
    /// What it is of; empty where there is one.
    pub title: String,
    /// The figures.
    pub grid: Grid,
}

impl RunAnswer {
    /// Adds an answer.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        self.said.push(AnswerSentence { tone, text });
    }

    /// Adds a graph; `path` is its file's, without an ending.
    pub fn draw(&mut self, path: &str, chart: Chart) {
        self.graphs.push(Graph {
            path: path.to_owned(),
            chart,
            size: Size::default(),
        });
    }
}
