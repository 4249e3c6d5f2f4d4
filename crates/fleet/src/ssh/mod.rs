//! Other machines over the system's own `ssh`: agent, configuration,
//! known_hosts and jump hosts work as they do for its user.
//!
//! - [`Session`]: one authenticated connection, shared by every command;
//!   [`open_all`]: many of them
//! - [`fio`]: an engine that drives the fio of that machine, test by test
//! - [`carry`]: Fathom sends itself there and streams its record back

pub mod carry;
mod crowd;
pub mod fio;
mod session;

pub use crowd::open_all;
pub use session::{Output, Session, hand_over};

use fathom_record::RecordError;

/// Why another machine could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The program `ssh` does not start.
    #[error("{command} cannot be started ({source}); install an ssh client or check FATHOM_SSH")]
    NoClient {
        /// The command.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No connection came about; ssh has said why.
    #[error("no connection to {target} (ssh's own words are above): check 'ssh {target}'")]
    NotConnected {
        /// The host as given.
        target: String,
    },
    /// No connection came about while nobody was asked anything.
    #[error("no connection: {said}; check 'ssh {target}'")]
    Unattended {
        /// The host as given.
        target: String,
        /// ssh's own last words.
        said: String,
        /// Whether another try may go better.
        turned_away: bool,
    },
    /// The connection was there and is gone.
    #[error("the connection to {target} was lost")]
    Lost {
        /// The host as given.
        target: String,
    },
    /// Something local failed.
    #[error("{what}: {source}")]
    Local {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The other side answered something else than expected.
    #[error("{target} answered something unexpected: {answer}")]
    Answer {
        /// The host as given.
        target: String,
        /// What it said, shortened.
        answer: String,
    },
    /// The record on this side could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl SshError {
    /// Whether the machine, or one on the way, had too many at its door.
    fn is_turned_away(&self) -> bool {
        matches!(
            self,
            Self::Unattended {
                turned_away: true,
                ..
            }
        )
    }

    /// The same once more, for another machine that it also keeps from running.
    pub(crate) fn again(&self) -> Self {
        Self::Local {
            what: "sending this program",
            source: std::io::Error::other(self.to_string()),
        }
    }
}
