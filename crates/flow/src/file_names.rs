//! How the files of steps are called in a record's folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::Point;

/// The path of a job file in the record, by its name there.
pub fn job_path(name: &str, ending: &str) -> PathBuf {
    Path::new("jobs").join(format!("{name}.{ending}"))
}

/// The ending of the job files of stages.
pub const JOB_ENDING: &str = "fio";

/// The ending of a job file.
pub fn ending(job_file: &Path) -> &str {
    let ending = job_file.extension().and_then(OsStr::to_str);
    ending.unwrap_or(JOB_ENDING)
}

/// How many versions of a job file a record can hold.
const VERSIONS_MAX: u32 = 1000;

/// The name under which a text is kept as a job file in the record: the id of
/// its point or stage, or, when another text has that already, the id with a
/// number.
pub fn job_name(dir: &Path, id: &str, ending: &str, text: &str) -> String {
    let mut name = id.to_owned();
    for version in 2..VERSIONS_MAX {
        match fs::read(dir.join(job_path(&name, ending))) {
            Ok(kept) if kept != text.as_bytes() => name = format!("{id}.{version}"),
            _ => break,
        }
    }
    name
}

/// The folder of a later attempt beside that of the first.
pub fn with_try(first: &Path, attempt: u32) -> PathBuf {
    let mut name = first.as_os_str().to_owned();
    name.push(format!(".try{attempt}"));
    PathBuf::from(name)
}

/// The folder of the engine's own outputs of a point.
pub fn raw_name(point: &Point) -> PathBuf {
    match point.repetition {
        0 | 1 => PathBuf::from(&point.id),
        nth => PathBuf::from(format!("{}.r{nth}", point.id)),
    }
}
