//! The tables of runs in SQLite: for one question, or in a file that is kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fathom_model::Exit;
use fathom_record::{ListedRun, RecordError};
use fathom_report::query::{
    Datum, HISTOGRAMS, KEPT_TABLES, RunFacts, SAMPLES, TABLES, TableDef, put_samples,
    put_unreadable,
};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ErrorCode, Statement, ToSql};

use super::index;
use crate::cmd::ExitError;
use crate::out;

/// Longest text or value, in bytes.
const VALUE_BYTES_MAX: i32 = 16 << 20;
/// What SQLite may take of memory, in bytes; tables beyond its cache lie in a file of
/// the temporary folder that has no name.
const HEAP_BYTES_MAX: i64 = 1 << 30;
/// Cache of each database, in KiB.
const CACHE_KIB: i64 = 64 << 10;
/// So many steps of SQLite's machine lie between two looks at whether it is to stop:
/// some ms.
const STEPS_PER_LOOK: i32 = 100_000;

/// Tables that wait for a question.
pub struct Store {
    pub db: Connection,
    /// Whether somebody has stopped it.
    stopped: Arc<AtomicBool>,
}

/// Where runs are.
pub enum Source<'s> {
    /// These record folders.
    Named(Vec<PathBuf>),
    /// All of a folder, with their index.
    Indexed { runs: &'s Path, file: &'s Path },
}

impl Store {
    /// Opens tables that are empty, or those of an index.
    pub fn open(source: &Source, stopped: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let mut db = match source {
            Source::Named(_) => {
                // Without a name it is of nobody else, and gone at the end.
                let db = Connection::open("").map_err(failed)?;
                for table in &TABLES[..KEPT_TABLES] {
                    db.execute_batch(&table.create(table.name))
                        .map_err(failed)?;
                }
                pragma(&db, "main.journal_mode", "off")?;
                db
            }
            Source::Indexed { runs, file } => index::open(file, runs)?,
        };
        WeightedMean::add_to(&db).map_err(failed)?;
        db.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
            .map_err(failed)?;
        db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)
            .map_err(failed)?;
        for schema in ["main", "temp"] {
            pragma(&db, &format!("{schema}.cache_size"), -CACHE_KIB)?;
        }
        pragma(&db, "hard_heap_limit", HEAP_BYTES_MAX)?;
        pragma(&db, "temp.journal_mode", "off")?;
        for table in &TABLES[KEPT_TABLES..] {
            let name = format!("temp.{}", table.name);
            db.execute_batch(&table.create(&name)).map_err(failed)?;
        }
        let asked = Arc::clone(&stopped);
        let stops = move || asked.load(Ordering::Relaxed);
        db.progress_handler(STEPS_PER_LOOK, Some(stops))
            .map_err(failed)?;
        Ok(Self { db, stopped })
    }

    /// Reads what a question needs: the tables that it names.
    pub fn load(&mut self, source: &Source, tables: &BTreeSet<String>) -> anyhow::Result<()> {
        let is_named = |table: &&TableDef| tables.contains(table.name);
        let is_kept = TABLES[..KEPT_TABLES].iter().any(is_named);
        let dirs = match source {
            Source::Named(dirs) => {
                if is_kept {
                    let begun = self.db.unchecked_transaction().map_err(failed)?;
                    self.put_runs(dirs, &mut |_| Ok(()))?;
                    begun.commit().map_err(failed)?;
                }
                dirs.clone()
            }
            Source::Indexed { runs, .. } => {
                let dirs = record_dirs(runs)?;
                if is_kept {
                    index::update(self, &dirs)?;
                }
                dirs
            }
        };
        if is_named(&&HISTOGRAMS) || is_named(&&SAMPLES) {
            self.put_on_demand(&dirs, is_named(&&HISTOGRAMS), is_named(&&SAMPLES))?;
        }
        Ok(())
    }

    /// Reads runs into the tables that are kept, and tells of each whether it is as it
    /// will stay.
    pub fn put_runs(
        &self,
        dirs: &[PathBuf],
        done: &mut dyn FnMut(PutRun) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut inserts = Inserts::default();
        for dir in dirs {
            self.look()?;
            // Before it is read: what is written meanwhile makes it another one.
            let stamp = fathom_record::stamp(dir);
            let mut take =
                |table: &'static TableDef, row: &[Datum]| inserts.put(&self.db, "main", table, row);
            let is_final = match RunFacts::read(dir) {
                Ok(run) => {
                    run.put(&mut take)?;
                    run.doc.status != fathom_model::RunStatus::Running
                }
                Err(error) => {
                    out::note(format_args!("unreadable: {error}"));
                    let mut listed = ListedRun::read(dir);
                    listed.summary = Err(error);
                    put_unreadable(&listed, &mut take)?;
                    false
                }
            };
            done(PutRun {
                id: id(dir),
                stamp: stamp.filter(|_| is_final),
            })?;
        }
        Ok(())
    }

    fn put_on_demand(
        &self,
        dirs: &[PathBuf],
        histograms: bool,
        samples: bool,
    ) -> anyhow::Result<()> {
        let mut inserts = Inserts::default();
        let begun = self.db.unchecked_transaction().map_err(failed)?;
        for dir in dirs {
            self.look()?;
            let mut n = 0u32;
            let mut take = |table: &'static TableDef, row: &[Datum]| {
                n = n.wrapping_add(1);
                if n.is_multiple_of(1 << 14) {
                    self.look()?;
                }
                inserts.put(&self.db, "temp", table, row)
            };
            let mut told = false;
            let mut tell = |damage: &RecordError| {
                if !std::mem::replace(&mut told, true) {
                    out::note(format_args!("fathom: {damage}"));
                }
            };
            let mut read = || -> anyhow::Result<()> {
                if samples {
                    put_samples(dir, &mut tell, &mut take)?;
                }
                if histograms {
                    RunFacts::read(dir)?.put_histograms(&mut take)?;
                }
                Ok(())
            };
            match read() {
                Err(error) if error.is::<RecordError>() => {
                    out::note(format_args!("unreadable: {error}"));
                }
                done => done?,
            }
        }
        begun.commit().map_err(failed)
    }

    /// The tables that a question reads.
    ///
    /// # Errors
    /// When it is none: wrong, more than one, or one that would change something.
    pub fn tables_of(&mut self, sql: &str) -> anyhow::Result<BTreeSet<String>> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let tables = Arc::clone(&seen);
        self.guard(move |context| match tables.lock() {
            Ok(mut seen) => seen.judge(&context),
            Err(_) => Authorization::Deny,
        })?;
        let prepared = self.db.prepare(sql);
        let read_only = prepared.map(|question| question.readonly());
        let mut seen = seen
            .lock()
            .map_err(|_| anyhow::anyhow!("a poisoned lock"))?;
        let seen = std::mem::take(&mut *seen);
        match (seen.refused, read_only) {
            (Some(what), _) => {
                let message =
                    format!("refused: {what}. Records stay as they are: a query only reads");
                Err(ExitError::new(Exit::Refused, message).into())
            }
            (None, Ok(true)) => {
                self.db
                    .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
                    .map_err(failed)?;
                Ok(seen.tables)
            }
            (None, Ok(false)) => {
                let message = "refused: it writes. Records stay as they are: a query only reads";
                Err(ExitError::new(Exit::Refused, message).into())
            }
            (None, Err(error)) => Err(wrong(sql, &error)),
        }
    }

    /// The question, ready to be asked, and nothing else can be.
    pub fn question(&mut self, sql: &str) -> anyhow::Result<Statement<'_>> {
        self.guard(|context| Seen::default().judge(&context))?;
        self.db.prepare(sql).map_err(|error| wrong(sql, &error))
    }

    fn guard(
        &mut self,
        judge: impl FnMut(AuthContext<'_>) -> Authorization + Send + 'static,
    ) -> anyhow::Result<()> {
        self.db.authorizer(Some(judge)).map_err(failed)
    }

    /// Ends a loop that somebody has stopped.
    pub fn look(&self) -> anyhow::Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(ExitError::new(Exit::Interrupted, "interrupted").into()),
        }
    }
}

/// `weighted_mean(value, weight)`: a mean over intervals of different lengths. The last
/// interval of a step is rarely whole, and avg() counts it as much as the others.
struct WeightedMean;

impl WeightedMean {
    fn add_to(db: &Connection) -> rusqlite::Result<()> {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        db.create_aggregate_function("weighted_mean", 2, flags, Self)
    }
}

impl Aggregate<(f64, f64), Option<f64>> for WeightedMean {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<(f64, f64)> {
        Ok((0.0, 0.0))
    }

    /// A value or weight that is null counts for nothing, as with avg().
    fn step(&self, of: &mut Context<'_>, sums: &mut (f64, f64)) -> rusqlite::Result<()> {
        if let (Some(value), Some(weight)) = (of.get::<Option<f64>>(0)?, of.get::<Option<f64>>(1)?)
        {
            sums.0 += value * weight;
            sums.1 += weight;
        }
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        sums: Option<(f64, f64)>,
    ) -> rusqlite::Result<Option<f64>> {
        let weighted = sums.filter(|(_, weight)| *weight > 0.0);
        Ok(weighted.map(|(sum, weight)| sum / weight))
    }
}

/// A run that has been read.
pub struct PutRun {
    pub id: String,
    /// Its stamp; `None` where it is to be read again in any case: it goes on, or it
    /// cannot be read.
    pub stamp: Option<String>,
}

/// What SQLite asks while a question is prepared.
#[derive(Default)]
struct Seen {
    tables: BTreeSet<String>,
    refused: Option<String>,
}

impl Seen {
    /// Lets pass what reads.
    fn judge(&mut self, context: &AuthContext<'_>) -> Authorization {
        let what = match context.action {
            AuthAction::Select | AuthAction::Recursive => return Authorization::Allow,
            AuthAction::Read { table_name, .. } => {
                self.tables.insert(table_name.to_ascii_lowercase());
                return Authorization::Allow;
            }
            AuthAction::Function { function_name }
                if !function_name.eq_ignore_ascii_case("load_extension") =>
            {
                return Authorization::Allow;
            }
            AuthAction::Function { .. } => "it loads a program",
            AuthAction::Attach { .. } | AuthAction::Detach { .. } => "it attaches another database",
            AuthAction::Pragma { .. } => "it asks for a pragma",
            AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
                "it begins or ends a transaction"
            }
            _ => "it writes",
        };
        self.refused.get_or_insert_with(|| what.to_owned());
        Authorization::Deny
    }
}

/// The statement that inserts a row, for each table that got one.
#[derive(Default)]
struct Inserts<'d> {
    of: Vec<(&'static str, Statement<'d>)>,
}

impl<'d> Inserts<'d> {
    fn put(
        &mut self,
        db: &'d Connection,
        schema: &str,
        table: &'static TableDef,
        row: &[Datum],
    ) -> anyhow::Result<()> {
        let at = self.of.iter().position(|(name, _)| *name == table.name);
        let at = match at {
            Some(at) => at,
            None => {
                let places = vec!["?"; table.columns.len()].join(",");
                let sql = format!("INSERT INTO {schema}.{} VALUES ({places})", table.name);
                self.of
                    .push((table.name, db.prepare(&sql).map_err(failed)?));
                self.of.len() - 1
            }
        };
        let statement = &mut self.of[at].1;
        let values = rusqlite::params_from_iter(row.iter().map(Bound));
        statement.execute(values).map_err(failed)?;
        Ok(())
    }
}

/// A value on its way into a table.
struct Bound<'v>(&'v Datum<'v>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Datum::Missing => ToSqlOutput::Owned(Value::Null),
            Datum::Whole(value) => ToSqlOutput::Owned(Value::Integer(*value)),
            Datum::Number(value) => ToSqlOutput::Owned(Value::Real(*value)),
            Datum::Words(words) => ToSqlOutput::Borrowed(ValueRef::Text(words.as_bytes())),
        })
    }
}

/// The record folders under a folder, by their names.
pub fn record_dirs(runs: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut dirs = fathom_record::record_dirs(runs)?;
    dirs.sort_unstable();
    Ok(dirs)
}

/// The name of a run.
pub fn id(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Sets what SQLite is to do.
pub fn pragma(
    db: &Connection,
    name: &str,
    value: impl ToSql + std::fmt::Display,
) -> anyhow::Result<()> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, name),
    };
    let value = value.to_string();
    let value = value
        .parse::<i64>()
        .map_or(Value::Text(value), Value::Integer);
    db.pragma_update_and_check(schema, name, value, |_| Ok(()))
        .or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(()),
            other => Err(other),
        })
        .map_err(failed)
}

/// What is wrong with a question.
fn wrong(sql: &str, error: &rusqlite::Error) -> anyhow::Error {
    let said = match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } => {
            let before = usize::try_from(*offset).ok().and_then(|at| sql.get(..at));
            let place = before.map_or_else(String::new, |before| {
                let line = before.matches('\n').count() + 1;
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let column = before[start..].chars().count() + 1;
                format!("line {line}, column {column}: ")
            });
            format!("{place}{msg}")
        }
        rusqlite::Error::SqliteFailure(_, Some(said)) => said.clone(),
        rusqlite::Error::MultipleStatement => "one statement at a time".to_owned(),
        rusqlite::Error::SqliteFailure(error, None)
            if error.code == ErrorCode::OperationInterrupted =>
        {
            return ExitError::new(Exit::Interrupted, "interrupted").into();
        }
        other => other.to_string(),
    };
    let message = format!("{said}\n  'fathom query --tables' lists tables and columns");
    ExitError::new(Exit::Input, message).into()
}

/// What went wrong in SQLite itself.
pub fn failed(error: rusqlite::Error) -> anyhow::Error {
    let exit = match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            return ExitError::new(Exit::Interrupted, "interrupted").into();
        }
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            let message = "refused: it asks for more than the tables of 'fathom query --tables'";
            return ExitError::new(Exit::Refused, message).into();
        }
        Some(ErrorCode::OutOfMemory) => {
            let message = "this takes more than 1 GiB of memory: name fewer runs, or ask for less";
            return ExitError::new(Exit::Failed, message).into();
        }
        _ => Exit::Failed,
    };
    ExitError::new(exit, format!("SQLite: {error}")).into()
}
