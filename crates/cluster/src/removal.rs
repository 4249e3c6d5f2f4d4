//! Removing what benchmarks have made, known by its labels.

use std::time::{Duration, Instant};

use fathom_fleet::kube::{Cluster, KubeError};

use super::kinds::{CLAIM, DAEMON_SET, POD, SERVICE, STATEFUL_SET};
use super::manifests::{MADE_BY, RUN};
use super::start::{PollPace, is_going};
use super::trouble::text;

/// How long nothing new may have come before what is there is all: a controller
/// that has not heard of the end of its set may still make a pod or a claim, and
/// one look that finds nothing says nothing about it.
const QUIET: Duration = Duration::from_secs(2);
/// When it is enough: somebody makes them anew.
const LONGEST: Duration = Duration::from_secs(60);

/// Removes what benchmarks have made in a namespace: of one run, or of all.
/// Returns what was removed; it may take some seconds more until it is gone.
///
/// # Errors
/// When something could not be removed.
pub fn cleanup(
    cluster: &Cluster,
    namespace: &str,
    run: Option<&str>,
) -> Result<Vec<String>, KubeError> {
    let mut labels = format!("{}={}", MADE_BY.0, MADE_BY.1);
    if let Some(run) = run {
        labels.push_str(&format!(",{RUN}={run}"));
    }
    let mut removed = Vec::new();
    let mut pace = PollPace::new();
    let began = Instant::now();
    let mut last = None;
    loop {
        let before = removed.len();
        // Claims last: they are in use until their pods are gone.
        for kind in [DAEMON_SET, STATEFUL_SET, SERVICE, POD, CLAIM] {
            for object in cluster.list(kind, Some(namespace), &labels, "")? {
                let (name, uid) = (
                    text(&object, "/metadata/name"),
                    text(&object, "/metadata/uid"),
                );
                if !is_going(&object) {
                    cluster.delete(kind, Some(namespace), name, uid)?;
                    removed.push(format!("{} {name}", kind.kind));
                }
            }
        }
        if removed.len() > before {
            last = Some(Instant::now());
        }
        let is_quiet = last.is_none_or(|last| last.elapsed() >= QUIET);
        if is_quiet || began.elapsed() >= LONGEST {
            return Ok(removed);
        }
        pace.wait();
    }
}
