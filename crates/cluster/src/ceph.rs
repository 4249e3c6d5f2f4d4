//! Ceph's own caches, as Rook's tools pod can drop them.

use std::time::Duration;

use fathom_fleet::kube::Cluster;

use super::error::ClusterError;
use super::kinds::POD;
use super::trouble::text;

/// Where Rook keeps its tools, and the label they carry
/// (deploy/examples/toolbox.yaml); OpenShift's namespace first.
const PLACES: [&str; 2] = ["openshift-storage", "rook-ceph"];
const LABEL: &str = "app=rook-ceph-tools";
/// The caches of the object stores, and of the file system's servers.
const COMMANDS: [&[&str]; 2] = [
    &["ceph", "tell", "osd.*", "cache", "drop"],
    &["ceph", "tell", "mds.*", "cache", "drop"],
];
const LIMIT: Duration = Duration::from_secs(300);

/// Drops the caches of Ceph's OSDs and MDSs.
///
/// # Errors
/// When there is no tools pod, or one of the commands fails.
pub(super) fn drop_caches(cluster: &Cluster) -> Result<(), ClusterError> {
    for namespace in PLACES {
        let pods = cluster.list(POD, Some(namespace), LABEL, "status.phase=Running")?;
        let Some(pod) = pods.first().map(|pod| text(pod, "/metadata/name")) else {
            continue;
        };
        for argv in COMMANDS {
            let ran = cluster.exec(namespace, pod, argv, None, LIMIT)?;
            // Without a file system there are no MDSs, and ENXIO (6) says so.
            if !matches!(ran.code, Some(0 | 6)) {
                let said = super::cluster_run::last_words(&ran.stderr);
                let what = format!("{} in pod {pod} failed: {said}", argv.join(" "));
                return Err(ClusterError::Command(what));
            }
        }
        return Ok(());
    }
    let what = format!(
        "Ceph's caches cannot be dropped: no pod with the label {LABEL} in {}",
        PLACES.join(" or ")
    );
    Err(ClusterError::Command(what))
}
