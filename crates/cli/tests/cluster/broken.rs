//! Benchmarks that something keeps from their end: each is told, and nothing is
//! left.

use std::process::Command;

use crate::cluster::{Place, stderr};

/// What stands against the start is told in the cluster's own words.
#[track_caller]
fn does_not_start(namespace: &str, more: &[&str], told: &str) {
    let place = Place::new(namespace);
    let output = place.run("seq", more);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("the servers did not start") && said.contains(told),
        "{said}"
    );
    place.wait_for_nothing();
}

#[test]
fn a_label_that_no_node_has() {
    does_not_start(
        "fathom-label",
        &["--server-node-label", "disk=none"],
        "didn't match Pod's node affinity/selector",
    );
}

#[test]
fn a_storage_class_that_is_not_there() {
    let class = ["--storageclass", "gold"];
    let place = Place::new("fathom-class");
    let mut command = place.fathom(&["seq", "--image", "localhost/fio:test"]);
    let output = command.args(class).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("\"gold\" not found"), "{said}");
    place.wait_for_nothing();
}

#[test]
fn an_image_that_cannot_be_had() {
    let place = Place::new("fathom-image");
    let mut command = place.fathom(&[
        "seq",
        "--image",
        "localhost/none:1",
        "--storageclass",
        "hostpath",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("localhost/none:1"), "{said}");
    place.wait_for_nothing();
}

#[test]
fn a_server_that_is_deleted_in_mid_run() {
    let place = Place::new("fathom-deleted");
    let more = ["--rw", "randread", "--runtime", "60"];
    let child = place.start("rand", &more);
    place.wait_for("the random test runs", || {
        place
            .kubectl(&["get", "pods", "-o", "name"])
            .contains("client-randread-4k-16")
    });
    place.kubectl(&[
        "delete",
        "pod",
        "server-fio-1",
        "--grace-period=0",
        "--force",
    ]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("server-fio-1 went away while it ran"),
        "{said}"
    );
    place.wait_for_nothing();
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let place = Place::new("fathom-ctrlc");
    let child = place.start("rand", &["--runtime", "60"]);
    place.wait_for("the prefill runs", || {
        place
            .kubectl(&["get", "pods", "-o", "name"])
            .contains("client-prefill")
    });
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    place.wait_for_nothing();
}

#[test]
fn what_a_killed_run_left_is_removed_by_cleanup_and_nothing_else() {
    let place = Place::new("fathom-killed");
    let mut child = place.start("rand", &["--runtime", "60"]);
    place.wait_for("the prefill runs", || {
        place
            .kubectl(&["get", "pods", "-o", "name"])
            .contains("client-prefill")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    place.kubectl(&["create", "configmap", "theirs", "--from-literal=a=b"]);
    assert!(!place.left().is_empty());
    let output = place.fathom(&["cleanup"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place.wait_for_nothing();
    assert!(
        place
            .kubectl(&["get", "configmaps", "-o", "name"])
            .contains("theirs")
    );
}
