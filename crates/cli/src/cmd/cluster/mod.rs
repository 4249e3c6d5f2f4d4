//! `fathom cluster`: benchmarks with servers on the nodes of a Kubernetes
//! cluster.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;
use fathom_cluster::BenchWorkload;
use fathom_cluster::jobs::BenchPhase;
use fathom_fleet::kube::Cluster;
use fathom_model::Exit;

mod background_load;
pub mod compare;
mod run;

use run::BenchmarkName;

use super::{ExitError, Global, may_write};
use crate::out;

/// Name of the image that `fathom cluster image` writes.
const IMAGE: &str = concat!("localhost/fathom:", env!("CARGO_PKG_VERSION"));

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
  fathom cluster seq --calm --calm-iops 512                  beside a load of a fixed rate
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
    /// Any job file of fio, on all servers at once; the volume is /dataset
    #[command(after_help = "\
Examples:
  fathom cluster job mixed.fio --ninstances 4 --storageclass fast
  fathom cluster job mixed.fio --dry-run          what would be made and run")]
    Job(Box<JobArgs>),
    /// Write an image that holds one file: this Fathom, with its native engine
    #[command(after_help = "\
Examples:
  fathom cluster image fathom.tar                      this program, if it is static
  fathom cluster image fathom.tar --program ./fathom   another one
  ctr -n k8s.io images import fathom.tar               to a node's containerd")]
    Image(ImageArgs),
    /// Remove what a dead run left in the cluster, and nothing else
    #[command(after_help = "\
Examples:
  fathom cluster cleanup                    in the namespace fathom
  fathom cluster cleanup --namespace perf   in another one")]
    Cleanup(CleanupArgs),
}

/// Which cluster.
#[derive(Debug, clap::Args)]
struct ClusterArgs {
    /// Configuration of the cluster [default: the one that kubectl takes]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArgs {
    fn connect(&self) -> anyhow::Result<Cluster> {
        Cluster::connect(self.kubeconfig.as_deref(), self.context.as_deref()).map_err(|error| {
            let message = error.to_string();
            ExitError::new(Exit::Missing, message).into()
        })
    }
}

#[derive(Debug, clap::Args)]
struct JobArgs {
    /// Job file
    #[arg(value_name = "JOBFILE")]
    job: PathBuf,
    #[command(flatten)]
    run: run::Args,
}

#[derive(Debug, clap::Args)]
struct ImageArgs {
    /// The tar to write: an OCI image layout
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The program to put into it: a static one [default: this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Name of the image
    #[arg(long, value_name = "NAME", default_value = IMAGE)]
    name: String,
}

#[derive(Debug, clap::Args)]
struct CleanupArgs {
    /// Namespace of the runs
    #[arg(long, value_name = "NAME", default_value = "fathom")]
    namespace: String,
    #[command(flatten)]
    which: ClusterArgs,
}

/// Runs the subcommand.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Seq(args) => run::run(global, &BenchmarkName::Benchmark(BenchWorkload::Seq), args),
        Command::Rand(args) => {
            run::run(global, &BenchmarkName::Benchmark(BenchWorkload::Rand), args)
        }
        Command::Job(args) => job(global, args),
        Command::Image(args) => image(global, args),
        Command::Cleanup(args) => cleanup(global, args),
    }
}

/// A job file, checked here: on the servers nobody could be asked about it.
fn job(global: &Global, args: &JobArgs) -> anyhow::Result<Exit> {
    let file = super::job::read(&args.job, global.quiet)?;
    let name = args.job.file_stem().unwrap_or_default().to_string_lossy();
    let phase = BenchPhase::of_job(&run::dns_label(&name), &file.render());
    run::run(global, &BenchmarkName::Job(phase), &args.run)
}

/// What `image --json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct ImageDocument<'a> {
    schema: &'static str,
    /// The archive that was written.
    file: &'a Path,
    /// The image's name.
    tag: &'a str,
}

/// What `cleanup --json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct CleanupDocument<'a> {
    schema: &'static str,
    namespace: &'a str,
    /// Kind and name of each object that was removed.
    removed: Vec<String>,
}

fn image(global: &Global, args: &ImageArgs) -> anyhow::Result<Exit> {
    let own = || std::env::current_exe().context("this program cannot be found");
    may_write(&args.file)?;
    let path = args.program.clone().map_or_else(own, Ok)?;
    let program = fs::read(&path).with_context(|| path.display().to_string())?;
    if !fathom_cluster::image::is_static(&program) {
        let message = format!(
            "{} is not static and would not start in an image without libraries; nothing was written\n  \
             to do: name a static one with --program (make musl builds it)",
            path.display()
        );
        return Err(ExitError::new(Exit::Input, message).into());
    }
    // Go's names, which images have (image-spec, config.md).
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    fathom_fleet::named_file::write(&args.file, |file| {
        fathom_cluster::image::write(&program, &args.name, architecture, &mut *file)
    })
    .with_context(|| args.file.display().to_string())?;
    if global.json {
        out::json(&ImageDocument {
            schema: "fathom.cluster-image/1",
            file: &args.file,
            tag: &args.name,
        })?;
    } else {
        out::note(format_args!("{} holds {}", args.file.display(), args.name));
    }
    Ok(Exit::Success)
}

fn cleanup(global: &Global, args: &CleanupArgs) -> anyhow::Result<Exit> {
    let removed = fathom_cluster::cleanup(&args.which.connect()?, &args.namespace, None)
        .map_err(|error| run::in_words(error.into()))?;
    if global.json {
        out::json(&CleanupDocument {
            schema: "fathom.cluster-cleanup/1",
            namespace: &args.namespace,
            removed,
        })?;
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
