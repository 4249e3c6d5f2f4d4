//! What blkparse prints of a trace of blktrace, as the lines of a latency log: how long
//! each request took from its issue to the device (D) to its completion (C).
//!
//! `8,0    3   11     0.009507758   697  D   W 223490 + 8 [kjournald]`: device, CPU, number,
//! seconds, process, action, kind, first sector, number of sectors of 512 bytes. Other
//! actions, messages and the summary at the end are passed over.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write as _};

/// No line of blkparse is longer; what is goes by in pieces that are no requests.
const LINE_MAX: u64 = 4096;
/// Requests under way at most, of all devices: beyond, something is wrong with the trace.
const OPEN_MAX: usize = 1 << 20;
/// Lines of the beginning in which a request is looked for.
const HEAD_LINES: usize = 200;
const SECTOR: u64 = 512;

/// What became of the requests of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceTally {
    /// Requests whose issue and completion are there.
    pub ios: u64,
    /// Completions of what was issued before the trace.
    pub not_issued: u64,
    /// Requests that were issued and not completed.
    pub not_completed: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// Whether a text begins as blkparse's does.
pub fn detect(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').take(HEAD_LINES);
    lines.any(|line| TracedRequest::of(line).is_some())
}

/// An issue or a completion.
struct TracedRequest {
    device: (u32, u32),
    at_ns: u64,
    is_issue: bool,
    /// As fio's logs have it: 0 reads, 1 writes, 2 trims.
    direction: u8,
    sector: u64,
    sectors: u64,
    failed: bool,
}

impl TracedRequest {
    fn of(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (major, minor) = words.next()?.split_once(',')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let at_ns = nanoseconds(words.nth(2)?)?;
        let is_issue = match words.nth(1)? {
            "D" => true,
            "C" => false,
            _ => return None,
        };
        let kind = words.next()?.bytes().find(|kind| b"RWD".contains(kind))?;
        let sector = words.next()?.parse().ok()?;
        if words.next()? != "+" {
            return None;
        }
        let sectors = words.next()?.parse().ok().filter(|sectors| *sectors > 0)?;
        let last = words.next().unwrap_or_default();
        Some(Self {
            device,
            at_ns,
            is_issue,
            direction: match kind {
                b'R' => 0,
                b'W' => 1,
                _ => 2,
            },
            sector,
            sectors,
            failed: !is_issue && !matches!(last, "[0]" | ""),
        })
    }
}

/// `0.009507758`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let rest: u64 = Some(rest).filter(|rest| rest.len() == 9)?.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

/// A request under way.
struct OpenRequest {
    issued_ns: u64,
    /// Sectors of all of it, and those that are not completed yet.
    sectors: u64,
    left: u64,
}

/// The lines of a trace as those of a latency log.
pub struct TraceLines<R> {
    input: BufReader<R>,
    /// By device, direction and the first sector that is not completed.
    open: HashMap<((u32, u32), u8, u64), OpenRequest>,
    /// A line that is being given, and how much of it was.
    line: Vec<u8>,
    given: usize,
    tally: TraceTally,
}

impl<R: Read> TraceLines<R> {
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            open: HashMap::new(),
            line: Vec::new(),
            given: 0,
            tally: TraceTally::default(),
        }
    }

    /// What became of the requests, once all was read.
    pub fn tally(&self) -> TraceTally {
        let open = self.open.len() as u64;
        TraceTally {
            not_completed: self.tally.not_completed + open,
            ..self.tally
        }
    }

    fn take(&mut self, request: &TracedRequest) {
        let key = |sector| (request.device, request.direction, sector);
        if request.is_issue {
            if self.open.len() >= OPEN_MAX {
                self.tally.not_completed += self.open.len() as u64;
                self.open.clear();
            }
            let open = OpenRequest {
                issued_ns: request.at_ns,
                sectors: request.sectors,
                left: request.sectors,
            };
            // Issued again: the device did not take it the first time.
            self.open.insert(key(request.sector), open);
            return;
        }
        let Some(mut open) = self.open.remove(&key(request.sector)) else {
            self.tally.not_issued += 1;
            return;
        };
        if request.failed {
            self.tally.failed += 1;
            return;
        }
        open.left = open.left.saturating_sub(request.sectors);
        if open.left > 0 {
            let next = request.sector.saturating_add(request.sectors);
            self.open.insert(key(next), open);
            return;
        }
        self.tally.ios += 1;
        let latency = request.at_ns.saturating_sub(open.issued_ns);
        let (ms, direction) = (request.at_ns / 1_000_000, request.direction);
        let bytes = open.sectors.saturating_mul(SECTOR);
        // The last of it was completed now.
        let end = request.sector.saturating_add(request.sectors);
        let offset = end.saturating_sub(open.sectors).saturating_mul(SECTOR);
        // Without a priority, which is 0.
        let _ = writeln!(
            self.line,
            "{ms}, {latency}, {direction}, {bytes}, {offset}, 0"
        );
    }
}

impl<R: Read> Read for TraceLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut text = Vec::new();
        while self.given == self.line.len() {
            self.line.clear();
            self.given = 0;
            text.clear();
            let got = (&mut self.input)
                .take(LINE_MAX)
                .read_until(b'\n', &mut text)?;
            if got == 0 {
                return Ok(0);
            }
            if let Some(request) = TracedRequest::of(&text) {
                self.take(&request);
            }
        }
        let rest = &self.line[self.given..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.given += len;
        Ok(len)
    }
}
