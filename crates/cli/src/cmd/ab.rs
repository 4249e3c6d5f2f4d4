//! `fathom ab`: which of some settings is faster, in pairs, until it is clear.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_flow::RunOptions;
use fathom_flow::options::duration;
use fathom_flow::{History, JobStep};
use fathom_model::Exit;
use fathom_questions::ab::{AbConfig, AbFigure, AbQuestion, AbScript, COMMAND, NeededBoot};
use fathom_record::Record;
use fathom_report::compare::margin;
use fathom_sheet::answer::RunAnswer;
use serde::{Deserialize, Serialize};

use super::compare::GateArgs;
use super::hosts::{HostArgs, SharedHosts};
use super::job::Setting;
use super::planned::KindArgs;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::run_args::RunArgs;
use super::{ExitError, Global};
use crate::cmd::job::request::JobPlan;

mod mount_point;
pub mod show;
pub mod sides;

use mount_point::MountPoint;
#[cfg(test)]
pub(in crate::cmd) use show::AbDocument;
use sides::{AbChange, Sides, SidesArgs};

/// Say which of two settings is faster, measured in turn until it is clear
///
/// Both are measured again and again, in random order, until the difference between them is
/// clear. Without --a, --b and --vary a setting is compared with itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
KEY is a setting of the device that the jobs use (scheduler, nr_requests, wbt_lat_usec,
read_ahead_kb, max_sectors_kb, nomerges, rq_affinity, io_poll_delay, write_cache), of the machine
(governor, vm.dirty_ratio, vm.dirty_bytes, vm.dirty_background_ratio, vm.dirty_background_bytes,
vm.dirty_expire_centisecs, vm.dirty_writeback_centisecs), JOB.OPTION of a job, fio: the program that
runs it, mount: options of the file system that --mkfs makes, or kernel: the run stops where another
is to be booted (exit code 8), and 'fathom resume' goes on there. What a side does not set is as it
stood. Settings are put back at the end; after a kill 'fathom restore' does it.

Examples:
  fathom ab mix.fio --a scheduler=none --b scheduler=bfq
  fathom ab mix.fio --b nr_requests=32 --figure p99      against what it is now
  fathom ab mix.fio --vary scheduler=none,bfq,kyber
  fathom ab mix.fio --a mix.bs=4k --b mix.bs=8k --figure bw --engine sim
  fathom ab mix.fio --b mix.iodepth=8 --hosts bench1,bench2   of both together
  fathom ab mix.fio --b fio=/opt/fio/bin/fio             against the fio that is installed
  fathom ab mix.fio --mkfs ext4:/dev/sdb --b mount=noatime --destroy ata-ACME_1234
  fathom ab mix.fio --a kernel=6.1.0-40-amd64 --b kernel=6.12.0-1-amd64   across reboots
  fathom ab mix.fio --b-do 'tuned-adm profile throughput-performance' --undo 'tuned-adm off'
  fathom ab mix.fio --pairs 40 --margin 1%               how noisy is it? the same twice
  fathom ab mix.fio --b scheduler=bfq --fail-if slower   exit code 7 where it holds")]
pub struct Args {
    /// The job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sides: SidesArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// What decides: iops, bw, mean, p50, p90, p95, p99, p99.9, p99.99; several with commas
    #[arg(
        long,
        value_name = "FIGURE",
        value_delimiter = ',',
        default_value = "iops"
    )]
    figure: Vec<AbFigure>,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    hosts: HostArgs,
}

/// How clear it is to be, and how long that may take.
#[derive(Debug, Clone, clap::Args)]
pub struct QuestionArgs {
    /// Pairs at the most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=100))]
    pairs: u32,
    /// How long each measurement takes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    each: Duration,
    /// Sides are the same when they differ by less than this
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = margin)]
    margin: f64,
    /// From which the order follows [default: another each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl QuestionArgs {
    /// What is asked of these figures.
    pub fn question(&self, figures: &[AbFigure]) -> AbQuestion {
        let mut asked: Vec<AbFigure> = Vec::new();
        for &figure in figures {
            if !asked.contains(&figure) {
                asked.push(figure);
            }
        }
        let by_time = fathom_record::now_ms() ^ (u64::from(std::process::id()) << 40);
        AbQuestion {
            figures: asked,
            margin: self.margin,
            pairs: self.pairs,
            seed: self.seed.unwrap_or(by_time),
        }
    }

    /// How long each measurement takes, in ms.
    pub fn each_ms(&self) -> u128 {
        self.each.as_millis()
    }

    /// What every job is set to.
    pub fn settings(&self) -> Vec<Setting> {
        let set = |key: &str, value: &str| Setting {
            key: key.to_owned(),
            value: Some(value.to_owned()),
        };
        vec![
            set("time_based", "1"),
            set("runtime", &format!("{}ms", self.each_ms())),
            set("group_reporting", "1"),
        ]
    }
}

/// What a record keeps of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AbPlan {
    /// The job file of each side.
    pub job: JobPlan,
    pub config: AbConfig,
    #[serde(flatten)]
    pub gate: GateArgs,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Runs it.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut options = args.run.options()?;
    let sides = Sides::of(&args.sides)?;
    sides.engine(&mut options)?;
    let hosts = SharedHosts::of(&args.hosts, &options)?;
    let elsewhere = || hosts.as_ref().map(|hosts| hosts.variables.clone());
    let file_system = sides.file_system(&options)?;
    let mut base = args.question.settings();
    base.extend(file_system.as_ref().map(|it| Setting {
        key: "directory".to_owned(),
        value: Some(it.at.display().to_string()),
    }));
    let mut job = JobPlan::of_file(&args.file, &base, options.clone(), elsewhere())?;
    let mut files = Vec::new();
    for side in &sides.all {
        let own = side.changes.iter().filter_map(AbChange::of_job);
        let set: Vec<Setting> = base.iter().cloned().chain(own).collect();
        let mut file = match set.len() > base.len() {
            true => JobPlan::of_file(&args.file, &set, options.clone(), elsewhere())?.files,
            false => job.files.clone(),
        };
        for file in &mut file {
            file.file_name = format!("{}-{}", side.name, file.file_name);
        }
        files.append(&mut file);
    }
    job.files = files;
    job.device = file_system.as_ref().map(|it| it.device.clone());
    job = job.on(hosts)?.placed()?;
    let (sides, setup) = sides.judged(&job, file_system, args.run.dry_run)?;
    let config = AbConfig {
        sides,
        setup,
        question: args.question.question(&args.figure),
    };
    let gate = args.gate.clone();
    let plan = AbPlan { job, config, gate };
    Box::new(plan).run(global, Start::new(args.run.dry_run))
}

impl RequestKind for AbPlan {
    const NAME: &'static str = "ab";
}

impl RunRequest for AbPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.job.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        sides::are_as_they_were(&self.config.sides)?;
        if let Some(dir) = start.record.as_deref() {
            if !start.dry_run {
                self.must_be_booted(dir)?;
            }
            let setup = &mut self.config.setup;
            if setup.device.is_some() && setup.file_system.is_none() {
                // Another boot may call it by another name.
                setup.device = Some(sides::device_of(&self.job)?.dev_path());
            }
        }
        let kept = kept(&*self)?;
        let place = match &mut self.config.setup.file_system {
            Some(it) => {
                it.destroy.clone_from(&self.job.options.destroy);
                Some(MountPoint::of(it, &self.job, start.dry_run)?)
            }
            None => None,
        };
        let config = &self.config;
        let job = self.job.clone();
        let place = RefCell::new(place);
        job.repeated(
            global,
            (COMMAND, kept),
            start,
            |jobs| Box::new(script(jobs, config)),
            |dir, exit| {
                place.take();
                self.conclude(global, dir, exit)
            },
        )
    }

    fn job(&self) -> Option<&JobPlan> {
        Some(&self.job)
    }

    fn answer(&self, record: &Path) -> Option<RunAnswer> {
        show::of_report(&self.config, record).ok()
    }
}

impl AbPlan {
    /// Refuses to go on in a boot that is not for the next measurement.
    fn must_be_booted(&self, dir: &Path) -> anyhow::Result<()> {
        let record = Record::open(dir)?;
        let history = History::of(&record.entries).resumed();
        let state = show::state(&self.config, &history);
        let needed = NeededBoot::of(&self.config.sides, &state, &history);
        match needed.and_then(|needed| needed.lacks(&fathom_device::booted())) {
            None => Ok(()),
            Some(reason) => {
                let what = format!(
                    "the next measurement is not for this boot\n  to do: {reason}, then: fathom resume {}",
                    dir.display()
                );
                Err(ExitError::new(Exit::Refused, what).into())
            }
        }
    }

    /// Shows what came of it.
    fn conclude(&self, global: &Global, dir: &Path, exit: Exit) -> anyhow::Result<Exit> {
        let gate = show::answer(global, &self.config, self.gate.conditions(), dir)?;
        Ok(match exit {
            Exit::Success => self.gate.exit(gate.as_ref()),
            exit => exit,
        })
    }
}

fn script(jobs: Vec<JobStep>, config: &AbConfig) -> AbScript {
    AbScript {
        jobs,
        config: config.clone(),
    }
}
