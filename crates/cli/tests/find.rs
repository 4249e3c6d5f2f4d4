//! `fathom find`: how much load is enough, and how much a latency allows.

use std::fs;

use fathom_testkit::ProgramUnderTest;
use serde_json::Value;

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=4m\nbs=4k\ntime_based\nruntime=3\n";

fn program() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program
}

fn json(program: &ProgramUnderTest, args: &[&str]) -> Value {
    let output = program
        .command(&[args, &["--json", "-q"]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_knee_of_a_simulated_drive_is_found_and_the_record_says_the_same() {
    let program = program();
    let found = json(
        &program,
        &["find", "a.fio", "--knee", "--to", "64", "--engine", "sim"],
    );
    assert_eq!(found["schema"], "fathom.find/1");
    let probes = found["probes"].as_array().unwrap();
    // Every depth was looked at.
    assert!(probes.len() >= 7, "{probes:?}");
    let load = found["answer"]["load"].as_f64().unwrap();
    assert!([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].contains(&load));
    let shown = json(&program, &["show"]);
    assert_eq!(shown["jobs"].as_array().unwrap().len(), probes.len());
}

#[test]
fn a_limit_on_a_simulated_drive_is_kept_by_what_is_found() {
    let program = program();
    let args = [
        "find", "a.fio", "--p99", "2ms", "--closed", "--engine", "sim",
    ];
    let found = json(&program, &args);
    let answer = &found["answer"];
    match answer["load"].as_f64() {
        Some(_) => assert!(answer["latency_ns"].as_f64().unwrap() <= 2e6, "{answer}"),
        None => assert_eq!(answer["ended_by"], "nothing"),
    }
}

#[test]
fn a_rate_is_found_for_real() {
    let program = program();
    let job = JOB.replace("[a]\n", "[a]\nioengine=psync\n");
    program.file("a.fio", &job);
    let args = [
        "find", "a.fio", "--p99", "500ms", "--probe", "300ms", "--look", "300ms",
    ];
    let found = json(&program, &args);
    let answer = &found["answer"];
    // What a busy machine can take is its own affair.
    match answer["load"].as_f64() {
        Some(rate) => assert!(rate > 0.0, "{answer}"),
        None => assert_eq!(answer["ended_by"], "nothing", "{answer}"),
    }
    assert!(found["probes"].as_array().unwrap().len() <= 40);
    let text = fs::read_to_string(program.records()[0].join("events.jsonl")).unwrap();
    assert!(text.contains("\"native\""));
}

#[test]
fn a_rate_of_a_simulated_drive_is_found_below_what_it_does_at_its_most() {
    let program = program();
    program.file("a.fio", &(JOB.to_owned() + "iodepth=16\n"));
    let found = json(
        &program,
        &["find", "a.fio", "--p99", "1ms", "--engine", "sim"],
    );
    assert_eq!(found["over"], "rate_iops");
    let most = found["probes"][0]["iops"].as_f64().unwrap();
    let load = found["answer"]["load"].as_f64().unwrap();
    assert!((0.8..1.0).contains(&(load / most)), "{load} of {most}");
    let too_much = found["answer"]["too_much"].as_f64().unwrap();
    assert!((load..1.03 * load).contains(&too_much), "{found}");
    // Every probe is in the plan, and none is left when it is over.
    let status = json(&program, &["status"]);
    let probes = found["probes"].as_array().unwrap().len();
    assert_eq!(
        (&status["steps"], &status["left"]),
        (&probes.into(), &0.into())
    );
    assert_eq!(status["left_ms"], 0);
}

#[test]
fn what_an_engine_cannot_do_is_refused_or_told() {
    let program = program();
    let said = |args: &[&str], code: i32| {
        let output = program.run(&[&["find"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        said
    };
    // fio counts latencies under a rate from the issue.
    let fio = ["a.fio", "--p99", "1ms", "--engine", "fio"];
    assert!(said(&fio, 2).contains("as with --closed"));
    let mixed = JOB.replace("randread", "randrw");
    program.file("mixed.fio", &mixed);
    let map = ["mixed.fio", "--map", "--engine", "fio"];
    assert!(said(&map, 2).contains("leave out --engine fio"));
    // psync does one I/O at a time.
    let knee = said(&["a.fio", "--knee", "--engine", "native"], 2);
    assert!(knee.contains("--over numjobs"), "{knee}");
    let cpu = ["a.fio", "--max-cpu", "50", "--engine", "sim"];
    assert!(said(&cpu, 2).contains("no CPU busy"));
    said(&["a.fio", "--engine", "sim"], 2);
    said(&["nosuch.fio", "--knee"], 3);
    assert!(program.records().is_empty());
}

#[test]
fn a_probe_ends_when_its_side_is_clear_and_the_answer_is_tried_whole() {
    let program = program();
    let args = [
        "find", "a.fio", "--p99", "1s", "--closed", "--to", "8", "--engine", "sim",
    ];
    let found = json(&program, &args);
    let probes = found["probes"].as_array().unwrap();
    let early: Vec<&Value> = probes.iter().filter(|it| it["is_early"] == true).collect();
    assert!(!early.is_empty(), "{probes:#?}");
    assert!(
        early
            .iter()
            .all(|it| it["seconds"].as_f64().unwrap() < 15.0)
    );
    let last = probes.last().unwrap();
    assert_eq!(last["probe"]["is_whole"], true);
    assert_eq!(
        (&last["is_early"], &last["probe"]["load"]),
        (&false.into(), &found["answer"]["load"])
    );
    // What a closed loop omits is longer than what it measures.
    let corrected = found["corrected_ns"].as_f64().unwrap();
    assert!(corrected >= found["answer"]["latency_ns"].as_f64().unwrap() * 0.98);
    // A step that was ended early is a whole one for whoever reads the record.
    let shown = json(&program, &["show"]);
    assert_eq!(shown["status"], "complete");
}

#[test]
fn a_search_is_made_for_each_mix() {
    let program = program();
    program.file("a.fio", &JOB.replace("randread", "randrw"));
    let args = [
        "find",
        "a.fio",
        "--mean",
        "1s",
        "--of",
        "write",
        "--over",
        "iodepth,rwmixread",
        "--to",
        "2",
        "--engine",
        "sim",
    ];
    let found = json(&program, &args);
    let names: Vec<&str> = found["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    // Of reads alone nobody asks for the writes.
    let all = [
        "rwmixread-0",
        "rwmixread-25",
        "rwmixread-50",
        "rwmixread-75",
    ];
    assert_eq!(names, all);
    assert!(found["answer"].is_null());
}

#[test]
fn what_means_something_else_is_refused() {
    let program = program();
    let job = format!("{JOB}numjobs=4\nbssplit=4k/50:8k/50\n");
    program.file("b.fio", &job);
    for (args, told) in [
        ("a.fio --p99 1ms --over rwmixread", "has no mix"),
        ("a.fio --p99 1ms --of write", "has no writes"),
        ("a.fio --knee --of read", "--of"),
        (
            "a.fio --max-cpu 50 --closed --engine sim",
            "keeps no CPU busy",
        ),
        ("a.fio --max-cpu 0", "percent"),
        ("a.fio --map", "has no mix"),
        ("a.fio --map --closed", "--map"),
        ("a.fio --knee --svg x.svg", "--map"),
        ("b.fio --p99 1ms", "numjobs=1"),
        ("b.fio --p99 1ms --closed --over bs", "bssplit"),
    ] {
        let args: Vec<&str> = std::iter::once("find").chain(args.split(' ')).collect();
        let output = program.command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(told), "{args:?}: {error}");
    }
}

#[test]
fn what_a_drive_can_do_is_told_to_other_programs() {
    let program = program();
    let emit = |what: &str| {
        let args = [
            "find", "a.fio", "--emit", what, "--to", "4", "--engine", "sim", "-q",
        ];
        let output = program.command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let value = |text: &str, name: &str| -> u64 {
        let (_, rest) = text
            .split_once(name)
            .unwrap_or_else(|| panic!("{name} in {text}"));
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        number.parse().unwrap()
    };
    let model = emit("iocost");
    assert!(
        model.contains("\nMAJ:MIN ctrl=user model=linear rbps="),
        "{model}"
    );
    for name in [
        "rbps",
        "rseqiops",
        "rrandiops",
        "wbps",
        "wseqiops",
        "wrandiops",
    ] {
        assert!(model.contains(&format!("# {name}: ")), "{model}");
        assert!(value(&model, &format!(" {name}=")) > 0);
    }
    assert!(
        value(&model, "rlat=") > 0 && value(&model, "wlat=") > 0,
        "{model}"
    );
    let properties = emit("io-properties");
    let (_, yaml) = properties.split_once("disks:\n  - mountpoint: \"").unwrap();
    assert_eq!(value(yaml, "read_bandwidth: "), value(&model, " rbps="));
    assert!(value(yaml, "write_iops: ") > 0);
    let document: Value = serde_json::from_str(&emit("json")).unwrap();
    assert_eq!(document["found"].as_array().unwrap().len(), 6);
    assert!(
        document["found"][0]["verdict"]["level"].is_string(),
        "{document:#}"
    );
}

#[test]
fn a_map_of_a_simulated_drive_has_more_latency_where_more_is_done() {
    let program = program();
    let job = JOB.replace("randread", "randrw") + "iodepth=16\n";
    program.file("a.fio", &job);
    let map = json(&program, &["find", "a.fio", "--map=4", "--engine", "sim"]);
    let cells = map["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4 * 5);
    let alone = cells.iter().filter(|cell| cell["write"] == 0);
    let waits: Vec<f64> = alone
        .filter_map(|cell| cell["latency_ns"].as_f64())
        .collect();
    assert!(waits.len() >= 3 && waits.is_sorted(), "{cells:#?}");
}

#[test]
fn a_map_has_a_place_for_each_pair_of_loads() {
    let program = program();
    let job = JOB
        .replace("[a]\n", "[a]\nioengine=psync\n")
        .replace("randread", "randrw");
    program.file("a.fio", &job);
    let args = [
        "find", "a.fio", "--map=2", "--probe", "200ms", "--look", "200ms", "--svg", "map.svg",
    ];
    let map = json(&program, &args);
    assert_eq!(map["schema"], "fathom.find-map/1");
    assert!(map["most_reads"].as_f64().unwrap() > 0.0);
    let cells = map["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 3);
    // What a busy machine can take is its own affair.
    assert!(
        cells.iter().all(|cell| cell["outcome"] != "open"),
        "{cells:#?}"
    );
    // How many probes stand before it is the machine's affair, too, and whether it does more.
    let jobs = fs::read_dir(program.records()[0].join("jobs")).unwrap();
    let mut jobs = jobs.map(|job| job.unwrap().path());
    let its = jobs.find(|job| job.to_string_lossy().ends_with("-read-1-write-0.fio"));
    let text = fs::read_to_string(its.unwrap()).unwrap();
    assert!(text.contains("rw=randread"), "{text}");
    let svg = program.path().join("map.svg");
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
    // The report has it as a graph and as a table, and so have the graphs.
    let page = reported(&program);
    assert!(page.contains("id=\"t-answer0\">p99 of reads beside writes<"));
    let (_, table) = page
        .split_once("<h3>p99 of reads, beside writes</h3>")
        .unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!(table.matches("<tr>").count(), 1 + 1 + 3, "{table}");
    let drawn = json(&program, &["graph"]);
    assert_eq!(drawn["files"][0], "map.svg");
}

/// The report of the last run.
fn reported(program: &ProgramUnderTest) -> String {
    program.good(&["report", "-o", "page.html"]);
    fs::read_to_string(program.path().join("page.html")).unwrap()
}

#[test]
fn a_report_begins_with_the_answer_and_says_where_there_is_none() {
    let program = program();
    let knee = ["find", "a.fio", "--knee", "--to", "64", "--engine", "sim"];
    program.good(&knee);
    let page = reported(&program);
    let (first, rest) = page.split_once("<main>").unwrap();
    for told in [
        "said-of-it good",
        "is enough: ",
        "Which iodepth is enough",
        "id=\"t-answer0\"",
    ] {
        assert!(first.contains(told), "{told}");
    }
    assert!(rest.contains("<section id=\"answer\">") && rest.contains("<table class=\"answer\">"));
    let drawn = json(&program, &["graph"]);
    assert_eq!(drawn["files"][0], "find.svg");

    let limit = ["find", "a.fio", "--p99", "1us", "--closed", "--to", "4"];
    program.good(&[&limit[..], &["--engine", "sim"]].concat());
    let page = reported(&program);
    assert!(page.contains("said-of-it doubtful\">the limit is not kept"));
    // Without its plan a record has its figures all the same.
    let last = program.records().into_iter().max().unwrap();
    fs::remove_file(last.join("plan.jsonl")).unwrap();
    assert!(!reported(&program).contains("<p class=\"said-of-it"));
}

#[test]
fn a_plan_knows_how_long_each_probe_takes() {
    let program = program();
    let args = [
        "find",
        "a.fio",
        "--knee",
        "--to",
        "4",
        "--engine",
        "sim",
        "--dry-run",
    ];
    let output = program.good(&args);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("01-iodepth-1, 10.0 s"), "{shown}");
}
