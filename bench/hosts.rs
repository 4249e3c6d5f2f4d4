//! Many machines: their begin, their sum, their memory.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_analysis::hosts::{Overlap, totals};
use fathom_engine::fio::json;
use fathom_model::Host;
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
            let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let child = Command::new("fio")
                .arg(format!("--server=ip:127.0.0.1,{port}"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let started = Instant::now();
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(started.elapsed() < Duration::from_secs(20), "no fio server");
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
        let output = command.output().unwrap();
        walls.push(began.elapsed().as_secs_f64());
        assert!(output.status.success(), "{output:?}");
        let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hosts = doc["hosts"].as_array().unwrap().iter();
        let starts: Vec<f64> = hosts
            .map(|host| host["start_ms"].as_f64().unwrap())
            .collect();
        let first = starts.iter().copied().fold(f64::INFINITY, f64::min);
        skews.push(starts.iter().copied().fold(0.0, f64::max) - first);
    }
    Row {
        what: "start skew over 32 fio servers of this machine",
        unit: "ms",
        value: median(&mut skews),
        limit: Some(50.0),
        rounds,
        beside: vec![Beside::new(
            "the whole run of a job of 2 s, s",
            median(&mut walls),
        )],
    }
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
