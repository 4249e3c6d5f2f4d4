//! Connections to many machines, without running into the doors of those that
//! let only so many in at a time.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::threads;
use fathom_engine::Control;

use super::{SshError, SshSession};

/// How many connections are made at a time, in the first round and in those that
/// try again what was turned away. An sshd begins to turn away at 10 that have
/// not logged in (sshd_config(5), MaxStartups 10:30:100), and that of a jump host
/// has those of all; one that was set to less is known by the last rounds.
const ROUNDS: [usize; 6] = [8, 4, 2, 1, 1, 1];
/// The shortest and the longest pause before a round: several drivers that were
/// turned away together do not come back together.
const PAUSE_MS: [u64; 2] = [250, 1250];
/// How often the pause looks at the requests to end.
const TICK: Duration = Duration::from_millis(20);

/// What ssh says when it was turned away before it could log in, and nothing is
/// known to be wrong.
const TURNED_AWAY: [&str; 6] = [
    "kex_exchange_identification",
    "Connection closed by",
    "Connection reset by",
    "during banner exchange",
    "Not allowed at this time",
    "Exceeded MaxStartups",
];
/// What it says beside that when another try would end alike.
const FOR_GOOD: [&str; 4] = [
    "open failed",
    "Permission denied",
    "verification failed",
    "Could not resolve",
];

/// Whether ssh was turned away by a machine that had too many at its door.
pub(super) fn is_turned_away(said: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    has(&TURNED_AWAY) && !has(&FOR_GOOD)
}

/// Connects to all of them, a bounded number at a time; nobody is asked anything.
/// Who is turned away is tried again, with fewer at a time.
pub fn open_all(targets: &[String], control: &Control) -> Vec<Result<SshSession, SshError>> {
    let mut sessions: Vec<Option<Result<SshSession, SshError>>> = Vec::new();
    sessions.resize_with(targets.len(), || None);
    for (round, at_a_time) in ROUNDS.into_iter().enumerate() {
        let is_left = |place: &usize| match &sessions[*place] {
            None => true,
            Some(tried) => tried.as_ref().is_err_and(SshError::is_turned_away),
        };
        let left: Vec<usize> = (0..targets.len()).filter(is_left).collect();
        if left.is_empty() || (round > 0 && !pause(control)) {
            break;
        }
        for (place, opened) in open_some(targets, &left, at_a_time, control) {
            sessions[place] = Some(opened);
        }
    }
    let not_tried = || SshError::Local {
        what: "it was not connected to",
        source: std::io::Error::other("the run was ended first"),
    };
    sessions
        .into_iter()
        .map(|opened| opened.unwrap_or_else(|| Err(not_tried())))
        .collect()
}

/// Connects to those at `places`, so many at a time.
fn open_some(
    targets: &[String],
    places: &[usize],
    at_a_time: usize,
    control: &Control,
) -> Vec<(usize, Result<SshSession, SshError>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut opened = Vec::new();
        while let Some(&place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            if control.stop_requests() > 0 {
                break;
            }
            opened.push((place, SshSession::open_unattended(&targets[place], control)));
        }
        opened
    };
    thread::scope(|scope| {
        let workers = 1..at_a_time.min(places.len());
        let workers: Vec<_> = workers
            // Without a thread the others do its work.
            .filter_map(|_| threads::spawn_scoped(scope, "connect", work).ok())
            .collect();
        let mut opened = work();
        for worker in workers {
            opened.extend(worker.join().unwrap_or_default());
        }
        opened
    })
}

/// Waits a while before another round; whether there is to be one.
fn pause(control: &Control) -> bool {
    let [least, most] = PAUSE_MS;
    let random = RandomState::new().hash_one(0);
    let until = Instant::now() + Duration::from_millis(least + random % (most - least));
    while Instant::now() < until && control.stop_requests() == 0 {
        thread::sleep(TICK);
    }
    control.stop_requests() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_go_better_is_tried_again() {
        let again = [
            "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port 22",
            "kex_exchange_identification: read: Connection reset by peer",
            "Connection closed by UNKNOWN port 65535",
            "Connection timed out during banner exchange",
        ];
        assert!(again.iter().all(|said| is_turned_away(said)));
        let not = [
            "",
            "root@m3: Permission denied (publickey).\nConnection closed by 10.0.0.1 port 22",
            "Host key verification failed.",
            "ssh: connect to host m1 port 22: Connection refused",
            "channel 0: open failed: connect failed: No route to host\nstdio forwarding failed\nkex_exchange_identification: Connection closed by remote host",
            "ssh: Could not resolve hostname nosuch.invalid: Name or service not known",
        ];
        assert!(!not.iter().any(|said| is_turned_away(said)));
    }
}
