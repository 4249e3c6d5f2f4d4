//! `fathom config set` and `unset`.

use fathom_kconfig::{Config, SymbolId, SymbolKind};
use fathom_model::Exit;

use super::{ConfigSession, change};
use crate::cmd::ExitError;
use crate::out;

/// Set symbols, and say what changed in consequence
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is written when one of the values is refused.

Examples:
  fathom config set DUT_RUNTIME=30s
  fathom config set PROFILE_RANDREAD=y BASIC_TESTS=y
  fathom config set 'CONFIG_DUT_FILENAME=\"/dev/sdb\"'    as it stands in a .config
  fathom config set PURGE_SES_2=y                       picks it in its choice")]
pub struct Args {
    /// Symbol and value; CONFIG_ before the name may be left out
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
}

/// Set symbols back to their defaults
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What .config says stays when a default changes; a symbol that is unset follows it.

Examples:
  fathom config unset DUT_RUNTIME")]
pub struct Unset {
    /// The symbols
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Sets what was asked for, or nothing.
pub fn run(mut session: ConfigSession, args: &Args) -> anyhow::Result<Exit> {
    let mut asked = Vec::new();
    for (name, value) in &args.values {
        let id = session.symbol(name)?;
        let value = plain(session.config.tree().symbol(id).kind, value);
        session
            .config
            .set(id, &value)
            .map_err(|error| refused(&[error.to_string()]))?;
        asked.push((id, value));
    }
    // Only now: a value can be had because of one that comes after it.
    let refusals: Vec<String> = asked
        .iter()
        .filter_map(|(id, value)| session.config.refusal(*id, value))
        .map(|refusal| refusal.to_string())
        .collect();
    if !refusals.is_empty() {
        return Err(refused(&refusals).into());
    }
    let asked: Vec<SymbolId> = asked.into_iter().map(|(id, _)| id).collect();
    if !session.global.quiet && !session.global.json {
        keeps(&session.before, &session.config, &asked);
    }
    session.finish(&asked)
}

/// Sets symbols back to their defaults.
pub fn unset(mut session: ConfigSession, args: &Unset) -> anyhow::Result<Exit> {
    let asked = session.symbols(&args.names)?;
    for &id in &asked {
        session.config.unset(id);
    }
    session.finish(&asked)
}

fn refused(reasons: &[String]) -> ExitError {
    super::input(format!("{}; .config is as it was", reasons.join("\n")))
}

/// A value as `.config` and people write it, in the form of its type.
fn plain(kind: SymbolKind, value: &str) -> String {
    let quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    match kind {
        SymbolKind::Bool | SymbolKind::Tristate => value.to_lowercase(),
        SymbolKind::String if quoted => value[1..value.len() - 1].to_owned(),
        _ => value.to_owned(),
    }
}

/// Says which values stay although the default under them has changed: people
/// expect them to follow, and Kconfig keeps what a .config says.
fn keeps(before: &Config, after: &Config, asked: &[SymbolId]) {
    let (mut then, mut now) = (before.clone(), after.clone());
    let tree = after.tree();
    let mut names = Vec::new();
    for &id in tree.symbols() {
        let symbol = tree.symbol(id);
        if symbol.choice.is_some() || asked.contains(&id) || after.user_value(id).is_none() {
            continue;
        }
        let default = default_of(&mut now, id);
        if default_of(&mut then, id) != default && default != after.text(id) {
            let kept = change::quoted(symbol.kind, after.text(id));
            let default = change::quoted(symbol.kind, &default);
            out::note(format_args!(
                "{} stays {kept}; its default is now {default}",
                symbol.name
            ));
            names.push(symbol.name.as_str());
        }
    }
    if !names.is_empty() {
        out::note(format_args!(
            "to follow the defaults: fathom config unset {}",
            names.join(" ")
        ));
    }
}

/// What a symbol would be without the user.
fn default_of(config: &mut Config, id: SymbolId) -> String {
    let Some(user) = config.user_value(id).map(str::to_owned) else {
        return config.text(id).to_owned();
    };
    config.unset(id);
    let default = config.text(id).to_owned();
    config.set(id, &user).expect("it had that value before");
    default
}
