//! One cell: a target, an I/O engine, a depth; all contenders in turns.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Lab;
use crate::contenders::Contender;
use crate::core::Used;
use crate::places::{Place, Ready};
use crate::timing::median;

/// What was measured in a cell.
#[derive(Debug, Serialize)]
pub struct Cell {
    pub place: &'static str,
    pub engine: &'static str,
    pub depth: u32,
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
    /// the rounds.
    pub achieved_depth: f64,
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
    achieved_depth: f64,
    used: Used,
}

/// All cells of a target whose names hold the wanted words.
pub fn of_place(lab: &Lab, ready: &Ready, start: &[Used], wanted: &[String]) -> Vec<Cell> {
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
                cells.push(measure(lab, ready, start, engine, depth));
            }
        }
    }
    cells
}

/// What each contender uses for a job of one I/O, the mean of many: a start is so
/// short that the kernel's ticks see little of each.
pub fn cost_of_start(lab: &Lab) -> Vec<Used> {
    let nothing = Ready::nothing();
    let rounds = if lab.size.rounds > 1 { 25 } else { 1 };
    let mut all = vec![Used::default(); lab.size.contenders.len()];
    for _ in 0..rounds {
        for (&contender, sum) in lab.size.contenders.iter().zip(&mut all) {
            let job = job(lab, &nothing, contender, "null", 1, "number_ios=1");
            let used = run(lab, contender, &job).used;
            sum.user_s += used.user_s / f64::from(rounds);
            sum.system_s += used.system_s / f64::from(rounds);
        }
    }
    all
}

fn measure(lab: &Lab, ready: &Ready, start: &[Used], engine: &'static str, depth: u32) -> Cell {
    let contenders = lab.size.contenders;
    let jobs: Vec<PathBuf> = contenders
        .iter()
        .map(|&contender| {
            let end = format!("time_based\nruntime={}", lab.size.runtime);
            job(lab, ready, contender, engine, depth, &end)
        })
        .collect();
    let mut runs: Vec<Vec<Run>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..lab.rounds(ready.place, engine, depth) {
        for ((&contender, job), runs) in contenders.iter().zip(&jobs).zip(&mut runs) {
            runs.push(run(lab, contender, job));
        }
    }
    let figures = contenders
        .iter()
        .zip(start)
        .zip(&runs)
        .map(|((&contender, start), runs)| figures(contender, *start, runs))
        .collect();
    let cell = Cell {
        place: ready.place.name(),
        engine,
        depth,
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
    let iops_of_rounds: Vec<f64> = runs.iter().map(|run| run.iops).collect();
    Figures {
        contender,
        iops: median(&mut iops_of_rounds.clone()),
        iops_of_rounds,
        achieved_depth: median(
            &mut runs
                .iter()
                .map(|run| run.achieved_depth)
                .collect::<Vec<_>>(),
        ),
        user_ns: per_io(|used| used.user_s),
        system_ns: per_io(|used| used.system_s),
    }
}

/// A job file of random reads of 4 KiB.
fn job(
    lab: &Lab,
    ready: &Ready,
    contender: Contender,
    engine: &str,
    depth: u32,
    end: &str,
) -> PathBuf {
    let mut text = format!(
        "[reads]\nrw=randread\nbs=4k\nioengine={engine}\niodepth={depth}\nsize={}\n{end}\n{}",
        ready.bytes,
        contender.options(engine, depth)
    );
    if let Some(path) = &ready.path {
        // The cache is as the benchmark left it, for everyone.
        text += &format!("filename={}\ninvalidate=0\n", path.display());
    }
    if ready.place != Place::Null {
        text += &format!("direct={}\n", u8::from(ready.place.direct()));
    }
    let path = lab.dir.path().join(format!("{contender:?}.fio"));
    fs::write(&path, text).unwrap();
    path
}

fn run(lab: &Lab, contender: Contender, job: &Path) -> Run {
    let (text, used) = lab.core.run(&contender.command(lab, job));
    let report = report(&text);
    let read = &report["jobs"][0]["read"];
    let number = |name: &str| read[name].as_f64().unwrap();
    assert!(number("total_ios") > 0.0, "{contender:?}: {text}");
    Run {
        ios: number("total_ios"),
        iops: number("iops"),
        achieved_depth: number("iops") * mean_latency_ns(read) / 1e9,
        used,
    }
}

/// From the submission on; fio tuned measures completions only.
fn mean_latency_ns(read: &serde_json::Value) -> f64 {
    let mean = |name: &str| read[name]["mean"].as_f64().filter(|&mean| mean > 0.0);
    mean("lat_ns")
        .or_else(|| mean("clat_ns"))
        .unwrap_or(f64::NAN)
}

/// The document that a contender has printed.
pub fn report(text: &str) -> serde_json::Value {
    // fio may say something before it.
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json).unwrap()
}
