//! Variables of the environment that a run depends on: those that its texts name, and those
//! that say where programs and the user's own files are. A run goes on with the values it
//! was started with, whoever's shell that is.

use std::collections::BTreeMap;
use std::env::VarError;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Values by name; `None` is a variable that is not set.
pub type Variables = BTreeMap<String, Option<String>>;

/// Without them neither programs nor the user's own files are found.
const ALWAYS: [&str; 2] = ["HOME", "PATH"];

/// Those of a run that goes on, or of a run that another machine drives: they come before
/// the environment.
static GIVEN: OnceLock<Variables> = OnceLock::new();
/// Those that were asked for, as they were found.
static READ: Mutex<Variables> = Mutex::new(Variables::new());

/// Takes values that come before those of the environment, once for the process. Returns
/// the names of those that have another value there; none the second time, when the values
/// are not taken.
pub fn give(variables: Variables) -> Vec<String> {
    let differs = |(name, value): &(&String, &Option<String>)| own(name).as_ref() != Ok(*value);
    let differing = variables.iter().filter(differs);
    let differing = differing.map(|(name, _)| name.clone()).collect();
    match GIVEN.set(variables) {
        Ok(()) => differing,
        Err(_) => Vec::new(),
    }
}

/// The value of a variable: what was given, else the environment's.
pub fn variable(name: &str) -> Option<String> {
    let value = match given(name) {
        Some(value) => value.clone(),
        None => own(name).ok()?,
    };
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.insert(name.to_owned(), value.clone());
    value
}

/// Whether an engine that reads the environment would not find this one.
pub fn is_given(name: &str) -> bool {
    given(name).is_some()
}

/// All that this process has asked for, to be given to it when it goes on.
pub fn read() -> Variables {
    for name in ALWAYS {
        let _ = variable(name);
    }
    READ.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The variables that a command for the shell depends on.
pub fn of_command(text: &str) -> Variables {
    let names = named_by_shell(text).chain(ALWAYS);
    names
        .map(|name| (name.to_owned(), variable(name)))
        .collect()
}

/// Has a program find these values in its environment.
pub fn set<'c>(command: &'c mut Command, variables: &Variables) -> &'c mut Command {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Has a program find what was given in its environment.
pub fn set_given(command: &mut Command) -> &mut Command {
    match GIVEN.get() {
        Some(given) => set(command, given),
        None => command,
    }
}

fn given(name: &str) -> Option<&'static Option<String>> {
    GIVEN.get().and_then(|given| given.get(name))
}

/// Of the environment alone; an error where it is no text, which no text can name.
fn own(name: &str) -> Result<Option<String>, ()> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(()),
    }
}

/// The names behind `$` and `${`. Some of them the shell sets itself, or quotes keep from
/// it: one too many does no harm.
fn named_by_shell(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split('$').skip(1);
    let names = parts.map(|part| {
        let name = part.strip_prefix('{').unwrap_or(part);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())]
    });
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_seen_to_name_a_variable() {
        let text = "mount ${DEV:-/dev/sda1} \"$TO/a\" && echo $? $1 $$ ${#LIST} $";
        let names: Vec<_> = named_by_shell(text).collect();
        assert_eq!(names, ["DEV", "TO"]);
    }

    #[test]
    fn what_differs_from_the_environment_is_told_and_comes_first() {
        let name = "FATHOM_NO_SUCH_VARIABLE";
        assert_eq!(variable(name), None);
        assert_eq!(read()[name], None);
        let path = std::env::var("PATH").ok();
        let mut values = Variables::from([("PATH".to_owned(), path.clone())]);
        values.insert(name.to_owned(), Some("a b".to_owned()));
        assert_eq!(give(values.clone()), [name]);
        assert_eq!(variable(name).as_deref(), Some("a b"));
        assert_eq!(read()[name].as_deref(), Some("a b"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("printf '%s' \"${name}\"")]);
        assert_eq!(set_given(&mut shell).output().unwrap().stdout, b"a b");
        assert_eq!(of_command(&format!("echo ${name}")), {
            values.insert("HOME".to_owned(), std::env::var("HOME").ok());
            values
        });
        assert_eq!(variable("PATH"), path);
    }
}
