//! Objects of others under the names that a run needs.

use serde_json::{Value, json};

use crate::cluster::{Place, stderr};

/// An object of somebody else.
fn theirs(place: &Place, api_version: &str, kind: &str, name: &str, spec: &Value) {
    place.apply(&json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": place.namespace, "labels": {"app": "shop"}},
        "spec": spec,
    }));
}

fn pod(image: &str) -> Value {
    json!({"containers": [{"name": "a", "image": image, "command": ["sleep", "infinity"]}]})
}

#[test]
fn what_others_have_is_neither_taken_nor_removed() {
    let place = Place::made("fathom-foreign");
    let labels = json!({"app": "shop"});
    let selector = json!({"matchLabels": labels});
    let template = json!({"metadata": {"labels": labels}, "spec": pod("localhost/fio:test")});
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand-of-others",
        "resources": {"requests": {"storage": "1Gi"}},
    });
    let set = json!({
        "serviceName": "shop", "replicas": 0, "selector": selector, "template": template,
    });
    let daemons = json!({"selector": selector, "template": {
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"disk": "none"}, "containers": pod("localhost/fio:test")["containers"]},
    }});
    let service = json!({"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]});
    let drop: &[&str] = &["--dropcaches", "pagecache"];
    for (api_version, kind, name, spec, more) in [
        ("v1", "Service", "server-fio", &service, &[][..]),
        ("apps/v1", "StatefulSet", "server-fio", &set, &[]),
        ("apps/v1", "DaemonSet", "drop-caches", &daemons, drop),
        ("v1", "Pod", "client", &pod("localhost/fio:test"), &[]),
        (
            "v1",
            "PersistentVolumeClaim",
            "dataset-server-fio-0",
            &claim,
            &[],
        ),
    ] {
        theirs(&place, api_version, kind, name, spec);
        let id = [
            "get",
            kind,
            name,
            "-o",
            "jsonpath={.metadata.uid} {.metadata.labels}",
        ];
        let before = place.kubectl(&id);
        let output = place.run("seq", more);
        assert_eq!(output.status.code(), Some(4), "{kind}: {output:?}");
        let said = stderr(&output);
        let told = format!("there is {kind} {name}, which Fathom did not make (labels app=shop");
        assert!(said.contains(&told), "{told}: {said}");
        assert_eq!(place.left(), "", "{kind}: nothing was made");
        assert_eq!(place.kubectl(&id), before);
        place.kubectl(&["delete", kind, name, "--wait=true"]);
    }
}
