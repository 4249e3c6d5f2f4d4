//! The commands, one file each.

use clap::{Parser, Subcommand};
use fathom_model::Exit;
use std::path::PathBuf;

use crate::out::Color;

pub mod baseline;
pub mod job;
pub mod quick;

/// Measures storage: what a device, file system or cluster can do, and when that number is true.
#[derive(Debug, Parser)]
#[command(name = "fathom", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// Folder that holds the runs
    #[arg(long, global = true, value_name = "DIR", default_value = "fathom-runs")]
    pub runs: PathBuf,
    /// Print one JSON document to stdout and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Baseline(baseline::Args),
    Job(job::Args),
    Quick(quick::Args),
}

/// Calls the command.
pub fn dispatch(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Baseline(args) => baseline::run(&cli.global, args),
        Command::Job(args) => job::run(&cli.global, args),
        Command::Quick(args) => quick::run(&cli.global, args),
    }
}

/// An error that carries the exit code it is to end with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExitError {
    pub exit: Exit,
    pub message: String,
}

/// The exit code of an error: its own, or plain failure.
pub fn exit_for(error: &anyhow::Error) -> Exit {
    error
        .downcast_ref::<ExitError>()
        .map_or(Exit::Failed, |e| e.exit)
}
