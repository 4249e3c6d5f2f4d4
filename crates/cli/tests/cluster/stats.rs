//! What nodes and volumes tell of a run.

use std::fs;

use serde_json::Value;

use crate::cluster::{Place, document, stderr};

/// Jobs of a step that are marked as read from memory, with the sums.
fn cached<'d>(doc: &'d Value, step: &str) -> Vec<&'d str> {
    let jobs = doc["jobs"].as_array().unwrap().iter();
    let marked = jobs.filter(|job| {
        let verdict = job["read"]["verdict"].to_string();
        job["step"] == step && verdict.contains("cached_reads")
    });
    marked.map(|job| job["name"].as_str().unwrap()).collect()
}

#[test]
fn reads_of_what_was_dropped_are_the_volumes_and_the_nodes_are_recorded_and_drawn() {
    let place = Place::alone("fathom-stats");
    let more = ["--dropcaches", "pagecache", "--stats=1", "--json"];
    let output = place.run("seq", &more);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    assert_eq!(
        cached(&doc, "seqrd"),
        Vec::<&str>::new(),
        "{}",
        doc["volumes"]
    );
    // Both servers lie on the same device of the one node.
    let volume = &doc["volumes"][1];
    assert_eq!(
        (&volume["node"], &volume["step"]),
        (&"node0".into(), &"seqrd".into())
    );
    assert_eq!(volume["hosts"].as_array().unwrap().len(), 2, "{volume}");
    assert!(
        volume["read_bytes"].as_u64().unwrap() >= 2 << 30,
        "{volume}"
    );
    let nodes = doc["nodes"].as_array().unwrap();
    let steps: Vec<&Value> = nodes.iter().map(|node| &node["step"]).collect();
    assert_eq!(steps, ["seqwr", "seqrd"]);
    let device = volume["device"].as_str().unwrap();
    let used = nodes[1]["devices"].as_array().unwrap();
    // A volume may be a partition of what is counted.
    let disk = used
        .iter()
        .find(|one| device.starts_with(one["name"].as_str().unwrap()));
    assert!(
        disk.unwrap()["read_bw_bytes"]["mean"].as_f64().unwrap() > 0.0,
        "{used:?}"
    );
    assert!(nodes[1]["user_percent"]["max"].as_f64().unwrap() > 0.0);
    assert!(
        nodes[1]["processes"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    );
    let record = place.record();
    let lines = fs::read_to_string(record.join("stats/node0.jsonl")).unwrap();
    assert!(
        lines.starts_with(r#"{"format":"fathom.node-stats/1","node":"node0","interval_ms":1000}"#)
    );
    let pod = fs::read_to_string(record.join("stats/daemonset.yaml")).unwrap();
    for told in [
        "readOnly: true",
        "runAsNonRoot: true",
        "allowPrivilegeEscalation: false",
    ] {
        assert!(pod.contains(told), "{told}: {pod}");
    }
    assert!(
        !pod.contains("privileged: true") && !pod.contains("hostPID"),
        "{pod}"
    );
    let page = place.report();
    assert!(page.contains("data-graph=\"cpu\"") && page.contains("id=\"devices\""));
    place.wait_for_nothing();
}

/// fio asks the kernel to drop the pages of its files unless it is told not to,
/// and this reads them over and over: whoever else drops them in the middle, most
/// of the reads come from memory.
const AGAIN: &str = "[again]\nrw=read\nioengine=psync\nbs=128k\nsize=32m\nloops=64\ninvalidate=0\n";

#[test]
fn reads_from_memory_are_marked_with_their_share() {
    let place = Place::alone("fathom-memory");
    let file = place.file("again.fio", AGAIN);
    let output = place.job(&file, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let marked: Vec<&str> = doc["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| job["read"]["verdict"].to_string().contains("cached_reads"))
        .map(|job| job["name"].as_str().unwrap())
        .collect();
    assert_eq!(marked.len(), 3, "two servers and their sum: {doc}");
    let notes = doc["notes"].to_string();
    assert!(notes.contains("never came from"), "{notes}");
    place.wait_for_nothing();
}

#[test]
fn a_label_that_no_node_has_leaves_the_run_without_statistics() {
    let place = Place::new("fathom-unread");
    let file = place.file("short.fio", "[short]\nrw=read\nsize=4m\n");
    let output = place.job(&file, &["--stats", "--stats-node-label", "disk=none"]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("no statistics: no node has the label disk=none"),
        "{said}"
    );
    place.wait_for_nothing();
}
