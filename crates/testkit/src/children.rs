//! What tests of running programs do to them: signals, and waiting.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Sends a signal by its name, `-INT`.
///
/// # Panics
/// When it cannot be sent.
pub fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let kill = kill.args([name, &child.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
}

/// Waits for what must come, for a minute.
///
/// # Panics
/// When it does not.
pub fn await_that(what: &str, come: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !come() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
