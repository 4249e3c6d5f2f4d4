//! `fathom config`: the configuration of a campaign, in the menu and without.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use clap::Subcommand;
use fathom_campaign::CampaignError;
use fathom_campaign::folder::{self, Folder};
use fathom_jobfile::variables::variable;
use fathom_kconfig::{Config, SymbolId, Warning};
use fathom_model::Exit;
use fathom_sheet::style::Tone;

use super::campaign::exit_error;
use super::{ExitError, Global};
use crate::out;

mod ask;
mod change;
pub mod defconfig;
mod entry;
pub mod explain;
mod menu;
mod set;
mod show;
mod whole;

#[cfg(test)]
pub(in crate::cmd) use change::Document as ChangeDocument;
#[cfg(test)]
pub(in crate::cmd) use show::Document as ConfigDocument;

/// Configure the campaign in the current folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom config                                the menu
  fathom config defconfig survey-10min         a configuration that is ready
  fathom config set DUT_FILENAME=/dev/nvme1n1 DUT_RUNTIME=30s
  fathom config show --changed                 what differs from the defaults
  fathom config explain PURGE_SES_2            why a symbol is what it is
  DEV=/dev/sdb fathom config olddefconfig      a .config without questions
  fathom config -C nightly get DUT_RUNTIME     the campaign in another folder")]
pub struct Args {
    /// The folder of the campaign
    #[arg(short = 'C', global = true, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(display_order = 0)]
    Menu(menu::Args),
    #[command(display_order = 1)]
    Show(show::Args),
    #[command(display_order = 2)]
    Get(show::Get),
    #[command(display_order = 3)]
    Set(set::Args),
    #[command(display_order = 4)]
    Unset(set::Unset),
    #[command(display_order = 5)]
    Explain(explain::Args),
    #[command(display_order = 6)]
    Search(show::SymbolSearch),
    #[command(display_order = 7)]
    Defconfig(defconfig::Args),
    #[command(display_order = 8)]
    Olddefconfig(whole::OldDef),
    #[command(display_order = 9)]
    Oldconfig(ask::Args),
    #[command(display_order = 10)]
    Allyesconfig(whole::AllYes),
    #[command(display_order = 11)]
    Allnoconfig(whole::AllNo),
    #[command(display_order = 12)]
    Alldefconfig(whole::AllDef),
    #[command(display_order = 13)]
    Randconfig(whole::Rand),
    #[command(display_order = 14)]
    Savedefconfig(defconfig::Save),
    #[command(display_order = 15)]
    Listnewconfig(show::New),
}

/// Calls the subcommand.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let folder = Folder::open(&args.dir).map_err(exit_error)?;
    let menu = &Command::Menu(menu::Args {});
    let command = args.command.as_ref().unwrap_or(menu);
    let open = |values| ConfigSession::open(global, &folder, values);
    let of_config = StartValues::OfConfig;
    match command {
        Command::Menu(_) => {
            menu::needs_terminal()?;
            menu::run(open(of_config)?)
        }
        Command::Show(args) => show::run(&open(of_config)?, args),
        Command::Get(args) => show::get(&open(of_config)?, args),
        Command::Set(args) => set::run(open(of_config)?, args),
        Command::Unset(args) => set::unset(open(of_config)?, args),
        Command::Explain(args) => explain::run(&open(of_config)?, args),
        Command::Search(args) => show::search(&open(of_config)?, args),
        Command::Defconfig(args) => defconfig::run(global, &folder, args),
        Command::Olddefconfig(_) => open(of_config)?.finish(&[]),
        Command::Oldconfig(_) => ask::run(open(of_config)?),
        Command::Allyesconfig(_) => whole::all(open(StartValues::Anew)?, Config::all_yes),
        Command::Allnoconfig(_) => whole::all(open(StartValues::Anew)?, Config::all_no),
        Command::Alldefconfig(_) => whole::all(open(StartValues::Anew)?, Config::all_default),
        Command::Randconfig(args) => whole::random(open(StartValues::Anew)?, args),
        Command::Savedefconfig(args) => defconfig::save(&open(of_config)?, args),
        Command::Listnewconfig(_) => show::new(&open(of_config)?),
    }
}

/// Whether a command starts from `.config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartValues {
    /// From `.config`, where there is one, else from the defaults.
    OfConfig,
    /// From the defaults: what `.config` says is to be replaced.
    Anew,
}

/// The values that a command works on.
pub struct ConfigSession<'a> {
    global: &'a Global,
    folder: &'a Folder,
    /// As they were.
    before: Config,
    /// As they are now.
    config: Config,
    /// Whether there is a `.config`.
    existed: bool,
    warnings: Vec<String>,
}

impl<'a> ConfigSession<'a> {
    fn open(global: &'a Global, folder: &'a Folder, values: StartValues) -> anyhow::Result<Self> {
        let tree = folder.tree(&variable).map_err(exit_error)?;
        let mut config = Config::new(tree);
        let mut warnings = texts(config.tree().warnings());
        let path = folder.file(folder::CONFIG);
        let existed = path.exists();
        let mut before = config.clone();
        if existed && values == StartValues::OfConfig {
            let text = read(&path)?;
            let name = path.display().to_string();
            let taken = folder::take(&mut config, &text, &name).map_err(exit_error)?;
            warnings.extend(texts(&taken));
            before = config.clone();
        } else if existed {
            // Only to say what changes: what is wrong in it is about to go.
            let text = read(&path).unwrap_or_default();
            before.read(&text, folder::CONFIG);
        }
        let session = Self {
            global,
            folder,
            before,
            config,
            existed,
            warnings,
        };
        if !global.json {
            session.warnings.iter().for_each(|warning| note(warning));
        }
        Ok(session)
    }

    fn symbol(&self, name: &str) -> Result<SymbolId, ExitError> {
        self.config
            .tree()
            .named(name)
            .map_err(|error| input(error.to_string()))
    }

    fn symbols(&self, names: &[String]) -> Result<Vec<SymbolId>, ExitError> {
        names.iter().map(|name| self.symbol(name)).collect()
    }

    /// Writes `.config` and says what has changed: those that were `asked` for
    /// first.
    fn finish(self, asked: &[SymbolId]) -> anyhow::Result<Exit> {
        let path = self.folder.file(folder::CONFIG);
        let written = save(&path, &self.config.write(""), true)?;
        let changes = change::between(&self.before, &self.config, asked);
        if self.global.json {
            out::json(&change::Document {
                schema: "fathom.config-change/1",
                config: path,
                written,
                changes,
                warnings: self.warnings,
            })?;
            return Ok(Exit::Success);
        }
        let style = out::style(self.global.color);
        if !asked.is_empty() {
            out::text(change::list(&changes, style));
        }
        if !self.global.quiet {
            let path = path.display();
            let said = match (written, self.existed) {
                (false, _) => format!("{path} is as it was"),
                (true, false) => format!("{path} written"),
                (true, true) => match changes.len() {
                    0 => format!("{path} written: the same values"),
                    1 => format!("{path} written: one value changed"),
                    n => format!("{path} written: {n} values changed"),
                },
            };
            out::line(style.paint(Tone::Faint, &said));
        }
        Ok(Exit::Success)
    }
}

/// An input that is wrong.
fn input(message: String) -> ExitError {
    ExitError::new(Exit::Input, message)
}

/// The text of a file.
fn read(path: &Path) -> Result<String, ExitError> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            ExitError::new(Exit::Missing, format!("there is no {}", path.display()))
        }
        _ => input(format!("cannot read {}: {error}", path.display())),
    })
}

/// Writes a configuration; see [`folder::save`].
fn save(path: &Path, text: &str, keep_old: bool) -> anyhow::Result<bool> {
    match folder::save(path, text, keep_old) {
        Err(refused @ CampaignError::Refused(_)) => Err(exit_error(refused).into()),
        saved => saved.with_context(|| format!("cannot write {}", path.display())),
    }
}

fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

fn note(warning: &str) {
    out::note(format_args!("warning: {warning}"));
}
