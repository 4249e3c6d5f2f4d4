//! `--host`: the Fathom on another host does what this command line says.

use fathom_fleet::ssh::{self, Errand, SshError};
use fathom_model::Exit;

use super::{ExitError, Global, command_line};
use crate::{out, signals};

/// The host whose Fathom does it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OtherHost {
    /// Ask the Fathom on this host, over ssh
    #[arg(long, value_name = "USER@HOST")]
    host: Option<String>,
    /// The Fathom there
    #[arg(long, value_name = "PATH", default_value = "fathom", requires = "host")]
    program: String,
}

/// What the Fathom there does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostErrand {
    /// It answers with lines.
    List,
    /// It answers as a terminal wants it.
    Status,
    /// It draws a screen until it is ended.
    Watch,
    /// It runs something, which goes on without the connection.
    Run,
}

impl OtherHost {
    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.host.is_some()
    }

    /// Lets the Fathom on the host do it, when there is one.
    pub fn run(&self, global: &Global, errand: HostErrand) -> anyhow::Result<Option<Exit>> {
        let Some(host) = &self.host else {
            return Ok(None);
        };
        let words = self.words(command_line());
        let control = match errand {
            HostErrand::Run => signals::control_until_hangup(),
            _ => signals::control(),
        }?;
        let mut stdout = out::handed_over();
        let done = match errand {
            HostErrand::Run => ssh::run_on(host, &words, &control, &mut stdout),
            _ => {
                let draws = errand != HostErrand::List && !global.json;
                let errand = Errand {
                    command: &words,
                    terminal: draws && out::style(global.color).width.is_some(),
                    follows: errand == HostErrand::Watch,
                };
                ssh::hand_over(host, &errand, &control, &mut stdout)
            }
        };
        let status = done.map_err(|error| failed(host, errand, &error))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        // 126 and 127 are sh's: it found no such program (POSIX, 2.8.2).
        if matches!(code, Some(126 | 127)) {
            return Err(ExitError::new(Exit::Missing, format!(
                    "there is no {} on {host}\n  to do: install Fathom there, or name it with --program",
                    self.program
                ))
            .into());
        }
        Ok(Some(code.and_then(Exit::from_code).unwrap_or(Exit::Failed)))
    }

    /// This command line as it is called there.
    fn words(&self, given: Vec<String>) -> Vec<String> {
        let mut words = vec![self.program.clone()];
        let mut given = given.into_iter().skip(1);
        while let Some(word) = given.next() {
            match word.as_str() {
                "--host" | "--program" => _ = given.next(),
                _ if word.starts_with("--host=") || word.starts_with("--program=") => {}
                _ => words.push(word),
            }
        }
        words
    }
}

fn failed(host: &str, errand: HostErrand, error: &SshError) -> anyhow::Error {
    let exit = match error {
        SshError::Interrupted { .. } => Exit::Interrupted,
        _ => Exit::Missing,
    };
    let has_begun = matches!(error, SshError::Lost { .. } | SshError::TooMuch { .. });
    let message = match errand {
        HostErrand::Run if has_begun || exit == Exit::Interrupted => {
            format!(
                "{error}; a run that has begun there goes on\n  to do: fathom watch --host {host}"
            )
        }
        _ => error.to_string(),
    };
    ExitError::new(exit, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_there_is_that_of_here_without_the_host() {
        let host = OtherHost {
            host: Some("h".to_owned()),
            program: "/opt/fathom".to_owned(),
        };
        let given = "fathom --runs r resume --host h 1307 --hosts=a,b --program=x --destroy d";
        let given = given.split(' ').map(str::to_owned).collect();
        let there = "/opt/fathom --runs r resume 1307 --hosts=a,b --destroy d";
        assert_eq!(host.words(given).join(" "), there);
    }
}
