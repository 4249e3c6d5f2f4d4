//! Which logs are meant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fathom_fio_output::log::LogName;
use fathom_model::Exit;

use crate::cmd::fiolog::{self, job_of};
use crate::cmd::{ExitError, Global};

/// Prefixes that the names of plots are made of; more would be too long.
const NAMES_MAX: usize = 3;

/// A log of fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundLog {
    pub path: PathBuf,
    pub name: LogName,
    /// Name of the job's line.
    pub job: String,
}

/// The logs of what was asked for, by prefix, host and job.
pub(super) fn logs(global: &Global, asked: &[PathBuf]) -> anyhow::Result<Vec<FoundLog>> {
    let mut paths = BTreeSet::new();
    for one in asked {
        let before = paths.len();
        if one.is_dir() {
            paths.extend(fiolog::in_folder(one, |_| true)?);
        } else if one.exists() {
            paths.insert(one.clone());
            continue;
        } else {
            paths.extend(fiolog::of_prefix(one)?);
        }
        if paths.len() == before {
            return Err(none(global, one));
        }
    }
    let mut found = Vec::new();
    for path in paths {
        let Some(name) = LogName::of(&path) else {
            let message = format!(
                "{}: fio gives its logs names that say what is in them, such as out_lat.1.log; this one has no such name",
                path.display()
            );
            return Err(ExitError::new(Exit::Input, message).into());
        };
        let job = String::new();
        found.push(FoundLog { path, name, job });
    }
    found.sort_by(|a, b| key(a).cmp(&key(b)));
    let prefixes: BTreeSet<&String> = found.iter().map(|found| &found.name.prefix).collect();
    let several = prefixes.len() > 1;
    for found in &mut found {
        found.job = job_of(&found.name, several);
    }
    Ok(found)
}

fn key(found: &FoundLog) -> impl Ord {
    let name = &found.name;
    let key = (name.prefix.clone(), name.host.clone(), name.job);
    (key, name.kind, found.path.clone())
}

/// Why there is nothing, and what draws it if it is something else.
fn none(global: &Global, asked: &Path) -> anyhow::Error {
    let shown = asked.display();
    let run = asked.to_str().filter(|asked| !asked.is_empty());
    let begins = |asked: &str| {
        let dir = fathom_record::find(&global.runs, Some(asked)).ok()?;
        let id = dir.file_name()?.to_str()?;
        (id.starts_with(asked) || dir == Path::new(asked)).then_some(())
    };
    let run = run.and_then(begins);
    let message = match run {
        Some(()) => {
            format!("{shown} is a run that Fathom recorded: `fathom graph {shown}` draws it")
        }
        None if asked.is_dir() => format!(
            "{shown} has no logs of fio (names such as out_lat.1.log; options write_bw_log, write_iops_log, write_lat_log, write_hist_log)"
        ),
        None => format!(
            "there are no logs {shown}_lat.1.log, {shown}_bw.log or alike: the prefix is what write_lat_log and the other options of fio were given"
        ),
    };
    ExitError::new(Exit::Missing, message).into()
}

/// What plots of these logs are called: `out`, `before+after`, `a+b+c and 2 more`.
pub(super) fn name(found: &[FoundLog]) -> String {
    let mut prefixes: Vec<&str> = found.iter().map(|f| f.name.prefix.as_str()).collect();
    prefixes.dedup();
    let named = prefixes.len().min(NAMES_MAX);
    let name = prefixes[..named].join("+");
    let name = name.trim_matches('+');
    let more = prefixes.len() - named;
    match (name, more) {
        ("", _) => "logs".to_owned(),
        (name, 0) => name.to_owned(),
        (name, more) => format!("{name}+{more}-more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_plots_have_short_names() {
        let of = |path: &str| LogName::of(Path::new(path)).unwrap();
        assert_eq!(job_of(&of("a_lat.2.log"), false), "job 2");
        assert_eq!(job_of(&of("a_lat.2.log.n1"), true), "a job 2 on n1");
        assert_eq!(job_of(&of("a_lat.log"), false), "all jobs");
        let found = |prefix: &str| FoundLog {
            path: PathBuf::new(),
            name: of(&format!("{prefix}_lat.1.log")),
            job: String::new(),
        };
        let named =
            |prefixes: &[&str]| name(&prefixes.iter().map(|p| found(p)).collect::<Vec<_>>());
        assert_eq!(named(&["a", "a", "b"]), "a+b");
        assert_eq!(named(&["a", "b", "c", "d", "e"]), "a+b+c+2-more");
        assert_eq!(named(&[""]), "logs");
    }
}
