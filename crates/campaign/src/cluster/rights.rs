//! What one has to be allowed to do in a cluster, asked before anything is made.

use super::{DropCaches, Parameters};

/// A right: verb, API group, resource, and whether it is of the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// `create`, `get`, `patch`, …
    pub verb: &'static str,
    /// Empty for the core group.
    pub group: &'static str,
    /// Resource, with its subresource: `pods/exec`.
    pub resource: &'static str,
    /// Whether it is not of a namespace.
    pub of_cluster: bool,
}

const fn right(verb: &'static str, group: &'static str, resource: &'static str) -> Right {
    Right {
        verb,
        group,
        resource,
        of_cluster: false,
    }
}

/// What every benchmark needs in its namespace.
const ALWAYS: [Right; 13] = [
    right("patch", "", "services"),
    right("delete", "", "services"),
    right("patch", "apps", "statefulsets"),
    right("delete", "apps", "statefulsets"),
    right("patch", "", "pods"),
    right("list", "", "pods"),
    right("delete", "", "pods"),
    right("create", "", "pods/exec"),
    right("get", "", "pods/log"),
    right("list", "", "persistentvolumeclaims"),
    right("delete", "", "persistentvolumeclaims"),
    right("list", "", "events"),
    right("list", "apps", "statefulsets"),
];

/// What a benchmark needs.
#[must_use]
pub fn needed(parameters: &Parameters, makes_namespace: bool) -> Vec<Right> {
    let mut all = ALWAYS.to_vec();
    let drops = parameters.dropcaches.contains(&DropCaches::PageCache);
    if drops || parameters.stats_s > 0 {
        all.push(right("patch", "apps", "daemonsets"));
        all.push(right("delete", "apps", "daemonsets"));
    }
    if makes_namespace {
        all.push(Right {
            of_cluster: true,
            ..right("patch", "", "namespaces")
        });
    }
    all
}
