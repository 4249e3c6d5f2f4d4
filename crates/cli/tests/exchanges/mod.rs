//! `fathom cluster` against recorded answers of a real API server: all that a run
//! does in a cluster, without one. The recordings are made and checked by
//! `make test-cluster` (tests/cluster/recording.rs).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

mod beside;
mod floods;
mod foreign;
pub mod player;
mod silent;
pub mod tape;

use player::Player;
use tape::Exchange;

/// A small benchmark.
const SMALL: [&str; 6] = [
    "seq",
    "--ninstances=2",
    "--fsz-gb=1",
    "--njobs=1",
    "--pvcsz-req-gb=2",
    "--storageclass=hostpath",
];

/// A recording that is played, and a folder for runs.
struct Played {
    player: Player,
    folder: TempDir,
}

impl Played {
    fn new(recording: &str) -> Self {
        Self::with(recording, |_| {})
    }

    /// A recording in which something is different.
    fn with(recording: &str, change: impl FnOnce(&mut Vec<Exchange>)) -> Self {
        let mut exchanges = tape::read(recording);
        change(&mut exchanges);
        Self {
            player: Player::new(exchanges, "perf"),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let kubeconfig = self.folder.path().join("kubeconfig");
        fs::write(&kubeconfig, self.player.kubeconfig().to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command
            .arg("--runs")
            .arg(self.folder.path().join("runs"))
            .arg("cluster")
            .args(args)
            .args(["--namespace", "perf", "--kubeconfig"])
            .arg(kubeconfig);
        command
    }

    fn fathom(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        assert_eq!(self.player.unknown(), [""; 0], "{output:?}");
        output
    }

    fn seq(&self, more: &[&str]) -> Output {
        self.seq_of("localhost/fio:test", more)
    }

    fn seq_of(&self, image: &str, more: &[&str]) -> Output {
        self.fathom(&[&SMALL, &["--image", image][..], more].concat())
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

/// Whether something is made, changed, removed or run by what is asked.
fn makes(asked: &str) -> bool {
    let is_review = asked.contains("accessreviews");
    (!asked.starts_with("GET") && !is_review) || asked.contains("/exec?")
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
    as_its_page_names_them(&record, "All clients");
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
    let first = asked.iter().position(|asked| makes(asked));
    let last = asked
        .iter()
        .rposition(|asked| asked.contains("accessreviews"));
    assert!(first > last, "{asked:?}");
}

/// The files of a record have the names of kubuculum's page, too.
fn as_its_page_names_them(record: &Path, told: &str) {
    let text =
        |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let locations = text(record.join("podlocations.bench_fioseq.txt"));
    assert_eq!(locations, text(record.join("podlocations.txt")));
    let role = record.join("bench_fioseq");
    for phase in ["seqwr", "seqrd"] {
        assert!(text(role.join(format!("fio_{phase}_job.yaml"))).contains("filesize="));
        let named = format!("{phase}_fio-");
        let folders = fs::read_dir(&role).unwrap().flatten();
        let mut folders = folders.filter(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with(&named)
        });
        let folder = folders.next().unwrap().path();
        let run = text(folder.join(format!("fio.{phase}.run.txt")));
        assert!(run.contains(told), "{run}");
        assert_eq!(
            run,
            text(record.join(format!("client/{phase}/fio.{phase}.run.txt")))
        );
    }
}

/// A look that finds nothing does not mean that nothing comes any more.
#[test]
fn somebody_is_told_of_a_benchmark_and_its_metrics_stay() {
    let played = Played::new("seq");
    let told = played.folder.path().join("told");
    let metrics = played.folder.path().join("run.prom");
    let command = format!(
        "echo \"$FATHOM_STATUS $FATHOM_COMMAND\" >>'{}'",
        told.display()
    );
    let file = metrics.to_str().unwrap();
    let output = played.seq(&["-q", "--notify", &command, "--metrics-file", file]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(told).unwrap(), "complete cluster seq\n");
    let metrics = fs::read_to_string(metrics).unwrap();
    for series in [
        "fathom_run_status{status=\"complete\"} 1",
        "fathom_steps_ended_total{outcome=\"complete\"} 2",
    ] {
        assert!(metrics.contains(series), "{series}: {metrics}");
    }
}

#[test]
fn a_claim_that_is_made_after_its_set_was_removed_is_removed_too() {
    let played = Played::with("quota", |exchanges| {
        let is_claims = |exchange: &&Exchange| {
            exchange.asked.contains("persistentvolumeclaims?")
                && exchange.asked.contains("managed-by%3Dfathom%2Cfathom")
        };
        let there = exchanges.iter().find(is_claims).unwrap().clone();
        let gone = exchanges.iter().rfind(is_claims).unwrap().clone();
        let mut late = there;
        if let tape::Answer::Object(list) = &mut late.answer {
            let metadata = &mut list["items"][0]["metadata"];
            metadata["name"] = "dataset-server-fio-1".into();
        }
        // Removed, two quiet looks, and then it comes.
        exchanges.extend([gone.clone(), late, gone]);
    });
    let output = played.seq(&[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let removed = played.removed().join("\n");
    for claim in ["dataset-server-fio-0", "dataset-server-fio-1"] {
        assert!(removed.contains(claim), "{claim}: {removed}");
    }
}

/// fio's client is killed: its shell has its exit code, and there is no report.
#[test]
fn a_client_that_is_killed_is_told_with_its_signal() {
    let played = Played::with("seq", |exchanges| {
        for exchange in exchanges {
            let tape::Answer::Messages(messages) = &mut exchange.answer else {
                continue;
            };
            if exchange.asked.contains("%3B+cat+exit+2") && messages.len() > 1 {
                messages[0].1 = "137\n".to_owned();
            } else if exchange.asked.contains("%2Fclient%2Fseqwr%2Fout") {
                messages[0].1.clear();
            }
        }
    });
    let output = played.seq(&[]);
    fails(
        &played,
        &output,
        &["phase seqwr: fio's client was ended by signal 9"],
    );
}

/// Where an inventory says that records go, unless a flag says otherwise.
#[test]
fn the_base_folder_of_an_inventory_holds_the_runs() {
    let played = foreign::beside("services", "server-fio");
    let base = played.folder.path().join("base");
    let inventory = played.folder.path().join("inventory");
    let text = format!(
        "[hosts]\nlocalhost\n[all:vars]\nrun_basedir=\"{}\" # here\nrun_namespace=\"perf\"\n\
         run_storageclass=\"hostpath\"\nbenchmark_role=\"bench_fioseq\"\n",
        base.display()
    );
    fs::write(&inventory, text).unwrap();
    let kubeconfig = played.folder.path().join("kubeconfig");
    fs::write(&kubeconfig, played.player.kubeconfig().to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    let command = command.current_dir(played.folder.path());
    let args = [
        "cluster",
        "seq",
        "--image=x",
        "--server-node-label=disk=none",
        "-f",
    ];
    command
        .args(args)
        .arg(&inventory)
        .arg("--kubeconfig")
        .arg(&kubeconfig);
    assert_eq!(command.output().unwrap().status.code(), Some(4));
    assert_eq!(fs::read_dir(&base).unwrap().count(), 1);
    command.args(["--runs", "elsewhere"]);
    assert_eq!(command.output().unwrap().status.code(), Some(4));
    assert_eq!(fs::read_dir(&base).unwrap().count(), 1);
    assert!(played.folder.path().join("elsewhere").exists());
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
        "create statefulsets",
        "list events",
    ] {
        assert!(said.contains(right), "{right}: {said}");
    }
    let asked = played.player.asked();
    assert!(!asked.iter().any(|asked| makes(asked)), "{asked:?}");
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
    let told = format!("cannot talk to the API server at http://127.0.0.1:{port}/");
    assert!(said.contains(&told) && said.contains("refused"), "{said}");
    let said = cleanup("none");
    assert!(
        said.contains("none") && said.contains("--kubeconfig"),
        "{said}"
    );
}
