//! `fathom cluster` against recorded answers of a real API server: all that a run
//! does in a cluster, without one. The recordings are made and checked by
//! `make test-cluster` (tests/cluster/recording.rs).

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

mod player;
mod tape;

use player::Player;

/// A recording that is played, and a folder for runs.
struct Played {
    player: Player,
    folder: TempDir,
}

impl Played {
    fn new(recording: &str) -> Self {
        Self {
            player: Player::new(recording, "perf"),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn fathom(&self, args: &[&str]) -> Output {
        let kubeconfig = self.folder.path().join("kubeconfig");
        fs::write(&kubeconfig, self.player.kubeconfig().to_string()).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .arg("--runs")
            .arg(self.folder.path().join("runs"))
            .arg("cluster")
            .args(args)
            .args(["--namespace", "perf", "--kubeconfig"])
            .arg(kubeconfig)
            .output()
            .unwrap();
        assert_eq!(self.player.unknown(), [""; 0], "{output:?}");
        output
    }

    fn seq(&self, more: &[&str]) -> Output {
        self.seq_of("localhost/fio:test", more)
    }

    fn seq_of(&self, image: &str, more: &[&str]) -> Output {
        let small = ["seq", "--ninstances=2", "--fsz-gb=1", "--njobs=1"];
        let where_to = ["--pvcsz-req-gb=2", "--storageclass=hostpath", "--image"];
        self.fathom(&[&small[..], &where_to, &[image], more].concat())
    }

    /// The only record.
    fn record(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.folder.path().join("runs")).unwrap();
        runs.next().unwrap().unwrap().path()
    }

    /// What was removed, each once.
    fn removed(&self) -> Vec<String> {
        let mut all = self.player.asked();
        all.retain(|asked| asked.starts_with("DELETE"));
        all.sort();
        all.dedup();
        all
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run that came to nothing: what is told of it, and that its set is removed.
#[track_caller]
fn fails(played: &Played, output: &Output, told: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for told in told {
        assert!(stderr(output).contains(told), "{told}: {}", stderr(output));
    }
    let set = "DELETE /apis/apps/v1/namespaces/NAMESPACE/statefulsets/server-fio?";
    assert!(
        played.removed().contains(&set.to_owned()),
        "{:?}",
        played.removed()
    );
    let events = fs::read_to_string(played.record().join("events.jsonl")).unwrap();
    assert!(events.contains("\"status\":\"failed\""), "{events}");
}

#[test]
fn a_benchmark_is_run_and_kept_and_all_is_removed() {
    let played = Played::new("seq");
    let output = played.seq(&["--dropcaches", "pagecache", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
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
    assert!(
        doc["notes"]
            .to_string()
            .contains("caches dropped: pagecache")
    );
    // Both servers lie on one device, whose counters were asked for twice a phase.
    let volume = &doc["volumes"][1];
    let hosts = volume["hosts"].as_array().unwrap();
    let figures = jobs.iter().filter(|job| job["step"] == volume["step"]);
    // Under the names that the figures have.
    let named = figures.filter(|job| hosts.contains(&job["hostname"]));
    assert_eq!((hosts.len(), named.count()), (2, 2), "{volume}");
    assert!(
        volume["read_bytes"].as_u64().unwrap() >= 2 << 30,
        "{volume}"
    );
    let record = played.record();
    let text = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    assert!(text("client/seqrd/fio.seqrd.run.txt").contains("All clients"));
    assert!(text("server_fio/server-fio-1/df_h.txt").contains("/dataset"));
    assert_eq!(text("hosts.list").lines().count(), 2);
    assert!(text("podlocations.txt").contains("server-fio-0 node0 10."));
    assert!(record.join("podlogs/server-fio-0.txt").exists());
    let removed = played.removed().join("\n");
    for kind in [
        "daemonsets/drop-caches",
        "services/server-fio",
        "pods/client",
    ] {
        assert!(removed.contains(kind), "{kind}: {removed}");
    }
    // Rights are asked for before anything is made.
    let asked = played.player.asked();
    let first = asked.iter().position(|asked| asked.starts_with("PATCH"));
    let last = asked
        .iter()
        .rposition(|asked| asked.contains("accessreviews"));
    assert!(first > last, "{asked:?}");
}

#[test]
fn nodes_that_fit_nothing_are_told() {
    let played = Played::new("label");
    let output = played.seq(&["--server-node-label", "disk=none"]);
    let told = "server-fio-0: 0/1 nodes are available: 1 node(s) didn't match";
    fails(&played, &output, &["the servers did not start", told]);
}

#[test]
fn a_quota_is_told() {
    let played = Played::new("quota");
    let output = played.seq(&[]);
    fails(
        &played,
        &output,
        &["the servers did not start", "exceeded quota: small"],
    );
}

#[test]
fn an_image_that_cannot_be_had_is_told() {
    let played = Played::new("image");
    let output = played.seq_of("localhost/none:1", &[]);
    fails(&played, &output, &["ErrImagePull", "localhost/none:1"]);
}

#[test]
fn a_lost_server_is_told() {
    let played = Played::new("lost");
    let job = played.folder.path().join("endless.fio");
    fs::write(
        &job,
        "[endless]\nrw=randread\nsize=16m\nruntime=300\ntime_based=1\n",
    )
    .unwrap();
    let output = played.fathom(&["job", job.to_str().unwrap(), "--ninstances=2", "--image=x"]);
    let told = "server-fio-1 went away while it ran: its pod ";
    fails(&played, &output, &[told]);
}

#[test]
fn missing_rights_are_named_and_nothing_is_made() {
    let played = Played::new("rights");
    let output = played.seq(&[]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    for right in [
        "list services",
        "create pods/exec",
        "patch statefulsets",
        "list events",
    ] {
        assert!(said.contains(right), "{right}: {said}");
    }
    let asked = played.player.asked();
    assert!(
        !asked.iter().any(|asked| asked.starts_with("PATCH")),
        "{asked:?}"
    );
    assert!(!played.folder.path().join("runs").exists());
}

#[test]
fn a_cleanup_removes_what_is_labelled_and_goes_not_yet() {
    let played = Played::new("cleanup");
    let output = played.fathom(&["cleanup", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    let removed = doc["removed"].to_string();
    for object in [
        "StatefulSet server-fio",
        "Service server-fio",
        "Pod client",
        "PersistentVolumeClaim dataset-server-fio-1",
    ] {
        assert!(removed.contains(object), "{object}: {removed}");
    }
    let asked = played.player.asked();
    let listed = |asked: &&String| asked.starts_with("GET") && asked.contains("labelSelector=");
    let lists: Vec<_> = asked.iter().filter(listed).collect();
    let ours = "app.kubernetes.io%2Fmanaged-by%3Dfathom";
    assert!(lists.iter().all(|asked| asked.contains(ours)), "{lists:?}");
}

/// A server that nobody can speak to is named, with the reason.
#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let port = fathom_testkit::free_port();
    let config = player::kubeconfig(port);
    let file = folder.path().join("kubeconfig");
    fs::write(&file, config.to_string()).unwrap();
    let cleanup = |kubeconfig: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command
            .args(["cluster", "cleanup"])
            .args(["--kubeconfig", kubeconfig]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        stderr(&output)
    };
    let said = cleanup(file.to_str().unwrap());
    let told = format!("the API server at http://127.0.0.1:{port}/ cannot be spoken to");
    assert!(said.contains(&told) && said.contains("refused"), "{said}");
    let said = cleanup("none");
    assert!(
        said.contains("none") && said.contains("--kubeconfig"),
        "{said}"
    );
}
