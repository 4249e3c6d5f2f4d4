//! `fathom cluster`: benchmarks with servers on the nodes of a Kubernetes
//! cluster.

use std::path::PathBuf;

use clap::Subcommand;
use fathom_campaign::cluster::{self, Workload};
use fathom_fleet::kube::Cluster;
use fathom_model::Exit;

mod run;

use super::{ExitError, Global};
use crate::out;

/// Measure the volumes of a Kubernetes cluster, from many nodes at once
///
/// Each server is a pod with a claim of its own; a client pod tells them all the
/// same job at the same time. Everything is made in one namespace, labelled, and
/// removed at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom cluster seq --ninstances 3 --storageclass fast      write, then read what was written
  fathom cluster seq -f params.toml --dropcaches pagecache   parameters from a file
  fathom cluster rand --bs 4k,16k --iodepth 1,16             random, after a full prefill
  fathom cluster seq --manifests out/                        what would be made, as YAML
  fathom cluster cleanup                                     what a dead run left")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sequential write, then sequential read of what was written
    Seq(Box<run::Args>),
    /// Random reads and writes after a full prefill
    Rand(Box<run::Args>),
    /// Remove what a dead run left in the cluster, and nothing else
    #[command(after_help = "\
Examples:
  fathom cluster cleanup                    in the namespace fathom
  fathom cluster cleanup --namespace perf   in another one")]
    Cleanup(CleanupArgs),
}

/// Which cluster.
#[derive(Debug, clap::Args)]
struct Which {
    /// Configuration of the cluster [default: the one that kubectl takes]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Which {
    fn connect(&self) -> anyhow::Result<Cluster> {
        Cluster::connect(self.kubeconfig.as_deref(), self.context.as_deref()).map_err(|error| {
            let message = error.to_string();
            let exit = Exit::Missing;
            ExitError { exit, message }.into()
        })
    }
}

#[derive(Debug, clap::Args)]
struct CleanupArgs {
    /// Namespace of the runs
    #[arg(long, value_name = "NAME", default_value = "fathom")]
    namespace: String,
    #[command(flatten)]
    which: Which,
}

/// Runs the subcommand.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Seq(args) => run::run(global, Workload::Seq, args),
        Command::Rand(args) => run::run(global, Workload::Rand, args),
        Command::Cleanup(args) => cleanup(global, args),
    }
}

fn cleanup(global: &Global, args: &CleanupArgs) -> anyhow::Result<Exit> {
    let removed = cluster::cleanup(&args.which.connect()?, &args.namespace, None)?;
    if global.json {
        out::json(&serde_json::json!({
            "schema": "fathom.cluster-cleanup/1",
            "namespace": args.namespace,
            "removed": removed,
        }))?;
    } else if removed.is_empty() {
        out::note(format_args!(
            "nothing of Fathom is left in {}",
            args.namespace
        ));
    } else {
        out::text(format_args!("removed {}\n", removed.join(", ")));
    }
    Ok(Exit::Success)
}
