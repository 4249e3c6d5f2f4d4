//! A load in the background, sums over servers, and lists of runs.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::cluster::{Place, document, stderr};

/// A background load that any machine can do.
const CALM: [&str; 6] = [
    "--calm-iops",
    "16",
    "--calm-fsz-gb",
    "1",
    "--calm-ninstances",
    "1",
];

fn jobs<'d>(doc: &'d Value, step: &str) -> Vec<&'d Value> {
    let jobs = doc["jobs"].as_array().unwrap().iter();
    jobs.filter(|job| job["step"] == step).collect()
}

#[test]
fn a_background_load_has_a_record_of_its_own_and_the_sum_is_fathoms() {
    let place = Place::new("fathom-calm");
    let more = ["--rw", "randread", "--iodepth", "2", "--runtime", "3"];
    let more = [&more[..], &CALM, &["--json"]].concat();
    let output = place.run("rand", &more);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);

    // The sum of the servers, named by their pods and nodes.
    let randread = jobs(&doc, "randread-4k-2");
    let sum = randread.iter().find(|job| job["name"] == "All clients");
    let sum = sum.unwrap();
    let parts = randread.iter().filter(|job| job["name"] != "All clients");
    let ios: u64 = parts
        .map(|job| job["read"]["total_ios"].as_u64().unwrap())
        .sum();
    assert_eq!(
        (&sum["clients"], &sum["read"]["total_ios"]),
        (&2.into(), &ios.into())
    );
    assert!(sum["hostname"].is_null() && sum["across"]["span_ms"].as_u64() > Some(0));
    let hosts = doc["hosts"].as_array().unwrap();
    assert_eq!(hosts[0]["name"], "server-fio-0");
    assert_eq!(hosts[0]["node"], "node0");

    // The load's own record tells of every phase, and each tells of the other.
    let record = place.record();
    let notes = doc["notes"].to_string();
    let id = record.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(notes.contains(&format!("its record: {id}/calm")), "{notes}");
    let shown = place.show(&record.join("calm"));
    let calm: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(calm["notes"].to_string().contains(&id), "{calm}");
    for step in ["prefill", "randread-4k-2"] {
        let [job] = jobs(&calm, step)[..] else {
            panic!("{step}: {calm}")
        };
        assert_eq!(job["hostname"], "server-calm-0");
        let ios = |dir: &str| job[dir]["total_ios"].as_u64().unwrap();
        assert!(ios("read") + ios("write") > 0, "{job}");
    }

    let text = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    assert!(text("out.get_envinfo.txt").contains("Kubernetes v1."));
    let stood = text("out.server_fio.txt");
    let claim = stood
        .lines()
        .find(|line| line.starts_with("dataset-server-fio-1"));
    assert!(claim.unwrap().contains(" Bound "), "{stood}");
    assert!(text("server_fio/server-fio-1/ls_l.randread-4k-2.txt").contains("f.0.0"));
    assert!(text("server_fio/server-fio-0/versions.txt").starts_with("fio-"));
    assert!(text("pods/server-fio-0.yaml").contains("name: server-fio-0"));
    assert!(text("server_calm/calm.fio").contains("rate_iops=8,8"));
    place.wait_for_nothing();
}

#[test]
fn a_background_load_that_cannot_keep_its_rate_is_flagged() {
    let place = Place::new("fathom-calmslow");
    let more = ["--rw", "randread", "--runtime", "2", "--json"];
    // No storage does so much at a depth of one.
    let calm = ["--calm-iops", "10000000", "--calm-iodepth", "1"];
    let output = place.run("rand", &[&more[..], &calm].concat());
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let notes = doc["notes"].to_string();
    assert!(notes.contains("fell behind in randread-4k-16"), "{notes}");
    for job in jobs(&doc, "randread-4k-16") {
        let doubts = job["read"]["verdict"].to_string();
        assert!(doubts.contains("background_behind"), "{job}");
    }
    let shown = place.show(&place.record().join("calm"));
    let calm: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let job = jobs(&calm, "randread-4k-16")[0];
    assert!(job["read"]["verdict"].to_string().contains("behind_rate"));
    place.wait_for_nothing();
}

#[test]
fn an_interrupt_ends_the_background_load_too() {
    let place = Place::new("fathom-calmint");
    let child = place.start("rand", &[&CALM[..], &["--runtime", "60"]].concat());
    place.wait_for("the prefill runs", || {
        let look = ["exec", "client", "--", "ls", "/client"];
        place.tries(&look).contains("prefill")
    });
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let shown = place.show(&place.record().join("calm"));
    let calm: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(calm["status"], "interrupted");
    place.wait_for_nothing();
}

#[test]
fn a_list_of_runs_is_compared_at_its_end() {
    let place = Place::new("fathom-list");
    let list = tempfile::tempdir().unwrap();
    let file = list.path().join("runs.toml");
    let text = "rw = ['randread']\nruntime_s = 2\n[[run]]\nbs = ['4k']\n[[run]]\nbs = ['64k']\n";
    fs::write(&file, text).unwrap();
    let output = place.run("rand", &["-f", file.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    assert_eq!(doc["schema"], "fathom.cluster-runs/1");
    let runs = doc["runs"].as_array().unwrap();
    let different: Vec<&Value> = runs.iter().map(|run| &run["different"]).collect();
    assert_eq!(different[0].as_object().unwrap().len(), 1, "{different:?}");
    assert_eq!(
        (&different[0]["bs"][0], &different[1]["bs"][0]),
        (&"4k".into(), &"64k".into())
    );
    for (run, phase) in runs.iter().zip(["randread-4k-16", "randread-64k-16"]) {
        assert_eq!(run["status"], "complete");
        let phases = run["phases"].as_array().unwrap();
        assert_eq!(phases[0]["phase"], "prefill");
        assert_eq!(phases[1]["phase"], phase);
        assert!(phases[1]["bw_bytes"].as_f64() > Some(0.0));
    }
    assert!(!stderr(&output).contains("is being deleted"));
    place.wait_for_nothing();
}
