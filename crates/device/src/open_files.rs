//! How many files this process may have open: sockets and pipes to other machines
//! are files too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than any number of machines takes. Where nothing is limited, programs
/// that close every descriptor there may be would be at it for minutes.
const ENOUGH: u64 = 1 << 16;

/// Raises the limit as far as it may be raised; gives what it is then.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(u64::MAX);
    let most = limit.maximum.unwrap_or(u64::MAX).min(ENOUGH);
    if now >= most {
        return now;
    }
    let raised = Rlimit {
        current: Some(most),
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(_) => now,
    }
}
