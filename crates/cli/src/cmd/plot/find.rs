//! Which logs are meant.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_engine::fio::log::LogName;
use fathom_model::Exit;

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
            paths.extend(in_folder(one, |_| true)?);
        } else if one.exists() {
            paths.insert(one.clone());
            continue;
        } else {
            let prefix = one.file_name().unwrap_or_default().to_string_lossy();
            let folder = match one.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            if folder.is_dir() {
                paths.extend(in_folder(folder, |name| name.prefix == prefix)?);
            }
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
        found.job = job(&found.name, several);
    }
    Ok(found)
}

fn key(found: &FoundLog) -> impl Ord {
    let name = &found.name;
    let key = (name.prefix.clone(), name.host.clone(), name.job);
    (key, name.kind, found.path.clone())
}

/// What a job is called: `job 1`, `before job 1 on node2`.
fn job(name: &LogName, with_prefix: bool) -> String {
    let prefix = with_prefix.then(|| name.prefix.clone());
    let number = name.job.map(|number| format!("job {number}"));
    let host = name.host.as_ref().map(|host| format!("on {host}"));
    let words: Vec<String> = [prefix, number, host].into_iter().flatten().collect();
    match words.is_empty() {
        true => "all jobs".to_owned(),
        false => words.join(" "),
    }
}

fn in_folder(folder: &Path, wanted: impl Fn(&LogName) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name();
        let path = match folder == Path::new(".") {
            true => PathBuf::from(&name),
            false => folder.join(&name),
        };
        if LogName::of(Path::new(&name)).is_some_and(|name| wanted(&name)) && path.is_file() {
            paths.push(path);
        }
    }
    let found = paths.clone();
    paths.retain(|path| !is_packed_copy(path, &found));
    Ok(paths)
}

/// Whether a log lies beside itself, packed: `gzip -k` leaves both.
fn is_packed_copy(path: &Path, among: &[PathBuf]) -> bool {
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    is_packed && among.contains(&path.with_extension(""))
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
        assert_eq!(job(&of("a_lat.2.log"), false), "job 2");
        assert_eq!(job(&of("a_lat.2.log.n1"), true), "a job 2 on n1");
        assert_eq!(job(&of("a_lat.log"), false), "all jobs");
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
