//! fio's engines and their options, asked of fio itself.

use std::process::{Command, Output, Stdio};

use serde::Serialize;

use super::version::Program;

/// An I/O engine that this fio names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FioIoEngine {
    /// Its name, the value of `ioengine=`.
    pub name: String,
    /// Options of its own; `None` when fio names it and cannot load it.
    pub options: Option<Vec<EngineOption>>,
}

/// An option that only one engine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EngineOption {
    /// Its name.
    pub name: String,
    /// What it does, in fio's words.
    pub help: String,
    /// Everything else fio says of it by name: type, default, valid values, …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<(String, Vec<String>)>,
}

/// Why an inventory cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// fio could not be run.
    #[error("{program}: {source}")]
    Run {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Names of all engines, in fio's order.
///
/// # Errors
/// When fio cannot be run.
pub fn engine_names(program: &Program) -> Result<Vec<String>, InventoryError> {
    let output = enghelp(program, None)?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The names are set in by a tab below one heading.
    let names = text.lines().filter_map(|line| line.strip_prefix('\t'));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// One engine with its options; `None` when fio does not know or cannot load it.
///
/// # Errors
/// When fio cannot be run.
pub fn options(
    program: &Program,
    engine: &str,
) -> Result<Option<Vec<EngineOption>>, InventoryError> {
    let output = enghelp(program, Some(engine))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(Some(parse_options(&text)));
    }
    // An engine without options of its own fails too (ioengines.c, fio_show_ioengine_help).
    Ok(text.contains("has no options").then(Vec::new))
}

/// One option of an engine with everything fio says of it; `None` when there is none.
///
/// # Errors
/// When fio cannot be run.
pub fn option(
    program: &Program,
    engine: &str,
    option: &str,
) -> Result<Option<EngineOption>, InventoryError> {
    let output = enghelp(program, Some(&format!("{engine},{option}")))?;
    if !output.status.success() {
        return Ok(None);
    }
    Ok(parse_option(&String::from_utf8_lossy(&output.stdout)))
}

/// Every engine with its options.
///
/// # Errors
/// When fio cannot be run.
pub fn engines(program: &Program) -> Result<Vec<FioIoEngine>, InventoryError> {
    let names = engine_names(program)?;
    names
        .into_iter()
        .map(|name| {
            let options = options(program, &name)?;
            Ok(FioIoEngine { name, options })
        })
        .collect()
}

fn enghelp(program: &Program, what: Option<&str>) -> Result<Output, InventoryError> {
    let argument = match what {
        Some(what) => format!("--enghelp={what}"),
        None => "--enghelp".to_owned(),
    };
    Command::new(&program.path)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| InventoryError::Run {
            program: program.path.display().to_string(),
            source,
        })
}

/// `name<padding>: help`, one a line.
fn parse_options(text: &str) -> Vec<EngineOption> {
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| !name.starts_with(char::is_whitespace))
        .map(|(name, help)| EngineOption {
            name: name.trim().to_owned(),
            help: help.trim().to_owned(),
            details: Vec::new(),
        })
        .collect()
}

/// The first line names the option, set in to the right; the others its details.
fn parse_option(text: &str) -> Option<EngineOption> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let (name, help) = lines.next()?.split_once(": ")?;
    let mut details: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        match (key.trim(), details.last_mut()) {
            // The values of a choice go on below the first one, without a name.
            ("", Some((_, values))) => values.push(value.trim().to_owned()),
            (key, _) => details.push((key.to_owned(), vec![value.trim().to_owned()])),
        }
    }
    Some(EngineOption {
        name: name.trim().to_owned(),
        help: help.trim().to_owned(),
        details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_without_options_is_there_all_the_same() {
        let Ok(fio) = Program::find(None) else {
            return fathom_testkit::skip(
                "an_engine_without_options_is_there_all_the_same",
                "fio is not installed",
            );
        };
        assert_eq!(options(&fio, "null").unwrap(), Some(Vec::new()));
        assert_eq!(options(&fio, "nonesuch").unwrap(), None);
    }

    #[test]
    fn a_list_of_options_is_read() {
        let text = "userspace_reap          : Use another reap\ncmdprio                 : Set priority: level\n\n";
        let options = parse_options(text);
        assert_eq!(options.len(), 2);
        assert_eq!(options[1].name, "cmdprio");
        assert_eq!(options[1].help, "Set priority: level");
    }

    #[test]
    fn the_help_of_one_option_is_read() {
        let text = "            protocol: Network protocol to use\n             default: tcp\n        valid values: tcp        Transmission\n                    : udp        User: Datagram\n\n";
        let option = parse_option(text).unwrap();
        assert_eq!(option.name, "protocol");
        assert_eq!(option.details[0], ("default".into(), vec!["tcp".into()]));
        let values = vec![
            "tcp        Transmission".into(),
            "udp        User: Datagram".into(),
        ];
        assert_eq!(option.details[1], ("valid values".into(), values));
    }
}
