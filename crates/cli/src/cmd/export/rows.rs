//! Any run row by row, with the columns that `fathom query` has.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use fathom_model::{Exit, text as foreign, units};
use fathom_record::RecordError;
use fathom_report::query::{Datum, FIGURES, RunFacts, SAMPLES, TableDef, put_samples};

use super::{Args, Document, ExitError, ExportFormat, Global};
use crate::cmd::archived;
use crate::cmd::rows::{RowForm, RowWriter, TakePiece};
use crate::out;

/// Exports figures, samples or the document of one run.
pub fn run(global: &Global, args: &Args, dir: &Path) -> anyhow::Result<Exit> {
    let what = match (args.all, args.samples) {
        (true, _) => "figures",
        (_, true) => "samples",
        _ => "run",
    };
    let form = match args.format {
        ExportFormat::Csv => RowForm::Csv,
        ExportFormat::Json => RowForm::Json,
        ExportFormat::Jsonl => RowForm::Jsonl,
        ExportFormat::Parquet if what != "run" => RowForm::Parquet,
        ExportFormat::Parquet => {
            let message = "parquet has rows: of figures with --all, of samples with --samples";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        ExportFormat::Ssv => {
            let message =
                "ssv has the columns of fio-tests alone: take csv, json, jsonl or parquet";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
    };
    if args.out.as_deref() == Some(Path::new("-")) {
        if global.json {
            let message = "with --json stdout carries a document: leave out '--out -'";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        write(what, form, dir, &mut form.to_stdout()?)?;
        return Ok(Exit::Success);
    }
    let to = args
        .out
        .clone()
        .unwrap_or_else(|| archived::beside(dir, "exports"));
    let path = to.join(format!("{what}.{}", args.format.ending()));
    crate::cmd::may_write(&path)?;
    let cannot = || format!("cannot write {}", path.display());
    std::fs::create_dir_all(&to).with_context(cannot)?;
    let n = fathom_fleet::named_file::write(&path, |file| {
        write(what, form, dir, &mut |piece| {
            file.write_all(piece).with_context(cannot)
        })
    })?;
    if global.json {
        out::json(&Document {
            schema: "fathom.exported/1",
            run: &dir.file_name().unwrap_or_default().to_string_lossy(),
            files: vec![path],
            left_out: Vec::new(),
        })?;
    } else if !global.quiet {
        let rows = units::counted(n, "row");
        out::note(format_args!("{rows} in {}", path.display()));
    }
    Ok(Exit::Success)
}

/// Writes them; how many rows there were.
fn write(what: &str, form: RowForm, dir: &Path, to: &mut TakePiece<'_>) -> anyhow::Result<usize> {
    if what == "run" {
        let mut doc = fathom_document::read(dir)?;
        fathom_document::drop_histograms(&mut doc);
        let line = serde_json::to_string(&doc)?;
        to((foreign::json(&line).into_owned() + "\n").as_bytes())?;
        return Ok(1);
    }
    let table = if what == "samples" {
        &SAMPLES
    } else {
        &FIGURES
    };
    let mut writer = RowWriter::of_table(form, table, to)?;
    let mut n = 0;
    let mut take = |_: &'static TableDef, row: &[Datum]| {
        n += 1;
        writer.row(row)
    };
    match what {
        "samples" => {
            let mut tell = |damage: &RecordError| out::note(format_args!("fathom: {damage}"));
            put_samples(dir, &mut tell, &mut take)?;
        }
        _ => RunFacts::read(dir)?.put_figures(&mut take)?,
    }
    writer.end()?;
    Ok(n)
}
