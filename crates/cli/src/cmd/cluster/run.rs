//! `fathom cluster seq` and `rand`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_cluster::jobs::BenchPhase;
use fathom_cluster::manifests::Objects;
use fathom_cluster::{
    BenchWorkload, ClusterError, ClusterPlan, DropCaches, GibSize, Given, Parameters, to_yaml,
};
use fathom_device::regular;
use fathom_engine::Control;
use fathom_engines::EngineName;
use fathom_fleet::kube::Cluster;
use fathom_flow::RunOptions;
use fathom_model::{Exit, RunStatus, units};
use fathom_record::{Header, Writer};
use serde_json::Value;

use super::{ClusterArgs, background_load, compare};
use crate::cmd::job::present;
use crate::cmd::measuring::MeasuringArgs;
use crate::cmd::not_offered::why_not;
use crate::cmd::screen::observed_in_place;
use crate::cmd::{ExitError, Global, RUNS, show, write_named};
use crate::live::{LiveLines, LiveOptions};
use crate::{out, signals};

/// Stands for the image with fio where it is only shown and none is named.
const IMAGE: &str = "IMAGE";
/// What is said of `--engine`.
const ENGINE: &str = "What runs the jobs on the servers: fio, native, or auto (the fio of the image where it has one and that has every option, else native); the latter two want an image of Fathom's (see image) [default: fio]";
/// A file of parameters is far shorter.
const PARAMETERS_BYTES_MAX: u64 = 4 << 20;

/// Parameters of a benchmark: of a file, and flags above it
#[derive(Debug, clap::Args)]
#[command(mut_arg("engine", |engine| engine.help(ENGINE).hide_possible_values(true)))]
#[command(after_help = "\
Examples:
  fathom cluster seq --ninstances 3 --fsz-gb 2 --njobs 16 --image registry/fio
  fathom cluster rand -f params.toml --runtime 120
  fathom cluster seq -f simple_inventory          an inventory as kubuculum reads it
  fathom cluster seq --stats --dropcaches pagecache      with what the nodes did meanwhile
  fathom cluster seq --dry-run                    what would be made and run, no cluster needed")]
pub struct Args {
    /// File of parameters: TOML, or an inventory (INI) of kubuculum
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Server pods, each with a volume of its own [default: 1]
    #[arg(long, value_name = "N")]
    ninstances: Option<u32>,
    /// Size of a job's file in GiB, or with a unit: 0.3, 300M [default: 2]
    #[arg(long, value_name = "SIZE")]
    fsz_gb: Option<GibSize>,
    /// Jobs of each server [default: 2]
    #[arg(long, value_name = "N")]
    njobs: Option<u32>,
    /// Label of the nodes that servers may run on
    #[arg(long, value_name = "KEY=VALUE")]
    server_node_label: Option<String>,
    /// Size of a claim, likewise [default: room for the files twice, and 32]
    #[arg(long, value_name = "SIZE")]
    pvcsz_req_gb: Option<GibSize>,
    /// Storage class of the claims [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    storageclass: Option<String>,
    /// Namespace, made if missing [default: fathom]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    _measuring: MeasuringArgs,
    /// Drop caches between phases: pagecache, ceph, command:COMMAND
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    dropcaches: Option<Vec<String>>,
    /// Label of the nodes whose page cache is dropped [default: all]
    #[arg(long, value_name = "KEY=VALUE")]
    dropcaches_node_label: Option<String>,
    /// Take statistics of the nodes while the phases run, every S seconds [default: 10]
    #[arg(long, value_name = "S", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    stats: Option<u64>,
    /// Label of the nodes whose statistics are taken [default: all]
    #[arg(long, value_name = "KEY=VALUE")]
    stats_node_label: Option<String>,
    /// Image of the pods: one with fio in it, which has to be named, or Fathom's
    /// [default with native and auto: localhost/fathom:VERSION]
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Block sizes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    bs: Option<Vec<String>>,
    /// Queue depths of random tests
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    iodepth: Option<Vec<u32>>,
    /// Rates of random tests, in IOPS of a job; 0 is no limit
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rate_iops: Option<Vec<u32>>,
    /// Directions of random tests
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rw: Option<Vec<String>>,
    /// Time of a random test in s
    #[arg(long, value_name = "S")]
    runtime: Option<u64>,
    /// Longest wait for a phase in s [default: 36000]
    #[arg(long, value_name = "S")]
    maxwait: Option<u64>,
    /// What every pod asks its node for, as in cpu=2,memory=4Gi
    #[arg(long, value_name = "LIST")]
    requests: Option<String>,
    /// What every pod may take at most, likewise
    #[arg(long, value_name = "LIST")]
    limits: Option<String>,
    /// Show what would be made and run; no cluster is needed
    #[arg(long)]
    dry_run: bool,
    /// Write the objects as YAML into a folder instead of making them
    #[arg(long, value_name = "DIR")]
    manifests: Option<PathBuf>,
    #[command(flatten)]
    which: ClusterArgs,
    #[command(flatten)]
    calm: background_load::BackgroundLoadArgs,
}

impl Args {
    fn given(&self) -> Result<Given, String> {
        let ways = self.dropcaches.as_ref().map(|ways| {
            ways.iter()
                .map(|way| DropCaches::try_from(way.clone()))
                .collect::<Result<_, _>>()
        });
        Ok(Given {
            ninstances: self.ninstances,
            fsz_gb: self.fsz_gb,
            njobs: self.njobs,
            server_node_label: self.server_node_label.clone(),
            pvcsz_req_gb: self.pvcsz_req_gb,
            storageclass: self.storageclass.clone(),
            namespace: self.namespace.clone(),
            dropcaches: ways.transpose()?,
            dropcaches_node_label: self.dropcaches_node_label.clone(),
            stats_s: self.stats,
            stats_node_label: self.stats_node_label.clone(),
            image: self.image.clone(),
            engine: self.options.engine,
            bs: self.bs.clone(),
            iodepth: self.iodepth.clone(),
            rate_iops: self.rate_iops.clone(),
            rw: self.rw.clone(),
            runtime_s: self.runtime,
            maxwait_s: self.maxwait,
            requests: self.requests.clone(),
            limits: self.limits.clone(),
            benchmark: None,
            run_basedir: None,
            calm: self.calm.given(),
            run: Vec::new(),
        })
    }
}

/// What is run: its name in records, and the command that runs it.
#[derive(Debug, Clone)]
pub enum BenchmarkName {
    Benchmark(BenchWorkload),
    Job(BenchPhase),
}

impl BenchmarkName {
    fn name(&self) -> &str {
        match self {
            Self::Benchmark(BenchWorkload::Seq) => "seq",
            Self::Benchmark(BenchWorkload::Rand | BenchWorkload::Job) => "rand",
            Self::Job(phase) => &phase.name,
        }
    }

    fn workload(&self) -> BenchWorkload {
        match self {
            Self::Benchmark(workload) => *workload,
            Self::Job(_) => BenchWorkload::Job,
        }
    }

    fn phases(&self, parameters: &Parameters) -> Vec<BenchPhase> {
        match self {
            Self::Benchmark(workload) => fathom_cluster::jobs::phases(*workload, parameters),
            Self::Job(phase) => vec![phase.clone()],
        }
    }
}

/// Runs the benchmark, or shows it.
pub fn run(global: &Global, what: &BenchmarkName, args: &Args) -> anyhow::Result<Exit> {
    if args.options.is_simulated() {
        let why = why_not("cluster", "sim").unwrap_or_default();
        return Err(ExitError::new(Exit::Usage, why).into());
    }
    let (global, runs) = runs(global, what.workload(), args)
        .map_err(|message| ExitError::new(Exit::Input, message))?;
    let global = &global;
    check_jobs(what, &runs)?;
    check_engine(what, &runs)?;
    if args.dry_run || args.manifests.is_some() {
        return shown(what, &runs, args.manifests.as_deref());
    }
    runs.iter().try_for_each(must_have_image)?;
    let cluster = args.which.connect()?;
    for parameters in &runs {
        fathom_cluster::check_rights(&cluster, parameters).map_err(in_words)?;
    }
    let control = signals::control()?;
    match &runs[..] {
        [one] => {
            let (dir, done) = self::one(global, (what, &args.options), one, &cluster, &control)?;
            match done {
                Ok(status) => {
                    show::present(global, &dir, false)?;
                    Ok(exit_after(status))
                }
                Err(error) => broken_off(global, error, &dir),
            }
        }
        several => list(global, (what, &args.options), several, &cluster, &control),
    }
}

/// One run after the other, and at the end what they gave beside each other. A
/// run that fails is told, and the next one goes on.
fn list(
    global: &Global,
    what: (&BenchmarkName, &RunOptions),
    runs: &[Parameters],
    cluster: &Cluster,
    control: &Control,
) -> anyhow::Result<Exit> {
    let mut worst = Exit::Success;
    let mut dirs = Vec::new();
    for parameters in runs {
        let (dir, done) = one(global, what, parameters, cluster, control)?;
        dirs.push(dir.clone());
        let exit = match done {
            Ok(status) => exit_after(status),
            // It was told while it went on.
            Err(ClusterError::Start { .. } | ClusterError::Command(_)) => Exit::Failed,
            Err(error) => return Err(in_words(error)),
        };
        if !global.json {
            show::present(global, &dir, false)?;
        }
        if exit != Exit::Success {
            worst = exit;
        }
        if exit == Exit::Interrupted {
            break;
        }
    }
    compare::present(global, runs, &dirs)?;
    Ok(worst)
}

fn exit_after(status: RunStatus) -> Exit {
    match status {
        RunStatus::Complete => Exit::Success,
        RunStatus::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

/// Refuses jobs that the native engine would refuse in every pod.
fn check_engine(what: &BenchmarkName, runs: &[Parameters]) -> Result<(), ExitError> {
    let native = runs.iter().filter(|run| run.engine == EngineName::Native);
    let refused: Vec<String> = native
        .flat_map(|run| fathom_cluster::jobs::against_native(&what.phases(run)))
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(ExitError::new(
        Exit::Input,
        format!(
            "the native engine does not run these jobs: {}\n  to do: leave out what it does not take (fathom engines lists that), or take --engine fio",
            refused.join("; ")
        ),
    ))
}

/// Refuses what `fathom job check` would find wrong with the jobs of a benchmark:
/// on the servers nobody could be asked about it.
fn check_jobs(what: &BenchmarkName, runs: &[Parameters]) -> Result<(), ExitError> {
    let mut wrong = Vec::new();
    for parameters in runs {
        let phases = what.phases(parameters);
        // A job file of the user's was checked when it was read.
        let own: &[BenchPhase] = match what {
            BenchmarkName::Benchmark(_) => &phases,
            BenchmarkName::Job(_) => &[],
        };
        for diagnostic in fathom_cluster::jobs::check(own, parameters) {
            if !wrong.contains(&diagnostic) {
                wrong.push(diagnostic);
            }
        }
        let twice = fathom_cluster::jobs::twice(&phases);
        if !twice.is_empty() {
            let message = format!("these phases stand there twice: {}", twice.join(", "));
            return Err(ExitError::new(Exit::Input, message));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    out::note(present::diagnostics_for_stderr(&wrong));
    let message = "the jobs have errors; nothing was made".to_owned();
    Err(ExitError::new(Exit::Input, message))
}

/// The runs that are asked for, and where their records go: where an inventory
/// says it, unless a flag does.
fn runs(
    global: &Global,
    workload: BenchWorkload,
    args: &Args,
) -> Result<(Global, Vec<Parameters>), String> {
    let file = match &args.file {
        Some(path) => {
            let shown = path.display();
            let read = regular::read(path, PARAMETERS_BYTES_MAX);
            let text = String::from_utf8(read.map_err(|e| format!("{shown}: {e}"))?)
                .map_err(|_| format!("{shown} is no text"))?;
            Given::read(path, &text).map_err(|fault| fault.to_string())?
        }
        None => Given::default(),
    };
    let mut global = global.clone();
    if let Some(folder) = &file.run_basedir
        && global.runs == Path::new(RUNS)
    {
        global.runs.clone_from(folder);
    }
    Ok((global, file.runs(workload, &args.given()?)?))
}

fn image(parameters: &Parameters) -> &str {
    let default = match parameters.is_by_agent() {
        true => super::IMAGE,
        false => IMAGE,
    };
    parameters.image.as_deref().unwrap_or(default)
}

/// That there is an image: nobody but whoever runs the cluster knows one with fio.
fn must_have_image(parameters: &Parameters) -> Result<(), ExitError> {
    if parameters.image.is_some() || parameters.is_by_agent() {
        return Ok(());
    }
    let message = "no image is named\n  to do: name one with fio in it that the nodes can get (--image); \
        or let Fathom itself run on the servers (--engine native), from the image that fathom cluster image writes";
    Err(ExitError::new(Exit::Input, message))
}

/// The folder of a run's record, and how the run went.
fn one(
    global: &Global,
    (what, options): (&BenchmarkName, &RunOptions),
    parameters: &Parameters,
    cluster: &Cluster,
    control: &Control,
) -> anyhow::Result<(PathBuf, Result<RunStatus, ClusterError>)> {
    let mut header = Header::new(what.name(), what.workload().command());
    header.label.clone_from(&options.label);
    header.environment = Some(fathom_device::environment(&[]));
    let facts = serde_json::json!({"server": cluster.server(), "parameters": parameters});
    header.facts.insert("cluster".to_owned(), facts);
    let writer = Writer::create(&global.runs, &header)?;
    let dir = writer.dir().to_owned();
    let run = dir
        .file_name()
        .map_or_else(String::new, |id| dns_label(&id.to_string_lossy()));
    let phases = what.phases(parameters);
    let plan = ClusterPlan {
        workload: what.workload(),
        phases: &phases,
        parameters,
        run: &run,
        image: image(parameters),
    };
    let mut lines = LiveLines::new(LiveOptions::new(global.quiet, global.color));
    let done = observed_in_place(global, |begun, observer| {
        begun(&dir);
        fathom_cluster::run(cluster, &plan, writer, control, &mut |event| {
            lines.take(event);
            observer(event);
        })
    });
    if !global.quiet {
        out::note(format_args!("recorded as {}", dir.display()));
    }
    Ok((dir, done.map(|(_, status)| status)))
}

/// A run that did not come to its end: told while it went on, and in its record.
fn broken_off(global: &Global, error: ClusterError, folder: &Path) -> anyhow::Result<Exit> {
    let exit = exit_of(&error);
    if global.json {
        show::present(global, folder, false)?;
    }
    if global.quiet {
        return Err(in_words(error));
    }
    Ok(exit)
}

/// A record's name as Kubernetes takes it for a label.
pub fn dns_label(id: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let label: String = id.chars().map(plain).take(63).collect();
    label.trim_matches('-').to_owned()
}

fn exit_of(error: &ClusterError) -> Exit {
    match error {
        ClusterError::Kube(_) => Exit::Missing,
        ClusterError::Rights { .. }
        | ClusterError::Occupied { .. }
        | ClusterError::Foreign { .. } => Exit::Refused,
        ClusterError::Record(_) | ClusterError::File { .. } | ClusterError::Run(_) => Exit::Record,
        ClusterError::Interrupted => Exit::Interrupted,
        ClusterError::Start { .. } | ClusterError::Command(_) => Exit::Failed,
    }
}

/// A message, and the exit that goes with it.
pub fn in_words(error: ClusterError) -> anyhow::Error {
    let message = error.to_string();
    ExitError::new(exit_of(&error), message).into()
}

/// What would be made and run: on the screen, or as files.
fn shown(what: &BenchmarkName, runs: &[Parameters], folder: Option<&Path>) -> anyhow::Result<Exit> {
    for (place, parameters) in (1..).zip(runs) {
        let run = format!("run-{place}");
        let objects = Objects {
            parameters,
            run: &run,
            image: image(parameters),
        };
        let phases = what.phases(parameters);
        let mut files: Vec<(String, String)> = Vec::new();
        let mut add =
            |name: &str, object: &Value| files.push((format!("{name}.yaml"), to_yaml(object)));
        add("namespace", &objects.namespace());
        for made in objects.all() {
            add(&made.alone(), &made.object);
        }
        files.extend(
            phases
                .iter()
                .map(|phase| (format!("{}.fio", phase.name), phase.text.clone())),
        );
        if let Some(calm) = &parameters.calm {
            files.push(("calm_prefill.fio".to_owned(), calm.prefill()));
            files.push(("calm.fio".to_owned(), calm.job()));
        }
        match folder {
            Some(folder) => written(&folder.join(&run), &files)?,
            None => on_screen(what, parameters, &files),
        }
    }
    Ok(Exit::Success)
}

fn on_screen(what: &BenchmarkName, parameters: &Parameters, files: &[(String, String)]) {
    let does = match what {
        BenchmarkName::Benchmark(_) => {
            let written = units::bytes(parameters.written_bytes() as f64);
            format!("write {written}")
        }
        BenchmarkName::Job(phase) => format!("run {}", phase.name),
    };
    out::text(format_args!(
        "# {} servers in namespace {} {does}\n",
        parameters.ninstances, parameters.namespace
    ));
    if let Some(calm) = &parameters.calm {
        out::text(format_args!("# beside them {}\n", calm.told()));
    }
    for (name, text) in files {
        // Comments in YAML and in job files; documents in one stream.
        out::text(format_args!("--- # {name}\n{text}"));
    }
}

fn written(folder: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (name, text) in files {
        write_named(&folder.join(name), text)?;
    }
    out::note(format_args!(
        "{} files in {}",
        files.len(),
        folder.display()
    ));
    Ok(())
}
