//! What stops in the middle of a run: the node's kubelet, the program in the
//! client, the pods that take statistics or make the load in the background.

use std::process::{Child, Output};
use std::time::{Duration, Instant};

use fathom_testkit::signal;

use crate::cluster::{Place, document, stderr};

/// The kubelet, stopped as long as this lives.
struct Stopped(String);

impl Stopped {
    fn kubelet(place: &Place) -> Self {
        let pid = place.pid("kubelet");
        Self::send(&pid, "-STOP");
        Self(pid)
    }

    fn send(pid: &str, name: &str) {
        let sent = std::process::Command::new("kill")
            .args([name, pid])
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill")
            .args(["-CONT", &self.0])
            .status();
    }
}

/// What a run gives that should end by itself now.
fn end_of(place: &Place, mut child: Child) -> Output {
    place.wait_for("the run ends", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

#[test]
fn a_run_on_a_stopped_node_is_interrupted_at_once() {
    let place = Place::alone("fathom-stopint");
    let child = place.start_endless();
    let kubelet = Stopped::kubelet(&place);
    signal(&child, "-INT");
    let began = Instant::now();
    let output = end_of(&place, child);
    // Not a time that is judged: far from the minutes that a pod stays "running".
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    drop(kubelet);
    place.wait_for_nothing();
}

#[test]
fn a_stopped_node_is_told_of_and_ends_the_run() {
    let place = Place::alone("fathom-stopped");
    let child = place.start_endless();
    let kubelet = Stopped::kubelet(&place);
    let output = end_of(&place, child);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("client has not answered for ") || said.contains("went away while it ran"),
        "{said}"
    );
    drop(kubelet);
    place.wait_for_nothing();
}

#[test]
fn a_killed_client_is_told_with_its_signal_and_nothing_is_left() {
    let place = Place::new("fathom-kill9");
    let child = place.start_endless();
    let kill =
        "for p in /proc/[0-9]*; do if grep -qx fio $p/comm; then kill -9 ${p#/proc/}; fi; done";
    place.kubectl(&["exec", "client", "--", "sh", "-c", kill]);
    let output = end_of(&place, child);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("fio's client was ended by signal 9"),
        "{said}"
    );
    place.wait_for_nothing();
}

#[test]
fn statistics_that_end_in_mid_run_are_told_and_the_run_goes_on() {
    let place = Place::new("fathom-nostats");
    let file = place.file(
        "timed.fio",
        "[timed]\nrw=randread\nsize=16m\ntime_based=1\nruntime=15\n",
    );
    let child = place.start("job", &[&file, "--stats=1"]);
    place.wait_for("a node is read", || {
        let record = place.try_record();
        record.is_some_and(|record| record.join("stats/node0.jsonl").exists())
    });
    place.kubectl(&["delete", "daemonset", "stats", "--wait=false"]);
    let output = end_of(&place, child);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("node0 gave no statistics"), "{said}");
    place.wait_for_nothing();
}

#[test]
fn a_load_in_the_background_that_loses_a_pod_fails_the_run() {
    let place = Place::new("fathom-calmlost");
    let calm = ["--calm-iops", "16", "--calm-fsz-gb", "0.1"];
    let child = place.start(
        "rand",
        &[
            &calm[..],
            &["--rw", "randread", "--runtime", "120", "--fsz-gb", "0.1"],
        ]
        .concat(),
    );
    place.wait_for("a phase runs", || {
        let look = ["exec", "client", "--", "ls", "/client"];
        place.tries(&look).contains("randread")
    });
    place.kubectl(&["delete", "pod", "server-calm-0", "--wait=false"]);
    let output = end_of(&place, child);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("server-calm-0 went away while it ran"),
        "{said}"
    );
    place.wait_for_nothing();
}

/// Those of a set that is refused again and again may come late.
#[test]
fn refusals_by_a_quota_leave_nothing_however_often() {
    let place = Place::made("fathom-quotas");
    crate::broken::allow_one_claim(&place);
    for _ in 0..5 {
        let output = place.run("seq", &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        place.wait_for_nothing();
    }
}

#[test]
fn pods_have_the_resources_that_are_asked_for() {
    let place = Place::made("fathom-resources");
    let file = place.file("short.fio", "[short]\nrw=write\nsize=4m\n");
    let output = place.job(
        &file,
        &[
            "--requests",
            "cpu=10m",
            "--limits",
            "memory=512Mi",
            "--json",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    assert_eq!(doc["status"], "complete");
    let pod = std::fs::read_to_string(place.record().join("pods/server-fio-0.yaml")).unwrap();
    assert!(
        pod.contains("cpu: \"10m\"") && pod.contains("memory: \"512Mi\""),
        "{pod}"
    );
    place.wait_for_nothing();
}
