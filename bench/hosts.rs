//! Many machines: their begin, their sum, their memory.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_analysis::hosts::{Overlap, totals};
use fathom_engine::{Control, StepBarrier as _};
use fathom_fio_output::json;
use fathom_fleet::hosts::agent::{DriverLine, one_at_a_time};
use fathom_fleet::hosts::wire::Wire;
use fathom_model::host::start_skew_ms;
use fathom_model::{Direction, Event, Host, RunStatus, Sample};
use fathom_record::Header;
use serde_json::Value;

use crate::Lab;
use crate::inputs;
use crate::measurements::fathom;
use crate::results::{Beside, Row};
use crate::timing::{median, peak_rss_kib, time_of};

/// fio servers of this machine, ended when dropped.
struct Servers(Vec<(Child, u16)>);

impl Servers {
    fn new(count: usize) -> Self {
        let servers = (0..count).map(|_| {
            let port = fathom_testkit::free_port();
            let child = Command::new("fio")
                .arg(format!("--server=ip:127.0.0.1,{port}"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let started = Instant::now();
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(
                    started.elapsed() < Duration::from_secs(120),
                    "no fio server"
                );
                thread::sleep(Duration::from_millis(10));
            }
            (child, port)
        });
        Self(servers.collect())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How far apart 32 fio servers of one machine begin.
pub fn start_skew(lab: &Lab) -> Row {
    let count = if lab.full { 32 } else { 2 };
    let rounds = lab.rounds(5);
    let servers = Servers::new(count);
    let job = lab.path("skew.fio");
    let text = "[a]\nioengine=null\nrw=randread\nsize=1g\nrate_iops=100\ntime_based\nruntime=2\n";
    fs::write(&job, text).unwrap();
    let (mut skews, mut walls) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut command = fathom(lab, &["job", "run", "--quiet", "--json"]);
        command.arg(&job).arg("--client");
        for (_, port) in &servers.0 {
            command.arg(format!("127.0.0.1,{port}"));
        }
        let began = Instant::now();
        skews.push(skew_ms(&mut command));
        walls.push(began.elapsed().as_secs_f64());
    }
    drop(servers);
    let mut beside = vec![Beside::new(
        "the whole run of a job of 2 s, s",
        median(&mut walls),
    )];
    let count = if lab.full { MACHINES } else { 2 };
    if let Ok(machines) = fathom_testkit::Lab::new(count, &[]) {
        for (engine, what) in [("native", OVER_SSH_NATIVE), ("fio", OVER_SSH_FIO)] {
            let mut over_ssh = |_| {
                let args = ["job", "run", "--quiet", "--json", "--engine", engine];
                let mut command = fathom(lab, &args);
                let names: Vec<String> = (0..count).map(|place| machines.name(place)).collect();
                command.arg(&job).args(["--hosts", &names.join(",")]);
                skew_ms(command.env("FATHOM_SSH", machines.command()))
            };
            let mut skews: Vec<f64> = (0..rounds).map(&mut over_ssh).collect();
            beside.push(Beside::new(what, median(&mut skews)));
        }
    }
    Row {
        what: "start skew over 32 fio servers of this machine",
        unit: "ms",
        value: median(&mut skews),
        limit: Some(50.0),
        rounds,
        beside,
    }
}

/// Machines that are reached over ssh, each with its agent on this machine's CPUs.
const MACHINES: usize = 4;
const OVER_SSH_NATIVE: &str = "4 machines over ssh, native engine";
const OVER_SSH_FIO: &str = "4 machines over ssh, fio";

/// Runs the command; how far apart its hosts began.
fn skew_ms(command: &mut Command) -> f64 {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hosts: Vec<Host> = serde_json::from_value(doc["hosts"].clone()).unwrap();
    start_skew_ms(&hosts).unwrap()
}

/// Adding up the figures of 300 hosts, histograms and all.
pub fn merge(lab: &Lab) -> Row {
    let rounds = lab.rounds(15);
    let path = inputs::clients(lab, if lab.full { 300 } else { 3 });
    let results = json::parse_document(&fs::read(&path).unwrap()).unwrap();
    let hosts: Vec<Host> = results
        .jobs
        .iter()
        .map(|job| Host {
            name: job.hostname.clone().unwrap(),
            port: job.port,
            start_ms: Some(0.0),
            ..Host::default()
        })
        .collect();
    let value = time_of(rounds, || {
        let sums = totals(&results.jobs, &hosts, &Overlap::default());
        assert_eq!(sums[0].clients, u32::try_from(hosts.len()).ok());
    });
    Row {
        what: "adding up 300 hosts with their histograms",
        unit: "ms",
        value,
        limit: Some(50.0),
        rounds,
        beside: Vec::new(),
    }
}

/// Memory of the side that drives 300 hosts. They are played, each by a process
/// that speaks as an agent does, with samples and histograms of a real run.
pub fn driving(lab: &Lab) -> Row {
    let count = if lab.full { 300 } else { 3 };
    let results = inputs::clients(lab, 1);
    let job = lab.path("driving.fio");
    fs::write(&job, "[mixed]\nioengine=null\nrw=randrw\nsize=1m\n").unwrap();
    let names: Vec<String> = (1..=count).map(|n| format!("node{n:03}")).collect();
    let mut command = fathom(lab, &["job", "run", "--quiet"]);
    command.arg(&job).args(["--hosts", &names.join(",")]);
    let own = std::env::current_exe().unwrap();
    command.env("FATHOM_SSH", format!("{} {PLAYED}", own.display()));
    command.env(RESULTS_OF_PLAYED, &results);
    let began = Instant::now();
    let value = peak_rss_kib(&mut command) / 1024.0;
    let wall_s = began.elapsed().as_secs_f64();
    let runs = fs::read_dir(lab.path("runs")).unwrap();
    let last = runs.map(|run| run.unwrap().path()).max().unwrap();
    let record = fathom_record::log_bytes(&last);
    Row {
        what: "peak memory of the side that drives 300 hosts",
        unit: "MiB",
        value,
        limit: None,
        rounds: 1,
        beside: vec![
            Beside::new("their record, MB", record as f64 / 1e6),
            Beside::new("the whole run with 20 intervals, s", wall_s),
        ],
    }
}

/// The argument by which this program plays ssh and the agent behind it.
pub const PLAYED: &str = "--played-host";
const RESULTS_OF_PLAYED: &str = "FATHOM_BENCH_RESULTS";
/// Intervals that a played host tells, a quarter of a second each.
const INTERVALS: u64 = 20;

/// Plays ssh: takes the program in and is the agent that it would have become.
pub fn play() {
    let args: Vec<String> = std::env::args().collect();
    let script = args.last().unwrap();
    // The last words are the program's length, its folder and the agent's name.
    let mut words = script
        .split_whitespace()
        .rev()
        .map(|w| w.trim_matches('\''));
    if words.next() != Some("agent") {
        return;
    }
    let bytes: u64 = words.nth(1).unwrap().parse().unwrap();
    std::io::copy(&mut std::io::stdin().take(bytes), &mut std::io::sink()).unwrap();
    let send = one_at_a_time(|wire| {
        let mut stdout = std::io::stdout().lock();
        // Nobody listens any more: so does nobody mind.
        let _ = writeln!(stdout, "{}", serde_json::to_string(wire).unwrap());
        let _ = stdout.flush();
    });
    let line = DriverLine::open(std::io::stdin(), Control::default(), send.clone(), || {}).unwrap();
    let (Some(_), header) = (line.job(), Box::new(Header::new("mixed", "job run"))) else {
        return;
    };
    send(&Wire::Header { header });
    if !line.may_begin(1) {
        return;
    }
    let tell = |happened| {
        send(&Wire::Event {
            happened: Box::new(happened),
        })
    };
    let text = fs::read(std::env::var_os(RESULTS_OF_PLAYED).unwrap()).unwrap();
    let mut results = json::parse_document(&text).unwrap();
    results.jobs[0].hostname = None;
    let clat = results.jobs[0]
        .read
        .as_ref()
        .and_then(|read| read.clat.clone());
    let clat = clat.and_then(|clat| clat.histogram);
    tell(Event::Jobs {
        names: vec!["mixed".into()],
        hosts: Vec::new(),
    });
    for t_ms in (1..=INTERVALS).map(|n| n * 250) {
        thread::sleep(Duration::from_millis(250));
        for dir in [Direction::Read, Direction::Write] {
            let (ios, bytes) = (1000, 4_096_000);
            let clat = clat.clone();
            tell(Event::Sample(Sample {
                t_ms,
                span_ms: 250,
                job: 0,
                dir,
                ios,
                bytes,
                clat,
                lat: None,
            }));
        }
        tell(Event::Interval {
            t_ms,
            remaining_ms: None,
        });
    }
    tell(Event::Finished {
        results: Box::new(results),
    });
    tell(Event::Ended {
        status: RunStatus::Complete,
    });
}

/// Memory for a document of 300 hosts.
pub fn memory(lab: &Lab) -> Row {
    let path = inputs::clients(lab, if lab.full { 300 } else { 3 });
    let args = ["import", path.to_str().unwrap()];
    Row {
        what: "peak memory of `fathom import` of 300 clients",
        unit: "MiB",
        value: peak_rss_kib(&mut fathom(lab, &args)) / 1024.0,
        limit: None,
        rounds: 1,
        beside: vec![Beside::new(
            "size in MB",
            fs::metadata(&path).unwrap().len() as f64 / 1e6,
        )],
    }
}
