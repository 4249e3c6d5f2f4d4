//! Servers that run Fathom itself, from an image that holds one static file.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::cluster::{Place, document, stderr};

/// The image that tools/test-cluster.sh makes of the static binary.
const IMAGE: &str = "localhost/fathom:test";

impl Place {
    fn native(&self, kind: &str, more: &[&str]) -> Command {
        let image = std::env::var("FATHOM_TEST_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
        self.with_image(kind, &image, &[&["--engine", "native"], more].concat())
    }

    /// The programs that run in a server's container: the node is this machine.
    fn programs(&self, pod: &str) -> Vec<(String, String)> {
        let uid = self.kubectl(&["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"]);
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let ours = processes.filter_map(|entry| {
            let of = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
            let words = of("cmdline").filter(|_| of("cgroup").is_some_and(|c| c.contains(&uid)))?;
            let pid = entry.file_name().into_string().ok()?;
            Some((pid, words.replace('\0', " ").trim().to_owned()))
        });
        // The pause container holds the pod's namespaces.
        ours.filter(|(_, words)| words != "/pause").collect()
    }

    /// A job that is under way on both servers, and would be for long.
    fn under_way(&self) -> Child {
        let job = self.file(
            "busy.fio",
            "[busy]\ndirectory=/dataset\nsize=64m\nrw=randwrite\nioengine=libaio\ndirect=1\n\
            iodepth=2\nrate_iops=50\ntime_based=1\nruntime=1h\n",
        );
        let mut command = self.native("job", &[&job]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.wait_for("the job runs", || {
            self.recorded("events.jsonl").contains("\"sample\"")
        });
        child
    }

    /// What a run gives that should end by itself now, long before its job would.
    fn end_of(&self, mut child: Child) -> Output {
        self.wait_for("the run ends", || child.try_wait().unwrap().is_some());
        child.wait_with_output().unwrap()
    }

    /// A file of the only record; empty while it is not there.
    fn recorded(&self, name: &str) -> String {
        let record = self.try_record();
        record
            .and_then(|record| fs::read_to_string(record.join(name)).ok())
            .unwrap_or_default()
    }

    /// Waits until nothing runs in the servers but what waits for work.
    fn wait_for_rest(&self) {
        for pod in ["server-fathom-0", "server-fathom-1"] {
            self.wait_for("nothing runs on any more", || {
                let left = self.programs(pod);
                left.iter().all(|(_, words)| words == "/fathom pod wait")
            });
        }
    }
}

fn jobs<'d>(doc: &'d Value, step: &str) -> Vec<&'d Value> {
    let jobs = doc["jobs"].as_array().unwrap().iter();
    jobs.filter(|job| job["step"] == step).collect()
}

/// The sum of the hosts, and the jobs of each.
fn sum_and_parts<'d>(doc: &'d Value, step: &str) -> (&'d Value, Vec<&'d Value>) {
    let (sums, parts): (Vec<_>, Vec<_>) = jobs(doc, step)
        .into_iter()
        .partition(|job| job["name"] == "All clients");
    assert_eq!(sums.len(), 1, "{step}: {doc}");
    (sums[0], parts)
}

#[test]
fn native_servers_write_read_and_leave_nothing() {
    let place = Place::new("fathom-native-seq");
    let more = ["--dropcaches", "pagecache", "--json"];
    let output = place.native("seq", &more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    assert_eq!(doc["status"], "complete");
    for (step, dir) in [("seqwr", "write"), ("seqrd", "read")] {
        let (sum, parts) = sum_and_parts(&doc, step);
        assert_eq!(sum[dir]["io_bytes"], 2_u64 << 30, "{sum}");
        let hosts: Vec<_> = parts.iter().map(|job| &job["hostname"]).collect();
        assert_eq!(hosts, ["server-fathom-0", "server-fathom-1"]);
        assert!(sum[dir]["clat"]["percentiles_ns"].is_object(), "{sum}");
    }
    let hosts = doc["hosts"].as_array().unwrap();
    for host in hosts {
        assert!(host["start_ms"].is_number() && host["clock"]["n"].as_u64() >= Some(8));
        assert!(
            host["engine_version"]
                .as_str()
                .unwrap()
                .starts_with("native")
        );
    }
    let notes = doc["notes"].to_string();
    assert!(notes.contains("caches dropped: pagecache"), "{notes}");
    let seen = |name: &str| place.recorded(&format!("server_fathom/server-fathom-1/{name}"));
    assert!(seen("df_h.txt").contains("\t/dataset\n"));
    assert!(seen("mount.txt").contains(" /dataset "));
    assert!(seen("env.txt").contains("Linux version"));
    assert!(seen("versions.txt").starts_with("fathom-"));
    assert_eq!(place.recorded("hosts.list").lines().count(), 2);
    let locations = place.recorded("podlocations.bench_fioseq.txt");
    assert!(
        locations.contains("server-fathom-0 node0 10."),
        "{locations}"
    );
    let text = place.recorded("client/seqwr/fio.seqwr.run.txt");
    assert!(
        text.contains("All clients: (groupid=0, jobs=2): err= 0"),
        "{text}"
    );
    let set = place.recorded("server_fathom/fathomserver_statefulset.yaml");
    for told in [
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
    ] {
        assert!(set.contains(told), "{set}");
    }
    assert!(
        !set.contains("ports:") && !set.contains("privileged:"),
        "{set}"
    );
    assert!(
        place
            .recorded("jobs/seqwr.fio")
            .contains("create_on_open=1")
    );
    let raw = place.recorded("client/seqrd/server-fathom-0/fio.out");
    assert!(raw.contains("seqrd"), "{raw:?}");
    assert!(place.recorded("events.jsonl").contains("\"sample\""));
    place.wait_for_nothing();
}

#[test]
fn native_random_tests_follow_a_full_prefill() {
    let place = Place::new("fathom-native-rand");
    let more = [
        "--bs",
        "4k,16k",
        "--iodepth",
        "4",
        "--rate-iops",
        "0,50",
        "--runtime",
        "1",
        "--json",
    ];
    let output = place.native("rand", &more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let (sum, _) = sum_and_parts(&doc, "prefill");
    assert_eq!(sum["write"]["io_bytes"], 2_u64 << 30);
    for rw in ["randread", "randwrite"] {
        for test in ["4k-4", "4k-4-50iops", "16k-4", "16k-4-50iops"] {
            let (sum, parts) = sum_and_parts(&doc, &format!("{rw}-{test}"));
            let dir = &rw["rand".len()..];
            assert!(sum[dir]["total_ios"].as_u64() > Some(0), "{sum}");
            assert_eq!(parts.len(), 2);
        }
    }
    place.wait_for_nothing();
}

#[test]
fn any_job_file_runs_on_native_servers() {
    let place = Place::new("fathom-native-job");
    let job = place.file(
        "mixed.fio",
        "[global]\ndirectory=/dataset\nsize=16m\nrw=randrw\ntime_based=1\nruntime=1\n[a]\nnumjobs=2\n[b]\nioengine=mmap\n",
    );
    let output = place.native("job", &[&job, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let jobs = doc["jobs"].as_array().unwrap();
    let count = |name: &str| jobs.iter().filter(|job| job["name"] == name).count();
    assert_eq!((count("a"), count("b")), (4, 2), "{doc}");
    assert_eq!((count("All clients: a"), count("All clients: b")), (1, 1));
    place.wait_for_nothing();
}

#[test]
fn a_native_server_that_is_deleted_in_mid_run_is_named() {
    let place = Place::new("fathom-native-deleted");
    let child = place.under_way();
    place.kubectl(&[
        "delete",
        "pod",
        "server-fathom-1",
        "--grace-period=0",
        "--force",
    ]);
    let output = place.end_of(child);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("server-fathom-1 went away while it ran"),
        "{said}"
    );
    let events = place.recorded("events.jsonl");
    assert!(
        events.contains("\"subject\":\"server-fathom-1\""),
        "{events}"
    );
    place.wait_for_nothing();
}

#[test]
fn an_agent_that_is_killed_is_named() {
    let place = Place::new("fathom-native-agent");
    let child = place.under_way();
    let agents = place.programs("server-fathom-0");
    let agent = agents.iter().find(|(_, words)| words == "/fathom agent");
    let (pid, _) = agent.unwrap_or_else(|| panic!("{agents:?}"));
    let killed = Command::new("kill").args(["-KILL", pid]).status();
    assert!(killed.unwrap().success());
    let output = place.end_of(child);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("server-fathom-0 did not take part to the end"),
        "{said}"
    );
    place.wait_for_nothing();
}

#[test]
fn an_interrupted_native_run_keeps_its_figures_and_leaves_nothing() {
    let place = Place::new("fathom-native-ctrlc");
    let child = place.under_way();
    fathom_testkit::signal(&child, "-INT");
    let output = place.end_of(child);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(place.recorded("events.jsonl").contains("\"finished\""));
    place.wait_for_nothing();
}

#[test]
fn no_io_goes_on_after_its_driver_is_killed() {
    let place = Place::new("fathom-native-killed");
    let mut child = place.under_way();
    let busy = place.programs("server-fathom-0");
    assert!(busy.len() > 1, "{busy:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    place.wait_for_rest();
    let output = place.fathom(&["cleanup"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place.wait_for_nothing();
}

#[test]
fn an_image_without_fathom_is_told() {
    let place = Place::new("fathom-native-image");
    let mut command = place.with_image("seq", "localhost/fio:test", &["--engine", "native"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("the servers did not start") && said.contains("/fathom"),
        "{said}"
    );
    place.wait_for_nothing();
}

#[test]
fn nodes_and_volumes_are_read_without_a_shell() {
    let place = Place::new("fathom-native-stats");
    let job = place.file(
        "read.fio",
        "[read]\ndirectory=/dataset\nsize=16m\nrw=randread\nioengine=psync\ndirect=1\n\
        time_based=1\nruntime=3\n",
    );
    let more = [&job, "--stats=1", "--json"];
    let output = place.native("job", &more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let volume = &doc["volumes"][0];
    let hosts = ["server-fathom-0", "server-fathom-1"];
    assert_eq!(volume["hosts"], serde_json::json!(hosts), "{doc}");
    assert!(volume["read_bytes"].as_u64().unwrap() > 0, "{volume}");
    let node = &doc["nodes"][0];
    assert!(node["samples"].as_u64().unwrap() > 0, "{doc}");
    assert_eq!(
        (&node["node"], &node["missed"]),
        (&"node0".into(), &0.into())
    );
    place.wait_for_nothing();
}
