//! The native engine: its options, and what it takes of fio's engines.

use fathom_engine_native::Listed;
use fathom_jobfile::table::nearest;
use fathom_sheet::style::wrap;

use super::document::{EngineDocument, OptionDocument, OptionRow};
use super::{ExitError, Global, WIDTH, near_miss};
use crate::out;

/// What it is called where an I/O engine could stand.
pub const NAME: &str = "native";

/// Whether it has this I/O engine.
pub fn has(engine: &str) -> bool {
    fathom_engine_native::io_engines().any(|name| name == engine)
}

fn find(option: &str) -> Option<Listed> {
    fathom_engine_native::options().find(|listed| listed.names.contains(&option))
}

/// Whether it takes an option of an I/O engine's own.
pub fn takes(engine: &str, option: &str) -> bool {
    has(engine) && find(option).is_some()
}

/// The same in words.
pub fn verdict(engine: &str, option: &str) -> String {
    match find(option) {
        _ if !has(engine) => format!("no: it has no {engine}"),
        None => "no".to_owned(),
        Some(found) if found.differs.is_empty() => "yes, as fio".to_owned(),
        Some(found) => format!("yes; {}", found.differs),
    }
}

/// Its options, or one of them.
pub fn show(global: &Global, option: &str) -> anyhow::Result<()> {
    let wanted: Vec<Listed> = match option {
        "" => fathom_engine_native::options().collect(),
        _ => vec![find(option).ok_or_else(|| {
            let names: Vec<&str> = fathom_engine_native::options()
                .flat_map(|listed| listed.names)
                .copied()
                .collect();
            let what = format!("the native engine does not have the option {option}");
            near_miss(what, nearest(option, names.into_iter()))
        })?],
    };
    if global.json {
        let of = |listed: &Listed| OptionRow::Native {
            group: listed.group,
            name: listed.names[0],
            aliases: &listed.names[1..],
            differs: listed.differs,
        };
        return out::json(&EngineDocument {
            version: Some(fathom_engine_native::version().to_string()),
            io_engines: Some(fathom_engine_native::io_engines().collect()),
            options: Some(wanted.iter().map(of).collect()),
            ..EngineDocument::new(NAME)
        });
    }
    let name_of = |listed: &Listed| listed.names.join(", ");
    let width = wanted.iter().map(|one| name_of(one).len()).max();
    let width = width.unwrap_or(0);
    let columns = out::style(global.color).width.map_or(WIDTH, usize::from);
    let mut group = "";
    for listed in &wanted {
        if listed.group != group && option.is_empty() {
            let gap = if group.is_empty() { "" } else { "\n" };
            group = listed.group;
            out::line(format_args!("{gap}{group}"));
        }
        let differs = if listed.differs.is_empty() {
            "as fio"
        } else {
            listed.differs
        };
        let room = columns.saturating_sub(width + 4).max(20);
        let mut name = name_of(listed);
        for line in wrap(differs, room) {
            out::line(format_args!("  {name:width$}  {line}"));
            name.clear();
        }
    }
    Ok(())
}

/// What can be said of an I/O engine where there is no fio to ask.
pub fn without_fio(
    global: &Global,
    engine: &str,
    option: &str,
    missing: ExitError,
) -> anyhow::Result<()> {
    if !has(engine) {
        return Err(missing.into());
    }
    if option.is_empty() {
        if global.json {
            return out::json(&EngineDocument {
                native: Some(true),
                ..EngineDocument::new(engine)
            });
        }
        out::line(format_args!(
            "{engine}: the native engine has it (fathom engines native); its options in fio are not \
             known here, fio is not installed"
        ));
        return Ok(());
    }
    if global.json {
        return out::json(&OptionDocument {
            schema: "fathom.engine-option/1",
            engine,
            option: None,
            native: takes(engine, option),
        });
    }
    out::line(format_args!("{option}"));
    out::line(format_args!("  native  {}", verdict(engine, option)));
    out::line("  fio     not installed");
    Ok(())
}
