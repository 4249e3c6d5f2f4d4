//! What the machine that drives a run says to the others, a line of JSON each,
//! behind the program on their standard input. They answer in
//! [`Wire`](crate::ssh::carry::Wire).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How often the driving machine asks for the time: while it does, it lives.
pub const ASK_EVERY: Duration = Duration::from_secs(5);
/// Who says nothing for so long is gone: six questions, so that a burst of lost
/// packets, which TCP repairs within seconds, is none.
pub const SILENCE: Duration = Duration::from_secs(30);

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// What is to run.
    Job {
        /// Arguments of its command, without files.
        args: Vec<String>,
        /// Files that are arguments too: name and text.
        files: Vec<(String, String)>,
        /// What stands behind the files: options of the engine's own.
        behind: Vec<String>,
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

/// The time of this machine, ms since 1970 UTC.
#[must_use]
pub fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() * 1000.0
}
