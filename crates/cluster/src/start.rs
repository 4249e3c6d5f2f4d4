//! Making objects: waiting for those of earlier runs to be gone, and for pods to
//! be there.

use std::time::{Duration, Instant};

use fathom_fleet::kube::{KubeError, ObjectKind};
use fathom_model::Event;
use serde_json::Value;

use super::background_load;
use super::cluster_run::ClusterRun;
use super::error::ClusterError;
use super::kinds::{CLAIM, DAEMON_SET, EVENT, POD, SERVICE, STATEFUL_SET};
use super::manifests::{MADE_BY, Manifest, RUN};
use super::to_yaml;
use super::trouble::{Hope, StartObjects, Trouble, is_ready, items, text, troubles};

/// How long what stands against a start may stand there: schedulers and
/// provisioners try again.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for what does not heal by itself: a quota is counted anew shortly
/// after an earlier run's objects are gone.
const HASTE: Duration = Duration::from_secs(1);
/// The same for what Kubernetes tries again: a kubelet waits at most 122 s between
/// two tries to attach or mount (maxDurationBeforeRetry in
/// pkg/util/goroutinemap/exponentialbackoff).
const RETRIES: Duration = Duration::from_secs(150);
/// Labels of an object that are told of: its owner is among the first.
const LABELS_MAX: usize = 6;
/// A start of which nothing can be said is told of by then: a node that has
/// stopped says nothing.
const SILENT: Duration = Duration::from_secs(20);
/// How long what an earlier run has left may take to go.
const GOING: Duration = Duration::from_secs(60);

/// The time between two looks at a cluster: short at first, as most of what is
/// waited for takes a second or two, then longer.
pub(super) struct PollPace(Duration);

impl PollPace {
    const FIRST: Duration = Duration::from_millis(100);
    const LAST: Duration = Duration::from_secs(1);

    pub(super) fn new() -> Self {
        Self(Self::FIRST)
    }

    pub(super) fn wait(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 5 / 4).min(Self::LAST);
    }
}

impl ClusterRun<'_, '_> {
    /// Waits until what an earlier run made is gone: names would be the same.
    ///
    /// # Errors
    /// When it is not going, as another run is there or was killed; or when others
    /// have something under a name that this run needs.
    pub(super) fn find_room(&self) -> Result<(), ClusterError> {
        let began = Instant::now();
        let mut pace = PollPace::new();
        loop {
            self.go_on()?;
            let Some((kind, first)) = self.is_room()? else {
                return Ok(());
            };
            // Only what makes the rest again stays for sure.
            let stays = matches!(kind, "StatefulSet" | "DaemonSet") && !is_going(&first);
            if stays || began.elapsed() >= GOING {
                return Err(self.occupied(kind, &first));
            }
            pace.wait();
        }
    }

    /// What an earlier run has left; `None` when there is room for this one.
    ///
    /// # Errors
    /// When there is something of others under a name that this run needs.
    pub(super) fn is_room(&self) -> Result<Option<(&'static str, Value)>, ClusterError> {
        let names = self.objects.names();
        let mut left = None;
        for kind in [STATEFUL_SET, DAEMON_SET, SERVICE, POD, CLAIM] {
            // All that is there: what is not Fathom's has no label to ask for.
            for object in self.cluster.list(kind, Some(self.namespace()), "", "")? {
                if label(&object, RUN) == self.objects.run {
                    continue;
                }
                if label(&object, MADE_BY.0) == MADE_BY.1 {
                    left.get_or_insert((kind.kind, object));
                } else if names.contains(&named(kind, &object)) {
                    return Err(self.foreign(kind, &object));
                }
            }
        }
        Ok(left)
    }

    /// That the claims of a set are those that were made for this run: a set takes
    /// one that somebody makes before it does.
    ///
    /// # Errors
    /// The first one that is not.
    fn own_claims(&self) -> Result<(), ClusterError> {
        let names = self.objects.names();
        for claim in self.cluster.list(CLAIM, Some(self.namespace()), "", "")? {
            let is_ours = label(&claim, RUN) == self.objects.run;
            if !is_ours && names.contains(&named(CLAIM, &claim)) {
                return Err(self.foreign(CLAIM, &claim));
            }
        }
        Ok(())
    }

    pub(super) fn occupied(&self, kind: &str, object: &Value) -> ClusterError {
        let name = text(object, "/metadata/name");
        ClusterError::Occupied {
            namespace: self.namespace().to_owned(),
            what: format!("{kind} {name} of run {}", label(object, RUN)),
        }
    }

    fn foreign(&self, kind: ObjectKind, object: &Value) -> ClusterError {
        ClusterError::Foreign {
            namespace: self.namespace().to_owned(),
            kind: kind.kind.to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            owner: owner(object),
        }
    }

    /// Makes an object and keeps it as it was asked for. What others made
    /// meanwhile under its name stays as it is.
    pub(super) fn make(&self, made: &Manifest) -> Result<(), ClusterError> {
        let Manifest {
            folder,
            name,
            object,
        } = made;
        self.keep(&format!("{folder}/{name}.yaml"), to_yaml(object).as_bytes())?;
        let error = match self.cluster.create(object) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match text(object, "/kind") {
            // Whoever made it: it is there.
            "Namespace" if error.is_conflict() => Ok(()),
            _ if error.is_conflict() => {
                // Theirs, or another run's.
                let left = self.is_room()?;
                Err(left.map_or(error.into(), |(kind, first)| self.occupied(kind, &first)))
            }
            _ => Err(error.into()),
        }
    }

    /// Waits until so many pods of a part are ready.
    pub(super) fn wait_for(
        &mut self,
        part: &'static str,
        component: &str,
        wanted: usize,
    ) -> Result<Vec<Value>, ClusterError> {
        let limit = Duration::from_secs(self.objects.parameters.maxwait_s);
        let began = Instant::now();
        let mut since: Option<Instant> = None;
        let mut is_told = false;
        let mut pace = PollPace::new();
        loop {
            self.go_on()?;
            let pods = self.pods(component)?;
            if pods.len() >= wanted && pods.iter().all(is_ready) {
                // Only these have claims.
                if matches!(component, "server" | background_load::PART) {
                    self.own_claims()?;
                }
                return Ok(pods);
            }
            let seen = self.see(pods)?;
            let troubles = troubles(&seen, wanted);
            since = match troubles.is_empty() {
                true => None,
                false => since.or(Some(Instant::now())),
            };
            let patience = troubles.iter().map(|trouble| trouble.hope).min();
            let patience = patience.map_or(PATIENCE, patience_with);
            let stands = since.map_or(Duration::ZERO, |since| since.elapsed());
            let mut troubles: Vec<String> = troubles.into_iter().map(Trouble::text).collect();
            if stands >= patience || began.elapsed() >= limit {
                if troubles.is_empty() {
                    let ready = seen.pods.iter().filter(|pod| is_ready(pod)).count();
                    let after = limit.as_secs();
                    troubles.push(format!("{ready} of {wanted} are ready after {after} s"));
                }
                return Err(ClusterError::Start { part, troubles });
            }
            if !is_told && (stands >= PATIENCE || began.elapsed() >= SILENT) {
                is_told = true;
                let waiting = waiting(&seen.pods, wanted);
                troubles.extend(waiting.filter(|_| troubles.is_empty()));
                let text = format!("the {part} wait: {}", troubles.join("; "));
                self.tell(Event::Note { text });
            }
            pace.wait();
        }
    }

    /// What there is of this run, beside the pods that are waited for.
    pub(super) fn see(&self, pods: Vec<Value>) -> Result<StartObjects, KubeError> {
        let namespace = Some(self.namespace());
        let labels = format!("{RUN}={}", self.objects.run);
        let list = |kind| self.cluster.list(kind, namespace, &labels, "");
        Ok(StartObjects {
            pods,
            makers: list(STATEFUL_SET)?,
            claims: list(CLAIM)?,
            events: self.cluster.list(EVENT, namespace, "", "type=Warning")?,
        })
    }

    /// Waits for a pod on each node that a daemon set selects.
    ///
    /// # Errors
    /// When they do not start, or no node is selected.
    pub(super) fn wait_for_daemons(
        &mut self,
        part: &'static str,
        component: &str,
    ) -> Result<Vec<Value>, ClusterError> {
        let began = Instant::now();
        let mut pace = PollPace::new();
        loop {
            self.go_on()?;
            match self.daemons_wanted(component)? {
                Some(0) => {
                    let troubles = vec!["no node is selected for them".to_owned()];
                    return Err(ClusterError::Start { part, troubles });
                }
                Some(wanted) => {
                    return self.wait_for(part, component, wanted);
                }
                None if began.elapsed() >= GOING => {
                    let troubles = vec!["their daemon set was not looked at".to_owned()];
                    return Err(ClusterError::Start { part, troubles });
                }
                None => pace.wait(),
            }
        }
    }

    /// How many pods a daemon set is to have, once the cluster has counted them.
    pub(super) fn daemons_wanted(&self, component: &str) -> Result<Option<usize>, KubeError> {
        let labels = format!(
            "{RUN}={},app.kubernetes.io/component={component}",
            self.objects.run
        );
        let sets = self
            .cluster
            .list(DAEMON_SET, Some(self.namespace()), &labels, "")?;
        let status = sets.first().map(|set| &set["status"]);
        // Before the controller has seen the set, its numbers mean nothing.
        let counted = status.filter(|status| status["observedGeneration"].is_u64());
        let wanted = counted.and_then(|status| status["desiredNumberScheduled"].as_u64());
        Ok(wanted.and_then(|wanted| usize::try_from(wanted).ok()))
    }
}

fn patience_with(hope: Hope) -> Duration {
    match hope {
        Hope::None => HASTE,
        Hope::Little => PATIENCE,
        Hope::Retried => RETRIES,
    }
}

/// Which pods are not ready, and where they are to run.
fn waiting(pods: &[Value], wanted: usize) -> Option<String> {
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let waiting: Vec<String> = pods
        .iter()
        .filter(|pod| !is_ready(pod))
        .map(|pod| {
            let node = match text(pod, "/spec/nodeName") {
                "" => "no node yet".to_owned(),
                node => format!("node {node}"),
            };
            let name = text(pod, "/metadata/name");
            format!("{name} ({node}, {})", text(pod, "/status/phase"))
        })
        .collect();
    let told = format!(
        "{ready} of {wanted} are ready; not yet: {}",
        waiting.join(", ")
    );
    (ready < wanted).then_some(told)
}

/// Whose an object is, as far as it says: its labels, and what made it.
fn owner(object: &Value) -> String {
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .take(LABELS_MAX)
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let mut told = match labels.is_empty() {
        true => "no labels".to_owned(),
        false => format!("labels {}", labels.join(", ")),
    };
    for owner in items(object, "/metadata/ownerReferences") {
        let (kind, name) = (text(owner, "/kind"), text(owner, "/name"));
        told.push_str(&format!("; owner {kind} {name}"));
    }
    // The cluster's own rules leave nothing else in them.
    told.replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?")
}

fn named(kind: ObjectKind, object: &Value) -> (String, String) {
    let name = text(object, "/metadata/name");
    (kind.kind.to_owned(), name.to_owned())
}

/// Whether an object is being removed.
pub(super) fn is_going(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

fn label<'v>(object: &'v Value, name: &str) -> &'v str {
    object["metadata"]["labels"][name]
        .as_str()
        .unwrap_or_default()
}
