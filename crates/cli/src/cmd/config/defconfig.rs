//! `fathom config defconfig` and `savedefconfig`.

use std::path::{Path, PathBuf};

use fathom_campaign::folder::{self, Defconfig, Folder};
use fathom_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{ConfigSession, Global, StartValues, exit_error, texts};
use crate::out;

/// Take a configuration that is ready; without a name, list them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A defconfig is a file in the folder's defconfigs/, in the form of a .config; its first line
says what it is. What it does not name gets its default.

Examples:
  fathom config defconfig
  fathom config defconfig survey-10min
  DEV=/dev/nvme1n1 fathom config defconfig all-tests")]
pub struct Args {
    /// The file's name
    name: Option<String>,
}

/// Write only what differs from the defaults
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config savedefconfig                           into ./defconfig
  fathom config savedefconfig defconfigs/our-drives     a defconfig of your own")]
pub struct Save {
    /// The file, in the campaign's folder
    #[arg(default_value = "defconfig")]
    file: PathBuf,
}

/// Takes a defconfig, or lists them.
pub fn run(global: &Global, folder: &Folder, args: &Args) -> anyhow::Result<Exit> {
    let all = folder.all_defconfigs().map_err(exit_error)?;
    let Some(name) = &args.name else {
        return list(global, &all);
    };
    let Some(found) = all.iter().find(|defconfig| defconfig.name == *name) else {
        let names: Vec<&str> = all.iter().map(|defconfig| &*defconfig.name).collect();
        let message = format!(
            "there is no defconfig {name}; there are {}",
            names.join(", ")
        );
        return Err(super::input(message).into());
    };
    let mut session = ConfigSession::open(global, folder, StartValues::Anew)?;
    let warnings = folder::take(&mut session.config, &found.text, &found.place());
    let warnings = warnings.map_err(exit_error)?;
    if !global.json {
        texts(&warnings)
            .iter()
            .for_each(|warning| super::note(warning));
    }
    session.warnings.extend(texts(&warnings));
    session.finish(&[])
}

/// What `--list --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct DefconfigList<'a> {
    schema: &'static str,
    defconfigs: Vec<DefconfigRow<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct DefconfigRow<'a> {
    name: &'a str,
    about: &'a str,
    /// Null: it comes with Fathom.
    file: Option<&'a Path>,
}

fn list(global: &Global, all: &[Defconfig]) -> anyhow::Result<Exit> {
    if global.json {
        let rows = all.iter().map(|one| DefconfigRow {
            name: &one.name,
            about: one.about(),
            file: one.path.as_deref(),
        });
        out::json(&DefconfigList {
            schema: "fathom.defconfigs/1",
            defconfigs: rows.collect(),
        })?;
        return Ok(Exit::Success);
    }
    let width = all.iter().map(|one| one.name.chars().count()).max();
    let width = width.unwrap_or(0);
    for one in all {
        let line = format!("{:width$}  {}", one.name, one.about());
        out::line(line.trim_end());
    }
    Ok(Exit::Success)
}

/// Writes the short form.
pub fn save(session: &ConfigSession, args: &Save) -> anyhow::Result<Exit> {
    let path = session.folder.file(&args.file);
    let written = super::save(&path, &session.config.write_min(""), false)?;
    if session.global.json {
        out::json(&json!({
            "schema": "fathom.config-change/1",
            "config": path,
            "written": written,
            "changes": [],
            "warnings": session.warnings,
        }))?;
    } else if !session.global.quiet {
        let said = if written { "written" } else { "is as it was" };
        out::line(format_args!("{} {said}", path.display()));
    }
    Ok(Exit::Success)
}
