//! Devices that take their own time: what fio and the native engine find of it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_testkit::{FaultFs, LoopDevice, Throttle, Zram};
use serde::Serialize;

use crate::Lab;
use crate::contenders::Contender;
use crate::timing::median;

/// I/Os a second and direction that a throttled device lets go.
const RATE: u32 = 2000;
const BYTES: u64 = 32 << 20;
/// Of a read or write of the slow file system.
const DELAY: Duration = Duration::from_millis(2);

/// One device: what each engine found, and how far they may be apart.
#[derive(Debug, Serialize)]
pub struct Agreement {
    pub place: &'static str,
    pub job: &'static str,
    pub fio: Found,
    pub native: Found,
    /// The share by which IOPS may differ, from each other and from the device's rate
    /// where it has one, which comes in bursts.
    pub iops_within: f64,
    pub of_rate_within: Option<f64>,
    pub latency_within: f64,
}

/// Medians of the rounds.
#[derive(Debug, Serialize)]
pub struct Found {
    pub iops: f64,
    pub mean_latency_ms: f64,
}

impl Agreement {
    pub fn is_met(&self) -> bool {
        let within = |share: f64, a: f64, b: f64| (a / b - 1.0).abs() <= share;
        let (fio, native) = (&self.fio, &self.native);
        let keeps_rate = |share| within(share, native.iops, f64::from(RATE));
        within(self.iops_within, native.iops, fio.iops)
            && within(
                self.latency_within,
                native.mean_latency_ms,
                fio.mean_latency_ms,
            )
            && self.of_rate_within.is_none_or(keeps_rate)
    }
}

/// All devices that this machine can have.
pub fn measure(lab: &Lab) -> Vec<Agreement> {
    let all = [throttled_loop(lab), throttled_zram(lab)];
    let slow = match slow_file_system(lab) {
        Ok(both) => both.map(Ok).into(),
        Err(reason) => vec![Err(reason)],
    };
    let told = |found: Result<Agreement, String>| match found {
        Ok(found) => Some(found),
        Err(reason) => {
            println!("agreement left out: {reason}");
            None
        }
    };
    all.into_iter().chain(slow).filter_map(told).collect()
}

fn throttled_loop(lab: &Lab) -> Result<Agreement, String> {
    let disk = LoopDevice::new(BYTES)?;
    throttled(
        lab,
        disk.path(),
        "throttled loop device",
        "randread, libaio, QD 8",
    )
}

fn throttled_zram(lab: &Lab) -> Result<Agreement, String> {
    let disk = Zram::new(BYTES)?;
    throttled(
        lab,
        disk.path(),
        "throttled zram",
        "randwrite, io_uring, QD 8",
    )
}

fn throttled(
    lab: &Lab,
    device: &Path,
    place: &'static str,
    job: &'static str,
) -> Result<Agreement, String> {
    let throttle = Throttle::new(device, RATE)?;
    // The kernel lets I/Os go in bursts: a second before, and two to measure.
    let (ramp, runtime) = if lab.size.rounds > 1 {
        ("1s", "2s")
    } else {
        ("0", "100ms")
    };
    let times = format!("time_based\nramp_time={ramp}\nruntime={runtime}\nsize={BYTES}");
    let [fio, native] = in_turns(lab, &throttle.command(), device, job, &times);
    Ok(Agreement {
        place,
        job,
        fio,
        native,
        iops_within: 0.02,
        of_rate_within: Some(0.03),
        latency_within: 0.05,
    })
}

fn slow_file_system(lab: &Lab) -> Result<[Agreement; 2], String> {
    let slow = FaultFs::new()?;
    let file = slow.path().join("f");
    fs::write(&file, vec![1u8; 1 << 20]).map_err(|error| error.to_string())?;
    slow.delay(DELAY);
    let ios = if lab.size.rounds > 1 { 500 } else { 20 };
    let extent = format!("number_ios={ios}\nsize=1m\nio_size=1g\nnorandommap");
    Ok(
        ["randread, psync, QD 1", "randwrite, libaio, QD 1"].map(|job| {
            let [fio, native] = in_turns(lab, &[], &file, job, &extent);
            Agreement {
                place: "file system of 2 ms",
                job,
                fio,
                native,
                iops_within: 0.05,
                of_rate_within: None,
                latency_within: 0.05,
            }
        }),
    )
}

/// fio and the native engine, one after the other in each round; `under` starts them.
fn in_turns(lab: &Lab, under: &[String], target: &Path, job: &str, options: &str) -> [Found; 2] {
    let words: Vec<&str> = job.split(", ").collect();
    let (rw, depth) = (words[0], words[2].trim_start_matches("QD "));
    let text = format!(
        "[j]\nrw={rw}\nioengine={}\niodepth={depth}\nbs=4k\ndirect=1\n{options}\nfilename={}\n",
        words[1],
        target.display()
    );
    let path = lab.dir.path().join("agreement.fio");
    fs::write(&path, text).unwrap();
    let contenders = [Contender::Fio, Contender::Native];
    let mut found = [const { (Vec::new(), Vec::new()) }; 2];
    for _ in 0..lab.size.rounds {
        for (contender, (iops, latency)) in contenders.into_iter().zip(&mut found) {
            let mut command = contender.command(lab, &path);
            if contender == Contender::Native && target.starts_with("/dev") {
                command.args(["--destroy", &format!("{}={BYTES}", target.display())]);
            }
            let (text, _) = lab.one.run(&started_by(under, &command));
            let report = crate::cells::report(&text);
            let figures = &report["jobs"][0][rw.trim_start_matches("rand")];
            iops.push(figures["iops"].as_f64().unwrap());
            latency.push(crate::cells::mean_latency_ns(figures).unwrap() / 1e6);
        }
    }
    found.map(|(mut iops, mut latency)| Found {
        iops: median(&mut iops),
        mean_latency_ms: median(&mut latency),
    })
}

fn started_by(under: &[String], command: &Command) -> Command {
    let mut words = under.iter().map(AsRef::as_ref);
    let first = words.next().unwrap_or(command.get_program());
    let mut started = Command::new(first);
    started.args(words);
    if !under.is_empty() {
        started.arg(command.get_program());
    }
    started.args(command.get_args());
    started
}
