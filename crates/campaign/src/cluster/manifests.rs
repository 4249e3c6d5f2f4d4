//! The objects of a benchmark, with the least privileges that work: everything
//! is labelled, nothing listens outside its pod, only what drops caches is
//! privileged.

use serde_json::{Value, json};

use super::Parameters;
use super::image::PROGRAM;

/// Label that everything carries which Fathom makes.
pub const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "fathom");
/// Label that tells the run.
pub const RUN: &str = "fathom/run";
/// Name of the client's pod.
pub const CLIENT: &str = "client";
/// Port of fio's server (server.h, FIO_NET_PORT).
pub const FIO_PORT: u16 = 8765;
/// Where pods that take statistics have the `/proc` of their node.
pub const HOST_PROC: &str = "/host/proc";

/// Where a server has its volume.
pub const DATASET: &str = "/dataset";

/// The servers of one run.
#[derive(Debug, Clone)]
pub struct Objects<'p> {
    /// What is asked for.
    pub parameters: &'p Parameters,
    /// Name of the run; a DNS label.
    pub run: &'p str,
    /// Image of the servers.
    pub image: &'p str,
}

impl Objects<'_> {
    fn labels(&self, part: &str) -> Value {
        json!({
            MADE_BY.0: MADE_BY.1,
            RUN: self.run,
            "app.kubernetes.io/component": part,
        })
    }

    fn metadata(&self, name: &str, part: &str) -> Value {
        json!({
            "name": name,
            "namespace": self.parameters.namespace,
            "labels": self.labels(part),
        })
    }

    /// The namespace, where it has to be made.
    #[must_use]
    pub fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.parameters.namespace, "labels": {MADE_BY.0: MADE_BY.1}},
        })
    }

    /// What runs on the servers: `fio` or `fathom`.
    fn kind(&self) -> &'static str {
        match self.parameters.is_by_agent() {
            true => "fathom",
            false => "fio",
        }
    }

    /// Folder of the record with what belongs to the servers.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("server_{}", self.kind())
    }

    /// Name of the file of an object of the servers, without its ending.
    #[must_use]
    pub fn file(&self, object: &str) -> String {
        format!("{}server_{object}", self.kind())
    }

    fn servers_name(&self) -> String {
        format!("server-{}", self.kind())
    }

    /// The headless service that gives each server its name.
    #[must_use]
    pub fn service(&self) -> Value {
        let mut service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(&self.servers_name(), "server"),
            "spec": {"clusterIP": "None", "selector": self.labels("server")},
        });
        if !self.parameters.is_by_agent() {
            service["spec"]["ports"] = json!([{"port": FIO_PORT}]);
        }
        service
    }

    /// The servers, all started at once, each with a claim of its own.
    #[must_use]
    pub fn servers(&self) -> Value {
        let mut pod = json!({
            // A server needs nothing of the cluster.
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 2,
            "containers": [self.server()],
        });
        if self.parameters.is_by_agent() {
            pod["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
        }
        if let Some((key, value)) = &self.parameters.server_node_label {
            pod["nodeSelector"] = json!({key.as_str(): value});
        }
        let claim = (
            self.parameters.claim_bytes,
            self.parameters.storageclass.as_deref(),
        );
        self.stateful_set(
            (&self.servers_name(), "server"),
            self.parameters.ninstances,
            &pod,
            claim,
        )
    }

    /// Pods of one kind with a name and a part, all started at once, each with a
    /// claim of so many bytes in a storage class.
    pub(super) fn stateful_set(
        &self,
        (name, part): (&str, &str),
        replicas: u32,
        pod: &Value,
        (claim_bytes, class): (u64, Option<&str>),
    ) -> Value {
        let mut claim = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{}Gi", claim_bytes >> 30)}},
        });
        if let Some(class) = class {
            claim["storageClassName"] = json!(class);
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": self.metadata(name, part),
            "spec": {
                "serviceName": name,
                "replicas": replicas,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": self.labels(part)},
                "template": {"metadata": {"labels": self.labels(part)}, "spec": pod},
                "volumeClaimTemplates": [{
                    "metadata": {"name": "dataset", "labels": self.labels("dataset")},
                    "spec": claim,
                }],
            },
        })
    }

    fn server(&self) -> Value {
        if self.parameters.is_by_agent() {
            return self.waiting_server();
        }
        // 8765 is 0x223D, in state 0A, LISTEN (proc(5)). A probe that connects
        // would open a session of fio.
        let listens = format!(":{FIO_PORT:04X} 00000000:0000 0A");
        json!({
            "name": "fio",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["fio", "--server"],
            "workingDir": DATASET,
            "ports": [{"containerPort": FIO_PORT}],
            "readinessProbe": {
                "exec": {"command": ["grep", "-q", listens, "/proc/net/tcp"]},
                "periodSeconds": 1,
            },
            "securityContext": unprivileged(),
            "volumeMounts": [{"name": "dataset", "mountPath": DATASET}],
        })
    }

    /// A container in which Fathom waits for what is asked of it through the
    /// cluster. Nothing listens, so that there is nothing to be ready.
    fn waiting_server(&self) -> Value {
        let mut security = unprivileged();
        security["readOnlyRootFilesystem"] = json!(true);
        json!({
            "name": "fathom",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [PROGRAM, "pod", "wait"],
            "workingDir": DATASET,
            "securityContext": security,
            "volumeMounts": [
                {"name": "dataset", "mountPath": DATASET},
                // Job files and raw outputs are there while a phase runs.
                {"name": "work", "mountPath": "/tmp"},
            ],
        })
    }

    /// The pod from which the phases are told to the servers. It does nothing by
    /// itself.
    #[must_use]
    pub fn client(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self.metadata(CLIENT, "client"),
            "spec": {
                "automountServiceAccountToken": false,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "fio",
                    "image": self.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sleep", "infinity"],
                    "workingDir": "/client",
                    "securityContext": unprivileged(),
                    "volumeMounts": [{"name": "work", "mountPath": "/client"}],
                }],
                "volumes": [{"name": "work", "emptyDir": {}}],
            },
        })
    }

    /// The pods that drop the page cache of their nodes when they are told to.
    #[must_use]
    pub fn cache_droppers(&self) -> Value {
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "drop",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "command": self.waits(),
                // /proc/sys is read-only in any other container.
                "securityContext": {"privileged": true},
            }],
        });
        if let Some((key, value)) = &self.parameters.dropcaches_node_label {
            pod["nodeSelector"] = json!({key.as_str(): value});
        }
        self.on_each_node("drop-caches", &pod)
    }

    /// The pods whose node's `/proc` is read while the phases run. It shows all
    /// processes of the node, so that no other name space of the node is needed;
    /// block devices are the node's own in the `/sys` of any pod.
    #[must_use]
    pub fn observers(&self) -> Value {
        let mut security = unprivileged();
        security["readOnlyRootFilesystem"] = json!(true);
        security["runAsNonRoot"] = json!(true);
        // Nobody: everything that is read is open to everybody.
        security["runAsUser"] = json!(65_534);
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            // Nodes of storage are often kept for storage.
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "stats",
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "command": self.waits(),
                "securityContext": security,
                "volumeMounts": [{"name": "proc", "mountPath": HOST_PROC, "readOnly": true}],
            }],
            "volumes": [{"name": "proc", "hostPath": {"path": "/proc", "type": "Directory"}}],
        });
        if let Some((key, value)) = &self.parameters.stats_node_label {
            pod["nodeSelector"] = json!({key.as_str(): value});
        }
        self.on_each_node("stats", &pod)
    }

    /// The command of a pod that does nothing by itself.
    fn waits(&self) -> Value {
        match self.parameters.is_by_agent() {
            true => json!([PROGRAM, "pod", "wait"]),
            false => json!(["sleep", "infinity"]),
        }
    }

    fn on_each_node(&self, name: &str, pod: &Value) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": self.metadata(name, name),
            "spec": {
                "selector": {"matchLabels": self.labels(name)},
                "template": {"metadata": {"labels": self.labels(name)}, "spec": pod},
            },
        })
    }
}

/// No rights beyond those of an ordinary process.
pub(super) fn unprivileged() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Given, Workload, to_yaml};
    use super::*;

    #[test]
    fn servers_have_the_least_privileges_and_their_labels() {
        let given = Given {
            ninstances: Some(3),
            server_node_label: Some("disk=fast".into()),
            ..Given::default()
        };
        let runs = given.runs(Workload::Seq, &Given::default()).unwrap();
        let objects = Objects {
            parameters: &runs[0],
            run: "r1",
            image: "localhost/fio:test",
        };
        let yaml = to_yaml(&objects.servers());
        for told in [
            "replicas: 3",
            "storage: \"40Gi\"",
            "disk: fast",
            "fathom/run: r1",
        ] {
            assert!(yaml.contains(told), "{told}: {yaml}");
        }
        assert!(!yaml.contains("privileged: true"));
        assert!(to_yaml(&objects.cache_droppers()).contains("privileged: true"));
        let observers = to_yaml(&objects.observers());
        assert!(!observers.contains("privileged: true") && !observers.contains("hostPID"));
        assert!(observers.contains("readOnly: true") && observers.contains("runAsNonRoot: true"));
    }
}
