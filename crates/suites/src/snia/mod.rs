//! Tests after SNIA's Solid State Storage Performance Test Specification, as
//! flows: purge, workload-independent pre-conditioning, rounds until the tracked
//! variables are steady, and a histogram where the test has one.
//!
//! Interpretations, never called SNIA tests ([`fathom_analysis::snia::NOTICE`]).
//! What a test is made of is a [`Setup`]; whether its rounds are steady is judged
//! by `analysis::snia`, live and later by the same code.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use fathom_analysis::snia::{
    CellFigures, HISTOGRAM, PartEnding as PointOutcome, Setup, SniaCell as Load, SniaRound,
    SniaTest, TestPart,
};
use fathom_model::{Histogram, Pattern, Point, Stage, StageEnd, StageKind, units};

use fathom_flow::{
    Act, Ending, Fill, History, MeasuredStep, Next, Past, RoundPoint, Script, Task, Work,
};

mod ask;
mod config;
mod planning;
mod start;

pub use ask::{SniaAsk, SniaHow, method};
pub use config::{SniaChoices, from_config};
pub use planning::SniaConfig;
pub use planning::{Place, TestLog};
pub use start::{PurgeAndCache, write_cache};

/// Key in a record's facts of the list of set-ups of its tests, for the report.
pub const FACTS: &str = "snia";

/// One test on one device.
#[derive(Debug, Clone)]
pub struct Snia {
    /// What is asked for.
    pub setup: Setup,
    /// The device.
    pub dut: PathBuf,
    /// fio's I/O engine: `libaio`, `io_uring`, …
    pub ioengine: String,
    /// What it, or a part of it, begins with: the purge.
    pub start: Rc<dyn Act>,
}

impl Snia {
    /// What the header of the record is to hold, so that it explains itself.
    pub fn facts(&self) -> serde_json::Value {
        serde_json::json!([self.setup])
    }

    /// The parts of the test as far as they have come.
    fn parts(&self, history: &History) -> Vec<TestPart> {
        let parts = self.setup.parts().into_iter();
        let part = |name: String| part_so_far(&self.setup, &name, history);
        parts.map(part).collect()
    }

    /// What a stage is called: a campaign has several tests.
    fn title(&self, part: &str, what: &str) -> String {
        let test = self.setup.test.title();
        match part {
            "" => format!("{test}: {what}"),
            part => format!("{test} {part}: {what}"),
        }
    }

    /// What comes before the rounds of a part.
    fn beginning(&self, part: &str) -> Vec<Task> {
        let setup = &self.setup;
        let mut tasks = vec![Task {
            stage: Stage {
                id: setup.stage_id(part, "purge"),
                kind: StageKind::Purge,
                title: self.title(part, "purge"),
                round: None,
            },
            work: Work::Act(Rc::clone(&self.start)),
        }];
        for nth in 1..=setup.fill_loops {
            let blocks = units::bytes(setup.fill_block_bytes as f64);
            tasks.push(Task {
                stage: Stage {
                    id: setup.stage_id(part, &format!("fill-{nth}")),
                    kind: StageKind::Fill,
                    title: self.title(
                        part,
                        &format!(
                            "sequential writes of {blocks}, {nth} of {}",
                            setup.fill_loops
                        ),
                    ),
                    round: None,
                },
                work: Work::Fill(self.fill()),
            });
        }
        tasks
    }

    fn fill(&self) -> Fill {
        let setup = &self.setup;
        // One thread, or the writes would not be sequential.
        const IODEPTH: u32 = 32;
        let head = self.head();
        let bytes = setup.active_bytes;
        Fill {
            job_text: format!(
                "{head}[fill]\nrw=write\nbs={}\niodepth={IODEPTH}\n",
                setup.fill_block_bytes
            ),
            pattern: Pattern::Sequential,
            bs_bytes: setup.fill_block_bytes,
            range_percent: 100.0 * bytes as f64 / setup.capacity_bytes.max(1) as f64,
            bytes: Some(bytes),
        }
    }

    fn round(&self, part: &str, so_far: &TestPart) -> Task {
        let setup = &self.setup;
        let number = u32::try_from(so_far.measured.len() + 1).unwrap_or(u32::MAX);
        let what = match setup.test {
            SniaTest::Wsat => format!("sample {number}"),
            _ => format!("round {number}"),
        };
        let title = self.title(part, &what);
        let cells = setup.cells(part).into_iter();
        let ends = match &so_far.saturation {
            None => timed(setup.cell_ms),
            Some(saturation) => self.ends_of_sample(saturation.drive_fills),
        };
        Task {
            stage: Stage {
                id: setup.stage_id(part, &format!("round-{number:02}")),
                kind: StageKind::Round,
                title,
                round: Some(number),
            },
            work: Work::Cells(
                cells
                    .map(|cell| self.cell(cell, number, (setup.cell_ms, &ends), ""))
                    .collect(),
            ),
        }
    }

    fn histogram(&self) -> Task {
        let setup = &self.setup;
        let load = setup.histogram_cell();
        let ends = timed(setup.histogram_ms);
        let cell = self.cell(load, 1, (setup.histogram_ms, &ends), "/histogram");
        Task {
            stage: Stage {
                id: setup.stage_id("", HISTOGRAM),
                kind: StageKind::Measure,
                title: self.title(
                    "",
                    &format!(
                        "histogram of {load} for {}",
                        units::duration(setup.histogram_ms)
                    ),
                ),
                round: None,
            },
            work: Work::Cells(vec![cell]),
        }
    }

    /// When a sample of write saturation ends: a fast device would write far more
    /// in it than all of them may.
    fn ends_of_sample(&self, drive_fills: f64) -> String {
        let of_each = self.left_of_each_job(drive_fills);
        format!("io_size={of_each}\nruntime={}ms\n", self.setup.cell_ms)
    }

    /// Bytes that each job of write saturation may still write.
    fn left_of_each_job(&self, drive_fills: f64) -> u64 {
        let setup = &self.setup;
        let fills = (setup.stop_fills - drive_fills).max(0.0);
        let left = (fills * setup.capacity_bytes as f64).ceil() as u64;
        let block = setup.blocks.first().copied().unwrap_or(4096).max(1);
        let of_each = left.div_ceil(u64::from(setup.jobs.max(1)));
        of_each.div_ceil(block).max(1) * block
    }

    /// The most that all rounds behind `history` write together, where the test
    /// ends by it.
    pub fn rounds_write_bytes_max(&self, history: &History) -> Option<u64> {
        let parts = self.parts(history);
        let fills = parts.iter().find_map(|part| part.saturation.as_ref());
        let left = self.left_of_each_job(fills?.drive_fills);
        Some(left * u64::from(self.setup.jobs.max(1)))
    }

    fn cell(
        &self,
        load: Load,
        round: u32,
        (time_ms, ends): (u64, &str),
        series: &str,
    ) -> RoundPoint {
        let setup = &self.setup;
        let random = setup.test != SniaTest::Throughput;
        let rw = match (random, load.reads_percent) {
            (true, 100) => "randread",
            (true, 0) => "randwrite",
            (true, _) => "randrw",
            (false, 100) => "read",
            (false, 0) => "write",
            (false, _) => "rw",
        };
        let mut settings = vec![
            ("rw", rw.to_owned()),
            ("bs", load.block()),
            ("iodepth", setup.iodepth.to_string()),
            ("numjobs", setup.jobs.to_string()),
        ];
        if rw.ends_with("rw") {
            settings.push(("rwmixread", load.reads_percent.to_string()));
        }
        let lines: String = settings
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect();
        let series = format!(
            "{}{}{series}/{}",
            setup.scope,
            setup.test.name(),
            load.mix().replace('/', "-")
        );
        let head = self.head();
        RoundPoint {
            point: Point {
                id: format!("{series}/{}", load.block()),
                series,
                x: "bs".to_owned(),
                settings: settings
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                repetition: round,
            },
            job_text: format!("{head}[cell]\n{lines}{ends}"),
            time: Duration::from_millis(time_ms),
            write_share: f64::from(100 - load.reads_percent) / 100.0,
        }
    }

    /// What all job files have. Without `randrepeat=0` every minute of random
    /// writes would write the same blocks in the same order.
    fn head(&self) -> String {
        format!(
            "[global]\nioengine={}\ndirect=1\nthread\ngroup_reporting\nnorandommap\nrandrepeat=0\n\
             refill_buffers\nfilename={}\nsize={}\n\n",
            self.ioengine,
            self.dut.display(),
            self.setup.active_bytes
        )
    }

    /// What is left of a part; `None`: nothing.
    fn next_of(&self, part: &str, history: &History) -> Option<Next> {
        for task in self.beginning(part) {
            match history.ended(&task.stage.id) {
                None => return Some(Next::Do(task)),
                Some(StageEnd::Failed { reason }) => return Some(failed(&task.stage, reason)),
                Some(_) => {}
            }
        }
        let so_far = part_so_far(&self.setup, part, history);
        if so_far.is_over() {
            return None;
        }
        let task = self.round(part, &so_far);
        Some(match history.ended(&task.stage.id) {
            Some(StageEnd::Failed { reason }) => failed(&task.stage, reason),
            _ => Next::Do(task),
        })
    }
}

/// How the job of a cell ends that goes by its time.
fn timed(time_ms: u64) -> String {
    format!("time_based\nruntime={time_ms}ms\n")
}

fn failed(stage: &Stage, reason: &str) -> Next {
    Next::End(Ending::Failed(format!("{}: {reason}", stage.id)))
}

impl Script for Snia {
    fn next(&self, history: &History) -> Next {
        for part in self.setup.parts() {
            if let Some(next) = self.next_of(&part, history) {
                return next;
            }
        }
        if self.setup.histogram_ms > 0 {
            let task = self.histogram();
            match history.ended(&task.stage.id) {
                None => return Next::Do(task),
                Some(StageEnd::Failed { reason }) => return failed(&task.stage, reason),
                Some(_) => {}
            }
        }
        Next::End(self.ending(history))
    }
}

impl Snia {
    /// Write saturation is a curve: that it is steady is one of the ways in which
    /// it ends. Of every other test steady state is the point.
    fn ending(&self, history: &History) -> Ending {
        if self.setup.test == SniaTest::Wsat {
            return Ending::Complete;
        }
        let parts = self.parts(history);
        let not: Vec<String> = parts
            .iter()
            .filter(|part| part.ending == PointOutcome::NotAttained)
            .map(|part| not_attained(&self.setup, part))
            .collect();
        match not.is_empty() {
            true => Ending::Complete,
            false => Ending::NotAttained(not.join("; ")),
        }
    }
}

/// The numbers of a part that was not steady.
fn not_attained(setup: &Setup, part: &TestPart) -> String {
    let name = match part.part.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let mut text = format!(
        "{name}{} not attained in {} rounds",
        setup.criterion_name(),
        part.rounds
    );
    for tracked in &part.tracked {
        let Some(found) = &tracked.determination else {
            continue;
        };
        let percent =
            |value: Option<f64>| value.map_or("no I/O".to_owned(), |v| format!("{v:.2} %"));
        text += &format!(
            ", {} data excursion {}, slope excursion {}",
            tracked.cell,
            percent(found.window.range_percent),
            percent(found.window.slope_excursion_percent)
        );
    }
    text
}

/// A part of a test as far as it has come.
pub fn part_so_far(setup: &Setup, part: &str, history: &History) -> TestPart {
    let of_part = history.stages().iter().filter(|past| {
        let found = setup.part_of(&past.stage.id);
        found.is_some_and(|(name, _)| name == part) && past.end.is_some()
    });
    let mut rounds: Vec<SniaRound> = of_part.filter_map(|past| round_of(setup, past)).collect();
    rounds.sort_by_key(|round| round.round);
    TestPart::of(setup, part, &rounds)
}

/// A round that has ended, from its stage.
fn round_of(setup: &Setup, past: &Past) -> Option<SniaRound> {
    if !matches!(past.end, Some(StageEnd::Done)) {
        return None;
    }
    let cells = past.measured.iter();
    let mut cells: Vec<CellFigures> = cells.filter_map(|cell| figures_of(setup, cell)).collect();
    if let [only] = &mut cells[..] {
        only.written_bytes = past.written_bytes;
        only.begin_ms = past.begin_ms;
        only.end_ms = past.last_ms;
    }
    Some(SniaRound {
        round: past.stage.round?,
        cells,
        ended: true,
    })
}

fn figures_of(setup: &Setup, measured: &MeasuredStep) -> Option<CellFigures> {
    let cell = Load::of(measured.point.as_ref()?)?;
    let totals = measured.totals;
    Some(CellFigures {
        cell,
        begin_ms: 0,
        end_ms: 0,
        iops: totals.map(|totals| totals.iops),
        bw_bytes: totals.map(|totals| totals.bw_bytes),
        lat_mean_ns: totals.and_then(|totals| totals.clat_ns),
        lat_max_ns: measured.clat_max_ns,
        lat: Histogram::new(),
        written_bytes: 0,
        keeps_fio_rule: setup.cell_rule.keeps(&measured.iops),
        failed: totals.is_none().then(|| "it moved no data".to_owned()),
    })
}
