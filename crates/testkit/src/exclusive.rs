//! What tests share of a machine, taken in turns: by tests of this process and of
//! any other.

use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// A turn; it ends when it is dropped, and with its process.
#[derive(Debug)]
pub struct Exclusive {
    _lock: File,
}

/// Waits until no other test has `name`.
///
/// # Panics
/// When there can be no lock in the folder for temporary files.
pub fn exclusive(name: &str) -> Exclusive {
    let lock = open(name);
    lock.lock().expect("a file can be locked");
    Exclusive { _lock: lock }
}

/// Waits until no test has `name` for itself; others may share it.
///
/// # Panics
/// When there can be no lock in the folder for temporary files.
pub fn shared(name: &str) -> Exclusive {
    let lock = open(name);
    lock.lock_shared().expect("a file can be locked");
    Exclusive { _lock: lock }
}

/// Waits until fewer than `most` other tests have `name`.
pub(crate) fn one_of(name: &str, most: usize) -> Exclusive {
    loop {
        if let Some(turn) = (0..most).find_map(|nth| free(&format!("{name}-{nth}"))) {
            return turn;
        }
        // The kernel waits for one file, not for the first of several.
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// `name`, when no other test has it now.
pub(crate) fn free(name: &str) -> Option<Exclusive> {
    let lock = open(name);
    match lock.try_lock() {
        Ok(()) => Some(Exclusive { _lock: lock }),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(error)) => panic!("{name} cannot be locked: {error}"),
    }
}

fn open(name: &str) -> File {
    let path: PathBuf = std::env::temp_dir().join(format!("fathom-test-{name}.lock"));
    // Reading is enough, and another user's file may not allow more.
    let file = File::open(&path).or_else(|_| File::create(&path));
    file.or_else(|_| File::open(&path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A port of the loopback addresses that no other test has while this process
/// lives, and that nobody is given who asks the kernel for any.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    static HELD: Mutex<Vec<Exclusive>> = Mutex::new(Vec::new());
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let given = range.split_whitespace().next();
    let end: u16 = given.and_then(|port| port.parse().ok()).unwrap_or(32_768);
    let mut held = HELD.lock().expect("no test panics with it");
    for port in (end.saturating_sub(5000).max(1024)..end).rev() {
        let Some(lock) = free(&format!("port-{port}")) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            held.push(lock);
            return port;
        }
    }
    panic!("no port of 127.0.0.1 is free");
}
