//! A machine on which something else runs.

use std::process::{Child, Command, Stdio};

/// A program that keeps the first core busy until it is dropped.
pub struct BusyCore(Child);

impl BusyCore {
    pub fn start() -> Self {
        let busy = Command::new("taskset")
            .args(["-c", "0", "sh", "-c", "while :; do :; done"])
            .stdout(Stdio::null())
            .spawn();
        Self(busy.unwrap())
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
