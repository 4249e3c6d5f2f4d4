//! Rows of values in the forms that people and other programs read.

use fathom_model::text as foreign;
use fathom_report::Style;
use fathom_report::grid::{Grid, GridCell};
use fathom_report::query::{Datum, JsonRow, csv_line, markdown_line, shown};
use fathom_report::style::Tone;

/// Lines that a person is shown; a table is held in memory until its widths are known.
pub const SHOWN_MAX: usize = 10_000;
/// Text is passed on in pieces of so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Why Parquet is refused by its name.
pub const NO_PARQUET: &str = "parquet is not built in: what writes it would make the one file \
    larger than 25 MiB; take csv, of which duckdb, polars and pandas make it";

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// Aligned, for people.
    Table(Style),
    /// With a line of titles.
    Csv,
    /// A list of objects.
    Json,
    /// An object a line.
    Jsonl,
    /// A table in Markdown.
    Markdown,
    /// The document of `--json`, named so.
    Document(&'static str),
}

/// Writes rows to somebody who takes text.
pub struct RowWriter<'w> {
    form: RowForm,
    names: Vec<String>,
    to: &'w mut dyn FnMut(&str) -> anyhow::Result<()>,
    piece: String,
    /// Rows that a table waits with.
    kept: Vec<Vec<Datum<'static>>>,
    n: usize,
}

impl<'w> RowWriter<'w> {
    /// Begins with the titles.
    pub fn new(
        form: RowForm,
        names: Vec<String>,
        to: &'w mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let titles: Vec<Datum> = names.iter().map(Datum::from).collect();
        let piece = match form {
            RowForm::Table(_) | RowForm::Jsonl => String::new(),
            RowForm::Csv => csv_line(&titles) + "\n",
            RowForm::Markdown => {
                let rule = "|---".repeat(names.len());
                format!("{}\n{rule}|\n", markdown_line(&titles))
            }
            RowForm::Json => "[".to_owned(),
            RowForm::Document(schema) => {
                let columns = serde_json::to_string(&names)?;
                let columns = foreign::json(&columns);
                format!("{{\"schema\":\"{schema}\",\"columns\":{columns},\"rows\":[")
            }
        };
        Ok(Self {
            form,
            names,
            to,
            piece,
            kept: Vec::new(),
            n: 0,
        })
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Whether a person has been shown enough.
    pub fn is_full(&self) -> bool {
        let is_for_people = matches!(self.form, RowForm::Table(_) | RowForm::Markdown);
        is_for_people && self.n >= SHOWN_MAX
    }

    /// Writes a row.
    pub fn row(&mut self, row: &[Datum]) -> anyhow::Result<()> {
        self.n += 1;
        let names = &self.names[..];
        match self.form {
            RowForm::Table(_) => self.kept.push(row.iter().map(owned).collect()),
            RowForm::Csv => self.piece += &(csv_line(row) + "\n"),
            RowForm::Markdown => self.piece += &(markdown_line(row) + "\n"),
            RowForm::Json | RowForm::Jsonl | RowForm::Document(_) => {
                let text = serde_json::to_string(&JsonRow { names, row })?;
                let (before, behind) = match (self.form, self.n) {
                    (RowForm::Jsonl, _) => ("", "\n"),
                    (_, 1) => ("\n", ""),
                    _ => (",\n", ""),
                };
                self.piece += before;
                self.piece += &foreign::json(&text);
                self.piece += behind;
            }
        }
        match self.piece.len() < PIECE_BYTES {
            true => Ok(()),
            false => self.pass(),
        }
    }

    /// Writes what ends them.
    pub fn end(mut self) -> anyhow::Result<()> {
        match self.form {
            RowForm::Json => self.piece += "\n]\n",
            RowForm::Document(_) => self.piece += "\n]}\n",
            RowForm::Table(style) => self.piece = self.table().render(style),
            _ => {}
        }
        self.pass()
    }

    fn pass(&mut self) -> anyhow::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        (self.to)(&piece)
    }

    fn table(&self) -> Grid {
        let is_words = |at: usize| {
            let mut rows = self.kept.iter();
            rows.any(|row| matches!(row[at], Datum::Words(_)))
        };
        let names = self.names.iter().enumerate();
        let mut grid = Grid::named(names.map(|(at, name)| (name.as_str(), !is_words(at))));
        for row in &self.kept {
            let cells = row.iter().map(|value| match value {
                Datum::Missing => GridCell::new(Tone::Faint, "–"),
                value => GridCell::from(shown(value)),
            });
            grid.line(cells.collect::<Vec<_>>());
        }
        grid.continued(1)
    }
}

fn owned(value: &Datum) -> Datum<'static> {
    match value {
        Datum::Missing => Datum::Missing,
        Datum::Whole(value) => Datum::Whole(*value),
        Datum::Number(value) => Datum::Number(*value),
        Datum::Words(words) => Datum::Words(words.to_string().into()),
    }
}
