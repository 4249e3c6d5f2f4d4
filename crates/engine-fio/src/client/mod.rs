//! fio's client mode, made dependable: jobs run by the fio servers of other
//! machines, with Fathom in the middle of every connection.
//!
//! - [`address`]: the forms in which servers are named
//! - [`relay`](mod@relay), [`link`](mod@link), [`frame`](mod@frame): what stands
//!   between fio's client and its servers
//! - [`ServerSet`]: what is known of each server, and the judgement at the end

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fathom_device::bounded::LEFT_OUT;
use fathom_device::scratch::OWNER;
use fathom_device::{open_files, threads};
use fathom_jobfile::spec;
use fathom_model::{
    Direction, Event, Failure, FailureKind, Host, JobResult, JobSpec, Results, Sample,
};
use rustix::net::AddressFamily;
use serde::{Deserialize, Serialize};

pub mod address;
mod frame;
mod link;
mod quota;
mod relay;
mod verdict;

use address::Address;
use frame::ServerProgress;
use link::{Link, ServerMessage};
use quota::FrameQuota;
use relay::{Cut, Relay, RelayMessage};

use fathom_engine::{Control, EngineError, Outcome, Request, Sink, expect};

/// How long the connections to all servers may take, names included.
const CONNECT_WAIT: Duration = Duration::from_secs(30);
/// How often a request to stop is looked at meanwhile.
const TICK: Duration = Duration::from_millis(50);
/// How long servers may take to report after they were told to end; then they
/// are given up, and the others report.
pub(super) const QUIT_WAIT: Duration = Duration::from_secs(10);
/// How long a server's jobs may go on behind their own end without moving
/// anything: as long as Linux's SCSI layer waits for a command.
const OVERTIME: Duration = Duration::from_secs(30);
/// Most jobs that fio takes unless it is told otherwise.
const JOBS_MAX: usize = 4096;
/// Most lines of a server's output that are kept.
const TEXTS_MAX: usize = 200;
/// What servers think that is longer than this, they do not know (eta.c).
const LEFT_MAX_S: u64 = 30 * 24 * 3600;
/// Longest name of a server's socket: fio takes 107 bytes of path (`sun_path`).
const NAME_BYTES_MAX: usize = 90;

/// Which servers run the jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Servers {
    /// Where they are; each once.
    pub addresses: Vec<Address>,
    /// How many of them must take part to the end.
    pub least: usize,
    /// A job file on the servers' own disks that runs instead of the request's.
    pub remote_job: Option<String>,
}

/// Whether something listens at an address.
///
/// # Errors
/// Why it cannot be reached.
pub fn reach(address: &Address) -> Result<(), Failure> {
    link::connect(address).map(drop)
}

impl Servers {
    /// The part of fio's command line that names servers and job, as somebody
    /// would write it who calls fio without Fathom.
    pub(super) fn argv(&self, job_file: OsString) -> Vec<OsString> {
        let each = self.addresses.iter().map(Address::to_string);
        argv(each, self.remote_job.as_deref(), &job_file)
    }
}

fn argv(
    servers: impl Iterator<Item = String>,
    remote_job: Option<&str>,
    job_file: &OsString,
) -> Vec<OsString> {
    let job = match remote_job {
        Some(path) => format!("--remote-config={path}").into(),
        None => job_file.clone(),
    };
    let each = servers.map(|server| format!("--client={server}").into());
    each.flat_map(|client| [client, job.clone()]).collect()
}

/// What is known of one server.
#[derive(Debug)]
pub(super) struct ServerState {
    address: Address,
    /// Its socket's name: what fio calls it.
    name: String,
    host: Host,
    texts: Vec<String>,
    /// How many jobs it says will report.
    reports: Option<u32>,
    /// The errno with which its jobs ended.
    ended: Option<i32>,
    lost: Option<Failure>,
    /// Since when its jobs do I/O, and when they moved something last.
    runs: Option<(Instant, Instant)>,
}

impl ServerState {
    fn new(address: Address, name: String) -> Self {
        Self {
            name,
            host: Host {
                name: address.name(),
                port: address.port(),
                ..Host::default()
            },
            address,
            texts: Vec::new(),
            reports: None,
            ended: None,
            lost: None,
            runs: None,
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() || self.lost.is_some()
    }

    fn is_lost(&self) -> bool {
        self.lost.is_some()
    }
}

/// The servers of a run in progress.
#[derive(Debug)]
pub(super) struct ServerSet {
    relay: Relay,
    parts: Vec<ServerState>,
    /// The place among `parts` of each of the relay's.
    linked: Vec<usize>,
    least: usize,
    started: Instant,
    remote_job: Option<String>,
    /// What the jobs are called together.
    jobs: String,
    unified: bool,
    longest: Option<Duration>,
    too_few: bool,
    left_s: Option<u64>,
}

impl ServerSet {
    /// Connects to all servers.
    ///
    /// # Errors
    /// When the sockets cannot be made. Servers that cannot be reached are lost.
    pub fn open(
        servers: &Servers,
        request: &Request,
        control: &Control,
    ) -> Result<Self, EngineError> {
        let started = Instant::now();
        let jobs = match &servers.remote_job {
            Some(_) => Vec::new(),
            None => expect::jobs(request),
        };
        let logs = logs_of(&jobs);
        // Three for each: to it, and both ends of the way from fio's client.
        open_files::raise();
        let tried = connect_all(&servers.addresses, control);
        let names = socket_names(&servers.addresses);
        let each = servers.addresses.iter().zip(names);
        let mut parts: Vec<ServerState> = each
            .map(|(a, name)| ServerState::new(a.clone(), name))
            .collect();
        let (reached, linked) = each_once(tried, &mut parts);
        let names: Vec<String> = linked.iter().map(|&at| parts[at].name.clone()).collect();
        let sockets = Relay::sockets(&names)
            .and_then(|(dir, sockets)| folders_for(&logs, dir.path()).map(|()| (dir, sockets)));
        let (dir, listeners) = sockets.map_err(|e| failed("sockets for fio's client", &e))?;
        let takes_logs = !logs.is_empty() || servers.remote_job.is_some();
        // Nobody here knows how many jobs a file on a server has.
        let count = if jobs.is_empty() {
            JOBS_MAX
        } else {
            jobs.len()
        };
        let ends = listeners.into_iter().zip(reached).zip(&linked);
        let links = ends.map(|((listener, far), &at)| {
            let name = parts[at].address.to_string();
            let logs = takes_logs.then_some(dir.path());
            Link::new(name, listener, far, FrameQuota::new(count, logs))
        });
        let links = links.collect();
        let relay = Relay::start(dir, links, servers.least, request.interval)
            .map_err(|lack| EngineError::Failed(lack.into()))?;
        let mut hosts = Self {
            relay,
            parts,
            linked,
            least: servers.least,
            started,
            remote_job: servers.remote_job.clone(),
            jobs: name_of(&expect::entries(&jobs)),
            unified: jobs
                .iter()
                .any(|job| spec::is_on(job, "unified_rw_reporting")),
            longest: expect::longest(&jobs),
            too_few: false,
            left_s: None,
        };
        hosts.count();
        Ok(hosts)
    }

    /// The folder that fio's client is to run in.
    pub fn dir(&self) -> &Path {
        self.relay.dir.path()
    }

    /// The part of fio's command line that names servers and job.
    pub fn argv(&self, job_file: OsString) -> Vec<OsString> {
        let reached = self.parts.iter().filter(|part| !part.is_lost());
        let each = reached.map(|part| format!("sock:{}", part.name));
        argv(each, self.remote_job.as_deref(), &job_file)
    }

    /// Whether the jobs are those of a file on the servers' own disks.
    pub fn runs_remote_job(&self) -> bool {
        self.remote_job.is_some()
    }

    /// Nothing is run: tells why.
    pub fn give_up(&self, sink: &mut dyn Sink) -> Outcome {
        let verdict = self.given_up();
        let hosts = verdict.hosts;
        let _ = sink.event(Event::Hosts { hosts });
        for text in verdict.notes {
            let _ = sink.event(Event::Note { text });
        }
        for failure in verdict.failures {
            let _ = sink.event(Event::Failure(failure));
        }
        Outcome::Failed
    }

    /// Puts the logs that servers sent where fio without Fathom would have
    /// written them: into the folder the run is in, with the server's name behind.
    pub fn keep_logs(&self, work_dir: &Path, failures: &mut Vec<Failure>) {
        let sockets: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let is_log = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let is_ours = |name: &str| name == OWNER || sockets.contains(&name);
            path.is_file() && !name.is_some_and(is_ours)
        };
        let mut folders = vec![self.dir().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let from = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(from);
                    continue;
                }
                let Some(name) = from.strip_prefix(self.dir()).ok().filter(|_| is_log(&from))
                else {
                    continue;
                };
                let to = work_dir.join(name);
                // The folders are often on different file systems.
                if let Err(error) = std::fs::copy(&from, &to) {
                    let what = format!("this log of a server cannot be kept: {error}");
                    let failure = Failure::new(FailureKind::Record, what);
                    failures.push(failure.about(to.display().to_string()));
                }
            }
        }
    }

    /// Whether fewer servers are left than must take part.
    pub fn too_few(&self) -> bool {
        self.too_few
    }

    fn count(&mut self) {
        let there = self.parts.iter().filter(|part| !part.is_lost()).count();
        self.too_few |= there < self.least;
    }

    /// What has happened since the last time.
    pub fn hear(&mut self) -> Vec<Event> {
        let words: Vec<RelayMessage> = self.relay.words().collect();
        let mut events = Vec::new();
        for word in words {
            match word {
                RelayMessage::Said(link, at, said) => {
                    let place = self.linked[link];
                    self.said(place, at, said, &mut events);
                }
                RelayMessage::Released => events.push(Event::Jobs {
                    names: vec![self.jobs.clone(); self.parts.len()],
                    hosts: self.parts.iter().map(|part| part.host.label()).collect(),
                }),
                RelayMessage::Round(at) => events.push(Event::Interval {
                    t_ms: ms(at.saturating_duration_since(self.started)),
                    remaining_ms: self.left_s.take().map(|left| left.saturating_mul(1000)),
                }),
                RelayMessage::TooFew => self.too_few = true,
            }
        }
        self.end_overtime();
        events
    }

    fn said(&mut self, place: usize, at: Instant, said: ServerMessage, events: &mut Vec<Event>) {
        let since_start = at.saturating_duration_since(self.started);
        let part = &mut self.parts[place];
        match said {
            ServerMessage::Name(name, version) => {
                part.host.hostname = name;
                part.host.engine_version = version;
            }
            ServerMessage::Ready(reports) => part.reports = reports,
            ServerMessage::Began => part.host.start_ms = Some(since_start.as_secs_f64() * 1000.0),
            ServerMessage::Text(text) => {
                for line in text
                    .lines()
                    .map(str::trim_end)
                    .filter(|line| !line.is_empty())
                {
                    if line.contains(": Laying out IO file") && part.texts.len() < TEXTS_MAX {
                        let what = format!("{} ({})", line, part.address);
                        events.push(Event::Preparing { what });
                    }
                    if part.texts.len() < TEXTS_MAX {
                        part.texts.push(line.to_owned());
                    }
                }
            }
            ServerMessage::LeftOut => {
                let text = format!("{}: {LEFT_OUT}", part.address);
                events.push(Event::Note { text });
            }
            ServerMessage::Ended(error) => {
                part.ended = Some(error);
                part.host.end_ms = Some(since_start.as_secs_f64() * 1000.0);
            }
            ServerMessage::Lost(failure) => {
                part.host.end_ms = Some(since_start.as_secs_f64() * 1000.0);
                part.lost = Some(failure);
                self.count();
            }
            ServerMessage::Progress(span, progress) => {
                self.progress((place, at), span, progress, events);
            }
        }
    }

    fn progress(
        &mut self,
        (place, at): (usize, Instant),
        span: Duration,
        progress: ServerProgress,
        events: &mut Vec<Event>,
    ) {
        let part = &mut self.parts[place];
        let moved = progress.bw_bytes.iter().any(|&rate| rate > 0);
        if progress.running + progress.ramping > 0 {
            let (_, last) = part.runs.get_or_insert((at, at));
            if moved {
                *last = at;
            }
        }
        if progress.left_s <= LEFT_MAX_S {
            self.left_s = self.left_s.max(Some(progress.left_s));
        }
        // fio itself throws away what was counted in a ramp.
        if progress.ramping > 0 {
            return;
        }
        let directions = match self.unified {
            true => [Direction::Mixed, Direction::Write, Direction::Trim],
            false => [Direction::Read, Direction::Write, Direction::Trim],
        };
        let share = |rate: f64| (rate * span.as_secs_f64()).round() as u64;
        for (dir, (bw, iops)) in directions
            .into_iter()
            .zip(progress.bw_bytes.into_iter().zip(progress.iops))
        {
            let (ios, bytes) = (share(f64::from(iops)), share(bw as f64));
            if ios > 0 || bytes > 0 {
                events.push(Event::Sample(Sample {
                    t_ms: ms(at.saturating_duration_since(self.started)),
                    span_ms: ms(span),
                    job: u32::try_from(place).unwrap_or(u32::MAX),
                    dir,
                    ios,
                    bytes,
                    clat: None,
                    lat: None,
                }));
            }
        }
    }

    /// Gives up servers whose jobs should have ended long ago and do nothing.
    fn end_overtime(&mut self) {
        let Some(longest) = self.longest else { return };
        for place in 0..self.parts.len() {
            let Some((since, last)) = self.parts[place].runs else {
                continue;
            };
            if since.elapsed() > longest + OVERTIME && last.elapsed() > OVERTIME {
                let what = format!(
                    "its jobs should have ended after {} s and hang: nothing has moved for {} s",
                    longest.as_secs_f64(),
                    last.elapsed().as_secs(),
                );
                self.cut(place, &what);
            }
        }
    }

    /// Gives up every server that has not ended.
    pub fn cut_all(&mut self, why: &str) {
        for place in 0..self.parts.len() {
            self.cut(place, why);
        }
    }

    fn cut(&mut self, place: usize, why: &str) {
        if self.parts[place].is_over() {
            return;
        }
        self.parts[place].runs = None;
        if let Some(link) = self.linked.iter().position(|&linked| linked == place) {
            self.relay.cut(Cut {
                place: link,
                why: why.to_owned(),
            });
        }
    }

    /// Hangs up everywhere; what was still told is heard.
    pub fn end(&mut self) -> Vec<Event> {
        self.relay.end();
        self.hear()
    }

    /// Gives figures and disks the names of their hosts, takes fio's own sum away,
    /// and leaves out the jobs of servers that nobody asked.
    pub fn name(&self, results: &mut Results) {
        let names: BTreeMap<&str, &ServerState> = self
            .parts
            .iter()
            .map(|part| (part.name.as_str(), part))
            .collect();
        results.jobs.retain(|job| !job.is_sum_of_clients());
        let sockets: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        by_server(&mut results.jobs, &sockets);
        for job in &mut results.jobs {
            let part = job.hostname.as_deref().and_then(|name| names.get(name));
            if let Some(part) = part {
                job.hostname = Some(part.host.name.clone());
                job.port = part.host.port;
            }
        }
        for disk in &mut results.disks {
            let part = disk.host.as_deref().and_then(|name| names.get(name));
            if let Some(part) = part {
                disk.host = Some(part.host.name.clone());
            }
        }
    }
}

/// Puts the jobs into the order of the servers: fio's client tells them as the
/// servers end, each server's own in the order of the job file (`__show_run_stats`
/// in stat.c sends them so).
fn by_server(jobs: &mut [JobResult], sockets: &[&str]) {
    let place = |job: &JobResult| {
        let name = job.hostname.as_deref();
        sockets.iter().position(|&socket| Some(socket) == name)
    };
    // Stable: what one server told keeps its order.
    jobs.sort_by_key(place);
}

/// The logs that jobs write: what their names begin with.
fn logs_of(jobs: &[JobSpec]) -> Vec<String> {
    let is_log = |name: &str| name.starts_with("write_") && name.ends_with("_log");
    let options = jobs.iter().flat_map(|job| &job.options);
    let logs = options.filter(|option| is_log(&option.name));
    logs.map(|option| option.value.clone().unwrap_or_default())
        .collect()
}

fn failed(what: &str, error: &std::io::Error) -> EngineError {
    let what = format!("{what}: {error}");
    EngineError::Failed(Failure::new(FailureKind::Other, what))
}

/// The folders of logs below `dir`, in which fio's client runs: it makes none.
/// Those that are named from the root on are where they are.
fn folders_for(logs: &[String], dir: &Path) -> std::io::Result<()> {
    let folders = logs.iter().filter_map(|log| Path::new(log).parent());
    folders
        .filter(|folder| is_below(folder))
        .try_for_each(|folder| std::fs::create_dir_all(dir.join(folder)))
}

/// Whether a path leads nowhere but down.
fn is_below(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// What all jobs of a host are called together: its samples tell no more.
fn name_of(entries: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in entries {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    match names[..] {
        [] => "all jobs".to_owned(),
        _ => names.join("+"),
    }
}

/// A name for each server's socket: what fio calls the server in its outputs
/// and logs. The host's own where that is a file name and no other's.
fn socket_names(addresses: &[Address]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (number, address) in (1..).zip(addresses) {
        let plain = |text: &str| -> String {
            let safe = |c: char| c.is_ascii_alphanumeric() || ".-_,:".contains(c);
            let text: String = text
                .chars()
                .map(|c| if safe(c) { c } else { '_' })
                .collect();
            text.trim_start_matches(['.', '-', '_']).to_owned()
        };
        let same_host = |other: &&Address| other.name() == address.name();
        let mut name = match addresses.iter().filter(same_host).count() {
            1 => plain(&address.name()),
            _ => plain(&address.to_string()),
        };
        name.truncate(NAME_BYTES_MAX);
        if name.is_empty() || names.contains(&name) {
            name = format!("{name}.{number}");
        }
        names.push(name);
    }
    names
}

/// The servers that were reached, and their places. One that is reached under two
/// names would run every job twice.
fn each_once(
    tried: Vec<Result<OwnedFd, Failure>>,
    parts: &mut [ServerState],
) -> (Vec<OwnedFd>, Vec<usize>) {
    let (mut reached, mut linked): (Vec<OwnedFd>, Vec<usize>) = (Vec::new(), Vec::new());
    for (place, tried) in tried.into_iter().enumerate() {
        let peer = |far: &OwnedFd| rustix::net::getpeername(far).ok().flatten();
        let same = |far: &OwnedFd| {
            let own = peer(far).filter(|own| own.address_family() != AddressFamily::UNIX)?;
            let other = reached
                .iter()
                .position(|it| peer(it).as_ref() == Some(&own))?;
            Some(parts[linked[other]].address.to_string())
        };
        let lost = match tried {
            Err(failure) => Some(failure),
            Ok(far) => match same(&far) {
                Some(other) => {
                    let what = format!("it is the same fio server as {other}");
                    let about = parts[place].address.to_string();
                    Some(Failure::new(FailureKind::SameHost, what).about(about))
                }
                None => {
                    reached.push(far);
                    linked.push(place);
                    None
                }
            },
        };
        parts[place].lost = lost;
    }
    (reached, linked)
}

/// Connects to all servers at once. Names that nobody resolves and sockets that
/// nobody accepts are not waited for beyond `control`, nor beyond [`CONNECT_WAIT`].
fn connect_all(addresses: &[Address], control: &Control) -> Vec<Result<OwnedFd, Failure>> {
    let (tell, told) = channel();
    let mut done: Vec<Option<Result<OwnedFd, Failure>>> = Vec::new();
    for (place, address) in addresses.iter().enumerate() {
        let (tell, address) = (tell.clone(), address.clone());
        let name = address.to_string();
        // Nobody may be left to hear it.
        let connect = move || drop(tell.send((place, link::connect(&address))));
        let begun = threads::spawn("connect", connect);
        done.push(begun.err().map(|e| Err(Failure::from(e).about(name))));
    }
    drop(tell);
    let began = Instant::now();
    while began.elapsed() < CONNECT_WAIT && control.stop_requests() == 0 {
        match told.recv_timeout(TICK) {
            Ok((place, connected)) => done[place] = Some(connected),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let late = |address: &Address| {
        let what = format!("it did not answer within {} s", began.elapsed().as_secs());
        let failure = Failure::new(FailureKind::NoServer, what);
        Err(failure.about(address.to_string()))
    };
    let each = done.into_iter().zip(addresses);
    each.map(|(done, address)| done.unwrap_or_else(|| late(address)))
        .collect()
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_called_as_their_servers() {
        let parsed = |texts: &[&str]| -> Vec<Address> {
            texts.iter().map(|t| Address::parse(t).unwrap()).collect()
        };
        let names = socket_names(&parsed(&[
            "bench1",
            "ip6:::1,4444",
            "sock:/tmp/a",
            "sock:/tmp_a",
        ]));
        assert_eq!(names, ["bench1", "::1", "tmp_a", "tmp_a.4"]);
        let names = socket_names(&parsed(&["127.0.0.1,1", "127.0.0.1,2"]));
        assert_eq!(names, ["127.0.0.1,1", "127.0.0.1,2"]);
    }

    /// Two servers on one address differ by their ports; the second has ended first.
    #[test]
    fn jobs_stand_in_the_order_of_servers_and_of_the_job_file() {
        let job = |server: &str, name: &str| JobResult {
            name: name.into(),
            hostname: Some(server.into()),
            ..JobResult::default()
        };
        let (one, two) = ("127.0.0.1,1", "127.0.0.1,2");
        let told = [(two, "r"), (one, "r"), (two, "a"), (one, "a")];
        let mut jobs: Vec<JobResult> = told.iter().map(|(at, name)| job(at, name)).collect();
        by_server(&mut jobs, &[one, two]);
        let order: Vec<(&str, &str)> = jobs
            .iter()
            .map(|job| (job.hostname.as_deref().unwrap(), job.name.as_str()))
            .collect();
        assert_eq!(order, [(one, "r"), (one, "a"), (two, "r"), (two, "a")]);
    }

    #[test]
    fn the_jobs_of_a_host_have_one_name_together() {
        let of =
            |names: &[&str]| name_of(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["a", "a"]), "a");
        assert_eq!(of(&["a", "b", "a"]), "a+b");
        assert_eq!(of(&[]), "all jobs");
    }
}
