//! Values of the variables that job files name, for each machine of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use fathom_jobfile::is_variable_name;
use fathom_jobfile::variables::variable;
use serde::{Deserialize, Serialize};

use super::usage;

/// One of `--var`: a value for all machines, or for one of them.
#[derive(Debug, Clone)]
pub struct HostVariable {
    host: Option<String>,
    name: String,
    value: String,
}

impl FromStr for HostVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, value) = text.split_once('=').unwrap_or((text, ""));
        // Names of hosts may hold colons, those of variables none.
        let (host, name) = match left.rsplit_once(':') {
            Some((host, name)) => (Some(host.to_owned()), name),
            None => (None, left),
        };
        if !text.contains('=') || !is_variable_name(name) || host.as_deref() == Some("") {
            return Err("write NAME=VALUE, or HOST:NAME=VALUE".to_owned());
        }
        let (name, value) = (name.to_owned(), value.to_owned());
        Ok(Self { host, name, value })
    }
}

/// The values that were given for each machine: on the command line or in the
/// host file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostVariables(BTreeMap<String, BTreeMap<String, String>>);

impl HostVariables {
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the columns behind a host's name: `NAME=VALUE`, up to a comment.
    pub fn columns<'w>(
        &mut self,
        host: &str,
        words: impl Iterator<Item = &'w str>,
    ) -> Result<(), String> {
        for word in words.take_while(|word| !word.starts_with('#')) {
            let (name, value) = word.split_once('=').unwrap_or_default();
            if !is_variable_name(name) {
                return Err(format!(
                    "{word:?} behind {host} is no variable: write NAME=VALUE"
                ));
            }
            self.set(host, name, value);
        }
        Ok(())
    }

    fn set(&mut self, host: &str, name: &str, value: &str) {
        let of_host = self.0.entry(host.to_owned()).or_default();
        of_host.insert(name.to_owned(), value.to_owned());
    }

    /// Takes what `--var` says, which comes before the host file; of one machine
    /// before that of all.
    pub fn take(&mut self, given: &[HostVariable], hosts: &[String]) -> anyhow::Result<()> {
        let of_all = given.iter().filter(|it| it.host.is_none());
        for it in of_all {
            for host in hosts {
                self.set(host, &it.name, &it.value);
            }
        }
        for it in given {
            let Some(host) = &it.host else { continue };
            if !hosts.contains(host) {
                return Err(usage(format!("--var: {host} is not one of the hosts")));
            }
            self.set(host, &it.name, &it.value);
        }
        Ok(())
    }

    /// A value to check a job file with here: that of some machine.
    pub fn example(&self, name: &str) -> Option<String> {
        let given = self.0.values().find_map(|of_host| of_host.get(name));
        given.cloned().or_else(|| variable(name))
    }

    /// What each machine is sent of the variables that its jobs name: what was
    /// given for it, else the value here. What is left it looks up itself.
    pub fn sent(&self, hosts: &[String], named: &BTreeSet<String>) -> Self {
        let mut sent = Self::default();
        for host in hosts {
            let given = self.0.get(host);
            for name in named {
                let own = given.and_then(|given| given.get(name)).cloned();
                if let Some(value) = own.or_else(|| variable(name)) {
                    sent.set(host, name, &value);
                }
            }
        }
        sent
    }

    /// Refuses a `--var` that no job file names: a slip of the pen.
    pub fn are_named(given: &[HostVariable], named: &BTreeSet<String>) -> anyhow::Result<()> {
        match given.iter().find(|it| !named.contains(&it.name)) {
            Some(it) => Err(usage(format!("--var: no job file names ${{{}}}", it.name))),
            None => Ok(()),
        }
    }

    /// As the machines are told.
    pub fn into_map(self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_the_value_given_for_it_first() {
        let hosts = ["a", "ssh://b:22"].map(str::to_owned);
        let mut all = HostVariables::default();
        let columns = ["DIR=/column", "SIZE=1g", "#", "a comment"];
        all.columns("a", columns.into_iter()).unwrap();
        let given: Vec<HostVariable> = ["ssh://b:22:DIR=/b=x", "DIR=/all"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let named = ["DIR", "PATH", "FATHOM_NOT_SET"].map(str::to_owned).into();
        let sent = all.sent(&hosts, &named).into_map();
        assert_eq!(sent["a"]["DIR"], "/column");
        // What is set here goes to all, what nobody needs to none.
        assert_eq!(Some(&sent["ssh://b:22"]["PATH"]), variable("PATH").as_ref());
        assert_eq!((sent["a"].len(), sent["ssh://b:22"].len()), (2, 1));
        all.take(&given, &hosts).unwrap();
        let sent = all.sent(&hosts, &named).into_map();
        assert_eq!(sent["a"]["DIR"], "/all");
        assert_eq!(sent["ssh://b:22"]["DIR"], "/b=x");
        assert!(HostVariables::are_named(&given, &named).is_ok());
        assert!(HostVariables::are_named(&given, &BTreeSet::new()).is_err());
    }

    #[test]
    fn what_gives_no_value_is_refused() {
        for bad in ["DIR", "1DIR=x", "=x", "a:=x", ":DIR=x", "a b=x"] {
            assert!(bad.parse::<HostVariable>().is_err(), "{bad}");
        }
        let mut columns = HostVariables::default();
        assert!(columns.columns("a", ["b"].into_iter()).is_err());
        let other: HostVariable = "c:DIR=x".parse().unwrap();
        assert!(columns.take(&[other], &["a".to_owned()]).is_err());
    }
}
