//! Runs as tables: one definition of every table and column, from which come the
//! tables that SQL is asked of, what is exported row by row, and their docs.

mod definitions;
mod form;
mod parquet;
mod run;
mod samples;

use std::borrow::Cow;

pub use definitions::{
    ENVIRONMENT, FAILURES, FIGURES, HISTOGRAMS, HOSTS, JOBS, OPTIONS, PERCENTILES, RUNS, SAMPLES,
    STEPS, TAGS, VERDICTS,
};
pub use form::{JsonRow, csv_line, markdown_line, shown};
pub use parquet::ParquetFile;
pub use run::{RunFacts, put_unreadable};
pub use samples::{SamplePlace, put_samples};

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum<'v> {
    /// It is not known: never 0.
    Missing,
    /// A whole number.
    Whole(i64),
    /// Any number that is finite.
    Number(f64),
    /// Words, as they were recorded.
    Words(Cow<'v, str>),
}

/// What values a column has, where they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatumKind {
    /// [`Datum::Whole`].
    Integer,
    /// [`Datum::Number`].
    Real,
    /// [`Datum::Words`].
    Text,
}

impl DatumKind {
    /// The type in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
        }
    }
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnDef {
    /// Its name, which ends with the unit where a name alone would leave it open.
    pub name: &'static str,
    /// What its values are.
    pub kind: DatumKind,
    /// Their unit; empty without one.
    pub unit: &'static str,
    /// What they say.
    pub meaning: &'static str,
}

/// A table.
#[derive(Debug)]
pub struct TableDef {
    /// Its name.
    pub name: &'static str,
    /// What one row of it is.
    pub meaning: &'static str,
    /// Its columns, in the order of a row.
    pub columns: &'static [ColumnDef],
}

impl TableDef {
    /// The statement that makes it, under a name that may have a schema before it.
    pub fn create(&self, name: &str) -> String {
        let columns = self.columns.iter();
        let columns: Vec<String> = columns
            .map(|column| format!("{} {}", column.name, column.kind.sql()))
            .collect();
        format!("CREATE TABLE {name} ({})", columns.join(", "))
    }

    /// The names of its columns.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|column| column.name)
    }
}

/// Who takes rows, one after the other.
pub type TakeRow<'t, E> = dyn FnMut(&'static TableDef, &[Datum<'_>]) -> Result<(), E> + 't;

/// All tables, those that are read on demand last.
pub const TABLES: [&TableDef; 13] = [
    &RUNS,
    &TAGS,
    &ENVIRONMENT,
    &STEPS,
    &JOBS,
    &OPTIONS,
    &FIGURES,
    &PERCENTILES,
    &VERDICTS,
    &FAILURES,
    &HOSTS,
    &HISTOGRAMS,
    &SAMPLES,
];

/// How many of [`TABLES`] are small enough to be kept.
pub const KEPT_TABLES: usize = 11;

impl From<u64> for Datum<'_> {
    fn from(value: u64) -> Self {
        // SQLite has no larger whole numbers.
        i64::try_from(value).map_or(Self::Number(value as f64), Self::Whole)
    }
}

impl From<u32> for Datum<'_> {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<i32> for Datum<'_> {
    fn from(value: i32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<bool> for Datum<'_> {
    fn from(value: bool) -> Self {
        Self::Whole(value.into())
    }
}

impl From<f64> for Datum<'_> {
    fn from(value: f64) -> Self {
        match value.is_finite() {
            true => Self::Number(value),
            false => Self::Missing,
        }
    }
}

impl<'v> From<&'v str> for Datum<'v> {
    fn from(value: &'v str) -> Self {
        Self::Words(Cow::Borrowed(value))
    }
}

impl<'v> From<&'v String> for Datum<'v> {
    fn from(value: &'v String) -> Self {
        Self::from(value.as_str())
    }
}

impl From<String> for Datum<'_> {
    fn from(value: String) -> Self {
        Self::Words(Cow::Owned(value))
    }
}

impl<'v, T: Into<Datum<'v>>> From<Option<T>> for Datum<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}
