//! What pods ask a node for, and what they may take at most.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

/// Requests and limits of every container, as Kubernetes has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// What a node has to have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What there is at most.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Resources {
    /// Reads both as `kubectl set resources` does: `cpu=2,memory=4Gi`.
    ///
    /// # Errors
    /// What is none.
    pub fn read(requests: Option<&str>, limits: Option<&str>) -> Result<Self, String> {
        let read = |text: Option<&str>| text.map_or_else(|| Ok(BTreeMap::new()), quantities);
        Ok(Self {
            requests: read(requests)?,
            limits: read(limits)?,
        })
    }

    /// Puts them at every container of a pod; nothing where nothing was said.
    pub(super) fn put(&self, pod: &mut Value) {
        if *self == Self::default() {
            return;
        }
        let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            container["resources"] = json!(self);
        }
    }
}

/// RFC 1123 names of resources; numbers with a suffix, as Kubernetes counts
/// (apimachinery, resource/quantity.go).
fn quantities(text: &str) -> Result<BTreeMap<String, String>, String> {
    const SUFFIXES: [&str; 14] = [
        "", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let one = |pair: &str| -> Option<(String, String)> {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let inner = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_number = digits.parse::<f64>().is_ok() && !digits.starts_with(['-', '+']);
        let is_one = is_number && SUFFIXES.contains(&&value[digits.len()..]);
        (!name.is_empty() && name.chars().all(inner) && is_one)
            .then(|| (name.to_owned(), value.to_owned()))
    };
    text.split(',')
        .map(|pair| {
            one(pair)
                .ok_or_else(|| format!("'{pair}' is no resource; it is as in cpu=2,memory=4Gi"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_as_kubectl_reads_them() {
        let read = Resources::read(Some("cpu=500m,memory=1Gi"), Some("cpu=2")).unwrap();
        let mut pod = json!({"containers": [{"name": "a"}]});
        read.put(&mut pod);
        assert_eq!(
            pod["containers"][0]["resources"],
            json!({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}})
        );
        for wrong in [
            "cpu",
            "cpu=",
            "cpu=-1",
            "cpu=two",
            "memory=1 Gi",
            "memory=1GiB",
            "=1",
            "a b=1",
        ] {
            assert!(Resources::read(Some(wrong), None).is_err(), "{wrong}");
        }
        let mut bare = json!({"containers": [{"name": "a"}]});
        Resources::default().put(&mut bare);
        assert_eq!(bare["containers"][0], json!({"name": "a"}));
    }
}
