//! Waiting for pods to be there, and for those of earlier runs to be gone.

use std::time::{Duration, Instant};

use fathom_fleet::kube::{Kind, KubeError};
use fathom_model::Event;
use serde_json::Value;

use super::going::{CLAIM, ClusterError, DAEMON_SET, EVENT, Going, POD, STATEFUL_SET};
use super::manifests::{MADE_BY, RUN};
use super::trouble::{Hope, Seen, Trouble, is_ready, text, troubles};

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
/// How long what an earlier run has left may take to go.
const GOING: Duration = Duration::from_secs(60);

/// The time between two looks at a cluster: short at first, as most of what is
/// waited for takes a second or two, then longer.
pub(super) struct Pace(Duration);

impl Pace {
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

impl Going<'_, '_> {
    /// Waits until what an earlier run made is gone: names would be the same.
    ///
    /// # Errors
    /// When it is not going, as another run is there or was killed.
    pub(super) fn find_room(&self) -> Result<(), ClusterError> {
        let labels = format!("{}={}", MADE_BY.0, MADE_BY.1);
        let namespace = self.namespace();
        let list = |kind: Kind| self.cluster.list(kind, Some(namespace), &labels, "");
        let began = Instant::now();
        let mut pace = Pace::new();
        loop {
            self.go_on()?;
            let mut there = Vec::new();
            for kind in [STATEFUL_SET, POD, CLAIM] {
                there.extend(list(kind)?.into_iter().map(|object| (kind, object)));
            }
            let Some((kind, first)) = there.first() else {
                return Ok(());
            };
            // Only what makes the rest again stays for sure.
            let stays = *kind == STATEFUL_SET && !is_going(first);
            if stays || began.elapsed() >= GOING {
                return Err(ClusterError::Occupied {
                    namespace: namespace.to_owned(),
                    what: format!(
                        "{} {} of run {}",
                        kind.kind,
                        text(first, "/metadata/name"),
                        label(first, RUN)
                    ),
                });
            }
            pace.wait();
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
        let mut pace = Pace::new();
        loop {
            self.go_on()?;
            let pods = self.pods(component)?;
            if pods.len() >= wanted && pods.iter().all(is_ready) {
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
            if !is_told && stands >= PATIENCE {
                is_told = true;
                let text = format!("the {part} wait: {}", troubles.join("; "));
                self.tell(Event::Note { text });
            }
            pace.wait();
        }
    }

    /// What there is of this run, beside the pods that are waited for.
    pub(super) fn see(&self, pods: Vec<Value>) -> Result<Seen, KubeError> {
        let namespace = Some(self.namespace());
        let labels = format!("{RUN}={}", self.objects.run);
        let list = |kind| self.cluster.list(kind, namespace, &labels, "");
        Ok(Seen {
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
        let mut pace = Pace::new();
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

/// Whether an object is being removed.
pub(super) fn is_going(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

fn label<'v>(object: &'v Value, name: &str) -> &'v str {
    object["metadata"]["labels"][name]
        .as_str()
        .unwrap_or_default()
}
