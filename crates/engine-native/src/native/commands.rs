//! `exec_prerun` and `exec_postrun`: what the shell does before a job and after it.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fathom_model::{Failure, FailureKind};
use rustix::process::{Pid, Signal, kill_process_group};

use super::files::FilePlace;

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The commands of a job, and when they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandTime {
    Before,
    After,
}

impl CommandTime {
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Before => "exec_prerun",
            Self::After => "exec_postrun",
        }
    }

    /// As it stands in the name of the file with what the command prints.
    fn word(self) -> &'static str {
        self.option().trim_start_matches("exec_")
    }
}

/// Has the shell run a command in `folder` as fio does, what it prints in
/// `JOB.prerun.txt` (backend.c, exec_string). `is_stopped` is asked meanwhile, and ends
/// the command.
///
/// # Errors
/// When it cannot be started, or does not end with 0.
pub(super) fn run(
    job: &str,
    time: CommandTime,
    command: &str,
    place: &FilePlace,
    is_stopped: impl Fn() -> bool,
) -> Result<(), Failure> {
    let output = format!("{job}.{}.txt", time.word());
    let failed = |what: String| {
        let what = format!("{}: {what}", time.option());
        Failure::new(FailureKind::Other, what).about(format!("job {job}"))
    };
    let started = start(command, place, &output);
    let mut shell = started
        .map_err(|(what, error)| failed(format!("{what}: {error}; '{command}' has not run")))?;
    loop {
        match shell.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let told = format!("'{command}' ended with {status}");
                return Err(failed(told).to_do(format!("see what it printed: {output}")));
            }
            Ok(None) if is_stopped() => {
                kill(&shell);
                let _ = shell.wait();
                return Ok(());
            }
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => return Err(failed(format!("'{command}' is lost: {error}"))),
        }
    }
}

fn start(command: &str, place: &FilePlace, output: &str) -> Result<Child, (String, io::Error)> {
    let open = || {
        let printed = place.checked.create(&place.work_dir.join(output))?;
        Ok((printed.try_clone()?, printed))
    };
    let (stdout, stderr) =
        open().map_err(|error| (format!("{output} cannot be written"), error))?;
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(&place.work_dir)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec it makes one system call and touches no memory.
    unsafe {
        // A shell whose engine is killed ends with it.
        shell.pre_exec(|| {
            let with = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            with.map_err(io::Error::from)
        });
    }
    let started = shell.spawn();
    started.map_err(|error| ("/bin/sh cannot be started".to_owned(), error))
}

/// Ends the shell and what it runs; what has left its group ends with the engine.
fn kill(shell: &Child) {
    let group = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
mod tests {
    use std::path::Path;

    use super::*;

    fn runs(command: &str, folder: &Path) -> Result<(), Failure> {
        let place = FilePlace::of(folder);
        run("a", CommandTime::Before, command, &place, || false)
    }

    #[test]
    fn what_a_command_prints_is_kept_and_how_it_ended_told() {
        let dir = tempfile::tempdir().unwrap();
        let printed = || std::fs::read_to_string(dir.path().join("a.prerun.txt")).unwrap();
        runs("pwd; echo odd >&2", dir.path()).unwrap();
        let folder = dir.path().canonicalize().unwrap();
        assert_eq!(printed(), format!("{}\nodd\n", folder.display()));
        let failure = runs("echo no; exit 3", dir.path()).unwrap_err();
        let said = failure.message.as_str();
        assert_eq!(
            said,
            "exec_prerun: 'echo no; exit 3' ended with exit status: 3"
        );
        assert_eq!(printed(), "no\n");
        let nowhere = dir.path().join("nowhere");
        let failure = runs("true", &nowhere).unwrap_err();
        assert!(failure.message.contains("a.prerun.txt cannot be written"));
    }

    #[test]
    fn a_stop_ends_a_command_with_all_of_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("group");
        let command = "sleep 600 & echo $$ >group.new; mv group.new group; sleep 600";
        let is_stopped = || group.exists();
        run(
            "a",
            CommandTime::After,
            command,
            &FilePlace::of(dir.path()),
            is_stopped,
        )
        .unwrap();
        let group = std::fs::read_to_string(group).unwrap();
        let group = Pid::from_raw(group.trim().parse().unwrap()).unwrap();
        // What it had in the background is reaped by others.
        while rustix::process::test_kill_process_group(group).is_ok() {
            std::thread::sleep(LOOK);
        }
    }
}
