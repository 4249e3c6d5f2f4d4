//! Why something is refused: in words, and for programs by what was found.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Name and version of [`RefusalDocument`].
pub const REFUSAL_SCHEMA: &str = "fathom.refusal/1";

/// Why something is refused, so that no data are lost and no figure misleads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// In words, with what to do.
    pub text: String,
    /// What was found of devices and files, where it is about those.
    pub findings: Vec<RefusalFinding>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Into<String>> From<T> for Refused {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            findings: Vec::new(),
        }
    }
}

/// Something that stands against writing to a device or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RefusalFinding {
    /// `mounted`, `swap`, `held`, `loop`, `exported`, `exports_unseen`, `signature`, `locked`,
    /// `exclusive`, `open`, `open_elsewhere`; `unconfirmed`, `unknown`, `no_such_device`,
    /// `file_among_devices`, `character_device`, `output_is_device`.
    pub kind: &'static str,
    /// The device or file.
    pub path: PathBuf,
    /// What was found, in words.
    pub what: String,
    /// What ends it, or the option that confirms it; null where nothing does.
    pub to_do: Option<String>,
}

/// What `--json` prints of a command that is refused (exit code 4).
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RefusalDocument<'r> {
    /// [`REFUSAL_SCHEMA`].
    pub schema: &'static str,
    /// The message, as on stderr.
    pub message: &'r str,
    /// What was found of devices and files.
    pub findings: &'r [RefusalFinding],
}
