//! `fathom tune`: which settings of a device are best for a load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::safety::{self, Confirmations};
use fathom_device::settings::Settings;
use fathom_device::{Sys, SysBlock, ids};
use fathom_flow::RunOptions;
use fathom_flow::{History, JobStep};
use fathom_model::{Exit, SettingValue};
use fathom_questions::ab::{
    AbQuestion, AbSetup, RaceNext, TUNE_COMMAND, TuneConfig, TuneLoad, TuneScript, TuneState,
    TuneTrial, keep_taken,
};
use fathom_record::Record;
use fathom_sheet::answer::{AnswerTable, RunAnswer};
use fathom_sheet::style::Tone;
use serde::{Deserialize, Serialize};

use super::ab::{QuestionArgs, show, sides};
use super::planned::KindArgs;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::run_args::RunArgs;
use super::{ExitError, Global};
use crate::cmd::job::request::{JobPlan, JobText};
use crate::out;

/// Pairs of a first look at a setting: what takes more is small.
const COARSE_PAIRS: u32 = 8;

/// What is said of a search that was stopped.
const UNFINISHED: &str = "the search did not come to its end: fathom resume goes on";
/// What is said where nothing was found.
const AS_IT_STANDS: &str = "nothing is clearly better than how it stands: leave it as it is";

/// Find the settings of a device that are best for a load
///
/// One setting after the other is tried as 'fathom ab' does it; what was found is then compared
/// with how the device stood. It ends with a udev rule, and the device stands as it did before.
#[derive(Debug, clap::Args)]
#[command(mut_arg("sim", |sim| sim.hide(true)))]
#[command(after_help = "\
LOAD is RW BS [iodepth N] [buffered] [fsync N] at FIGURE: randread 4k at p99. The device is read, or
written to with --destroy. Settings: scheduler, nr_requests, rq_affinity, nomerges, of writes
wbt_lat_usec, of large I/Os max_sectors_kb, of buffered reads read_ahead_kb. Anything that is already
as good as can be told stays as it is.

Examples:
  fathom tune --for 'randread 4k at p99' /dev/nvme0n1
  fathom tune --for 'write 1m iodepth 8 at bw' /dev/sdb --destroy ata-ACME_1234
  fathom tune --for 'read 1m buffered at bw' /dev/sdb
  fathom tune --for 'randread 4k at iops' /dev/sdb --max-time 20m")]
pub struct Args {
    /// The device
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// What it is to be good for
    #[arg(long = "for", value_name = "LOAD")]
    load: TuneLoad,
    /// Try write_cache too, for a load with fsync: with 'write through' the kernel sends no
    /// flushes, and what the device holds in a volatile cache is lost with its power
    #[arg(long)]
    write_cache: bool,
    #[command(flatten)]
    question: QuestionArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// What a record keeps of a search for settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TunePlan {
    pub job: JobPlan,
    pub load: TuneLoad,
    pub config: TuneConfig,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Runs it.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if args.run.options.is_simulated() {
        let what = "a simulated device has no settings";
        return Err(ExitError::new(Exit::Usage, what).into());
    }
    if args.write_cache && args.load.fsync.is_none() {
        let what = "--write-cache can matter only for a load that waits for flushes\n  to do: --for 'randwrite 4k fsync 1 at p99', for example";
        return Err(ExitError::new(Exit::Usage, what).into());
    }
    let sys = Sys::live();
    let device = sys.by_path(&args.device).ok_or_else(|| {
        let what = format!(
            "{} is no block device of this machine",
            args.device.display()
        );
        ExitError::new(Exit::Missing, what)
    })?;
    sides::put_back_first(args.run.dry_run)?;
    let settings = Settings::new(sys, Some(&device));
    let knobs = args.load.knobs(&settings, args.write_cache);
    let knobs = knobs.map_err(|error| ExitError::new(Exit::Missing, error.to_string()))?;
    let (knobs, notes) = match may_try(args) {
        true => keep_taken(knobs, &device, &settings)
            .map_err(|why| ExitError::new(Exit::Missing, why))?,
        false => (knobs, Vec::new()),
    };
    if knobs.is_empty() {
        let what = format!("{} has no settings to choose from", device.name);
        return Err(ExitError::new(Exit::Missing, what).into());
    }
    let fine = args.question.question(&[args.load.figure]);
    let config = TuneConfig {
        setup: AbSetup {
            device: Some(device.whole().dev_path()),
            settings: knobs.iter().map(|knob| knob.name.clone()).collect(),
            ..AbSetup::default()
        },
        knobs,
        coarse: AbQuestion {
            pairs: COARSE_PAIRS.min(fine.pairs),
            ..fine.clone()
        },
        fine,
    };
    let name = device.dev_path().display().to_string();
    let text = JobText {
        name: TUNE_COMMAND.to_owned(),
        file_name: format!("{TUNE_COMMAND}.fio"),
        text: args.load.job(&name, args.question.each_ms()),
    };
    let job = JobPlan {
        name: format!("{TUNE_COMMAND}-{}", device.name),
        files: vec![text],
        passed: Vec::new(),
        sections: Vec::new(),
        notes,
        interval: Duration::from_secs(1),
        timeout: None,
        work_dir: None,
        options: args.run.options()?,
        servers: None,
        device: None,
        hosts: None,
    };
    let load = args.load.clone();
    let plan = TunePlan { job, load, config };
    Box::new(plan).run(global, Start::new(args.run.dry_run))
}

/// Whether values may be tried before the run: a dry run changes nothing, and a run that
/// will be refused does not either.
fn may_try(args: &Args) -> bool {
    let confirmed = Confirmations(args.run.options.destroy.clone());
    let writes = !args.load.rw.ends_with("read");
    !args.run.dry_run && (!writes || safety::check_write(&args.device, &confirmed).is_ok())
}

impl RequestKind for TunePlan {
    const NAME: &'static str = "tune";
}

impl RunRequest for TunePlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.job.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        self.job = self.job.placed()?;
        let kept = kept(&*self)?;
        let job = self.job.clone();
        job.repeated(
            global,
            (TUNE_COMMAND, kept),
            start,
            // A plan has one file.
            |mut steps| Box::new(self.script(steps.swap_remove(0))),
            |dir, exit| self.show(global, dir).map(|()| exit),
        )
    }

    fn job(&self) -> Option<&JobPlan> {
        Some(&self.job)
    }

    fn answer(&self, record: &Path) -> Option<RunAnswer> {
        Self::answer(self, record).ok()
    }
}

impl TunePlan {
    fn script(&self, job: JobStep) -> TuneScript {
        TuneScript {
            job,
            config: self.config.clone(),
        }
    }

    /// What the record tells of a search.
    fn state(&self, record: &Record) -> TuneState {
        let history = History::of(&record.entries);
        let script = self.script(JobStep::new((1, 1), TUNE_COMMAND, String::new(), &[]));
        script.state(&history)
    }

    /// What the report of the run shows first.
    pub fn answer(&self, dir: &Path) -> anyhow::Result<RunAnswer> {
        let state = self.state(&Record::open(dir)?);
        let mut answer = RunAnswer::default();
        match (state.next == RaceNext::Ended, state.is_better()) {
            (false, _) => answer.say(Tone::Doubtful, UNFINISHED),
            (true, false) => answer.say(Tone::Plain, AS_IT_STANDS),
            (true, true) => {
                let blank = self.script(JobStep::new((1, 1), TUNE_COMMAND, String::new(), &[]));
                let found = blank.words(&state.best).join(" ");
                answer.say(Tone::Good, format!("{found} is better than how it stood"));
            }
        }
        for trial in &state.trials {
            let sides = trial.sides.iter();
            let sides = sides.map(|side| format!("{}: {}", side.name, side.label));
            answer.tables.push(AnswerTable {
                title: sides.collect::<Vec<_>>().join(", "),
                grid: show::table(&trial.sides, &trial.rows),
            });
        }
        Ok(answer)
    }

    fn show(&self, global: &Global, dir: &Path) -> anyhow::Result<()> {
        let record = Record::open(dir)?;
        let state = self.state(&record);
        let is_better = state.is_better();
        let best = || self.config.knobs.iter().zip(&state.best);
        let changed = best().filter(|&(_, &value)| value > 0);
        let values = changed.flat_map(|(knob, &value)| knob.values[value].values.clone());
        let set: Vec<SettingValue> = values.filter(|_| is_better).collect();
        let device = self.config.setup.device.as_deref().unwrap_or(Path::new(""));
        let document = TuneDocument {
            schema: "fathom.tune/1",
            run: record.id(),
            device,
            seed: self.config.fine.seed,
            ended: state.next == RaceNext::Ended,
            is_better,
            udev_rule: rule(device, &set),
            set,
            trials: state.trials,
        };
        match global.json {
            true => out::json(&document)?,
            false => text(global, &document),
        }
        Ok(())
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneDocument<'c> {
    /// `fathom.tune/1`
    schema: &'static str,
    /// Name of the run.
    run: String,
    /// The device.
    device: &'c Path,
    /// From which the order follows.
    seed: u64,
    /// Whether it came to its end.
    ended: bool,
    /// Whether what was found is better than how it stood.
    is_better: bool,
    /// What is to be set: nothing where it is not better.
    set: Vec<SettingValue>,
    /// The rule that sets it whenever the device appears.
    #[serde(skip_serializing_if = "Option::is_none")]
    udev_rule: Option<String>,
    /// What was tried, in order; the last, without a setting: all that was found.
    trials: Vec<TuneTrial>,
}

fn text(global: &Global, document: &TuneDocument<'_>) {
    for trial in &document.trials {
        for side in &trial.sides {
            out::line(format_args!("{}  {}", side.name, side.label));
        }
        out::line(show::table(&trial.sides, &trial.rows).render(out::style(global.color)));
    }
    if !document.ended {
        out::line(UNFINISHED);
        return;
    }
    match (&document.udev_rule, document.is_better) {
        (Some(rule), true) => {
            out::line("better, and to be had for good by a file in /etc/udev/rules.d:");
            out::line(rule);
            if document.set.iter().any(is_without_flushes) {
                out::line(NO_FLUSHES);
            }
        }
        _ => out::line(AS_IT_STANDS),
    }
}

/// What is said of a rule that leaves flushes out.
const NO_FLUSHES: &str = "with 'write through' the kernel sends no flushes: only for a drive whose cache keeps its data without power";

fn is_without_flushes(set: &SettingValue) -> bool {
    set.file.ends_with("write_cache") && set.value == "write through"
}

/// The rule that sets this whenever the device appears; `None`: nothing is to be set.
fn rule(device: &Path, set: &[SettingValue]) -> Option<String> {
    if set.is_empty() {
        return None;
    }
    let sys = Sys::live();
    let node = sys.by_path(device);
    let serial = |node: &SysBlock| ids::noted_by_udev(&sys, node, "ID_SERIAL_SHORT");
    let is_it = match node.as_ref().and_then(serial) {
        Some(serial) => format!("ENV{{ID_SERIAL_SHORT}}==\"{}\"", pattern(&serial)),
        // Only its name is known, which may be another tomorrow.
        None => {
            let name = device.file_name().unwrap_or_default().to_string_lossy();
            format!("KERNEL==\"{}\"", pattern(&name))
        }
    };
    let set = set.iter().map(|it| {
        let (file, value) = (it.file.display(), &it.value);
        format!("ATTR{{{file}}}=\"{value}\"")
    });
    let set: Vec<String> = set.collect();
    Some(format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {is_it}, {}",
        set.join(", ")
    ))
}

/// A text as a pattern of udev that nothing else than it fits, or what differs from it in
/// characters that a pattern cannot hold.
fn pattern(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.: ".contains(c);
    text.chars()
        .map(|c| if is_plain(c) { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_its_device_and_holds_no_foreign_words() {
        let set = [SettingValue {
            file: "queue/scheduler".into(),
            value: "none".into(),
        }];
        let rule = rule(Path::new("/dev/sd\"x"), &set).unwrap();
        assert_eq!(
            rule,
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", KERNEL==\"sd?x\", ATTR{queue/scheduler}=\"none\""
        );
        assert_eq!(super::rule(Path::new("/dev/sdx"), &[]), None);
    }
}
