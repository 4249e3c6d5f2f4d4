//! What tests of running programs do to them: signals, and waiting. A busy machine
//! does anything late: tests wait for what happens, never for a time.

use std::process::{Child, Command, Output};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// What a `stat` of /proc says behind the name, which may hold anything: state, parent,
/// process group, session and so on (proc(5) counts the state as the third).
pub fn stat_fields(stat: &str) -> Vec<&str> {
    let behind = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    behind.split_whitespace().collect()
}

/// Sends a signal by its name, `-INT`.
///
/// # Panics
/// When it cannot be sent.
pub fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let kill = kill.args([name, &child.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
}

/// Waits for what must come, for two minutes.
///
/// # Panics
/// When it does not.
pub fn await_that(what: &str, come: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !come() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Tries to meet a moment, which goes by when the machine has other work: with
/// little time to do so at first, then with more. The attempt is told how many
/// times longer everything is to take, and whether it met the moment is its answer.
///
/// # Panics
/// When the moment is never met.
pub fn meet(what: &str, attempt: impl Fn(u32) -> bool) {
    let met = [1, 4, 16].into_iter().any(attempt);
    assert!(met, "{what} was over each time, before it was seen");
}

/// Sends a signal by its name, `-INT`, until the program ends, and gives how:
/// several that come at once are one to it.
///
/// # Panics
/// When its output cannot be read.
pub fn signal_until_it_ends(child: Child, name: &str) -> Output {
    let (name, pid) = (name.to_owned(), child.id().to_string());
    let (ended, end) = mpsc::channel::<()>();
    let sender = thread::spawn(move || {
        loop {
            // It may have ended meanwhile.
            let _ = Command::new("kill").args([&name, &pid]).status();
            if end.recv_timeout(Duration::from_millis(200)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    let output = child.wait_with_output();
    drop(ended);
    sender
        .join()
        .expect("a thread that only sends does not panic");
    output.expect("the output of a child can be read")
}
