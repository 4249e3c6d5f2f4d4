//! The files of an import: which they are, who wrote them, what stands in them.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fathom_device::regular;
use fathom_fio_output::import::{self, FioOutput, ImportError};
use fathom_import::{ForeignTool, IostatLog};
use fathom_model::{Exit, Results, units};

use crate::cmd::ExitError;
use crate::out;

/// Larger files are refused: they are no reports of fio.
const MOST_BYTES: u64 = 1 << 30;
/// Most bytes of the files of a folder, which are held at the same time.
const MOST_BYTES_AT_ONCE: u64 = 4 << 30;
/// More files in one import are refused: every one becomes a step of one run.
pub(super) const MOST_FILES: usize = 10_000;

/// Who wrote a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceFormat {
    Fio(FioOutput),
    Other(ForeignTool),
}

impl fmt::Display for SourceFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Fio(output) => output.fmt(f),
            Self::Other(tool) => tool.fmt(f),
        }
    }
}

/// One file that fio, or another tool, wrote.
pub(super) struct Source {
    /// Path as given, or found in a folder.
    pub(super) path: PathBuf,
    /// What it is called as a step.
    pub(super) step: String,
    pub(super) bytes: Vec<u8>,
    pub(super) format: SourceFormat,
    pub(super) results: Vec<Results>,
    pub(super) warnings: Vec<String>,
    /// What it tells of a machine beside the runs of others.
    pub(super) beside: Option<IostatLog>,
}

/// The file's name without its ending.
pub(super) fn name_of(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let stem = absolute.file_stem().unwrap_or(absolute.as_os_str());
    stem.to_string_lossy().into_owned()
}

pub(super) fn input_error(message: String) -> anyhow::Error {
    ExitError::new(Exit::Input, message).into()
}

/// Reads every source before anything is written. What is damaged in a folder is added
/// to `unread`; a file that is named must be good.
pub(super) fn read_all(paths: &[PathBuf], unread: &mut Vec<String>) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            sources.extend(read_folder(path, unread)?);
        } else {
            let source = read_source(path, name_of(path)).map_err(|unread| {
                let (Unread::Foreign(reason) | Unread::Damaged(reason)) = unread;
                input_error(format!("{}: {reason}", path.display()))
            })?;
            sources.push(source);
        }
    }
    Ok(sources)
}

/// The files of a folder, and what of it cannot be looked into.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) files: Vec<PathBuf>,
    pub(super) unread: Vec<String>,
}

/// The files of the one folder that is to be imported, when they are results of
/// fio-tests. Such a folder becomes a run of its own.
pub(super) fn results_of_fio_tests(paths: &[PathBuf]) -> anyhow::Result<Option<FoundFiles>> {
    for path in paths.iter().filter(|path| path.is_dir()) {
        let found = files_of(path)?;
        if !fathom_import::fio_tests::are_results(&found.files) {
            continue;
        }
        if paths.len() > 1 {
            let message = format!(
                "{}: results of fio-tests; import them by themselves, they become a campaign",
                path.display()
            );
            return Err(input_error(message));
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// All files in a folder and below, by name.
fn files_of(folder: &Path) -> anyhow::Result<FoundFiles> {
    let unread = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let mut found = FoundFiles::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        let entries = match fs::read_dir(&below) {
            Ok(entries) => entries,
            Err(error) if below == folder => return Err(input_error(unread(folder, error))),
            Err(error) => {
                found.unread.push(unread(&below, error));
                continue;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => look(&entry, &mut folders, &mut found.files),
                Err(error) => found.unread.push(unread(&below, error)),
            }
        }
    }
    found.files.sort();
    found.unread.sort();
    Ok(found)
}

/// Links to folders are not followed, hidden names passed over.
fn look(entry: &fs::DirEntry, folders: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) {
    if entry.file_name().as_encoded_bytes().starts_with(b".") {
        return;
    }
    let path = entry.path();
    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        folders.push(path);
    } else if !path.is_dir() {
        files.push(path);
    }
}

/// Why a file is not imported.
enum Unread {
    /// fio did not write it.
    Foreign(String),
    /// fio may have written it, and it cannot be read.
    Damaged(String),
}

/// Every file of fio in a folder and below, by name; others are passed over.
fn read_folder(folder: &Path, unread: &mut Vec<String>) -> anyhow::Result<Vec<Source>> {
    let found = files_of(folder)?;
    let files = found.files;
    if files.len() > MOST_FILES {
        let path = folder.display();
        let message = format!("{path}: {} files; import at most {MOST_FILES}", files.len());
        return Err(input_error(message));
    }
    let mut sources = Vec::new();
    let mut foreign = Vec::new();
    let mut damaged = found.unread;
    let mut left = MOST_BYTES_AT_ONCE;
    for path in &files {
        let step = path.strip_prefix(folder).unwrap_or(path).with_extension("");
        match read_within(path, step.to_string_lossy().into_owned(), &mut left) {
            Ok(source) => sources.push(source),
            Err(Unread::Foreign(reason)) => foreign.push(format!("{}: {reason}", path.display())),
            Err(Unread::Damaged(reason)) => damaged.push(format!("{}: {reason}", path.display())),
        }
    }
    if sources.is_empty() {
        let reason = match damaged.iter().chain(&foreign).next() {
            None => "it has no files".to_owned(),
            Some(first) => format!(
                "{} were looked at; {first}",
                units::counted(files.len(), "file")
            ),
        };
        let path = folder.display();
        return Err(input_error(format!(
            "{path}: no output of fio in this folder; {reason}"
        )));
    }
    if !foreign.is_empty() {
        out::note(format_args!(
            "passed over {} in {} that fio did not write",
            units::counted(foreign.len(), "file"),
            folder.display()
        ));
    }
    unread.extend(damaged);
    Ok(sources)
}

/// Reads one of many files, which together have `left` bytes at most.
fn read_within(path: &Path, step: String, left: &mut u64) -> Result<Source, Unread> {
    let bytes = fs::metadata(path).map_or(0, |file| file.len());
    if bytes > *left && bytes <= MOST_BYTES {
        let most = units::bytes(MOST_BYTES_AT_ONCE as f64);
        let reason = format!("more than {most} in one import; import it by itself");
        return Err(Unread::Damaged(reason));
    }
    let source = read_source(path, step)?;
    *left = left.saturating_sub(source.bytes.len() as u64);
    Ok(source)
}

fn read_source(path: &Path, step: String) -> Result<Source, Unread> {
    let bytes = read_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::FileTooLarge => {
            Unread::Foreign(error.to_string())
        }
        _ => Unread::Damaged(error.to_string()),
    })?;
    if let Some(read) = fathom_import::read(&bytes) {
        let of = read.map_err(|error| Unread::Damaged(error.to_string()))?;
        return Ok(Source {
            path: path.to_owned(),
            step,
            bytes,
            format: SourceFormat::Other(of.tool),
            results: of.loads,
            warnings: vec![of.tool.loss().to_owned()],
            beside: of.beside,
        });
    }
    parse(path.to_owned(), step, bytes).map_err(|error| match error {
        ImportError::Empty | ImportError::NotFio { .. } => Unread::Foreign(error.to_string()),
        ImportError::NoJobs(_) | ImportError::Json(_) => Unread::Damaged(error.to_string()),
    })
}

/// A file that is named, or what somebody has opened for this program: `<(fio …)` of a
/// shell is a pipe in /dev/fd.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if path.starts_with("/dev/fd") && !path.is_file() {
        return read_open(fs::File::open(path)?);
    }
    match path == Path::new("-") {
        true => read_open(io::stdin().lock()),
        false => regular::read(path, MOST_BYTES),
    }
}

fn read_open(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

fn parse(path: PathBuf, step: String, bytes: Vec<u8>) -> Result<Source, ImportError> {
    let (format, results, warnings) = import::read(&bytes)?;
    Ok(Source {
        path,
        step,
        bytes,
        format: SourceFormat::Fio(format),
        results,
        warnings,
        beside: None,
    })
}
