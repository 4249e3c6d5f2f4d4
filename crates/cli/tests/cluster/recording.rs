//! What goes between Fathom and the cluster, recorded for the tests that do
//! without one (tests/exchanges): `FATHOM_RECORD=1` writes the files anew. Else
//! it is checked that they are not out of date.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use crate::broken::allow_one_claim;
use crate::cluster::Place;
use crate::recorder::Recorder;
use crate::tape::{self, Exchange};

/// Runs something with the recorder in between.
fn recorded(name: &str, place: &mut Place, run: impl FnOnce(&Place) -> Output) -> Output {
    let recorder = Recorder::new(place, None);
    recorded_by(name, place, &recorder, run)
}

fn recorded_by(
    name: &str,
    place: &mut Place,
    recorder: &Recorder,
    run: impl FnOnce(&Place) -> Output,
) -> Output {
    let kubeconfig = recorder.kubeconfig().to_string();
    place.way = Some(place.file("way", &kubeconfig));
    let output = run(place);
    place.way = None;
    let new = recorder.exchanges(&place.namespace);
    let mut lines = String::new();
    for exchange in &new {
        lines.push_str(&serde_json::to_string(exchange).unwrap());
        lines.push('\n');
    }
    for secret in ["BEGIN CERTIFICATE", "PRIVATE KEY", "Bearer"] {
        assert!(!lines.contains(secret), "{secret}");
    }
    if std::env::var_os("FATHOM_RECORD").is_some() {
        fs::write(tape::file(name), lines).unwrap();
    }
    let old = questions(&tape::read(name));
    let unknown: Vec<_> = questions(&new).difference(&old).cloned().collect();
    assert!(
        unknown.is_empty(),
        "{name}.jsonl is out of date (FATHOM_RECORD=1 make test-cluster writes it): {unknown:#?}"
    );
    output
}

/// What was asked. Which pods a removal still finds is a matter of time, and a
/// daemon set gives its pods names that are new each time.
fn questions(exchanges: &[Exchange]) -> BTreeSet<String> {
    let asked = exchanges
        .iter()
        .filter(|exchange| !exchange.asked.starts_with("DELETE"));
    asked
        .map(|exchange| {
            let about = &exchange.about;
            match of_a_daemon(&exchange.asked) {
                Some(asked) => format!("{asked} {about}"),
                None => format!("{} {about}", exchange.asked),
            }
        })
        .collect()
}

/// What is asked of a pod of a daemon set, without the end of its name.
fn of_a_daemon(asked: &str) -> Option<String> {
    let set = ["pods/drop-caches-", "pods/stats-"];
    let named = set.into_iter().find(|named| asked.contains(named))?;
    let (before, behind) = asked.split_once(named)?;
    let (_, behind) = behind.split_once('/')?;
    Some(format!("{before}{named}*/{behind}"))
}

#[test]
fn a_whole_benchmark_is_recorded() {
    let mut place = Place::new("record-seq");
    let output = recorded("seq", &mut place, |place| {
        place.run("seq", &["--dropcaches", "pagecache"])
    });
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn refusals_are_recorded() {
    let mut place = Place::new("record-label");
    let label = ["--server-node-label", "disk=none"];
    recorded("label", &mut place, |place| place.run("seq", &label));
    let mut place = Place::made("record-quota");
    allow_one_claim(&place);
    recorded("quota", &mut place, |place| place.run("seq", &[]));
    let mut place = Place::new("record-image");
    let image = ["--image", "localhost/none:1"];
    recorded("image", &mut place, |place| place.run("seq", &image));
}

#[test]
fn missing_rights_are_recorded() {
    let mut place = Place::made("record-rights");
    let nobody = format!("system:serviceaccount:{}:default", place.namespace);
    let recorder = Recorder::new(&place, Some(&nobody));
    let output = recorded_by("rights", &mut place, &recorder, |place| {
        place.run("seq", &[])
    });
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

#[test]
fn a_lost_server_and_its_removal_are_recorded() {
    let mut place = Place::new("record-lost");
    recorded("lost", &mut place, |place| {
        let child = place.start_endless();
        place.kubectl(&["delete", "pod", "server-fio-1", "--wait=false"]);
        child.wait_with_output().unwrap()
    });
    place.wait_for_nothing();
    let mut child = place.start_endless();
    child.kill().unwrap();
    child.wait().unwrap();
    let output = recorded("cleanup", &mut place, |place| {
        place.fathom(&["cleanup"]).output().unwrap()
    });
    assert!(output.status.success(), "{output:?}");
}
