//! A job as it will run: fio's options in order, each with where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where an option was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A line of a job file (or of a file it includes); both count from 1.
    File {
        /// The file.
        path: PathBuf,
        /// Line.
        line: u32,
        /// Column of the option's name, in characters.
        column: u32,
    },
    /// An argument of the command line, counted from 1.
    CommandLine {
        /// Place of the argument.
        argument: u32,
    },
    /// Added by Fathom, with the reason.
    Fathom {
        /// Why it was added.
        reason: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::CommandLine { argument } => write!(f, "argument {argument}"),
            Self::Fathom { reason } => write!(f, "added by fathom ({reason})"),
        }
    }
}

/// One option as written, after `${VAR}` expansion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobOption {
    /// Name as written.
    pub name: String,
    /// Value; `None` for an option without one, as in `time_based`.
    pub value: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// One job after its globals have been applied.
///
/// The last option of a name wins; options stay in the order of effect so that
/// those Fathom does not know reach the engine untouched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobSpec {
    /// Name of the section.
    pub name: String,
    /// Options in effect, globals first.
    pub options: Vec<JobOption>,
}

impl JobSpec {
    /// The last option with this exact name.
    pub fn option(&self, name: &str) -> Option<&JobOption> {
        self.options.iter().rev().find(|option| option.name == name)
    }

    /// The value of the last option with this exact name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.option(name)?.value.as_deref()
    }

    /// The options by name, as a result carries them: the last of a name, and `1` for one
    /// without a value.
    pub fn by_name(&self) -> BTreeMap<String, String> {
        let value = |option: &JobOption| option.value.clone().unwrap_or_else(|| "1".to_owned());
        let each = self.options.iter();
        each.map(|option| (option.name.clone(), value(option)))
            .collect()
    }
}
