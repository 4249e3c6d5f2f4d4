//! What `fathom find` finds on real devices, against measuring everything.
//!
//! `make bench-find` does it in full and writes `bench/find.md` and `bench/find.json`;
//! `cargo bench … -- searches` or `-- pairs` does a part and writes nothing. `cargo test` does
//! each once, short: crates/analysis simulates hundreds of searches and comparisons.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_testkit::{LoopDevice, ProgramUnderTest, Throttle, Zram};
use serde_json::{Value, json};

mod machine;
mod pairs;

use machine::Machine;

const BYTES: usize = 64 << 20;
/// The depths of a knee go up to this.
const DEPTH_MOST: u32 = 64;
/// Seconds of each point where everything is measured.
const POINT_S: u32 = 10;
/// Seconds of a probe, and of each proof of an answer.
const PROBE_S: u32 = 10;
/// Seconds of a first look.
const LOOK_S: u32 = 4;
/// What the throttled device does.
const THROTTLE_IOPS: u32 = 2000;
/// So often both ends of an answer are measured.
const PROOFS: usize = 3;

/// A device, and what processes are put into to have its limit.
struct Place<'d> {
    name: &'static str,
    target: &'d Path,
    throttle: Option<&'d Throttle>,
}

struct Lab {
    bench: ProgramUnderTest,
}

fn main() {
    // `cargo test` calls it without.
    if !std::env::args().any(|arg| arg == "--bench") {
        return trial();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| *word == name);
    let lab = Lab {
        bench: ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")),
    };
    let data = fathom_testkit::data(BYTES);
    let image = lab.bench.path().join("image");
    fs::write(&image, &data).unwrap();
    let device = LoopDevice::over(&image).unwrap();
    let file = lab.bench.path().join("file");
    fs::copy(&image, &file).unwrap();
    let zram = Zram::filled(&data).unwrap();
    let throttle = Throttle::new(device.path(), THROTTLE_IOPS).unwrap();
    let places = [
        Place {
            name: "zram",
            target: zram.path(),
            throttle: None,
        },
        Place {
            name: "loop at 2,000 IOPS",
            target: device.path(),
            throttle: Some(&throttle),
        },
        Place {
            name: "a file on the disk",
            target: &file,
            throttle: None,
        },
    ];
    let searches = places.iter().filter(|_| is_wanted("searches"));
    let found: Vec<Value> = searches.map(|place| lab.place(place)).collect();
    let pairs = match is_wanted("pairs") {
        true => pairs::measured(&lab, &places, true),
        false => json!([]),
    };
    if !wanted.is_empty() {
        return println!("{}", pairs::page(&pairs));
    }
    let machine = Machine::here(Path::new(env!("CARGO_BIN_EXE_fathom")));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let results = json!({ "machine": machine, "places": found, "pairs": pairs });
    let text = serde_json::to_string_pretty(&results).unwrap();
    fs::write(folder.join("find.json"), text + "\n").unwrap();
    let text = page(&found, &machine) + &pairs::page(&pairs);
    fs::write(folder.join("find.md"), text).unwrap();
    if pairs::misses(&pairs) > 0 {
        println!("too many differences of equal settings, or too few of others");
        std::process::exit(1);
    }
}

/// Everything once, on a file, so that nothing here rots.
fn trial() {
    let lab = Lab {
        bench: ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")),
    };
    let file = lab.bench.path().join("file");
    fs::write(&file, vec![7; BYTES / 64]).unwrap();
    let place = Place {
        name: "a file",
        target: &file,
        throttle: None,
    };
    let job = lab.job(&place, &format!("iodepth=2\nsize={}\n", BYTES / 64));
    let find = [
        "find", &job, "--knee", "--to", "2", "--look", "50ms", "--probe", "50ms",
    ];
    assert!(lab.run(&place, &find)["answer"].is_object());
    let pairs = pairs::measured(&lab, &[place], false);
    assert!(pairs::page(&pairs).contains("| the same twice | 1 |"));
    assert!(pairs::misses(&pairs) >= 2, "nothing else was compared");
}

fn page(found: &[Value], machine: &Machine) -> String {
    let mut page = format!(
        "# What is found against measuring everything\n\nMade by `make bench-find`. {machine}\n\n| device | knee | of the best | of the time | rate at the p99 | kept | too much | kept |\n|---|---|---|---|---|---|---|---|\n"
    );
    for place in found {
        let percent = |name: &str| 100.0 * place[name].as_f64().unwrap_or(0.0);
        let _ = writeln!(
            page,
            "| {} | depth {} | {:.1} % | {:.0} % | {} | {} of {PROOFS} | {} | {} of {PROOFS} |",
            place["name"].as_str().unwrap(),
            place["depth"],
            percent("share"),
            percent("time"),
            place["rate"],
            place["rate_kept"],
            place["too_much"],
            place["too_much_kept"],
        );
    }
    let _ = write!(
        page,
        "\nThe knee among depths 1, 2 … {DEPTH_MOST}: the IOPS at the depth found, of the best of all depths measured for {POINT_S} s each, and the time that took, of theirs. The rate whose p99 is twice that of half the device's most; both ends of the answer (the rate that keeps the limit and the one that does not) were measured {PROOFS} times afterwards.\n"
    );
    page
}

impl Lab {
    fn place(&self, place: &Place<'_>) -> Value {
        let job = |options: &str| self.job(place, options);
        let all: Vec<(u32, f64)> = (0..=DEPTH_MOST.ilog2())
            .map(|n| 1 << n)
            .map(|depth| {
                let text = job(&format!("iodepth={depth}\ntime_based\nruntime={POINT_S}\n"));
                (depth, figures(&self.run(place, &["job", "run", &text])).0)
            })
            .collect();
        let best = all.iter().map(|(_, iops)| *iops).fold(0.0, f64::max);
        let text = job("");
        let to = DEPTH_MOST.to_string();
        let (probe, look) = (format!("{PROBE_S}s"), format!("{LOOK_S}s"));
        let find = ["find", &text, "--probe", &probe, "--look", &look];
        let knee = self.run(place, &[&find[..], &["--knee", "--to", &to]].concat());
        let depth = knee["answer"]["load"].as_f64().unwrap();
        let at = all.iter().find(|(known, _)| f64::from(*known) == depth);
        let probes = knee["probes"].as_array().unwrap();
        let seconds: f64 = probes.iter().filter_map(|it| it["seconds"].as_f64()).sum();

        // A limit that no device chose: twice the p99 at half of what it does.
        let rated = |rate: f64| {
            let options = format!(
                "iodepth=256\nrate_iops={rate:.0}\nrate_process=poisson\ntime_based\nruntime={PROBE_S}\n"
            );
            figures(&self.run(place, &["job", "run", &job(&options)]))
        };
        let limit_ns = 2.0 * rated(best / 2.0).1;
        let limit = format!("{:.0}us", limit_ns / 1000.0);
        let text = job("iodepth=256\n");
        let find = ["find", &text, "--probe", &probe, "--look", &look];
        let found = self.run(place, &[&find[..], &["--p99", &limit]].concat());
        let answer = &found["answer"];
        let kept = |rate: &Value| {
            let rate = rate.as_f64()?;
            let keeps = |_: &usize| {
                let (iops, p99_ns) = rated(rate);
                p99_ns <= limit_ns && iops >= 0.95 * rate
            };
            Some((0..PROOFS).filter(keeps).count())
        };
        let row = json!({
            "name": place.name,
            "depths": all,
            "depth": depth,
            "share": at.unwrap().1 / best,
            "time": seconds / f64::from(POINT_S) / all.len() as f64,
            "limit_ns": limit_ns,
            "rate": answer["load"],
            "rate_kept": kept(&answer["load"]),
            "too_much": answer["too_much"],
            "too_much_kept": kept(&answer["too_much"]),
            "ended_by": answer["ended_by"],
            "probes": found["probes"].as_array().unwrap().len(),
        });
        println!("{row:#}");
        row
    }

    fn job(&self, place: &Place<'_>, options: &str) -> String {
        let target = place.target.display();
        let text = format!(
            "[job]\nfilename={target}\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nsize={BYTES}\n{options}"
        );
        let name = target.to_string().replace('/', "_");
        self.bench
            .file(&format!("{name}.fio"), &text)
            .display()
            .to_string()
    }

    /// The document of a command.
    fn run(&self, place: &Place<'_>, args: &[&str]) -> Value {
        let mut words = place.throttle.map(Throttle::command).unwrap_or_default();
        words.push(env!("CARGO_BIN_EXE_fathom").to_owned());
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(args)
            .args(["--engine", "native", "-q", "--json"])
            .current_dir(self.bench.path())
            .env("XDG_STATE_HOME", self.bench.path().join("state"))
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// IOPS and the p99 of reads in ns, from the intended start under a rate.
fn figures(document: &Value) -> (f64, f64) {
    let read = &document["jobs"][0]["read"];
    let latency = if read["lag"].is_object() {
        &read["lat"]
    } else {
        &read["clat"]
    };
    let all = latency["percentiles_ns"].as_object();
    let p99 = all.and_then(|all| all.iter().find(|(percent, _)| percent.parse() == Ok(99.0)));
    (
        read["iops"].as_f64().unwrap(),
        p99.map_or(0.0, |(_, ns)| ns.as_f64().unwrap()),
    )
}
