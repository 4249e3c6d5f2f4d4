//! What an earlier start of a run has left, and whether it can go on.

use std::path::Path;

use fathom_campaign::run;
use fathom_jobfile::variables;
use fathom_model::{Event, Exit};
use fathom_record::{Entries, Header};

use crate::exit_error::ExitError;
use crate::out;

/// Restores the variables with which a run was started, and prints the names of those whose
/// value is another one now.
pub fn as_started(header: &Header) {
    let differing = variables::give(header.variables.clone());
    if !differing.is_empty() {
        let names = differing.join(", ");
        out::note(format_args!(
            "note: the run goes on as it was started, and not with what is set now: {names}"
        ));
    }
}

/// Refuses a campaign without a plan that was killed before its first step: it has kept no
/// options to go on with.
///
/// # Errors
/// The refusal, or that its record cannot be read.
pub fn must_have_begun(dir: &Path) -> anyhow::Result<()> {
    let header = Entries::open(dir)?.header;
    match has_steps(dir) || run::machines_of(&header).is_some() {
        true => Ok(()),
        false => Err(cannot(dir, &header)),
    }
}

/// Whether a run has begun to measure.
fn has_steps(dir: &Path) -> bool {
    let entries = Entries::open(dir).into_iter().flatten();
    let mut events = entries.filter_map(|entry| Some(entry.ok()?.event));
    events.any(|event| matches!(event, Event::Step { .. }))
}

/// Why a run of this kind cannot go on.
pub fn cannot(dir: &Path, header: &Header) -> anyhow::Error {
    let command = &header.command;
    let why = match command.as_str() {
        _ if run::machines_of(header).is_some() => {
            "it ran on several machines, and only campaigns, find and ab go on there"
        }
        _ if !has_steps(dir) => "it was stopped before its first step, and has measured nothing",
        command if command.starts_with("quick") => {
            "a quick series on another machine starts over each time"
        }
        command if command.starts_with("cluster") => "its pods are gone",
        command if command.starts_with("import") => "it was measured elsewhere",
        _ => "its record has no plan: an older Fathom made it",
    };
    let message = format!(
        "{}: this run of fathom {command} cannot go on: {why}\n  to do: start it again",
        dir.display()
    );
    ExitError::new(Exit::Refused, message).into()
}
