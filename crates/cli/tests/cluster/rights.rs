//! An account with the documented rights, and with less.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::cluster::{Place, stderr};

/// The rules of the Role in docs/CLUSTER.md.
fn rules() -> Vec<Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLUSTER.md");
    let page = fs::read_to_string(page).unwrap();
    let rules = page.split("\nrules:\n").nth(1).expect("the Role");
    let rules = rules.split("```").next().unwrap();
    let rule = |text: &str| {
        let mut rule = json!({});
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (key, list) = line.trim().split_once(": ").unwrap();
            rule[key] = serde_json::from_str(list).unwrap();
        }
        rule
    };
    rules
        .split("- apiGroups")
        .skip(1)
        .map(|text| rule(&format!("apiGroups{text}")))
        .collect()
}

/// An account that may do what a Role allows, with its kubeconfig.
struct Account {
    place: Place,
    kubeconfig: String,
    token: String,
}

impl Account {
    fn new(name: &str) -> Self {
        let place = Place::made(name);
        let namespace = &place.namespace;
        place.kubectl(&["create", "serviceaccount", "fathom"]);
        let account = format!("--serviceaccount={namespace}:fathom");
        place.kubectl(&["create", "rolebinding", "fathom", "--role=fathom", &account]);
        let token = place
            .kubectl(&["create", "token", "fathom"])
            .trim()
            .to_owned();
        let admin = place.kubectl(&["config", "view", "--raw", "-o", "json"]);
        let mut config: Value = serde_json::from_str(&admin).unwrap();
        config["users"][0]["user"] = json!({"token": token});
        let kubeconfig = place.file("kubeconfig", &config.to_string());
        Self {
            place,
            kubeconfig,
            token,
        }
    }

    fn may(&self, rules: &[Value]) {
        self.place.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "fathom", "namespace": self.place.namespace},
            "rules": rules,
        }));
    }

    /// Waits until the cluster has heard of a change.
    fn wait_until(&self, verb: &str, resource: &str, allowed: bool) {
        let account = format!("system:serviceaccount:{}:fathom", self.place.namespace);
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let part = format!("--subresource={part}");
        let ask = ["auth", "can-i", verb, resource, &part, "--as", &account];
        let answer = if allowed { "yes" } else { "no" };
        self.place
            .wait_for("the cluster has heard of the rights", || {
                self.place.tries(&ask).trim() == answer
            });
    }

    fn seq(&self) -> Output {
        let more = [
            "--dropcaches",
            "pagecache",
            "--kubeconfig",
            &self.kubeconfig,
        ];
        self.place.run("seq", &more)
    }
}

#[test]
fn the_documented_rights_suffice_and_no_secret_is_kept() {
    let account = Account::new("role");
    account.may(&rules());
    account.wait_until("create", "pods", true);
    let output = account.seq();
    assert!(output.status.success(), "{output:?}");
    account.place.wait_for_nothing();
    let secrets = [
        account.token.as_str(),
        "BEGIN CERTIFICATE",
        "PRIVATE KEY",
        "client-key",
    ];
    let mut texts = vec![output.stdout, output.stderr];
    all_files(&account.place.record(), &mut texts);
    assert!(texts.len() > 20, "{} files", texts.len());
    for text in &texts {
        let text = String::from_utf8_lossy(text);
        for secret in secrets {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

fn all_files(folder: &Path, texts: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => all_files(&path, texts),
            path => texts.push(fs::read(path).unwrap()),
        }
    }
}

/// Each right of the Role is needed: without any one of them a run is refused
/// before anything is made, and names it.
#[test]
fn with_one_right_less_nothing_is_made() {
    let account = Account::new("less");
    let all = rules();
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        serde_json::from_value(rule[key].clone()).unwrap()
    };
    let mut tried = 0;
    for (place, rule) in all.iter().enumerate() {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                let mut less = all.clone();
                let keep = |all: Vec<String>, one: &str| -> Vec<String> {
                    all.into_iter().filter(|other| other != one).collect()
                };
                let mut others = rule.clone();
                others["resources"] = json!(keep(texts(rule, "resources"), &resource));
                less[place]["resources"] = json!([resource]);
                less[place]["verbs"] = json!(keep(texts(rule, "verbs"), &verb));
                if !texts(&others, "resources").is_empty() {
                    less.push(others);
                }
                less.retain(|rule| !texts(rule, "verbs").is_empty());
                account.may(&less);
                account.wait_until(&verb, &resource, false);
                let output = account.seq();
                assert_eq!(
                    output.status.code(),
                    Some(4),
                    "{verb} {resource}: {output:?}"
                );
                let said = stderr(&output);
                let told = format!("may not {verb} {resource}\n");
                assert!(
                    said.contains("nothing was made") && said.contains(&told),
                    "{said}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 15, "{tried}");
    assert_eq!(account.place.left(), "");
}
