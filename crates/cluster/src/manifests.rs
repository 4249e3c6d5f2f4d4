//! The objects of a benchmark, with the least privileges that work: everything
//! is labelled, nothing listens outside its pod, only what drops caches is
//! privileged.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::image::PROGRAM;
use super::size::in_claim;
use super::{DropCaches, Parameters};

/// Label that everything carries which Fathom makes.
pub const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "fathom");
/// Label that tells the run.
pub const RUN: &str = "fathom/run";
/// Folder of the record with what belongs to a load in the background.
pub(super) const CALM: &str = "server_calm";
/// Name of the client's pod.
pub const CLIENT: &str = "client";
/// Port of fio's server (server.h, FIO_NET_PORT).
pub const FIO_PORT: u16 = 8765;
/// Where pods that take statistics have the `/proc` of their node.
pub const HOST_PROC: &str = "/host/proc";

/// Where a server has its volume.
pub const DATASET: &str = "/dataset";

/// An object of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Folder of the record.
    pub folder: String,
    /// Name of its file there, without its ending.
    pub name: String,
    /// The object.
    pub object: Value,
}

impl Manifest {
    fn new(folder: &str, name: &str, object: Value) -> Self {
        Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            object,
        }
    }

    /// Name of its file among those of all the others, without its ending.
    pub fn alone(&self) -> String {
        match self.name.as_str() {
            "daemonset" => format!("{}_{}", self.folder, self.name),
            name => name.to_owned(),
        }
    }
}

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
    /// Everything that is made for a run but its namespace, in this order, each
    /// with the folder of the record and the name of the file that it is kept in.
    pub fn all(&self) -> Vec<Manifest> {
        let folder = self.folder();
        let mut all = vec![
            Manifest::new(&folder, &self.file("service"), self.service()),
            Manifest::new(&folder, &self.file("statefulset"), self.servers()),
        ];
        let mut add = |folder, name, object| all.push(Manifest::new(folder, name, object));
        if self.parameters.dropcaches.contains(&DropCaches::PageCache) {
            add("drop_caches", "daemonset", self.cache_droppers());
        }
        if self.parameters.stats().is_some() {
            add("stats", "daemonset", self.observers());
        }
        if let Some(calm) = &self.parameters.calm {
            add(CALM, "calm_statefulset", self.background_servers(calm));
        }
        if !self.parameters.is_by_agent() {
            add("client", "client_pod", self.client());
        }
        all
    }

    /// Kind and name of all that a run makes, and of the pods and claims that the
    /// cluster makes for its sets: what stands there already, the sets would take.
    pub fn names(&self) -> BTreeSet<(String, String)> {
        let mut names = BTreeSet::new();
        for Manifest { object, .. } in self.all() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let (kind, name) = (kind.unwrap_or_default(), name.unwrap_or_default());
            names.insert((kind.to_owned(), name.to_owned()));
            let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64);
            for place in 0..replicas.unwrap_or(0) {
                let pod = format!("{name}-{place}");
                names.insert(("PersistentVolumeClaim".to_owned(), format!("dataset-{pod}")));
                names.insert(("Pod".to_owned(), pod));
            }
        }
        names
    }

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
    pub fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.parameters.namespace, "labels": {MADE_BY.0: MADE_BY.1}},
        })
    }

    /// The same, as it is kept.
    pub fn own_namespace(&self) -> Manifest {
        Manifest::new(&self.folder(), "namespace", self.namespace())
    }

    /// What runs on the servers: `fio` or `fathom`.
    fn kind(&self) -> &'static str {
        match self.parameters.is_by_agent() {
            true => "fathom",
            false => "fio",
        }
    }

    /// Folder of the record with what belongs to the servers.
    pub fn folder(&self) -> String {
        format!("server_{}", self.kind())
    }

    /// Name of the file of an object of the servers, without its ending.
    pub fn file(&self, object: &str) -> String {
        format!("{}server_{object}", self.kind())
    }

    fn servers_name(&self) -> String {
        format!("server-{}", self.kind())
    }

    /// The headless service that gives each server its name.
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
            "resources": {"requests": {"storage": in_claim(claim_bytes)}},
        });
        if let Some(class) = class {
            claim["storageClassName"] = json!(class);
        }
        let mut pod = pod.clone();
        self.parameters.resources.put(&mut pod);
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
    pub fn client(&self) -> Value {
        let mut pod = json!({
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
        });
        self.parameters.resources.put(&mut pod);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self.metadata(CLIENT, "client"),
            "spec": pod,
        })
    }

    /// The pods that drop the page cache of their nodes when they are told to.
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
        let mut pod = pod.clone();
        self.parameters.resources.put(&mut pod);
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
    use super::super::{BenchWorkload, Given, to_yaml};
    use super::*;

    #[test]
    fn every_pod_has_the_resources_that_are_asked_for() {
        let given: Given = toml::from_str(
            "requests = 'cpu=2'\nlimits = 'memory=4Gi'\nstats_s = 9\ndropcaches = ['pagecache']\n[calm]\n",
        )
        .unwrap();
        let runs = given.runs(BenchWorkload::Seq, &Given::default()).unwrap();
        let objects = Objects {
            parameters: &runs[0],
            run: "r1",
            image: "i",
        };
        let wanted = json!({"requests": {"cpu": "2"}, "limits": {"memory": "4Gi"}});
        let mut pods = 0;
        for Manifest { object, .. } in objects.all() {
            let of_set = object.pointer("/spec/template/spec/containers/0/resources");
            let of_pod = object.pointer("/spec/containers/0/resources");
            if object["kind"] != "Service" {
                assert_eq!(of_set.or(of_pod), Some(&wanted), "{object}");
                pods += 1;
            }
        }
        assert_eq!(pods, 5);
    }

    #[test]
    fn servers_have_the_least_privileges_and_their_labels() {
        let given = Given {
            ninstances: Some(3),
            server_node_label: Some("disk=fast".into()),
            ..Given::default()
        };
        let runs = given.runs(BenchWorkload::Seq, &Given::default()).unwrap();
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
