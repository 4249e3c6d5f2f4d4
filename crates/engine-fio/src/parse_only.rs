//! fio asked whether it takes job files, without running them.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::version::Program;

/// A job file that is not there. fio reads its job files one after the other and
/// measures its clock, which takes 140 ms, when it has read all (`init.c`,
/// `parse_options`): with this one as the last it ends before.
const NO_JOB_FILE: &str = "/dev/null/end";

/// How fio names an option that it does not know (`parse.c`).
pub const BAD_OPTION: &str = "Bad option <";

/// What fio says against a job file that it only reads; nothing: it takes it.
///
/// # Errors
/// When fio cannot be run.
pub fn words_against(
    program: &Program,
    job_file: &str,
    extra_args: &[String],
) -> io::Result<Vec<String>> {
    let args = extra_args.iter().map(OsString::from);
    ask(program, args.chain(["-".into()]), job_file)
}

/// Which of these job files fio does not take, and what it says of each.
///
/// # Errors
/// When fio cannot be run.
pub fn refused(program: &Program, files: &[PathBuf]) -> io::Result<Vec<(PathBuf, Vec<String>)>> {
    /// Each start costs 20 ms; fio ends at 4096 jobs (`REAL_MAX_JOBS`), counting
    /// clones, and a refusal is then looked for file by file.
    const TOGETHER: usize = 32;
    let mut found = Vec::new();
    let mut open: Vec<&[PathBuf]> = files.chunks(TOGETHER).rev().collect();
    while let Some(group) = open.pop() {
        let args = group.iter().map(|path| as_argument(path));
        let words = ask(program, args, "")?;
        match group {
            _ if words.is_empty() => {}
            [one] => found.push((one.clone(), words)),
            group => {
                let (first, second) = group.split_at(group.len() / 2);
                open.extend([second, first]);
            }
        }
    }
    Ok(found)
}

/// A path that cannot be taken for an option.
fn as_argument(path: &Path) -> OsString {
    if path.is_absolute() {
        path.into()
    } else {
        Path::new(".").join(path).into()
    }
}

fn ask(
    program: &Program,
    job_files: impl Iterator<Item = OsString>,
    stdin: &str,
) -> io::Result<Vec<String>> {
    let mut fio = Command::new(&program.path)
        .arg("--parse-only")
        .args(job_files)
        .arg(NO_JOB_FILE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut pipe) = fio.stdin.take() {
        // A fio that ends before it has read all says why.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let output = fio.wait_with_output()?;
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let took_all = said.contains(NO_JOB_FILE);
    let lines = || {
        let lines = said.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.contains(NO_JOB_FILE))
    };
    let bad: Vec<String> = lines()
        .filter(|line| line.starts_with(BAD_OPTION))
        .map(str::to_owned)
        .collect();
    if !bad.is_empty() {
        return Ok(bad);
    }
    if took_all || output.status.success() {
        return Ok(Vec::new());
    }
    let first = lines().next();
    let silent = "it does not take the job file, and does not say why";
    Ok(vec![first.unwrap_or(silent).to_owned()])
}
