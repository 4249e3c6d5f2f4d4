//! The nodes of a run: their graphs and tables, on the page and on the terminal.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::node::{CpuTime, DeviceCounts, Memory, ProcessTime};
use fathom_model::{Entry, Event, JobResult, NodeSample, RunStatus, Volume};
use fathom_record::{Header, StatsWriter};
use fathom_testkit::{Browser, require};

use crate::report::records::{HOSTILE, figures, finished, header, job};
use crate::report::{data, fathom, report};

/// When the run began, and the length of an interval, in ms.
const START_MS: u64 = 1_800_000_000_000;
const INTERVAL_MS: u64 = 10_000;

/// A run of two steps of five minutes each on so many nodes, a job on each: the
/// page cache answers most of the reads.
fn record(runs: &Path, nodes: usize) -> PathBuf {
    let dir = runs.join("20270115T080000Z-seq");
    fs::create_dir_all(&dir).unwrap();
    let header = Header {
        // Without checks.
        version: 1,
        started_ms: START_MS,
        ..header("seq", "cluster seq")
    };
    let mut lines = vec![serde_json::to_string(&header).unwrap()];
    let mut append = |at_s: u64, event: Event| {
        let at_ms = START_MS + at_s * 1000;
        lines.push(serde_json::to_string(&Entry { at_ms, event }).unwrap());
    };
    for (step, name, begin_s) in [(1, "seqwr", 10), (2, "seqrd", 330)] {
        append(
            begin_s,
            Event::Step {
                step,
                of: 2,
                name: name.into(),
                point: None,
            },
        );
        let started = Event::EngineStarted {
            engine: "fio".into(),
            version: None,
            argv: Vec::new(),
            pid: None,
        };
        append(begin_s + 10, started);
        let jobs: Vec<JobResult> = (0..nodes).map(|node| of_node(name, node)).collect();
        append(begin_s + 310, finished(jobs));
        let volumes = (0..nodes).map(|node| volume(name, node)).collect();
        append(begin_s + 311, Event::Volumes { volumes });
    }
    append(
        650,
        Event::Ended {
            status: RunStatus::Complete,
        },
    );
    fs::write(dir.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
    for node in 0..nodes {
        let mut stats = StatsWriter::create(&dir, &format!("worker-{node}"), INTERVAL_MS).unwrap();
        for place in 1..=65 {
            stats.sample(sample(node as u64, place)).unwrap();
        }
        stats.missed("no answer within 10 s").unwrap();
    }
    dir
}

fn of_node(step: &str, node: usize) -> JobResult {
    let mut job = job(step, figures(2000.0, 400_000.0, 300_000));
    job.hostname = Some(format!("server-fio-{node}"));
    if step == "seqwr" {
        (job.write, job.read) = (job.read, None);
    }
    job
}

fn volume(step: &str, node: usize) -> Volume {
    let bytes = if step == "seqrd" { 100 << 20 } else { 0 };
    Volume {
        node: format!("worker-{node}"),
        device: Some("nvme0n1".into()),
        hosts: vec![format!("server-fio-{node}")],
        read_bytes: Some(bytes),
        write_bytes: Some(2 << 30),
        ..Volume::default()
    }
}

/// The first five minutes are written, the second read, with a break between.
fn sample(node: u64, place: u64) -> NodeSample {
    let (writes, reads) = ((2..=32).contains(&place), (34..=64).contains(&place));
    let wave = place % 7 * 13;
    let device = |name: &str, share: u64| DeviceCounts {
        name: name.into(),
        read_ios: if reads { (9000 + wave * 20) / share } else { 0 },
        read_bytes: if reads {
            ((9000 + wave * 20) << 17) / share
        } else {
            0
        },
        read_ms: if reads { 40_000 / share } else { 0 },
        write_ios: if writes {
            (4000 + wave * 30) / share
        } else {
            3
        },
        write_bytes: if writes {
            ((4000 + wave * 30) << 17) / share
        } else {
            12_288
        },
        write_ms: if writes { 90_000 / share } else { 3 },
        busy_ms: if writes || reads {
            (8800 + wave * 10) / share
        } else {
            20
        },
        queue_ms: 90_000 / share,
    };
    let busy = if writes || reads {
        9000 + wave * 20
    } else {
        900
    };
    let cpu = CpuTime {
        user_ms: busy,
        system_ms: busy * 2,
        iowait_ms: busy / 2 + 400 * node % 3000,
        steal_ms: 0,
        idle_ms: 80_000 - busy * 4,
    };
    NodeSample {
        at_ms: START_MS + place * INTERVAL_MS,
        span_ms: INTERVAL_MS,
        cpu,
        memory: Memory {
            total_bytes: 64 << 30,
            available_bytes: (60 << 30) - (place << 26),
            page_cache_bytes: place.min(40) << 30,
            dirty_bytes: if writes { (wave + 200) << 22 } else { 1 << 20 },
        },
        devices: vec![device("nvme0n1", 1), device("sda", 40)],
        processes: vec![ProcessTime {
            pid: 4711,
            name: if node == 0 {
                "fio".into()
            } else {
                HOSTILE.into()
            },
            cpu_ms: busy * 2,
        }],
        ..NodeSample::default()
    }
}

#[test]
fn what_nodes_did_stands_in_tables_by_step() {
    let runs = tempfile::tempdir().unwrap();
    let record = record(runs.path(), 1);
    let shown = fathom(runs.path(), &["show", record.to_str().unwrap()]);
    let text = String::from_utf8(shown.stdout).unwrap();
    for told in [
        "worker-0",
        "nvme0n1 on worker-0",
        "fio ",
        // What the device delivered, of what the jobs read.
        "seqrd: of the",
        "never came from nvme0n1 of worker-0",
        "cache answered reads",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let (_, page) = report(runs.path(), &record);
    let nodes = &data(&page)["nodes"];
    assert_eq!(nodes["phases"][1]["name"], "seqrd");
    assert_eq!(nodes["phases"][1]["from"], 340.0);
    assert_eq!(nodes["nodes"][0]["t"].as_array().unwrap().len(), 65);
    assert_eq!(nodes["nodes"][0]["devices"][0]["name"], "nvme0n1");
    assert!(!page.contains("<script>window.harmed"));
}

#[test]
fn the_graphs_of_many_nodes_are_shown_one_at_a_time() {
    let runs = tempfile::tempdir().unwrap();
    let record = record(runs.path(), 5);
    let mut browser = require!(Browser::start());
    let (file, _) = report(runs.path(), &record);
    browser.open(&file).unwrap();
    browser.look(1280, 1600, false).unwrap();
    let to = "document.getElementById('nodes').scrollIntoView()";
    browser.eval(to).unwrap();
    let drawn = "document.querySelectorAll('#nodes .chart[data-drawn] canvas').length === 6";
    browser.wait_for(drawn).unwrap();
    crate::report::browser::picture(&mut browser, "nodes.png");
    browser
        .eval("document.querySelector('#nodes [data-by=\"1\"]').click()")
        .unwrap();
    let caption = "[...document.querySelectorAll('#nodes .caption')].every((c) => c.textContent === 'worker-1')";
    browser.wait_for(caption).unwrap();
    browser.wait_for(drawn).unwrap();
    assert_eq!(
        browser.eval("window.harmed ?? null").unwrap(),
        serde_json::Value::Null
    );
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}
