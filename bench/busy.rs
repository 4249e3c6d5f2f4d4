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

/// Data in which no page is like another.
pub fn data(bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}
