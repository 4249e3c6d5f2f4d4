//! Benchmarks that something keeps from their end: each is told in the cluster's
//! own words, and nothing is left.

use std::fs;
use std::process::{Child, Command};

use serde_json::json;

use crate::cluster::{Place, stderr};

/// What stands against the start is told in the cluster's own words.
#[track_caller]
fn does_not_start(place: &Place, more: &[&str], told: &str) {
    let output = place.run("seq", more);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("the servers did not start") && said.contains(told),
        "{said}"
    );
    place.wait_for_nothing();
}

/// What is told of a run that something befell.
#[track_caller]
fn is_told(place: &Place, child: Child, told: &[&str]) {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    for told in told {
        assert!(said.contains(told), "{told}: {said}");
    }
    place.wait_for_nothing();
}

#[test]
fn a_label_that_no_node_has() {
    does_not_start(
        &Place::new("label"),
        &["--server-node-label", "disk=none"],
        "didn't match Pod's node affinity/selector",
    );
}

#[test]
fn a_storage_class_that_is_not_there() {
    does_not_start(
        &Place::new("class"),
        &["--storageclass", "gold"],
        "\"gold\" not found",
    );
}

#[test]
fn a_claim_that_nothing_is_bound_to() {
    let place = Place::new("unbound");
    place.apply(&json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "by-hand"},
        "provisioner": "kubernetes.io/no-provisioner",
    }));
    does_not_start(
        &place,
        &["--storageclass", "by-hand"],
        "pod has unbound immediate PersistentVolumeClaims",
    );
}

#[test]
fn an_image_that_cannot_be_had() {
    does_not_start(
        &Place::new("image"),
        &["--image", "localhost/none:1"],
        "localhost/none:1",
    );
}

/// A quota on a namespace, in force.
pub fn allow_one_claim(place: &Place) {
    place.apply(&json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": place.namespace},
        "spec": {"hard": {"persistentvolumeclaims": "1"}},
    }));
    // It is in force once the cluster has counted what there is.
    place.wait_for("the quota is in force", || {
        let used = "-o=jsonpath={.items[*].status.used}";
        place
            .kubectl(&["get", "resourcequotas", used])
            .contains("persistentvolumeclaims")
    });
}

#[test]
fn a_quota_that_does_not_hold_the_claims() {
    let place = Place::made("quota");
    allow_one_claim(&place);
    does_not_start(&place, &[], "exceeded quota: small");
}

#[test]
fn a_server_that_is_deleted_in_mid_run() {
    let place = Place::new("deleted");
    let child = place.start_endless();
    place.kubectl(&["delete", "pod", "server-fio-1", "--wait=false"]);
    is_told(
        &place,
        child,
        &["server-fio-1 went away while it ran: its pod "],
    );
}

#[test]
fn a_server_that_runs_out_of_memory() {
    let place = Place::made("oom");
    place.apply(&json!({
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": place.namespace},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "56Mi"}}]},
    }));
    let child = place.start_endless();
    // Memory that is no process's own: the server is taken, which says it may.
    let eat = "echo 1000 >/proc/1/oom_score_adj; dd if=/dev/zero of=/dev/shm/full bs=1M";
    place.tries(&["exec", "server-fio-0", "--", "sh", "-c", eat]);
    is_told(
        &place,
        child,
        &["server-fio-0 went away while it ran: its container ended: OOMKilled, exit code 137"],
    );
}

#[test]
fn a_client_that_is_deleted_in_mid_run() {
    let place = Place::new("client");
    let child = place.start_endless();
    place.kubectl(&["delete", "pod", "client", "--wait=false"]);
    is_told(&place, child, &["client went away while it ran: its pod "]);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let place = Place::new("ctrlc");
    let child = place.start_endless();
    let pid = child.id().to_string();
    nothing_listens(&pid);
    let kill = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    place.wait_for_nothing();
}

/// That no socket of a process waits for connections.
fn nothing_listens(pid: &str) {
    let mut own = Vec::new();
    for fd in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let target = fs::read_link(fd.path()).unwrap_or_default();
        let target = target.to_string_lossy().into_owned();
        if let Some(inode) = target.strip_prefix("socket:[") {
            own.push(inode.trim_end_matches(']').to_owned());
        }
    }
    assert!(!own.is_empty(), "it speaks to the cluster");
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
        for line in table.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            // proc(5): the state, 0A is LISTEN, and the inode.
            let listens = columns[3] == "0A" && own.iter().any(|inode| inode == columns[9]);
            assert!(!listens, "{line}");
        }
    }
}

#[test]
fn what_a_killed_run_left_is_removed_by_cleanup_and_nothing_else() {
    let place = Place::made("killed");
    place.apply(&json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs", "namespace": place.namespace, "labels": {"app": "fathom"}},
        "spec": {"containers": [{"name": "pause", "image": "localhost/pause:local"}]},
    }));
    place.apply(&json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "dataset-theirs", "namespace": place.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "hostpath",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }));
    let mut child = place.start_endless();
    child.kill().unwrap();
    child.wait().unwrap();
    // Another run does not take its place, and does not remove it either.
    let second = place.run("seq", &[]);
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    let said = stderr(&second);
    assert!(
        said.contains("there is StatefulSet server-fio of run 20"),
        "{said}"
    );
    assert!(said.contains("fathom cluster cleanup"), "{said}");
    assert!(place.left().contains("statefulset.apps/server-fio"));
    let output = place.fathom(&["cleanup"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place.wait_for_nothing();
    let left = place.kubectl(&["get", "pods,persistentvolumeclaims", "-o", "name"]);
    let theirs = "pod/theirs\npersistentvolumeclaim/dataset-theirs\n";
    assert_eq!(left, theirs);
    // With nothing left there is nothing to do.
    let output = place.fathom(&["cleanup"]).output().unwrap();
    assert!(
        stderr(&output).contains("nothing of Fathom is left"),
        "{output:?}"
    );
}
