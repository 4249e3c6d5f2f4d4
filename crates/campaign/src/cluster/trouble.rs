//! What keeps the servers of a benchmark from starting, in the cluster's own
//! words: told within seconds, not when the time is over.

use serde_json::Value;

/// Reasons for which a container waits and will go on waiting.
const STUCK: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];

/// Reasons of warnings that tell why an object is not made or not used.
const WARNINGS: [&str; 7] = [
    "FailedCreate",
    "FailedScheduling",
    "FailedMount",
    "FailedAttachVolume",
    "FailedBinding",
    "ProvisioningFailed",
    "Evicted",
];

/// What stands against the start of pods, each once: `server-fio-0: …`.
/// `events` are those of the objects of this run only.
#[must_use]
pub fn troubles(pods: &[Value], events: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    let mut tell = |told: String| {
        if !all.contains(&told) {
            all.push(told);
        }
    };
    for pod in pods {
        let name = text(pod, "/metadata/name");
        for condition in items(pod, "/status/conditions") {
            let is = |pointer, value| text(condition, pointer) == value;
            if is("/type", "PodScheduled") && is("/status", "False") {
                tell(format!("{name}: {}", text(condition, "/message")));
            }
        }
        for container in items(pod, "/status/containerStatuses") {
            let reason = text(container, "/state/waiting/reason");
            if STUCK.contains(&reason) {
                let message = text(container, "/state/waiting/message");
                let image = text(container, "/image");
                tell(format!("{name}: {reason}, image {image}: {message}"));
            }
        }
        if text(pod, "/status/phase") == "Failed" {
            let reason = text(pod, "/status/reason");
            tell(format!(
                "{name}: {reason}: {}",
                text(pod, "/status/message")
            ));
        }
    }
    for event in events {
        let reason = text(event, "/reason");
        if text(event, "/type") == "Warning" && WARNINGS.contains(&reason) {
            let object = text(event, "/involvedObject/name");
            tell(format!("{object}: {reason}: {}", text(event, "/message")));
        }
    }
    all
}

/// Whether all containers of a pod are ready.
#[must_use]
pub fn is_ready(pod: &Value) -> bool {
    let ready = |condition: &Value| {
        text(condition, "/type") == "Ready" && text(condition, "/status") == "True"
    };
    items(pod, "/status/conditions").any(ready)
}

/// A text of an object; empty when there is none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The items of a list of an object; none when there is none.
pub(super) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_clusters_own_words_are_told_once() {
        let pod = json!({
            "metadata": {"name": "server-fio-0"},
            "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            }]},
        });
        let event = json!({
            "type": "Warning", "reason": "ProvisioningFailed", "involvedObject": {"name": "dataset-server-fio-0"},
            "message": "storageclass.storage.k8s.io \"gold\" not found",
        });
        let normal = json!({"type": "Normal", "reason": "FailedMount", "message": "no"});
        let told = troubles(&[pod.clone(), pod], &[event.clone(), event, normal]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("server-fio-0: 0/1 nodes"));
        assert!(told[1].contains("\"gold\" not found"));
    }
}
