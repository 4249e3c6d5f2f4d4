//! What the machine that drives a run says to the others, a line of JSON each,
//! behind the program on their standard input. They answer in
//! [`Wire`](crate::ssh::carry::Wire).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How often the driving machine asks for the time: while it does, it lives.
pub const ASK_EVERY: Duration = Duration::from_secs(5);
/// Who says nothing for so long is gone: six questions, so that a burst of lost
/// packets, which TCP repairs within seconds, is none.
pub const SILENCE: Duration = Duration::from_secs(30);

/// The runs of the command on each machine, below the folder of its files.
pub const RUNS: &str = "fathom-runs";

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// A file that the command reads, or the next part of it, before [`Say::Job`].
    File {
        /// Where, below the folder of the run: plain names.
        path: String,
        /// Its text.
        text: String,
        /// It goes behind what came of the file before.
        #[serde(default)]
        more: bool,
    },
    /// What is to run.
    Job {
        /// The words of its command line behind `fathom`.
        args: Vec<Word>,
        /// Values of variables that its job files name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
    },
    /// What time is it?
    Clock {
        /// Comes back with the answer.
        tag: u32,
    },
    /// The next step begins.
    Go {
        /// When, by the clock of who is told, ms since 1970 UTC.
        at_ms: f64,
    },
    /// Nothing more is said: the run ends. So does the end of the input, which
    /// not every way to a machine can pass on while answers still come.
    End,
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// As it stands.
    Text(String),
    /// The path of a file or folder that was sent, below the folder of the run.
    File(String),
}

impl Word {
    /// A word as it stands.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// As people read it.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::File(path) if path.is_empty() => ".",
            Self::Text(text) | Self::File(text) => text,
        }
    }
}

/// The time of this machine, ms since 1970 UTC.
#[must_use]
pub fn now_ms() -> f64 {
    fathom_record::now().as_secs_f64() * 1000.0
}
