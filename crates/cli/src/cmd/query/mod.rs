//! `fathom query`: SQL over runs.

mod index;
mod store;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use fathom_model::Exit;
use fathom_report::query::{Datum, KEPT_TABLES, TABLES};
use fathom_sheet::grid::{Grid, GridCell, words};
use rusqlite::types::ValueRef;
use signal_hook::consts::{SIGINT, SIGTERM};

use store::{Source, Store, failed};

use super::rows::{RowForm, RowWriter, SHOWN_MAX};
use super::{ExitError, Global, show};
use crate::out;

/// What the document of a query is called.
const SCHEMA: &str = "fathom.query/1";
/// A longer statement is none.
const SQL_BYTES_MAX: u64 = 1 << 20;

/// Ask all runs, or some of them, in SQL
///
/// One statement that reads, as SQLite understands it. 'fathom query --tables' lists the tables
/// with their columns and units. What is not known is NULL, never 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Samples and histograms are read from the records when a query names them: name the runs too.
With --db the other tables are kept in a file, and only what has changed is read again.

Examples:
  fathom query --tables
  fathom query \"SELECT run, job_name, dir, iops, verdict FROM figures ORDER BY iops DESC LIMIT 5\"
  fathom query \"SELECT dir, avg(clat_p99_ns) FROM figures GROUP BY dir\" --db runs.db
  fathom query \"SELECT t_ms, iops FROM samples\" 20261121T130737Z --format csv > iops.csv
  fathom query \"SELECT * FROM figures\" --format parquet > figures.parquet
  fathom query \"SELECT * FROM verdicts WHERE level = 'invalid'\" --json | jq '.rows[].sentence'")]
pub struct Args {
    /// The question, or '-': read it from stdin
    #[arg(required_unless_present = "tables")]
    sql: Option<String>,
    /// Only these runs: record folders, or their names or parts of them
    #[arg(value_name = "RUN")]
    run: Vec<String>,
    /// Keep the tables of all runs in this file, for the next query
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "tables"])]
    db: Option<PathBuf>,
    /// How the answer is written
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<QueryFormat>,
    /// List the tables, their columns and units
    #[arg(long, conflicts_with_all = ["sql", "run"])]
    tables: bool,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum QueryFormat {
    /// Aligned
    Table,
    /// Comma-separated, with a line of titles
    Csv,
    /// A list of objects
    Json,
    /// An object a line
    Jsonl,
    /// A table in Markdown
    Md,
    /// A file of Apache Parquet, for > FILE
    Parquet,
}

/// What `--json` prints; it is written row by row.
#[cfg(test)]
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct QueryDocument {
    /// `fathom.query/1`
    schema: &'static str,
    /// Names of the columns, in the order of the question.
    columns: Vec<String>,
    /// Each by the names of the columns; null is what is not known.
    rows: Vec<std::collections::BTreeMap<String, serde_json::Value>>,
}

/// Asks.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let form = form(global, args.format)?;
    let Some(sql) = &args.sql else {
        return tables(form);
    };
    let sql = match sql.as_str() {
        "-" => from_stdin()?,
        sql => sql.to_owned(),
    };
    let stopped = stop_flag()?;
    let source = match &args.db {
        Some(file) => Source::Indexed {
            runs: &global.runs,
            file,
        },
        None => Source::Named(dirs(global, &args.run)?),
    };
    let mut store = Store::open(&source, stopped)?;
    let tables = store.tables_of(&sql)?;
    store.load(&source, &tables)?;
    answer(global, &mut store, &sql, form)
}

/// The question that another program asks.
fn from_stdin() -> anyhow::Result<String> {
    let mut sql = String::new();
    let stdin = std::io::stdin().lock();
    let read = stdin.take(SQL_BYTES_MAX + 1).read_to_string(&mut sql);
    read.context("cannot read stdin")?;
    if sql.len() as u64 > SQL_BYTES_MAX {
        let message = "stdin: a statement is 1 MiB at most";
        return Err(ExitError::new(Exit::Input, message).into());
    }
    Ok(sql)
}

/// The record folders that are meant, each once.
fn dirs(global: &Global, runs: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    if runs.is_empty() {
        return store::record_dirs(&global.runs);
    }
    let mut names = BTreeSet::new();
    let mut dirs = Vec::new();
    for run in runs {
        let dir = show::find(global, Some(run))?;
        if !names.insert(store::id(&dir)) {
            let message = format!("two of the runs are called {}", store::id(&dir));
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        dirs.push(dir);
    }
    Ok(dirs)
}

fn form(global: &Global, format: Option<QueryFormat>) -> anyhow::Result<RowForm> {
    let usage = |message: &str| Err(ExitError::new(Exit::Usage, message).into());
    match format {
        Some(_) if global.json => usage("--json has a form of its own: leave out --format"),
        None if global.json => Ok(RowForm::Document(SCHEMA)),
        None | Some(QueryFormat::Table) => Ok(RowForm::Table(out::style(global.color))),
        Some(QueryFormat::Csv) => Ok(RowForm::Csv),
        Some(QueryFormat::Json) => Ok(RowForm::Json),
        Some(QueryFormat::Jsonl) => Ok(RowForm::Jsonl),
        Some(QueryFormat::Md) => Ok(RowForm::Markdown),
        Some(QueryFormat::Parquet) => Ok(RowForm::Parquet),
    }
}

/// Whether a signal has asked to stop; the second one ends everything.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(Exit::Interrupted.code());
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot watch for signals")?;
    }
    Ok(flag)
}

/// Asks the question and writes the answer.
fn answer(global: &Global, store: &mut Store, sql: &str, form: RowForm) -> anyhow::Result<Exit> {
    let mut question = store.question(sql)?;
    let names: Vec<String> = question.column_names().map(str::to_owned).collect();
    let has_names = matches!(
        form,
        RowForm::Json | RowForm::Jsonl | RowForm::Document(_) | RowForm::Parquet
    );
    if let Some(twice) = twice(&names).filter(|_| has_names) {
        let message = format!("two columns are called '{twice}': name one of them, by AS");
        return Err(ExitError::new(Exit::Input, message).into());
    }
    let count = names.len();
    let mut to = form.to_stdout()?;
    let mut writer = RowWriter::new(form, names, &mut to)?;
    let mut rows = question.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if writer.is_full() {
            out::note(format_args!(
                "There are more than {SHOWN_MAX} rows: LIMIT chooses, --format csv has all."
            ));
            break;
        }
        let values = (0..count).map(|at| row.get_ref(at).map(datum));
        let values: Vec<Datum> = values.collect::<Result<_, _>>().map_err(failed)?;
        writer.row(&values)?;
        if out::is_stopped() {
            return Ok(Exit::Success);
        }
    }
    if writer.is_empty() && !global.quiet {
        out::note("No rows.");
    }
    writer.end()?;
    Ok(Exit::Success)
}

/// A name that two columns have.
fn twice(names: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

fn datum(value: ValueRef<'_>) -> Datum<'_> {
    match value {
        ValueRef::Null => Datum::Missing,
        ValueRef::Integer(value) => Datum::Whole(value),
        ValueRef::Real(value) => Datum::from(value),
        ValueRef::Text(text) => Datum::Words(String::from_utf8_lossy(text)),
        // None of the tables has any: a question has made it.
        ValueRef::Blob(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            Datum::from(format!("x'{}'", digits.collect::<String>()))
        }
    }
}

/// Lists tables and columns.
fn tables(form: RowForm) -> anyhow::Result<Exit> {
    if let RowForm::Table(style) = form {
        let mut grid = Grid::new([
            words("column", 0),
            words("type", 0),
            words("unit", 0),
            words("", 0),
        ]);
        for (at, table) in TABLES.iter().enumerate() {
            let when = if at < KEPT_TABLES {
                ""
            } else {
                " (read on demand)"
            };
            grid.heading(format!("{}: {}{when}", table.name, table.meaning));
            for column in table.columns {
                grid.line([
                    GridCell::from(column.name),
                    GridCell::from(column.kind.sql().to_lowercase()),
                    GridCell::from(column.unit),
                    GridCell::from(column.meaning),
                ]);
            }
        }
        out::text(grid.continued(1).render(style));
        return Ok(Exit::Success);
    }
    let names = ["table_name", "column_name", "type", "unit", "meaning"];
    let mut to = form.to_stdout()?;
    let mut writer = RowWriter::new(form, names.map(str::to_owned).to_vec(), &mut to)?;
    for table in TABLES {
        for column in table.columns {
            let unit = (!column.unit.is_empty()).then_some(column.unit);
            let row = [
                table.name.into(),
                column.name.into(),
                column.kind.sql().into(),
                unit.into(),
                column.meaning.into(),
            ];
            writer.row(&row)?;
        }
    }
    writer.end()?;
    Ok(Exit::Success)
}
