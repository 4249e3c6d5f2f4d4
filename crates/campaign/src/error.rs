//! What can be wrong with a campaign.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_flow::error::RunError;
use fathom_model::Exit;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    /// The file, as messages name it.
    pub file: Arc<str>,
    /// Counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// In characters, counted from 1; 0 for the line as a whole.
    pub column: u32,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}

/// A mistake in a definition, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: FilePosition,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Fault {
    /// A mistake there.
    pub fn new(place: &FilePosition, message: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Why a campaign cannot be made, planned or generated.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The folder holds no campaign.
    #[error(
        "{0} has no Kconfig and so is no campaign: make one with `fathom init DIR`, \
         or name one with -C DIR"
    )]
    NoCampaign(String),
    /// The campaign has not been configured.
    #[error(
        "{0} has no .config: configure the campaign with `fathom config menu`, or take one of \
         {1} with `fathom config defconfig NAME`"
    )]
    NoConfig(String, String),
    /// The Kconfig files are wrong.
    #[error("the Kconfig files cannot be read: {0}")]
    Kconfig(#[from] fathom_kconfig::Error),
    /// Lines of the `.config` are wrong.
    #[error("{}", .0.join("\n"))]
    Config(Vec<String>),
    /// Definitions are wrong.
    #[error("{}", list(.0))]
    Definition(Vec<Fault>),
    /// The options of the run, or values of symbols, cannot be used.
    #[error(transparent)]
    Options(#[from] RunError),
    /// Nothing of the campaign is called so.
    #[error("nothing in this campaign is called {what}; there {known}")]
    NothingCalled {
        /// As asked for.
        what: String,
        /// What there is.
        known: String,
    },
    /// A file may not be written: a device, or somebody else's.
    #[error("{0}")]
    Refused(String),
    /// A folder that is to become a campaign holds something.
    #[error(
        "{0} is not empty: nothing was written; --force adds the files that are missing and \
         leaves the others as they are"
    )]
    NotEmpty(PathBuf),
    /// There is no shipped defconfig of this name.
    #[error("there is no defconfig {name}; there are {known}")]
    NoDefconfig {
        /// As asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Generation would overwrite what somebody has written.
    #[error(
        "{}: changed or made by hand, would be overwritten; nothing was written. --force \
         overwrites; changes that are to last belong into a template or a test \
         (docs/CAMPAIGNS.md)",
        paths(.0)
    )]
    ByHand(Vec<PathBuf>),
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it says.
        source: std::io::Error,
    },
}

impl CampaignError {
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    /// The exit code of a command that ends with it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoCampaign(_) | Self::NoConfig(..) => Exit::Missing,
            Self::Kconfig(_)
            | Self::Config(_)
            | Self::Definition(_)
            | Self::NothingCalled { .. }
            | Self::NoDefconfig { .. } => Exit::Input,
            Self::Options(error) => error.exit(),
            Self::NotEmpty(_) | Self::ByHand(_) | Self::Refused(_) => Exit::Refused,
            Self::Io { .. } => Exit::Failed,
        }
    }
}

/// One a line.
fn list(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn paths(all: &[PathBuf]) -> String {
    /// More names than these do not help.
    const SHOWN: usize = 3;
    let names = all.iter().take(SHOWN);
    let mut names: Vec<String> = names.map(|path| path.display().to_string()).collect();
    if all.len() > SHOWN {
        names.push(format!("and {} more", all.len() - SHOWN));
    }
    names.join(", ")
}

/// The one of `known` that `written` was probably meant to be, as an addition
/// to a message.
pub fn meant<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    /// Longer words are no names, and the distance takes quadratic time.
    const LONGEST: usize = 100;
    if written.len() > LONGEST {
        return String::new();
    }
    let allowed = written.chars().count().div_ceil(3);
    let near = known
        .into_iter()
        .filter(|word| word.len() <= LONGEST)
        .map(|word| (strsim::damerau_levenshtein(written, word), word))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance);
    near.map_or_else(String::new, |(_, word)| format!("; did you mean {word}?"))
}
