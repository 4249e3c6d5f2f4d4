//! The machines of a run that has several, and what became of each.

use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// One machine's part in a run of several.
///
/// Times are those of the machine that drives the run, on which alone they can
/// be compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Host {
    /// Its name or address, as the figures of its jobs have it.
    pub name: String,
    /// Port of the fio server on it: one machine may run several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The step of the run it belongs to, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The name that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The node of a cluster that it runs on, where it is a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The engine there and its version, for example `fio-3.33`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// When its jobs began, ms since the start of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<f64>,
    /// When they had ended, ms since the start of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<f64>,
    /// Its clock against that of the machine that drives the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// What it is and what its targets are, where it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Box<Environment>>,
    /// Why it has no whole part in the figures; absent when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl Host {
    /// Its name, with its port behind a comma where it has one.
    pub fn label(&self) -> String {
        match self.port {
            Some(port) => format!("{},{port}", self.name),
            None => self.name.clone(),
        }
    }
}

/// How a machine's clock stands against another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clock {
    /// How far it is ahead, in ms.
    pub offset_ms: f64,
    /// Largest error of that: half of the shortest round trip, in ms.
    pub error_ms: f64,
    /// Number of round trips it was measured with.
    pub n: u32,
}

/// Time between the first and the last start of these, in ms; `None` unless two
/// of them are known.
pub fn start_skew_ms<'h>(hosts: impl IntoIterator<Item = &'h Host>) -> Option<f64> {
    let starts: Vec<f64> = hosts.into_iter().filter_map(|host| host.start_ms).collect();
    let first = starts.iter().copied().reduce(f64::min)?;
    let last = starts.iter().copied().reduce(f64::max)?;
    (starts.len() > 1).then_some(last - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_between_the_first_and_the_last() {
        let at = |start_ms| Host {
            start_ms,
            ..Host::default()
        };
        assert_eq!(start_skew_ms(&[at(Some(5.0)), at(None)]), None);
        let three = [at(Some(5.0)), at(Some(2.5)), at(Some(9.0))];
        assert_eq!(start_skew_ms(&three), Some(6.5));
    }
}
