//! Benchmarks that come to their end.

use std::fs;

use crate::cluster::{Place, document, stderr};

#[test]
fn a_sequential_benchmark_writes_reads_and_leaves_nothing() {
    let place = Place::new("seq");
    let output = place.run("seq", &["--dropcaches", "pagecache", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    assert_eq!(doc["status"], "complete");
    let jobs = doc["jobs"].as_array().unwrap();
    let moved = |step: &str, dir: &str| -> u64 {
        let of = jobs
            .iter()
            .filter(|job| job["step"] == step && job["name"] != "All clients");
        of.map(|job| job[dir]["io_bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        (moved("seqwr", "write"), moved("seqrd", "read")),
        (2 << 30, 2 << 30)
    );
    let hosts: Vec<_> = jobs
        .iter()
        .filter_map(|job| job["hostname"].as_str())
        .collect();
    assert_eq!(hosts.len(), 4, "{hosts:?}");
    let record = place.record();
    let text = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    assert!(text("client/seqwr/fio.seqwr.run.txt").contains("All clients"));
    assert!(text("server_fio/server-fio-1/df_h.txt").contains("/dataset"));
    assert!(text("server_fio/fioserver_statefulset.yaml").contains("kind: StatefulSet"));
    assert!(text("podlocations.txt").contains("server-fio-0 node0 10."));
    assert!(record.join("podlogs/server-fio-0.txt").exists());
    assert!(text("podlocations.bench_fioseq.txt").contains("server-fio-0 node0 10."));
    assert!(text("bench_fioseq/fio_seqwr_job.yaml").contains("rw=write"));
    let notes = doc["notes"].to_string();
    assert!(notes.contains("caches dropped: pagecache"), "{notes}");
    place.wait_for_nothing();
}

#[test]
fn random_tests_follow_a_full_prefill() {
    let place = Place::new("rand");
    let more = [
        "--rw",
        "randread",
        "--bs",
        "4k,16k",
        "--iodepth",
        "4",
        "--runtime",
        "2",
        "--json",
    ];
    let output = place.run("rand", &more);
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let steps: Vec<_> = doc["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["step"].clone())
        .collect();
    for step in ["prefill", "randread-4k-4", "randread-16k-4"] {
        assert!(steps.contains(&step.into()), "{steps:?}");
    }
    assert!(doc["notes"].to_string().contains("caches are not dropped"));
    assert!(!stderr(&output).contains("could be removed"));
    place.wait_for_nothing();
}
