//! Removing what benchmarks have made, known by its labels.

use fathom_fleet::kube::{Cluster, KubeError};

use super::going::{CLAIM, DAEMON_SET, POD, SERVICE, STATEFUL_SET};
use super::manifests::{MADE_BY, RUN};
use super::start::{Pace, is_going};
use super::trouble::text;

/// How often what is there is looked at again: a controller that has not heard of
/// the end of its set may still make a pod or a claim.
const LOOKS: u32 = 5;

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
    let mut pace = Pace::new();
    for _ in 0..LOOKS {
        let before = removed.len();
        // Claims last: they are in use until their pods are gone.
        for kind in [DAEMON_SET, STATEFUL_SET, SERVICE, POD, CLAIM] {
            for object in cluster.list(kind, Some(namespace), &labels, "")? {
                let name = text(&object, "/metadata/name");
                if !is_going(&object) {
                    cluster.delete(kind, Some(namespace), name)?;
                    removed.push(format!("{} {name}", kind.kind));
                }
            }
        }
        if removed.len() == before {
            break;
        }
        pace.wait();
    }
    Ok(removed)
}
