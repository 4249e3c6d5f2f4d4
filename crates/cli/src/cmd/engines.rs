//! `fathom engines`: the I/O engines there are, and their options.

use std::path::PathBuf;

use fathom_engine::fio::inventory::{self, EngineOption, IoEngine};
use fathom_engine::fio::version::Program;
use fathom_engine::jobfile::table::nearest;
use fathom_model::{Exit, Failure};
use fathom_report::style::wrap;
use serde_json::json;

use super::{ExitError, Global};
use crate::out;

/// Columns of a list where the output is no terminal.
const WIDTH: usize = 100;

/// List the I/O engines and their options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom engines                          every engine, who has it, its own options
  fathom engines libaio                   the options that only libaio has
  fathom engines libaio,cmdprio_bssplit   one of them in detail
  fathom engines --json | jq '.engines[].name'")]
pub struct Args {
    /// An engine, or one of its options
    #[arg(value_name = "ENGINE[,OPTION]")]
    what: Option<String>,
    /// The fio to ask [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    fio: Option<PathBuf>,
}

/// Lists what was asked for.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let fio = Program::find(args.fio.as_deref()).map_err(missing)?;
    match args
        .what
        .as_deref()
        .map(|what| what.split_once(',').unwrap_or((what, "")))
    {
        None => all(global, &fio)?,
        Some((engine, "")) => one(global, &fio, engine)?,
        Some((engine, option)) => detail(global, &fio, engine, option)?,
    }
    Ok(Exit::Success)
}

fn all(global: &Global, fio: &Program) -> anyhow::Result<()> {
    let engines = inventory::engines(fio)?;
    if global.json {
        let version = fio.version().map_err(missing)?.to_string();
        let engines: Vec<_> = engines
            .iter()
            .map(|engine| json!({ "name": engine.name, "fio": fio_state(engine), "options": engine.options }))
            .collect();
        return out::json(
            &json!({ "schema": "fathom.engines/1", "fio": version, "engines": engines }),
        );
    }
    let names = engines.iter().map(|engine| engine.name.len());
    let name_width = names.max().unwrap_or(0).max("engine".len());
    out::line(format_args!(
        "{:name_width$}  fio  options of its own",
        "engine"
    ));
    let margin = name_width + 2 + "fio".len() + 2;
    let width = out::style(global.color).width.map_or(WIDTH, usize::from);
    for engine in &engines {
        let (mark, text) = match &engine.options {
            Some(options) => {
                let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
                ("yes", names.join(", "))
            }
            None => (
                "no",
                "named by fio, but it cannot be loaded here".to_owned(),
            ),
        };
        let mut lines = wrap(&text, width.saturating_sub(margin).max(20)).into_iter();
        let first = lines.next().unwrap_or_default();
        out::line(format!("{:name_width$}  {mark:3}  {first}", engine.name).trim_end());
        for line in lines {
            out::line(format_args!("{:margin$}{line}", ""));
        }
    }
    Ok(())
}

fn fio_state(engine: &IoEngine) -> &'static str {
    match engine.options {
        Some(_) => "yes",
        None => "cannot be loaded",
    }
}

fn one(global: &Global, fio: &Program, engine: &str) -> anyhow::Result<()> {
    let Some(options) = inventory::options(fio, engine)? else {
        return Err(unknown_engine(fio, engine)?);
    };
    if global.json {
        return out::json(
            &json!({ "schema": "fathom.engine/1", "name": engine, "options": options }),
        );
    }
    if options.is_empty() {
        out::line(format_args!("{engine} has no options of its own"));
    }
    let width = options
        .iter()
        .map(|option| option.name.len())
        .max()
        .unwrap_or(0);
    for EngineOption { name, help, .. } in &options {
        out::line(format_args!("{name:width$}  {help}"));
    }
    Ok(())
}

fn detail(global: &Global, fio: &Program, engine: &str, option: &str) -> anyhow::Result<()> {
    let Some(found) = inventory::option(fio, engine, option)? else {
        let Some(options) = inventory::options(fio, engine)? else {
            return Err(unknown_engine(fio, engine)?);
        };
        let names = options.iter().map(|option| option.name.as_str());
        let what = format!("{engine} has no option {option} of its own");
        return Err(near_miss(what, nearest(option, names)));
    };
    if global.json {
        let option =
            json!({ "schema": "fathom.engine-option/1", "engine": engine, "option": found });
        return out::json(&option);
    }
    out::line(format_args!("{}: {}", found.name, found.help));
    let width = found
        .details
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, values) in &found.details {
        let mut name = name.as_str();
        for value in values {
            out::line(format_args!("  {name:width$}  {value}"));
            name = "";
        }
    }
    Ok(())
}

fn unknown_engine(fio: &Program, engine: &str) -> anyhow::Result<anyhow::Error> {
    let names = inventory::engine_names(fio)?;
    if names.iter().any(|name| name == engine) {
        let message = format!("{engine}: fio names this engine, but it cannot be loaded here");
        return Ok(ExitError {
            exit: Exit::Missing,
            message,
        }
        .into());
    }
    let near = nearest(engine, names.iter().map(String::as_str));
    Ok(near_miss(format!("there is no engine {engine}"), near))
}

fn near_miss(mut message: String, near: Option<&str>) -> anyhow::Error {
    if let Some(near) = near {
        message.push_str(&format!("; did you mean {near}?"));
    }
    ExitError {
        exit: Exit::Missing,
        message,
    }
    .into()
}

fn missing(failure: Failure) -> ExitError {
    ExitError {
        exit: Exit::Missing,
        message: failure.to_string(),
    }
}
