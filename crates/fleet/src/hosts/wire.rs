//! What machines say to each other, a line of JSON each: [`Say`] what the one that
//! drives a run says, behind the program on their standard input; [`Wire`] what
//! the others write to stdout.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use fathom_model::Event;
use fathom_record::Header;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How often the driving machine asks for the time: while it does, it lives.
pub const ASK_EVERY: Duration = Duration::from_secs(5);
/// Who says nothing for so long is gone: six questions, so that a burst of lost
/// packets, which TCP repairs within seconds, is none.
pub const SILENCE: Duration = Duration::from_secs(30);
/// How long a machine may take from the connection until it could begin. A
/// program of some 20 MiB over a slow line takes a minute.
pub(crate) const READY_WAIT: Duration = Duration::from_secs(300);

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
        /// What the driving side calls this machine.
        #[serde(default)]
        host: String,
        /// The words of its command line behind `fathom`.
        args: Vec<Word>,
        /// Values of variables that its job files name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
        /// The plan that is run, where it is not a command line.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        plan: Value,
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
    /// What runs is to end, and the machine waits for another [`Say::Job`].
    Enough,
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
    pub fn shown(&self) -> &str {
        match self {
            Self::File(path) if path.is_empty() => ".",
            Self::Text(text) | Self::File(text) => text,
        }
    }
}

/// The time of this machine, ms since 1970 UTC.
pub fn now_ms() -> f64 {
    fathom_record::now().as_secs_f64() * 1000.0
}

/// Writes a line to a machine.
pub(crate) fn write_line(to: &mut impl Write, say: &Say) {
    // Strings and numbers: there is nothing that JSON cannot hold. Who cannot
    // be written to is found out by its silence.
    if let Ok(line) = serde_json::to_string(say) {
        let _ = writeln!(to, "{line}").and_then(|()| to.flush());
    }
}

/// One line of what the Fathom over there writes to stdout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wire", rename_all = "snake_case")]
pub enum Wire {
    /// The copy does not run there; the sending side takes another way.
    CannotRun,
    /// Something to tell the person who waits.
    Text {
        /// One sentence.
        text: String,
    },
    /// The run begins.
    Header {
        /// Its record's header.
        header: Box<Header>,
    },
    /// Something happened; [`Event::Ended`] is the last line.
    Event {
        /// What happened.
        happened: Box<Event>,
    },
    /// A file of the record.
    File {
        /// Path in the record: `jobs/…`, `raw/…`.
        path: String,
        /// Its text.
        text: String,
        /// It goes behind what came of the file before.
        #[serde(default, skip_serializing_if = "is_false")]
        more: bool,
    },
    /// The answer to a question for the time.
    Clock {
        /// The question's tag.
        tag: u32,
        /// The time there, ms since 1970 UTC.
        at_ms: f64,
    },
    /// Which machine this is, said before anything else.
    Here {
        /// What names this boot of it.
        boot: String,
        /// What names the mounts that are seen there.
        mounts: String,
    },
    /// A step could begin: it waits for the word.
    Gate {
        /// Its place, counted from 1.
        step: u32,
    },
    /// The step that waited begins.
    Began {
        /// The time there, ms since 1970 UTC.
        at_ms: f64,
    },
    /// Nothing was run.
    Refused {
        /// Exit code, as in [`fathom_model::Exit`].
        exit: u8,
        /// Why.
        message: String,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_says_is_understood() {
        let wire: Wire = serde_json::from_str("{\"wire\":\"cannot_run\"}").unwrap();
        assert_eq!(wire, Wire::CannotRun);
    }
}
