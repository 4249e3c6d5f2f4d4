//! Stands between fio's client and all its servers: one thread, one socket in a
//! private folder for each server.
//!
//! fio's client connects to its servers one after the other without a limit of
//! time, tells them to begin as soon as each is ready, and waits for ever for
//! one that says nothing. The relay connects to all at once, keeps the order to
//! begin back until all can, and hangs up where a server is lost; fio then
//! reports the others.

use std::fs;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_device::Scratch;
use fathom_device::threads::{self, NoThread};
use fathom_model::FailureKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::link::{Link, ServerMessage, ServerStep};

/// How long a server may take to say who it is. fio answers at once; a loaded
/// machine takes a second or two to start the process that does.
const GREETING_WAIT: Duration = Duration::from_secs(15);
/// How long it may take to read the jobs.
const PREPARE_WAIT: Duration = Duration::from_secs(60);
/// How long it may say nothing at all while its jobs run: the relay asks every
/// interval, and the process that answers does no I/O.
const SILENCE: Duration = Duration::from_secs(30);
/// How long every server is sure to have begun to read an order: it looks for
/// orders once a second, and may have to wait for a CPU.
const LEAN: Duration = Duration::from_millis(1250);
/// How often orders and waits are looked at; traffic wakes the thread by itself.
const TICK: Duration = Duration::from_millis(20);

/// What to do about a server that says nothing.
const SILENT_SERVER: &str = "look at that host: whether its fio server is stopped or overloaded; start it again there ('fathom serve')";
/// What to do about a server whose jobs do not end.
const HUNG_JOBS: &str = "look at the kernel log of that host: its device may not answer; start its fio server again once it does";

/// What the relay tells.
#[derive(Debug)]
pub enum RelayMessage {
    /// A server, by its place, told something.
    Said(usize, Instant, ServerMessage),
    /// Every server could begin and was told to.
    Released,
    /// All that were asked how far they are have answered; when they were asked.
    Round(Instant),
    /// There are fewer servers than wanted; the others were not begun.
    TooFew,
}

/// What the relay is told: to give a server up, and why.
#[derive(Debug)]
pub struct Cut {
    /// Its place.
    pub place: usize,
    /// One sentence.
    pub why: String,
}

/// The relay's thread and folder.
#[derive(Debug)]
pub struct Relay {
    /// The folder with the sockets; fio runs in it, because it names what comes
    /// from a server after its socket's path.
    pub dir: Scratch,
    orders: Option<Sender<Cut>>,
    words: Receiver<RelayMessage>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// The folder and in it a socket of each name; who may come is this user alone.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn sockets(names: &[String]) -> io::Result<(Scratch, Vec<UnixListener>)> {
        let dir = Scratch::new()?;
        let mut listeners = Vec::with_capacity(names.len());
        for name in names {
            let listener = bind(dir.path(), name)?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        Ok((dir, listeners))
    }

    /// Begins to pass on; `least` servers at the fewest are told to begin.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        dir: Scratch,
        links: Vec<Link>,
        least: usize,
        interval: Duration,
    ) -> Result<Self, NoThread> {
        let (orders, ordered) = mpsc::channel();
        let (words, told) = mpsc::channel();
        let thread = threads::spawn("fio-relay", move || {
            let mut desk = Desk {
                links,
                least,
                interval,
                words,
                leaning: None,
                released: None,
                next_round: None,
                open_round: None,
            };
            desk.work(&ordered);
        })?;
        Ok(Self {
            dir,
            orders: Some(orders),
            words: told,
            thread: Some(thread),
        })
    }

    /// What was told since the last time.
    pub fn words(&self) -> impl Iterator<Item = RelayMessage> + '_ {
        self.words.try_iter()
    }

    /// Gives a server up.
    pub fn cut(&self, cut: Cut) {
        if let Some(orders) = &self.orders {
            // A relay that has ended has hung up everywhere.
            let _ = orders.send(cut);
        }
    }

    /// Hangs up everywhere and ends the thread; what it still tells stays to be heard.
    pub fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

/// Binds a socket whatever the length of the folder's path: bind(2) takes 107
/// bytes, which `/proc/self/fd` keeps short.
fn bind(dir: &Path, name: &str) -> io::Result<UnixListener> {
    use std::os::fd::AsRawFd;
    let folder = fs::File::open(dir)?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    match short.is_dir() {
        true => UnixListener::bind(short.join(name)),
        false => UnixListener::bind(dir.join(name)),
    }
}

/// The thread's own.
struct Desk {
    links: Vec<Link>,
    least: usize,
    interval: Duration,
    words: Sender<RelayMessage>,
    /// Since when the servers read the order to begin.
    leaning: Option<Instant>,
    released: Option<Instant>,
    next_round: Option<Instant>,
    /// When the question was asked whose answers are awaited.
    open_round: Option<Instant>,
}

impl Desk {
    fn work(&mut self, orders: &Receiver<Cut>) {
        let mut chunk = vec![0; 1 << 16];
        loop {
            self.wait();
            for link in &mut self.links {
                link.turn(&mut chunk);
            }
            loop {
                match orders.try_recv() {
                    Ok(cut) => {
                        let link = &mut self.links[cut.place];
                        if link.step < ServerStep::Over {
                            let failure = link.failure(FailureKind::Hung, cut.why);
                            link.lose(failure.to_do(HUNG_JOBS));
                        }
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.links.iter_mut().for_each(Link::hang_up);
                        self.tell();
                        return;
                    }
                }
            }
            self.keep_time();
            self.release();
            self.ask();
            self.tell();
        }
    }

    fn wait(&self) {
        let interests: Vec<_> = self.links.iter().flat_map(Link::interests).collect();
        let mut fds: Vec<PollFd> = interests
            .iter()
            .map(|(fd, reads, writes)| {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, *reads);
                flags.set(PollFlags::OUT, *writes);
                PollFd::from_borrowed_fd(*fd, flags)
            })
            .collect();
        let until_round = self.next_round.map_or(TICK, |at| {
            at.saturating_duration_since(Instant::now()).min(TICK)
        });
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(until_round.subsec_nanos()),
        };
        // Whatever it says, all links have their turn.
        let _ = poll(&mut fds, Some(&tick));
    }

    /// Gives up servers that say nothing.
    fn keep_time(&mut self) {
        for link in &mut self.links {
            let (limit, what) = match link.step {
                ServerStep::Greeting => (GREETING_WAIT, "it does not say who it is"),
                ServerStep::Preparing => (
                    PREPARE_WAIT,
                    "it does not say whether it understands the jobs",
                ),
                ServerStep::Released => (SILENCE, "it says nothing any more"),
                ServerStep::Ready if !link.is_ready() => (PREPARE_WAIT, "it could not begin"),
                // Who is ready may have to wait for the others.
                _ => continue,
            };
            if link.heard.elapsed() > limit {
                let what = format!("{what} (for {} s)", limit.as_secs());
                let failure = link.failure(FailureKind::Hung, what);
                link.lose(failure.to_do(SILENT_SERVER));
            }
        }
    }

    /// Lets all begin once all can.
    fn release(&mut self) {
        if self.released.is_some() {
            return;
        }
        let there = self
            .links
            .iter()
            .filter(|link| link.step < ServerStep::Over);
        let (mut count, mut ready) = (0, true);
        for link in there {
            count += 1;
            ready &= link.is_ready();
        }
        if count < self.least {
            // Those that are left would be measured alone.
            self.released = Some(Instant::now());
            self.links.iter_mut().for_each(Link::hang_up);
            let _ = self.words.send(RelayMessage::TooFew);
        } else if self.leaning.is_none() && ready && count > 0 {
            self.links.iter_mut().for_each(Link::lean);
            self.leaning = Some(Instant::now());
        } else if self.leaning.is_some_and(|since| since.elapsed() > LEAN) {
            let now = Instant::now();
            self.links.iter_mut().for_each(Link::release);
            self.released = Some(now);
            self.next_round = Some(now + self.interval);
            let _ = self.words.send(RelayMessage::Released);
        }
    }

    /// Asks every interval.
    fn ask(&mut self) {
        let now = Instant::now();
        let is_due = self.next_round.is_some_and(|at| at <= now);
        let all_answered = !self.links.iter().any(Link::is_asked);
        if let Some(asked) = self.open_round.take_if(|_| all_answered || is_due) {
            self.tell();
            let _ = self.words.send(RelayMessage::Round(asked));
        }
        if is_due {
            self.links.iter_mut().for_each(|link| link.ask(now));
            self.open_round = self.links.iter().any(Link::is_asked).then_some(now);
            self.next_round = Some(now + self.interval);
        }
    }

    fn tell(&mut self) {
        for (place, link) in self.links.iter_mut().enumerate() {
            for (at, said) in link.said.drain(..) {
                let _ = self.words.send(RelayMessage::Said(place, at, said));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::super::quota::FrameQuota;
    use super::*;

    /// A server that is silent, whatever it is to say next.
    #[test]
    fn a_silent_server_is_given_up_with_what_to_do_about_it() {
        let (dir, sockets) = Relay::sockets(&["one".to_owned()]).unwrap();
        let mut sockets = sockets.into_iter();
        let (far, _server) = UnixStream::pair().unwrap();
        let (words, told) = mpsc::channel();
        let quota = FrameQuota::new(1, None);
        let link = Link::new(
            "one".into(),
            sockets.next().unwrap(),
            OwnedFd::from(far),
            quota,
        );
        let mut desk = Desk {
            links: vec![link],
            least: 1,
            interval: Duration::from_secs(1),
            words,
            leaning: None,
            released: None,
            next_round: None,
            open_round: None,
        };
        for (step, limit) in [
            (ServerStep::Greeting, GREETING_WAIT),
            (ServerStep::Preparing, PREPARE_WAIT),
            (ServerStep::Ready, PREPARE_WAIT),
            (ServerStep::Released, SILENCE),
        ] {
            let before = Instant::now().checked_sub(limit - Duration::from_secs(5));
            desk.links[0].step = step;
            desk.links[0].heard = before.unwrap();
            desk.keep_time();
            assert!(desk.links[0].said.is_empty(), "{step:?}: it has time left");
            let before = Instant::now().checked_sub(limit + Duration::from_secs(1));
            desk.links[0].heard = before.unwrap();
            desk.keep_time();
            desk.tell();
            let Ok(RelayMessage::Said(0, _, ServerMessage::Lost(failure))) = told.try_recv() else {
                panic!("{step:?}: nothing is told");
            };
            let said = failure.to_string();
            assert!(
                said.ends_with(SILENT_SERVER) && !said.contains("state D"),
                "{said}"
            );
        }
        drop(dir);
    }
}
