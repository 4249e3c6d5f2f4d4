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

/// What every benchmark needs in its namespace. Objects are made,
/// never changed; a command in a pod `get` or `create`, as the
/// cluster's version has it.
const ALWAYS: [Right; 15] = [
    right("list", "", "services"),
    right("create", "", "services"),
    right("delete", "", "services"),
    right("list", "", "pods"),
    right("delete", "", "pods"),
    right("create", "", "pods/exec"),
    right("get", "", "pods/exec"),
    right("get", "", "pods/log"),
    right("list", "", "persistentvolumeclaims"),
    right("delete", "", "persistentvolumeclaims"),
    right("list", "", "events"),
    right("list", "apps", "statefulsets"),
    right("create", "apps", "statefulsets"),
    right("delete", "apps", "statefulsets"),
    right("list", "apps", "daemonsets"),
];

/// What makes the client of fio servers.
const CLIENT: [Right; 1] = [right("create", "", "pods")];

/// What makes and removes a daemon set.
const DAEMONS: [Right; 2] = [
    right("create", "apps", "daemonsets"),
    right("delete", "apps", "daemonsets"),
];

/// What a benchmark needs.
pub fn needed(parameters: &Parameters, makes_namespace: bool) -> Vec<Right> {
    let mut all = ALWAYS.to_vec();
    if !parameters.is_by_agent() {
        all.extend(CLIENT);
    }
    let drops = parameters.dropcaches.contains(&DropCaches::PageCache);
    if drops || parameters.stats_s > 0 {
        all.extend(DAEMONS);
    }
    if makes_namespace {
        all.push(Right {
            of_cluster: true,
            ..right("create", "", "namespaces")
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{BenchWorkload, Given};
    use super::*;

    /// The rights of the Role in docs/CLUSTER.md: group, resource, verb.
    fn documented() -> BTreeSet<(String, String, String)> {
        let page = include_str!("../../../docs/CLUSTER.md");
        let rules = page.split("\nrules:\n").nth(1).unwrap();
        let rules = rules.split("```").next().unwrap();
        let list = |line: &str, key: &str| -> Option<Vec<String>> {
            let list = line.trim_start_matches(['-', ' ']).strip_prefix(key)?;
            Some(serde_json::from_str(list).unwrap())
        };
        let mut all = BTreeSet::new();
        let (mut groups, mut resources) = (Vec::new(), Vec::new());
        for line in rules.lines() {
            groups = list(line, "apiGroups: ").unwrap_or(groups);
            resources = list(line, "resources: ").unwrap_or(resources);
            for verb in list(line, "verbs: ").into_iter().flatten() {
                for resource in &resources {
                    all.insert((groups[0].clone(), resource.clone(), verb.clone()));
                }
            }
        }
        all
    }

    #[test]
    fn the_documented_role_is_what_is_asked_for() {
        let given = Given {
            dropcaches: Some(vec![DropCaches::PageCache]),
            ..Given::default()
        };
        let runs = given.runs(BenchWorkload::Seq, &Given::default()).unwrap();
        let needed = needed(&runs[0], false);
        let words = |right: &Right| {
            let [group, resource, verb] = [right.group, right.resource, right.verb];
            (group.to_owned(), resource.to_owned(), verb.to_owned())
        };
        let asked: BTreeSet<_> = needed.iter().map(words).collect();
        assert_eq!(asked.len(), needed.len(), "one is asked for twice");
        assert_eq!(documented(), asked);
    }
}
