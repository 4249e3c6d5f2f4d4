//! The kinds of runs, a row each: its command, and what its records keep and other machines
//! are sent. Listings, completion, `resume` and hosts go by these rows.

use std::fmt;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use fathom_model::Exit;
use serde::de::Error as _;
use serde_json::Value;

use super::planned::{KIND, KindArgs, RequestKind, RunRequest};
use super::{Global, ab, campaign, find, job, prio, purge, quick, repeat, snia, soak, study, tune};

/// A kind of run.
pub struct RunKind {
    /// Its command, as people type it; `None` for a kind that `fathom run` runs.
    pub command: Option<&'static str>,
    define: fn(Command) -> Command,
    parse: fn(&ArgMatches) -> Result<Call, clap::Error>,
    /// What its request is called in records.
    pub request: Option<&'static str>,
    pub read: fn(Value) -> serde_json::Result<Box<dyn RunRequest>>,
}

type Call = Box<dyn Fn(&Global) -> anyhow::Result<Exit>>;

/// In the order in which they are listed.
pub const KINDS: &[RunKind] = &[
    RunKind::new::<quick::Args>("quick").keeping::<quick::QuickPlan>(),
    RunKind::new::<job::Args>("job run").keeping::<job::request::JobPlan>(),
    RunKind::new::<find::Args>("find").keeping::<find::FindPlan>(),
    RunKind::new::<ab::Args>("ab").keeping::<ab::AbPlan>(),
    RunKind::new::<tune::Args>("tune").keeping::<tune::TunePlan>(),
    RunKind::new::<snia::Args>("snia iops").keeping::<snia::SniaRequest>(),
    RunKind::new::<prio::Args>("prio").keeping::<prio::PrioPlan>(),
    RunKind::new::<soak::Args>("soak").keeping::<soak::SoakPlan>(),
    RunKind::new::<repeat::Args>("repeat").keeping::<repeat::RepeatPlan>(),
    RunKind::of_run().keeping::<purge::PurgeRequest>(),
    RunKind::of_run().keeping::<study::StudyPlan>(),
    RunKind::of_run().keeping::<campaign::CampaignRequest>(),
];

impl RunKind {
    const fn new<A: KindArgs>(command: &'static str) -> Self {
        Self {
            command: Some(command),
            define: A::augment_args,
            parse: |matches| {
                let args = A::from_arg_matches(matches)?;
                Ok(Box::new(move |global| args.run(global)))
            },
            ..Self::of_run()
        }
    }

    /// One that `fathom run` runs, too.
    const fn of_run() -> Self {
        Self {
            command: None,
            define: |command| command,
            parse: |_| Err(clap::Error::new(ErrorKind::InvalidSubcommand)),
            request: None,
            read: |_| Err(serde::de::Error::custom("it keeps nothing")),
        }
    }

    const fn keeping<R: RequestKind>(self) -> Self {
        Self {
            request: Some(R::NAME),
            read: |value| Ok(Box::new(serde_json::from_value::<R>(value)?)),
            ..self
        }
    }

    /// The first word of its command.
    pub fn name(&self) -> Option<&'static str> {
        self.command?.split(' ').next()
    }
}

/// The names of the commands, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter_map(RunKind::name)
}

/// A command of [`KINDS`], as it was called.
pub struct KindCommand(Call);

impl KindCommand {
    /// Calls it.
    ///
    /// # Errors
    /// As [`KindArgs::run`].
    pub fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        (self.0)(global)
    }
}

impl fmt::Debug for KindCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KindCommand")
    }
}

impl FromArgMatches for KindCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let row = |name: &str| KINDS.iter().find(|row| row.name() == Some(name));
        let found = matches.subcommand();
        let found = found.and_then(|(name, matches)| Some((row(name)?, matches)));
        let (row, matches) = found.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self((row.parse)(matches)?))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for KindCommand {
    fn augment_subcommands(command: Command) -> Command {
        let rows = KINDS
            .iter()
            .filter_map(|row| Some((row.name()?, row.define)));
        rows.fold(command, |command, (name, define)| {
            command.subcommand(define(Command::new(name)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        names().any(|it| it == name)
    }
}

/// A request of whatever kind, as it was kept or sent.
///
/// # Errors
/// When this Fathom does not know the kind, or the kind another form.
pub fn read(value: Value) -> serde_json::Result<Box<dyn RunRequest>> {
    let kind = value[KIND].as_str().unwrap_or_default();
    match KINDS.iter().find(|row| row.request == Some(kind)) {
        Some(row) => (row.read)(value),
        None => Err(serde_json::Error::custom(format!(
            "unknown kind of run '{kind}'"
        ))),
    }
}
