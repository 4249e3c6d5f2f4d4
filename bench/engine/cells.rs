//! One cell: a target and how it is read; all contenders in turns.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Lab;
use crate::contenders::{self, Contender};
use crate::core::Used;
use crate::places::{Place, Ready};
use crate::timing::median;

/// How a target is read.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Setting {
    pub engine: &'static str,
    pub depth: u32,
    pub jobs: u32,
    pub cpus: usize,
    pub direct: bool,
    /// Other options of the job.
    pub more: &'static str,
}

impl Setting {
    fn new(place: Place, engine: &'static str, depth: u32) -> Self {
        Self {
            engine,
            depth,
            jobs: 1,
            cpus: 1,
            direct: place.direct(),
            more: "",
        }
    }
}

/// What was measured in a cell.
#[derive(Debug, Serialize)]
pub struct Cell {
    pub place: &'static str,
    #[serde(flatten)]
    pub setting: Setting,
    pub figures: Vec<Figures>,
}

/// What a contender did and what that took.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub contender: Contender,
    /// The median of the rounds.
    pub iops: f64,
    /// Of each round, in their order.
    pub iops_of_rounds: Vec<f64>,
    /// I/Os under way on average, by Little's law: IOPS × mean latency. The median of
    /// the rounds; of who measures no latencies it is not known.
    pub achieved_depth: Option<f64>,
    /// CPU time per I/O over all rounds together, in ns, without what the same
    /// contender takes for a job of one I/O.
    pub user_ns: f64,
    pub system_ns: f64,
}

/// What one run did.
struct Run {
    ios: f64,
    iops: f64,
    /// IOPS × mean latency.
    achieved_depth: Option<f64>,
    used: Used,
}

/// What a job of one I/O takes.
pub struct Start {
    native: Used,
    fio: Used,
}

impl Start {
    /// The mean of many: a start is so short that the kernel's ticks see little of each.
    pub fn measure(lab: &Lab) -> Self {
        let nothing = Ready::nothing();
        let rounds = if lab.size.rounds > 1 { 25 } else { 1 };
        let mut all = [Used::default(); 2];
        for _ in 0..rounds {
            for (contender, sum) in [Contender::Native, Contender::Fio]
                .into_iter()
                .zip(&mut all)
            {
                let setting = Setting::new(Place::Null, "null", 1);
                let job = job(lab, &nothing, contender, &setting, "number_ios=1");
                let used = run(lab, contender, &setting, &job).used;
                sum.user_s += used.user_s / f64::from(rounds);
                sum.system_s += used.system_s / f64::from(rounds);
            }
        }
        let [native, fio] = all;
        Self { native, fio }
    }

    fn of(&self, contender: Contender) -> Used {
        match contender {
            ring if ring.is_ring() => Used::default(),
            native if native.is_native() => self.native,
            _ => self.fio,
        }
    }
}

/// All cells of a target whose names hold the wanted words.
pub fn of_place(lab: &Lab, ready: &Ready, start: &Start, wanted: &[String]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &engine in ready.place.engines() {
        // Plain calls know no queue.
        let depths = if engine == "psync" {
            &[1][..]
        } else {
            lab.size.depths
        };
        for &depth in depths {
            let words = [ready.place.name(), engine, &depth.to_string()].map(str::to_owned);
            if wanted.iter().all(|word| words.contains(word)) {
                let setting = Setting::new(ready.place, engine, depth);
                cells.push(measure(lab, ready, start, setting, lab.size.contenders));
            }
        }
    }
    cells
}

/// One job on one CPU and two on two; `None` where there is no second one, or the disk
/// would be what is measured.
pub fn pair(lab: &Lab, ready: &Ready, start: &Start) -> Option<[Cell; 2]> {
    let wanted = match lab.size.rounds {
        1 => ready.place == Place::Cached,
        _ => ready.place != Place::Disk,
    };
    if !wanted || lab.two.is_none() {
        return None;
    }
    let engine = *ready.place.engines().last()?;
    Some([1, 2].map(|jobs| {
        let setting = Setting {
            jobs,
            cpus: jobs as usize,
            ..Setting::new(ready.place, engine, 32)
        };
        measure(lab, ready, start, setting, contenders::PAIRS)
    }))
}

/// Ways of calling the kernel that not every job has: a thread of the kernel's that
/// takes from the queue, with a CPU for it, and reads that are not to wait.
pub fn rings(lab: &Lab, ready: &Ready, start: &Start) -> Vec<Cell> {
    let polled = |more| (2, more);
    let settings = match (ready.place, &lab.two) {
        (Place::Zram | Place::Cached, Some(_)) => vec![polled(""), polled("sqthread_poll=1")],
        _ => Vec::new(),
    };
    // A page that the kernel has taken back meanwhile ends nobody's job.
    let nowait = (1, "nowait=1 ignore_error=EAGAIN");
    let nowait = (ready.place == Place::Cached).then_some(nowait);
    let all = settings.into_iter().chain(nowait).map(|(cpus, more)| {
        let setting = Setting {
            cpus,
            more,
            ..Setting::new(ready.place, "io_uring", 32)
        };
        measure(lab, ready, start, setting, contenders::RINGS)
    });
    all.collect()
}

/// I/Os that are measured and such that are not, where nothing else takes time.
pub fn latencies(lab: &Lab, start: &Start) -> Vec<Cell> {
    let of_depth = |&depth: &u32| {
        let setting = Setting::new(Place::Null, "null", depth);
        let nothing = Ready::nothing();
        measure(lab, &nothing, start, setting, contenders::LATENCIES)
    };
    lab.size.depths.iter().map(of_depth).collect()
}

fn measure(
    lab: &Lab,
    ready: &Ready,
    start: &Start,
    setting: Setting,
    contenders: &[Contender],
) -> Cell {
    let end = format!("time_based\nruntime={}", lab.size.runtime);
    let mut all: Vec<(Contender, PathBuf, Vec<Run>)> = contenders
        .iter()
        .filter(|contender| contender.takes_part(lab, &setting))
        .map(|&contender| {
            (
                contender,
                job(lab, ready, contender, &setting, &end),
                Vec::new(),
            )
        })
        .collect();
    for _ in 0..lab.rounds(ready.place, &setting) {
        for (contender, job, runs) in &mut all {
            runs.push(match (&*contender, &lab.ring, &ready.path) {
                (ring, Some(program), Some(target)) if ring.is_ring() => {
                    run_ring(lab, *ring, program, target, &setting)
                }
                _ => run(lab, *contender, &setting, job),
            });
        }
    }
    let figures = all
        .iter()
        .map(|(contender, _, runs)| figures(*contender, start.of(*contender), runs))
        .collect();
    let cell = Cell {
        place: ready.place.name(),
        setting,
        figures,
    };
    println!("{}", crate::table::row(&cell));
    cell
}

fn figures(contender: Contender, start: Used, runs: &[Run]) -> Figures {
    let ios: f64 = runs.iter().map(|run| run.ios).sum();
    let per_io = |part: fn(&Used) -> f64| {
        let all: f64 = runs.iter().map(|run| part(&run.used)).sum();
        (all - part(&start) * runs.len() as f64) / ios * 1e9
    };
    let depths: Option<Vec<f64>> = runs.iter().map(|run| run.achieved_depth).collect();
    let iops_of_rounds: Vec<f64> = runs.iter().map(|run| run.iops).collect();
    Figures {
        contender,
        iops: median(&mut iops_of_rounds.clone()),
        iops_of_rounds,
        achieved_depth: depths.map(|mut depths| median(&mut depths)),
        user_ns: per_io(|used| used.user_s),
        system_ns: per_io(|used| used.system_s),
    }
}

/// A job file of random reads of 4 KiB.
fn job(lab: &Lab, ready: &Ready, contender: Contender, setting: &Setting, end: &str) -> PathBuf {
    let Setting {
        engine,
        depth,
        jobs,
        direct,
        more,
        ..
    } = setting;
    let mut text = format!(
        "[reads]\nrw=randread\nbs=4k\nioengine={engine}\niodepth={depth}\nnumjobs={jobs}\ngroup_reporting\nsize={}\n{end}\n{}\n{}\n",
        ready.bytes,
        contender.options(engine, *depth),
        more.replace(' ', "\n")
    );
    if let Some(path) = &ready.path {
        // The cache is as the benchmark left it, for everyone.
        text += &format!("filename={}\ninvalidate=0\n", path.display());
    }
    if ready.place != Place::Null {
        text += &format!("direct={}\n", u8::from(*direct));
    }
    let path = lab.dir.path().join(format!("{contender:?}.fio"));
    fs::write(&path, text).unwrap();
    path
}

fn run(lab: &Lab, contender: Contender, setting: &Setting, job: &Path) -> Run {
    let (text, used) = lab.cores(setting).run(&contender.command(lab, job));
    let report = report(&text);
    let read = &report["jobs"][0]["read"];
    let number = |name: &str| read[name].as_f64().unwrap();
    assert!(number("total_ios") > 0.0, "{contender:?}: {text}");
    Run {
        ios: number("total_ios"),
        iops: number("iops"),
        achieved_depth: mean_latency_ns(read).map(|mean| number("iops") * mean / 1e9),
        used,
    }
}

/// t/io_uring tells its IOPS at the end of each second but the last, and no more.
fn run_ring(lab: &Lab, ring: Contender, program: &Path, target: &Path, setting: &Setting) -> Run {
    const SECONDS: u32 = 2;
    let command = ring.ring(program, target, setting, SECONDS);
    let (text, used) = lab.cores(setting).run(&command);
    let iops = told_iops(&text).unwrap_or_else(|| panic!("t/io_uring: {text}"));
    Run {
        ios: iops * f64::from(SECONDS),
        iops,
        achieved_depth: None,
        used,
    }
}

/// From `IOPS=415.23K, BW=1622MiB/s, …` or `IOPS=1.17M, …`.
fn told_iops(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("IOPS="))?;
    let told = line.split(',').next()?;
    let number = told.trim_end_matches(['K', 'M']);
    let unit = match &told[number.len()..] {
        "K" => 1e3,
        "M" => 1e6,
        _ => 1.0,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

/// From the submission on, by fio's name of it or Fathom's; who has no latencies shows 0.
pub fn mean_latency_ns(read: &serde_json::Value) -> Option<f64> {
    let mean = read["lat_ns"]["mean"].as_f64();
    let mean = mean.or(read["lat"]["mean_ns"].as_f64());
    mean.filter(|&mean| mean > 0.0)
}

/// The document that a contender has printed.
pub fn report(text: &str) -> serde_json::Value {
    // fio may say something before it.
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json).unwrap()
}
