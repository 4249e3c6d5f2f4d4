//! A campaign made by hand, on a device that is simulated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_analysis::guard::GuardRule;
use fathom_campaign::plan::{CampaignStep, ResolvedCampaign};
use fathom_campaign::run::{CampaignOptions, RunStart, ready};
use fathom_engine::Control;
use fathom_engines::EngineName;
use fathom_flow::Finish;
use fathom_flow::RunOptions;
use fathom_flow::error::RunError;
use fathom_flow::progress::Progress;
use fathom_model::{DevicePhase, Event, Point};
use fathom_prepare::preparation::Preparation;
use fathom_prepare::settings::{Care, GuardPolicy, RunSettings};
use fathom_record::Record;
use fathom_suites::snia::SniaConfig;
use tempfile::TempDir;

/// Depths of the points of a series.
pub const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Time of a point.
pub const POINT: Duration = Duration::from_secs(3);

/// A campaign's folder and what its runs are asked for.
pub struct Campaign {
    pub dir: TempDir,
    pub plan: ResolvedCampaign,
    pub options: CampaignOptions,
    pub control: Control,
}

fn step(series: &str, depth: u32, repetition: u32) -> CampaignStep {
    let id = format!("{series}/{depth:04}-bs4k-1j-{depth}qd-randread");
    let seconds = POINT.as_secs();
    CampaignStep {
        job_file: PathBuf::from(format!("{id}.ini")),
        job_text: format!(
            "[global]\ntime_based\nioengine=libaio\nbs=4k\nsize=1g\nfilename=/dev/nothing\n\
             [randread]\nrw=randread\niodepth={depth}\nruntime={seconds}\n"
        ),
        point: Point {
            id,
            series: series.to_owned(),
            x: "iodepth".to_owned(),
            settings: BTreeMap::from([("iodepth".to_owned(), depth.to_string())]),
            repetition,
        },
        phase: DevicePhase::Random,
        guarded: true,
        duration: Some(POINT),
        write_bytes: Some(0),
        write_share: 0.0,
    }
}

impl Campaign {
    /// Two series over [`DEPTHS`], each point once, without a guard, on a
    /// simulated device as described.
    pub fn on(device: &str) -> Self {
        // In memory where there is such a place: a record syncs at every step.
        let memory = Path::new("/dev/shm");
        let dir = match memory.is_dir() {
            true => TempDir::with_prefix_in("fathom-campaign-", memory),
            false => TempDir::with_prefix("fathom-campaign-"),
        };
        let dir = dir.unwrap();
        let sim = dir.path().join("device.toml");
        let head = "format = \"fathom-sim-device\"\nversion = 1\n";
        fs::write(&sim, format!("{head}{device}")).unwrap();
        let plan = ResolvedCampaign {
            preparation: Preparation::default(),
            snia: SniaConfig::default(),
            folder: dir.path().to_owned(),
            dut: "/dev/nothing".into(),
            settings: RunSettings {
                options: RunOptions {
                    engine: Some(EngineName::Sim),
                    sim: vec![sim],
                    ..RunOptions::default()
                },
                interval: Duration::from_secs(1),
                point_limit: None,
                guard: None,
                progress_logs: true,
                care: Care::default(),
            },
            notes: vec![],
            steps: Vec::new(),
            scope: String::new(),
        };
        let mut campaign = Self {
            dir,
            plan,
            options: CampaignOptions::default(),
            control: Control::default(),
        };
        campaign.steps(&["a", "b"], &[1]);
        campaign
    }

    /// A step for each series, repetition and depth, in this order.
    pub fn steps(&mut self, series: &[&str], repetitions: &[u32]) {
        self.plan.steps.clear();
        for series in series {
            for &repetition in repetitions {
                let steps = DEPTHS.iter().map(|&depth| step(series, depth, repetition));
                self.plan.steps.extend(steps);
            }
        }
    }

    /// `count` points of one series.
    pub fn many(&mut self, count: u32) {
        self.plan.steps = (1..=count).map(|depth| step("many", depth, 1)).collect();
    }

    /// Repetitions of a point follow each other.
    pub fn in_a_row(&mut self) {
        let key = |step: &CampaignStep| (step.point.series.clone(), step.point.id.clone());
        self.plan.steps.sort_by_key(key);
    }

    pub fn guarded(mut self) -> Self {
        self.plan.settings.guard = Some(GuardPolicy::Worse(GuardRule {
            points: 2,
            noise_percent: 5,
        }));
        self
    }

    /// Only what the search for the knee needs is measured: the order is that of the plan
    /// that asks for it.
    pub fn searching(mut self, series: &[&str], depths: &[u32], repetitions: &[u32]) -> Self {
        self.plan.settings.guard = Some(GuardPolicy::NotForKnee);
        let passes = series
            .iter()
            .flat_map(|of| repetitions.iter().map(move |n| (*of, *n)));
        self.plan.steps = passes
            .flat_map(|(of, n)| depths.iter().map(move |&depth| step(of, depth, n)))
            .collect();
        self
    }

    pub fn begin(&mut self, begin: RunStart) -> &mut Self {
        self.options.begin = begin;
        self
    }

    pub fn runs_dir(&self) -> PathBuf {
        self.dir.path().join("fathom-runs")
    }

    pub fn run(&self) -> Result<Finish, RunError> {
        self.run_observed(&mut |_| {})
    }

    pub fn ready(&self) -> Result<fathom_campaign::run::ReadyCampaign<'_>, RunError> {
        ready(&self.plan, &self.runs_dir(), self.options.clone())
    }

    pub fn run_observed(&self, observer: &mut dyn FnMut(&Event)) -> Result<Finish, RunError> {
        let ready = ready(&self.plan, &self.runs_dir(), self.options.clone())?;
        ready.run(&self.control, &mut |_| {}, observer)
    }

    /// Runs until the `nth` step begins, which is stopped in it.
    pub fn run_until(&mut self, nth: u32) -> Finish {
        let control = Control::default();
        self.control = control.clone();
        let mut steps = 0;
        let finish = self.run_observed(&mut |event| {
            steps += u32::from(matches!(event, Event::Step { .. }));
            if steps == nth && matches!(event, Event::Interval { .. }) {
                control.stop();
            }
        });
        self.control = Control::default();
        finish.unwrap()
    }

    /// How many steps are left to do.
    pub fn left(&self) -> usize {
        let ready = ready(&self.plan, &self.runs_dir(), self.options.clone());
        ready.unwrap().todo().count()
    }

    /// The steps that would run, as `a 8 #1`.
    pub fn todo(&self) -> Vec<String> {
        let ready = ready(&self.plan, &self.runs_dir(), self.options.clone());
        let ready = ready.unwrap();
        ready.todo().map(|(_, step)| short(&step.point)).collect()
    }
}

/// `a 8 #1`.
pub fn short(point: &Point) -> String {
    let depth = &point.settings["iodepth"];
    format!("{} {depth} #{}", point.series, point.repetition)
}

/// The progress that a record tells.
pub fn progress(dir: &Path) -> Progress {
    let record = Record::open(dir).unwrap();
    let mut progress = Progress::open(dir).unwrap().0;
    for entry in &record.entries {
        progress.take(entry.at_ms, &entry.event);
    }
    progress
}

/// The steps that were begun, in order.
pub fn begun(dir: &Path) -> Vec<String> {
    let record = Record::open(dir).unwrap();
    let point = |event: &Event| match event {
        Event::Step { point, .. } => Some(short(point.as_ref().unwrap())),
        _ => None,
    };
    let events = record.entries.iter();
    events.filter_map(|entry| point(&entry.event)).collect()
}
