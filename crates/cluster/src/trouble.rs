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

/// Reasons of warnings that tell why an object is not made or not used. (Why a
/// pod has no node, its own condition says.)
const WARNINGS: [&str; 6] = [
    "FailedCreate",
    "FailedMount",
    "FailedAttachVolume",
    "FailedBinding",
    "ProvisioningFailed",
    "Evicted",
];

/// Words of what no waiting heals: a quota, a policy of pods (Kubernetes',
/// OpenShift's), a class that is not there, an image's name or policy.
const FINAL: [&str; 7] = [
    "exceeded quota",
    "failed quota",
    "violates PodSecurity",
    "security context constraint",
    "storageclass.storage.k8s.io",
    "InvalidImageName",
    "ErrImageNeverPull",
];

/// Reasons of warnings that Kubernetes gives while it goes on trying.
const RETRIED: [&str; 2] = ["FailedMount", "FailedAttachVolume"];

/// What waiting does for what stands against a start; the less the sooner it is
/// given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hope {
    /// Nothing.
    None,
    /// A node may come, a volume be bound, an image be pulled.
    Little,
    /// Kubernetes tries again by itself, and often succeeds.
    Retried,
}

/// Objects of a run that starts, as the cluster has them.
#[derive(Debug, Clone, Default)]
pub struct StartObjects {
    /// Pods of the part that is waited for.
    pub pods: Vec<Value>,
    /// What makes pods: sets.
    pub makers: Vec<Value>,
    /// Claims.
    pub claims: Vec<Value>,
    /// Events of the whole namespace.
    pub events: Vec<Value>,
}

impl StartObjects {
    /// Whether the object of this id has still something to do for the start.
    fn wants(&self, uid: &str, wanted: usize) -> bool {
        let of = |objects: &[Value]| {
            let mut all = objects.iter();
            all.find(|object| text(object, "/metadata/uid") == uid)
                .cloned()
        };
        if let Some(pod) = of(&self.pods) {
            let mut containers = items(&pod, "/status/containerStatuses");
            return containers.all(|container| container["started"] != true);
        }
        if let Some(claim) = of(&self.claims) {
            return text(&claim, "/status/phase") != "Bound";
        }
        of(&self.makers).is_some() && self.pods.len() < wanted
    }
}

/// What stands against a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Name of the object.
    pub object: String,
    /// What the cluster says of it.
    pub said: String,
    /// What waiting does for it.
    pub hope: Hope,
}

impl Trouble {
    fn new(object: &str, said: String) -> Self {
        let hope = if FINAL.iter().any(|words| said.contains(words)) {
            Hope::None
        } else if RETRIED.iter().any(|reason| said.starts_with(reason)) {
            Hope::Retried
        } else {
            Hope::Little
        };
        Self {
            object: object.to_owned(),
            said,
            hope,
        }
    }

    /// `server-fio-0: …`
    pub fn text(self) -> String {
        format!("{}: {}", self.object, self.said)
    }
}

/// What stands against the start of `wanted` pods, each once. An event stays when
/// what it tells of has healed: it counts only while its object, one of this
/// run, is not what it shall be. Objects are known by their ids, as those of an
/// earlier run had the same names.
pub fn troubles(seen: &StartObjects, wanted: usize) -> Vec<Trouble> {
    let mut all: Vec<Trouble> = Vec::new();
    let mut tell = |object: &str, said: String| {
        let trouble = Trouble::new(object, said);
        if !all.contains(&trouble) {
            all.push(trouble);
        }
    };
    for pod in &seen.pods {
        let name = text(pod, "/metadata/name");
        for condition in items(pod, "/status/conditions") {
            let is = |pointer, value| text(condition, pointer) == value;
            if is("/type", "PodScheduled") && is("/status", "False") {
                tell(name, text(condition, "/message").to_owned());
            }
        }
        for container in items(pod, "/status/containerStatuses") {
            let reason = text(container, "/state/waiting/reason");
            if STUCK.contains(&reason) {
                let message = text(container, "/state/waiting/message");
                let image = text(container, "/image");
                let before = container.pointer("/lastState/terminated").map(ended);
                let before = before.map_or_else(String::new, |ended| format!("; it had {ended}"));
                tell(name, format!("{reason}, image {image}: {message}{before}"));
            }
        }
        if text(pod, "/status/phase") == "Failed" {
            let reason = text(pod, "/status/reason");
            tell(name, format!("{reason}: {}", text(pod, "/status/message")));
        }
    }
    for event in &seen.events {
        let reason = text(event, "/reason");
        let is_warning = text(event, "/type") == "Warning" && WARNINGS.contains(&reason);
        if is_warning && seen.wants(text(event, "/involvedObject/uid"), wanted) {
            let object = text(event, "/involvedObject/name");
            tell(object, format!("{reason}: {}", text(event, "/message")));
        }
    }
    all
}

/// Why a server is not the one any more that a phase began with; `None` when it
/// is.
pub fn lost(pods: &[Value], uid: &str) -> Option<String> {
    let Some(pod) = pods.iter().find(|pod| text(pod, "/metadata/uid") == uid) else {
        return Some("its pod was deleted".to_owned());
    };
    if text(pod, "/status/phase") == "Failed" {
        let reason = text(pod, "/status/reason");
        return Some(format!("{reason}: {}", text(pod, "/status/message")));
    }
    for container in items(pod, "/status/containerStatuses") {
        for state in ["/state/terminated", "/lastState/terminated"] {
            if let Some(terminated) = container.pointer(state) {
                return Some(format!("its container {}", ended(terminated)));
            }
        }
    }
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        return Some("its pod is being deleted".to_owned());
    }
    (!is_ready(pod)).then(|| "it is not ready any more".to_owned())
}

/// How a container came to its end.
fn ended(terminated: &Value) -> String {
    let reason = text(terminated, "/reason");
    let message = text(terminated, "/message");
    let behind = if message.is_empty() { "" } else { ": " };
    let code = &terminated["exitCode"];
    format!("ended: {reason}, exit code {code}{behind}{message}")
}

/// Whether all containers of a pod are ready.
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

    fn seen() -> StartObjects {
        let pod = json!({
            "metadata": {"name": "server-fio-0", "uid": "p"},
            "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            }]},
        });
        let event = json!({
            "type": "Warning", "reason": "ProvisioningFailed",
            "involvedObject": {"name": "dataset-server-fio-0", "uid": "c"},
            "message": "storageclass.storage.k8s.io \"gold\" not found",
        });
        let normal = json!({"type": "Normal", "reason": "FailedMount", "message": "no"});
        let claim = json!({"metadata": {"uid": "c"}, "status": {"phase": "Pending"}});
        StartObjects {
            pods: vec![pod.clone(), pod],
            makers: Vec::new(),
            claims: vec![claim],
            events: vec![event.clone(), event, normal],
        }
    }

    #[test]
    fn the_clusters_own_words_are_told_once() {
        let told = troubles(&seen(), 2);
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0].object, "server-fio-0");
        assert_eq!(told[0].hope, Hope::Little, "a node may come");
        assert!(told[1].said.contains("\"gold\" not found"));
        assert_eq!(told[1].hope, Hope::None);
    }

    #[test]
    fn a_volume_that_is_not_mounted_yet_is_waited_for() {
        let mut seen = seen();
        seen.pods.truncate(1);
        seen.pods[0]["status"] = json!({});
        seen.events = vec![json!({
            "type": "Warning", "reason": "FailedMount", "involvedObject": {"uid": "p"},
            "message": "no relationship found between node 'node0' and this object",
        })];
        let told = troubles(&seen, 1);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].hope, Hope::Retried);
    }

    #[test]
    fn what_has_healed_is_not_told() {
        let mut healed = seen();
        healed.pods.clear();
        healed.claims[0]["status"]["phase"] = json!("Bound");
        assert_eq!(troubles(&healed, 0), []);
        // The set's failure counts while a pod is missing.
        healed.makers = vec![json!({"metadata": {"uid": "s"}})];
        healed.events = vec![json!({
            "type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: q",
            "involvedObject": {"name": "server-fio", "uid": "s"},
        })];
        assert_eq!(troubles(&healed, 0), []);
        assert_eq!(troubles(&healed, 1).len(), 1);
    }

    #[test]
    fn a_lost_server_is_told_with_its_reason() {
        let well = json!({"metadata": {"uid": "a"}, "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"state": {"running": {}}, "lastState": {}}],
        }});
        assert_eq!(lost(std::slice::from_ref(&well), "a"), None);
        assert_eq!(lost(&[], "a").as_deref(), Some("its pod was deleted"));
        let mut killed = well;
        killed["status"]["containerStatuses"][0]["lastState"] =
            json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
        assert_eq!(
            lost(&[killed], "a").as_deref(),
            Some("its container ended: OOMKilled, exit code 137")
        );
    }
}
