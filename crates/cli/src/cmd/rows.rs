//! Rows of values in the forms that people and other programs read.

use anyhow::Context;
use fathom_model::{Exit, text as foreign};
use fathom_report::query::{
    Datum, DatumKind, JsonRow, ParquetFile, TableDef, csv_line, markdown_line, shown,
};
use fathom_sheet::grid::{Grid, GridCell};
use fathom_sheet::style::Style;
use fathom_sheet::style::Tone;

use super::ExitError;
use crate::out;

/// Lines that a person is shown; a table is held in memory until its widths are known.
pub const SHOWN_MAX: usize = 10_000;
/// Text is passed on in pieces of so many bytes.
const PIECE_BYTES: usize = 64 << 10;

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
    /// A file of Apache Parquet.
    Parquet,
}

impl RowForm {
    /// Writes pieces of this form to stdout.
    pub fn to_stdout(self) -> anyhow::Result<impl FnMut(&[u8]) -> anyhow::Result<()>> {
        if self == Self::Parquet && out::is_terminal() {
            let message = "parquet is for other programs: send it to a file, by > FILE.parquet";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        Ok(move |piece: &[u8]| {
            match self {
                Self::Parquet => out::bytes(piece),
                _ => out::text(String::from_utf8_lossy(piece)),
            }
            Ok(())
        })
    }
}

/// Who takes what is written, piece by piece.
pub type TakePiece<'w> = dyn FnMut(&[u8]) -> anyhow::Result<()> + 'w;

/// Writes rows to somebody who takes text, or bytes.
pub struct RowWriter<'w> {
    form: RowForm,
    names: Vec<String>,
    to: &'w mut TakePiece<'w>,
    piece: String,
    parquet: Option<ParquetFile>,
    /// Rows that a table waits with.
    kept: Vec<Vec<Datum<'static>>>,
    n: usize,
}

impl<'w> RowWriter<'w> {
    /// Begins with the titles.
    pub fn new(
        form: RowForm,
        names: Vec<String>,
        to: &'w mut TakePiece<'w>,
    ) -> anyhow::Result<Self> {
        Self::begin(form, names.into_iter().map(|name| (name, None)), to)
    }

    /// Begins with the titles of a table, whose columns have kinds.
    pub fn of_table(
        form: RowForm,
        table: &TableDef,
        to: &'w mut TakePiece<'w>,
    ) -> anyhow::Result<Self> {
        let columns = table.columns.iter();
        let columns = columns.map(|column| (column.name.to_owned(), Some(column.kind)));
        Self::begin(form, columns, to)
    }

    fn begin(
        form: RowForm,
        columns: impl Iterator<Item = (String, Option<DatumKind>)>,
        to: &'w mut TakePiece<'w>,
    ) -> anyhow::Result<Self> {
        let columns: Vec<_> = columns.collect();
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let titles: Vec<Datum> = names.iter().map(Datum::from).collect();
        let piece = match form {
            RowForm::Table(_) | RowForm::Jsonl | RowForm::Parquet => String::new(),
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
            parquet: (form == RowForm::Parquet).then(|| ParquetFile::new(columns)),
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
            RowForm::Parquet => return self.parquet_row(row),
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

    fn parquet_row(&mut self, row: &[Datum]) -> anyhow::Result<()> {
        let Some(file) = &mut self.parquet else {
            return Ok(());
        };
        file.row(row).context("cannot pack rows")?;
        let piece = file.take();
        match piece.is_empty() {
            true => Ok(()),
            false => (self.to)(&piece),
        }
    }

    /// Writes what ends them.
    pub fn end(mut self) -> anyhow::Result<()> {
        if let Some(file) = self.parquet.take() {
            return (self.to)(&file.end().context("cannot pack rows")?);
        }
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
        (self.to)(piece.as_bytes())
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
