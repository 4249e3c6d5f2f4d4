//! `fathom engines`: the I/O engines there are, and their options.

use std::path::PathBuf;

use fathom_engine_fio::inventory::{self, EngineOption};
use fathom_engine_fio::version::Program;

use fathom_jobfile::table::nearest;
use fathom_model::{Exit, Failure};

use super::{ExitError, Global};
use crate::out;

mod all;
pub mod document;
mod own;

use document::{EngineDocument, OptionDocument};

/// Columns of a list where the output is no terminal.
const WIDTH: usize = 100;

/// List the I/O engines and their options, of fio and of the native engine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom engines                          every I/O engine, who has it, its own options
  fathom engines libaio                   the options that only libaio has
  fathom engines libaio,cmdprio_bssplit   one of them in detail, and who takes it
  fathom engines native                   every option of the native engine
  fathom engines native,rate              one of them
  fathom engines --json | jq '.engines[].name'")]
pub struct Args {
    /// An I/O engine or \"native\", or one of its options
    #[arg(value_name = "ENGINE[,OPTION]")]
    what: Option<String>,
    /// The fio to ask [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    fio: Option<PathBuf>,
    /// Write the native engine's options as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Lists what was asked for.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let what = args.what.as_deref();
    let what = what.map(|what| what.split_once(',').unwrap_or((what, "")));
    if args.markdown {
        if what != Some((own::NAME, "")) {
            let message = "--markdown is for 'fathom engines native'".to_owned();
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        out::text(fathom_engine_native::markdown());
        return Ok(Exit::Success);
    }
    let fio = Program::find(args.fio.as_deref()).map_err(missing);
    match what {
        None => all::show(global, fio.ok().as_ref())?,
        Some((own::NAME, option)) => own::show(global, option)?,
        Some((engine, option)) => match fio {
            Ok(fio) if option.is_empty() => one(global, &fio, engine)?,
            Ok(fio) => detail(global, &fio, engine, option)?,
            Err(missing) => own::without_fio(global, engine, option, missing)?,
        },
    }
    Ok(Exit::Success)
}

fn one(global: &Global, fio: &Program, engine: &str) -> anyhow::Result<()> {
    let Some(options) = inventory::options(fio, engine)? else {
        return Err(unknown_engine(fio, engine)?);
    };
    if global.json {
        let row = |option: &EngineOption| document::OptionRow::OfFio {
            name: option.name.clone(),
            help: option.help.clone(),
            native: own::takes(engine, &option.name),
        };
        return out::json(&EngineDocument {
            native: Some(own::has(engine)),
            options: Some(options.iter().map(row).collect()),
            ..EngineDocument::new(engine)
        });
    }
    if options.is_empty() {
        out::line(format_args!("{engine} has no options of its own"));
    }
    let width = options.iter().map(|option| option.name.len()).max();
    let width = width.unwrap_or(0);
    for EngineOption { name, help, .. } in &options {
        let who = if own::takes(engine, name) {
            "fio, native"
        } else {
            "fio"
        };
        out::line(format_args!("{name:width$}  {who:11}  {help}"));
    }
    if !own::has(engine) {
        out::line(format_args!("the native engine has no {engine}"));
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
        return out::json(&OptionDocument {
            schema: "fathom.engine-option/1",
            engine,
            option: Some(&found),
            native: own::takes(engine, option),
        });
    }
    out::line(format_args!("{}: {}", found.name, found.help));
    let names = found.details.iter().map(|(name, _)| name.len());
    let width = names.max().unwrap_or(0);
    for (name, values) in &found.details {
        let mut name = name.as_str();
        for value in values {
            out::line(format_args!("  {name:width$}  {value}"));
            name = "";
        }
    }
    out::line(format_args!(
        "  {:width$}  {}",
        "native",
        own::verdict(engine, option)
    ));
    Ok(())
}

fn unknown_engine(fio: &Program, engine: &str) -> anyhow::Result<anyhow::Error> {
    let names = inventory::engine_names(fio)?;
    if names.iter().any(|name| name == engine) {
        let message = format!("{engine}: fio names this engine, but it cannot be loaded here");
        return Ok(ExitError::new(Exit::Missing, message).into());
    }
    let near = nearest(engine, names.iter().map(String::as_str));
    Ok(near_miss(format!("there is no engine {engine}"), near))
}

fn near_miss(mut message: String, near: Option<&str>) -> anyhow::Error {
    if let Some(near) = near {
        message.push_str(&format!("; did you mean {near}?"));
    }
    ExitError::new(Exit::Missing, message).into()
}

fn missing(failure: Failure) -> ExitError {
    ExitError::new(Exit::Missing, failure)
}
