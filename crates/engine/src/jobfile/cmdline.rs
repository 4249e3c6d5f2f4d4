//! fio's command line: from jobs, and back to a job file.

use std::path::PathBuf;

use fathom_model::{JobOption, JobSpec, Origin};

use super::{Checked, Entry, JobFile, Section};

/// The arguments (without `fio`) that run these jobs, one after the other.
#[must_use]
pub fn cmdline(jobs: &[JobSpec]) -> Vec<String> {
    let mut args = Vec::new();
    for job in jobs {
        args.push(format!("--name={}", job.name));
        for option in &job.options {
            args.push(match &option.value {
                Some(value) => format!("--{}={value}", option.name),
                None => format!("--{}", option.name),
            });
        }
    }
    args
}

/// Quotes an argument for a POSIX shell where it needs it.
#[must_use]
pub fn shell_quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Reads a fio command line.
pub(super) fn parse(args: &[String]) -> Checked {
    let mut file = JobFile {
        path: PathBuf::from("command line"),
        preamble: Vec::new(),
        sections: Vec::new(),
    };
    for (argument, arg) in (1u32..).zip(args) {
        let Some(option) = arg.strip_prefix("--") else {
            continue;
        };
        let origin = Origin::CommandLine { argument };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        if name == "name" {
            file.sections.push(Section {
                name: value.unwrap_or_default(),
                origin,
                entries: Vec::new(),
            });
        } else if let Some(section) = file.sections.last_mut() {
            section.entries.push(Entry::Option {
                option: JobOption {
                    name: name.to_owned(),
                    value,
                    origin,
                },
                text: option.to_owned(),
            });
        }
    }
    Checked {
        file,
        diagnostics: Vec::new(),
    }
}
