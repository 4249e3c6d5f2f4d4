//! The fio of this machine as the oracle.

use std::path::Path;
use std::process::{Command, Output};

use fathom_testkit::skip;

/// Variables of the corpus.
pub const VARIABLES: [(&str, &str); 4] = [
    ("FATHOM_SIZE", "1m"),
    ("FATHOM_TWO", "2"),
    ("FATHOM_KEY", "rw"),
    ("FATHOM_SEMICOLON", "a ; b"),
];

pub fn variable(name: &str) -> Option<String> {
    VARIABLES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| (*value).to_owned())
}

/// Runs fio; `None`, with a line that says so, where there is none.
pub fn run(test: &str, args: &[&str], folder: &Path) -> Option<Output> {
    let output = Command::new("fio")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(VARIABLES)
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            skip(test, &format!("fio cannot be started: {error}"));
            None
        }
    }
}

/// Runs fio once for each list of arguments. It sleeps most of its start-up
/// time, so several run at once.
pub fn run_each(test: &str, runs: &[Vec<String>]) -> Option<Vec<Output>> {
    const AT_ONCE: usize = 12;
    let size = runs.len().div_ceil(AT_ONCE).max(1);
    let one = |args: &Vec<String>| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(test, &args, Path::new("/"))
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = runs
            .chunks(size)
            .map(|chunk| scope.spawn(move || chunk.iter().map(one).collect::<Option<Vec<_>>>()))
            .collect();
        let outputs: Option<Vec<Vec<_>>> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        Some(outputs?.into_iter().flatten().collect())
    })
}

/// Whether this is the fio whose options the table holds.
pub fn is_the_tables(test: &str) -> bool {
    let Some(output) = run(test, &["--version"], Path::new("/")) else {
        return false;
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if version == "fio-3.33" {
        return true;
    }
    skip(test, &format!("needs fio 3.33, this is {version}"));
    false
}

/// stdout and stderr as text.
pub fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
