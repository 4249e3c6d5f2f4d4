//! The tables of a folder of runs, kept in a file: whatever has changed since is read
//! again, and what is not such a file is left alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_model::Exit;
use fathom_record::Chain;
use fathom_report::query::{KEPT_TABLES, TABLES};
use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params,
};

use super::store::{PutRun, Store, failed, id, pragma};
use crate::cmd::{ExitError, may_write};
use crate::out;

/// `Fthm`: SQLite's mark of whose file it is.
const APPLICATION_ID: u32 = 0x4674_686d;
/// Where it stands in a file, and what begins one (sqlite.org/fileformat2.html).
const APPLICATION_ID_AT: usize = 68;
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Length of that header.
const HEADER_BYTES: u64 = 100;

/// Of what folder the file is, and which runs it has, as they were.
const OWN_TABLES: [&str; 2] = [
    "CREATE TABLE fathom_folder (path TEXT)",
    "CREATE TABLE fathom_stamps (run TEXT PRIMARY KEY, stamp TEXT) WITHOUT ROWID",
];

/// Everything that makes the tables.
fn statements() -> Vec<String> {
    let own = OWN_TABLES.iter().map(|&sql| sql.to_owned());
    let tables = TABLES[..KEPT_TABLES].iter();
    own.chain(tables.map(|table| table.create(table.name)))
        .collect()
}

/// The version of what stands in the file: of the tables, and of who judges the runs.
fn version() -> i32 {
    let text = format!("{} {}", env!("CARGO_PKG_VERSION"), statements().join(";"));
    let check = Chain::of(text.as_bytes()).to_string();
    // Without its sign.
    u32::from_str_radix(&check, 16).map_or(1, |check| (check >> 1) as i32)
}

/// Opens the index of a folder of runs; one that is not there is made, one of another
/// version is made anew.
pub fn open(path: &Path, runs: &Path) -> anyhow::Result<Connection> {
    may_write(path)?;
    let runs = fs::canonicalize(runs).unwrap_or_else(|_| runs.to_owned());
    let runs = runs.to_string_lossy();
    if is_there(path)? {
        let db = connect(path)?;
        match is_current(&db) {
            Ok(true) => {
                check(path, &db, &runs)?;
                return Ok(db);
            }
            Ok(false) => {}
            Err(error) => return Err(damaged(path, &error)),
        }
        drop(db);
        fs::remove_file(path).with_context(|| format!("cannot renew {}", path.display()))?;
    }
    let db = connect(path)?;
    let make = || {
        let begun = db.unchecked_transaction()?;
        statements()
            .iter()
            .try_for_each(|sql| db.execute_batch(sql))?;
        db.execute("INSERT INTO fathom_folder VALUES (?)", [&runs])?;
        db.pragma_update(None, "application_id", APPLICATION_ID)?;
        db.pragma_update(None, "user_version", version())?;
        begun.commit()
    };
    let made: rusqlite::Result<()> = make();
    made.map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        ExitError::new(Exit::Failed, message)
    })?;
    Ok(db)
}

fn connect(path: &Path) -> anyhow::Result<Connection> {
    let db = Connection::open(path).map_err(|error| {
        let message = format!("cannot open {}: {error}", path.display());
        ExitError::new(Exit::Failed, message)
    })?;
    // Whatever stands in its schema does nothing.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)
        .map_err(failed)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
        .map_err(failed)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
        .map_err(failed)?;
    pragma(&db, "cell_size_check", "on")?;
    Ok(db)
}

/// Whether there is a file of ours; an empty one is nobody's.
fn is_there(path: &Path) -> anyhow::Result<bool> {
    let mut begin = Vec::new();
    let is_file = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        kind => kind.with_context(|| path.display().to_string())?.is_file(),
    };
    if is_file {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(HEADER_BYTES).read_to_end(&mut begin)?;
        if begin.is_empty() {
            return Ok(false);
        }
    }
    let of = begin.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    if begin.starts_with(MAGIC) && of == Some(&APPLICATION_ID.to_be_bytes()) {
        return Ok(true);
    }
    Err(refused(path, "it is no index of Fathom"))
}

fn refused(path: &Path, why: &str) -> anyhow::Error {
    let message = format!(
        "{}: {why}; it was left as it is: name another file, or remove it, and it is made anew",
        path.display()
    );
    ExitError::new(Exit::Refused, message).into()
}

fn damaged(path: &Path, error: &rusqlite::Error) -> anyhow::Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            refused(path, &format!("it is damaged ({error})"))
        }
        _ => {
            let message = format!("{}: {error}", path.display());
            ExitError::new(Exit::Failed, message).into()
        }
    }
}

fn is_current(db: &Connection) -> rusqlite::Result<bool> {
    let found: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(found == version())
}

/// Whether the file is whole, ours alone, and of this folder.
fn check(path: &Path, db: &Connection, runs: &str) -> anyhow::Result<()> {
    let look = || -> rusqlite::Result<_> {
        let whole: String = db.pragma_query_value(None, "quick_check", |row| row.get(0))?;
        let mut schema = db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
        let schema = schema.query_map([], |row| row.get(0))?;
        let schema: Vec<String> = schema.collect::<Result<_, _>>()?;
        let of = db.query_row("SELECT path FROM fathom_folder", [], |row| row.get(0));
        let of: Option<String> = of.optional()?;
        Ok((whole, schema, of))
    };
    let (whole, schema, of) = look().map_err(|error| damaged(path, &error))?;
    if whole != "ok" {
        return Err(refused(path, &format!("it is damaged ({whole})")));
    }
    if schema != statements() {
        return Err(refused(path, "others have changed its tables"));
    }
    match of {
        Some(of) if of == runs => Ok(()),
        of => {
            let of = of.unwrap_or_default();
            Err(refused(path, &format!("it is the index of {of}")))
        }
    }
}

/// Brings an index up to date: runs that are new or have changed are read, those that
/// are gone leave.
pub fn update(store: &Store, dirs: &[PathBuf]) -> anyhow::Result<()> {
    let db = &store.db;
    let mut kept: BTreeMap<String, Option<String>> = BTreeMap::new();
    {
        let mut stamps = db
            .prepare("SELECT run, stamp FROM fathom_stamps")
            .map_err(failed)?;
        let rows = stamps.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        for row in rows.map_err(failed)? {
            let (run, stamp) = row.map_err(failed)?;
            kept.insert(run, stamp);
        }
    }
    let mut stale = Vec::new();
    for dir in dirs {
        store.look()?;
        match kept.remove(&id(dir)) {
            Some(Some(was)) if fathom_record::stamp(dir).as_ref() == Some(&was) => {}
            _ => stale.push(dir.clone()),
        }
    }
    if stale.is_empty() && kept.is_empty() {
        return Ok(());
    }
    // Another query may be at it, too: who comes second does the same again.
    let begun = Transaction::new_unchecked(db, TransactionBehavior::Immediate).map_err(failed)?;
    let gone = kept.into_keys();
    forget(db, gone.chain(stale.iter().map(|dir| id(dir)))).map_err(failed)?;
    let sql = "INSERT INTO fathom_stamps VALUES (?, ?)";
    let mut keep = db.prepare(sql).map_err(failed)?;
    store.put_runs(&stale, &mut |PutRun { id, stamp }| {
        keep.execute(params![id, stamp]).map_err(failed)?;
        Ok(())
    })?;
    begun.commit().map_err(|error| {
        out::note("fathom: the index could not be written");
        failed(error)
    })
}

/// Takes runs out of every table.
fn forget(db: &Connection, runs: impl Iterator<Item = String>) -> rusqlite::Result<()> {
    db.execute_batch("CREATE TEMP TABLE fathom_stale (run TEXT PRIMARY KEY)")?;
    {
        let mut add = db.prepare("INSERT INTO temp.fathom_stale VALUES (?)")?;
        for run in runs {
            add.execute([run])?;
        }
    }
    let tables = TABLES[..KEPT_TABLES].iter().map(|table| table.name);
    for table in tables.chain(["fathom_stamps"]) {
        let sql =
            format!("DELETE FROM main.{table} WHERE run IN (SELECT run FROM temp.fathom_stale)");
        db.execute_batch(&sql)?;
    }
    db.execute_batch("DROP TABLE temp.fathom_stale")
}
