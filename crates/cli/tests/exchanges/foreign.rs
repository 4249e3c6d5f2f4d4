//! Objects of others under the names that a run needs: never taken, written to or
//! removed.

use serde_json::{Value, json};

use super::tape::{Answer, Exchange};
use super::{Played, SMALL, makes, stderr};

/// The list of all of a kind in the namespace.
fn list(kind: &str) -> String {
    let group = match kind {
        "statefulsets" | "daemonsets" => "apis/apps/v1",
        _ => "api/v1",
    };
    format!("GET /{group}/namespaces/NAMESPACE/{kind}?&fieldSelector=&labelSelector=")
}

fn theirs(name: &str) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "NAMESPACE", "uid": "theirs",
        "labels": {"app": "shop", "app.kubernetes.io/managed-by": "Helm"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Shop", "name": "corner", "uid": "o"}],
    }})
}

/// The answer to a list, with an object in it.
fn with(exchange: &Exchange, object: Value) -> Exchange {
    let mut new = exchange.clone();
    if let Answer::Object(list) = &mut new.answer {
        list["items"] = json!([object]);
    }
    new
}

/// Of the run itself nothing was made.
fn nothing_is_there(exchanges: &mut [Exchange]) {
    for exchange in exchanges {
        if exchange.asked.contains("RUN-NAME")
            && let Answer::Object(list) = &mut exchange.answer
        {
            list["items"] = json!([]);
        }
    }
}

/// A namespace with an object of others, in which a run comes to nothing at once.
pub fn beside(kind: &str, name: &str) -> Played {
    Played::with("seq", |exchanges| {
        nothing_is_there(exchanges);
        for exchange in exchanges {
            if exchange.asked == list(kind) {
                *exchange = with(exchange, theirs(name));
            }
        }
    })
}

/// What is asked for, and that it is named with its kind and its owner.
#[track_caller]
fn is_refused(played: &Played, args: &[&str], named: &str) {
    let image = ["--image", "localhost/fio:test"];
    let output = played.fathom(&[&SMALL[..], &image, args].concat());
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    for told in [
        named,
        "which Fathom did not make",
        "app=shop",
        "owner Shop corner",
        "to do:",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
}

#[test]
fn what_others_have_under_a_name_of_the_run_is_refused_before_anything_is_made() {
    let calm: &[&str] = &["--calm", "--calm-ninstances=2"];
    let drop: &[&str] = &["--dropcaches=pagecache"];
    let stats: &[&str] = &["--stats"];
    for (kind, args, named) in [
        ("services", &[][..], "Service server-fio"),
        ("statefulsets", &[], "StatefulSet server-fio"),
        ("pods", &[], "Pod server-fio-1"),
        ("pods", &[], "Pod client"),
        (
            "persistentvolumeclaims",
            &[],
            "PersistentVolumeClaim dataset-server-fio-0",
        ),
        ("daemonsets", drop, "DaemonSet drop-caches"),
        ("daemonsets", stats, "DaemonSet stats"),
        ("statefulsets", calm, "StatefulSet server-calm"),
        ("pods", calm, "Pod server-calm-1"),
        (
            "persistentvolumeclaims",
            calm,
            "PersistentVolumeClaim dataset-server-calm-1",
        ),
    ] {
        let (_, name) = named.split_once(' ').unwrap();
        let played = beside(kind, name);
        is_refused(&played, args, named);
        let asked = played.player.asked();
        assert!(
            !asked.iter().any(|asked| makes(asked)),
            "{named}: {asked:?}"
        );
    }
}

/// What does not stand in the way is nobody's business.
#[test]
fn what_others_have_under_other_names_is_left_alone() {
    let played = Played::with("seq", |exchanges| {
        for exchange in exchanges {
            for (kind, name) in [
                ("services", "server-fio-2"),
                ("persistentvolumeclaims", "dataset-server-fio-2"),
                ("pods", "server-fio-10"),
                // Without --calm and --dropcaches these names are free.
                ("statefulsets", "server-calm"),
                ("daemonsets", "stats"),
            ] {
                if exchange.asked == list(kind) {
                    *exchange = with(exchange, theirs(name));
                }
            }
        }
    });
    let output = played.seq(&["--dropcaches", "pagecache"]);
    assert!(output.status.success(), "{output:?}");
    let removed = played.removed().join("\n");
    for theirs in [
        "server-fio-2",
        "server-fio-10",
        "server-calm",
        "daemonsets/stats",
    ] {
        assert!(!removed.contains(theirs), "{removed}");
    }
}

/// A set takes a claim that somebody has made while it started.
#[test]
fn a_claim_that_others_made_meanwhile_is_not_written_to() {
    let played = Played::with("seq", |exchanges| {
        let asked = list("persistentvolumeclaims");
        let first = exchanges.iter().find(|exchange| exchange.asked == asked);
        let second = with(first.unwrap(), theirs("dataset-server-fio-0"));
        exchanges.push(second);
    });
    is_refused(&played, &[], "PersistentVolumeClaim dataset-server-fio-0");
    let asked = played.player.asked();
    assert!(
        !asked.iter().any(|asked| asked.contains("/exec?")),
        "{asked:?}"
    );
}

/// A Service that somebody has made after the look stays theirs.
#[test]
fn a_service_that_others_made_meanwhile_is_not_taken() {
    let played = Played::with("label", |exchanges| {
        nothing_is_there(exchanges);
        let asked = list("services");
        let first = exchanges.iter().find(|exchange| exchange.asked == asked);
        let second = with(first.unwrap(), theirs("server-fio"));
        exchanges.push(second);
        for exchange in exchanges {
            if exchange
                .asked
                .contains("POST /api/v1/namespaces/NAMESPACE/services")
            {
                exchange.status = 409;
                exchange.answer = Answer::Object(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "services \"server-fio\" already exists", "reason": "AlreadyExists",
                    "code": 409,
                }));
            }
        }
    });
    is_refused(&played, &[], "Service server-fio");
    let removed = played.removed();
    assert_eq!(removed, [""; 0]);
}
