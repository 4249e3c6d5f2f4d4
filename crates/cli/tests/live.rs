//! What a person sees while a run goes on, on a terminal and off it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fathom_testkit::{program, require};

/// `fathom` with `options` and a job of 500 reads a second.
fn arguments(options: &[&str], runtime: &str) -> Vec<String> {
    let job = "--name=reads --rw=randread --size=4m --ioengine=psync --rate_iops=500 --time_based";
    let job = job.split(' ').chain([runtime]);
    let all = options
        .iter()
        .copied()
        .chain(["job", "run", "--"])
        .chain(job);
    all.map(str::to_owned).collect()
}

fn run(dir: &Path, arguments: &[String]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(arguments)
        .current_dir(dir)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stderr}");
    (stdout, stderr)
}

#[test]
fn off_a_terminal_an_interval_is_a_line_and_quiet_is_quiet() {
    require!(program("fio"));
    let dir = tempfile::tempdir().unwrap();
    let (stdout, stderr) = run(dir.path(), &arguments(&[], "--runtime=2"));
    assert!(stdout.starts_with("reads: complete"), "{stdout}");
    assert!(!stderr.contains(['\x1b', '\r']), "{stderr:?}");
    let is_interval = |line: &&str| line.contains(" s  read ") && line.contains(" clat ");
    assert!(stderr.lines().filter(is_interval).count() >= 1, "{stderr}");
    let (_, stderr) = run(dir.path(), &arguments(&["-q"], "--runtime=1"));
    assert_eq!(stderr, "");
}

/// indicatif leaves the cursor at the right edge of its last line; the `^C`
/// that the terminal echoes then stood on a line of its own, and the first line
/// of the display stayed on the screen for ever.
#[test]
fn ctrl_c_leaves_nothing_of_the_display_on_the_terminal() {
    for needed in ["fio", "script"] {
        require!(program(needed));
    }
    let dir = tempfile::tempdir().unwrap();
    let command = [
        &[env!("CARGO_BIN_EXE_fathom").to_owned()],
        &arguments(&[], "--runtime=300")[..],
    ];
    let mut terminal = Command::new("script")
        .args([
            "-q",
            "-E",
            "always",
            "-e",
            "-c",
            &format!("stty cols 80 rows 24; {}", command.concat().join(" ")),
        ])
        .arg("/dev/null")
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    // Higher than what is drawn on: what was said before has not left it.
    let mut screen = vt100::Parser::new(60, 80, 200);
    let pieces = pieces_of(terminal.stdout.take().unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut pressed = false;
    while Instant::now() < deadline {
        match pieces.recv_timeout(Duration::from_millis(50)) {
            Ok(piece) => screen.process(&piece),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            // Nothing is being drawn: a whole display stands there.
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if !pressed && screen.screen().contents().contains(" IOPS  ") {
                    keys.write_all(b"\x03").unwrap();
                    pressed = true;
                }
            }
        }
    }
    let status = terminal.wait().unwrap();
    let shown = screen.screen().contents();
    assert!(pressed && status.code() == Some(130), "{status}: {shown}");
    // Of the display nothing, of the result all.
    assert!(!shown.contains(" left") && !shown.contains('━'), "{shown}");
    let first = shown.lines().find(|line| !line.is_empty()).unwrap();
    assert!(first.starts_with("reads: interrupted"), "{shown}");
}

/// Reads on a thread of its own, so that waiting for it can have an end.
fn pieces_of(mut output: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = output.read(&mut buffer) {
            if give.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    take
}
