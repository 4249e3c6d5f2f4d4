//! Other machines over the system's own `ssh`: agent, configuration,
//! known_hosts and jump hosts work as they do for its user.
//!
//! - [`SshSession`]: one authenticated connection, shared by every command;
//!   [`open_all`]: many of them
//! - [`fio`]: an engine that drives the fio of that machine, test by test
//! - [`mod@self_deploy`]: Fathom sends itself there and streams its record back;
//!   [`connect`]: to many machines, as [`hosts`](crate::hosts) drives them

pub(crate) mod client;
mod crowd;
pub mod fio;
mod hand_over;
pub mod self_deploy;
mod session;

pub use crowd::open_all;
pub use hand_over::{Errand, hand_over, run_on};
pub use self_deploy::connect;
pub use session::{ScriptOutput, SshSession};

use fathom_device::threads::NoThread;
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
    #[error(
        "no connection to {target}: ssh's own words are above\n  to do: try it by hand: ssh {target} true"
    )]
    NotConnected {
        /// The host as given.
        target: String,
    },
    /// No connection came about while nobody was asked anything.
    #[error("no connection: {said}\n  to do: {}", advice(target, said))]
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
    /// Somebody asked to stop while the host was waited for.
    #[error("interrupted while waiting for {target}")]
    Interrupted {
        /// The host as given.
        target: String,
    },
    /// The host did not answer in time.
    #[error(
        "{target} did not answer within {seconds} s\n  to do: try it by hand: ssh {target} true"
    )]
    Late {
        /// The host as given.
        target: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The host said more than any answer is long.
    #[error(
        "{target} says far more than was asked for, and is heard no further: look at what its login scripts and its ssh print"
    )]
    TooMuch {
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
    /// No thread was to be had.
    #[error(transparent)]
    NoThread(#[from] NoThread),
    /// The record on this side could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What to do about a connection of which ssh said this last.
fn advice(target: &str, said: &str) -> String {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["Host key verification failed", "REMOTE HOST IDENTIFICATION"]) {
        format!("look at its key and accept it once, by hand: ssh {target}")
    } else if has(&["Permission denied", "Too many authentication failures"]) {
        format!("let this user in with a key: ssh-copy-id {target}")
    } else if has(&["Could not resolve", "Name or service not known"]) {
        "check the name: ssh's configuration, /etc/hosts, DNS".to_owned()
    } else if has(&["Connection refused"]) {
        "start sshd there, or give its port in ssh's configuration".to_owned()
    } else if has(&["timed out", "No route to host", "unreachable"]) {
        "check that it is on, its network and what filters it".to_owned()
    } else if has(&[
        "Connection closed by",
        "Connection reset by",
        "kex_exchange",
    ]) {
        "look at sshd's log there: it may take fewer connections at once (MaxStartups)".to_owned()
    } else {
        format!("try it by hand: ssh {target} true")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_about_a_connection_follows_from_what_ssh_said() {
        for (said, words) in [
            ("Host key verification failed", "accept it once"),
            ("me@h: Permission denied (publickey)", "ssh-copy-id h"),
            (
                "ssh: Could not resolve hostname h: Name or service not known",
                "DNS",
            ),
            (
                "ssh: connect to host h port 22: Connection refused",
                "start sshd",
            ),
            (
                "ssh: connect to host h port 22: Connection timed out",
                "its network",
            ),
            (
                "kex_exchange_identification: Connection closed by remote host",
                "MaxStartups",
            ),
            ("ssh does not say why", "ssh h true"),
        ] {
            let (target, said) = ("h".to_owned(), said.to_owned());
            let turned_away = crowd::is_turned_away(&said);
            let unattended = SshError::Unattended {
                target,
                said,
                turned_away,
            };
            let told = unattended.to_string();
            assert!(told.contains(words), "{told}");
            assert!(!told.contains("fathom serve"), "{told}");
        }
    }
}
