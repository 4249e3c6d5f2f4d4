//! Played fio servers that send without an end: no more of it is kept than is
//! bounded, and they are told of and left.

use fathom_model::FailureKind;

use super::failures::{checked, crc16};
use super::*;

/// Operations of fio's protocol (`enum` in server.h).
const TEXT: u16 = 5;
const TS: u16 = 6;
const ETA: u16 = 9;
const PROBE: u16 = 10;
const DISK_UTIL: u16 = 13;
/// The tag of Fathom's own questions.
const OUR_TAG: u64 = 1;
/// More than a record takes with all text and figures that are kept of a flood.
const RECORD_BYTES_MAX: u64 = 16 << 20;
/// The memory that fio and Fathom may take together with all that is mapped.
const ADDRESS_SPACE: &str = "--as=4294967296";

fn frame(version: [u8; 2], op: u16, more: bool, tag: u64, payload: &[u8]) -> Vec<u8> {
    let mut head = [0; 24];
    head[0..2].copy_from_slice(&version);
    head[2..4].copy_from_slice(&op.to_le_bytes());
    head[4] = u8::from(more);
    head[8..16].copy_from_slice(&tag.to_le_bytes());
    head[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[22..24].copy_from_slice(&crc16(payload).to_le_bytes());
    [checked(head), payload.to_vec()].concat()
}

/// A server that says who it is, and then the same for ever.
fn flooding(op: u16, more: bool, tag: u64, payload: usize) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("127.0.0.1,{}", listener.local_addr().unwrap().port());
    let payload = vec![b'x'; payload];
    plays(listener, usize::MAX, move |version| {
        frame(version, op, more, tag, &payload)
    });
    address
}

/// Plays a server that says who it is, and then so many times this frame, of the
/// version of the one who asks.
fn plays(listener: TcpListener, times: usize, noise: impl Fn([u8; 2]) -> Vec<u8> + Send + 'static) {
    thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut greeting = [0; 24];
        if stream.read_exact(&mut greeting).is_err() {
            return;
        }
        let version = [greeting[0], greeting[1]];
        let mut reader = stream.try_clone().unwrap();
        // What it is told is taken, and not looked at.
        let told = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        let name = [b"vm".to_vec(), vec![0; 110]].concat();
        let each = times.min(256);
        let noise = noise(version).repeat(each);
        let said = stream.write_all(&frame(version, PROBE, false, 0, &name));
        if said.is_ok() {
            let mut rounds = 0..times / each;
            while rounds.next().is_some() && stream.write_all(&noise).is_ok() {}
        }
        // Until the other side has enough of it.
        let _ = told.join();
    });
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => bytes(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// A run with this server, which may not take much memory.
fn start(bench: &Bench, address: &str) -> Child {
    let job = null_job(bench, 1);
    let run = bench.command(&["job", "run", &job, "--json", "-q", "--client", address]);
    let mut bounded = Command::new("prlimit");
    bounded.arg(ADDRESS_SPACE).arg(run.get_program());
    bounded.args(run.get_args()).current_dir(bench.path());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    bounded.stdin(Stdio::null()).stdout(Stdio::piped());
    bounded.stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_server_that_floods_is_left_and_told_of() {
    for (op, more, tag, payload) in [
        // Samples that nobody has asked for, figures, and others.
        (ETA, false, OUR_TAG, 173),
        (ETA, false, 0, 173),
        (TS, false, 0, 1000),
        (PROBE, false, 0, 112),
        (DISK_UTIL, false, 0, 64),
        // One message without an end.
        (TS, true, 0, 1000),
        (TEXT, true, 0, 1000),
    ] {
        let what = format!("{op} {more} {tag}");
        let bench = Bench::new();
        let address = flooding(op, more, tag, payload);
        let output = start(&bench, &address).wait_with_output().unwrap();
        let doc = serde_json::from_slice(&output.stdout);
        let doc: Value = doc.unwrap_or_else(|e| panic!("{what}: {e}: {output:?}"));
        assert_eq!(output.status.code(), Some(1), "{what}: {doc}");
        let told = failures(&doc);
        let of_it = told.iter().find(|(kind, ..)| kind == "mismatch");
        let (_, subject, message) = of_it.unwrap_or_else(|| panic!("{what}: {doc}"));
        assert_eq!(*subject, address, "{what}");
        assert!(
            message.contains("far more than its jobs"),
            "{what}: {message}"
        );
        assert!(bytes(bench.path()) < RECORD_BYTES_MAX, "{what}");
        advises(&bench, "no fio server does that: find out what runs there");
    }
}

/// Text alone is no reason to leave a server: the rest of it is left out. One that
/// does nothing else is as silent as one that says nothing.
#[test]
fn a_server_that_chatters_is_kept_in_part() {
    let bench = Bench::new();
    let address = flooding(TEXT, false, 0, 1000);
    let run = start(&bench, &address);
    let log = || {
        let log = bench.records().pop().map(|run| run.join("events.jsonl"));
        log.and_then(|log| fs::read_to_string(log).ok())
            .unwrap_or_default()
    };
    await_that("what is left out is told", || {
        log().contains("the rest is left out")
    });
    signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(log().matches("the rest is left out").count(), 1);
    assert!(bytes(bench.path()) < RECORD_BYTES_MAX);
}

/// What fio's client cannot read ends it, without a report and with exit code 0.
#[test]
fn a_client_that_ends_without_a_report_is_told() {
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("127.0.0.1,{}", listener.local_addr().unwrap().port());
    plays(listener, 1, |version| {
        let mut damaged = frame(version, TS, false, 0, &[b'x'; 1000]);
        damaged[100] ^= 1;
        damaged
    });
    let output = start(&bench, &address).wait_with_output().unwrap();
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{doc}");
    let told = failures(&doc);
    assert_eq!(told[0].0, "no_report", "{doc}");
    advises(&bench, FailureKind::NoReport.advice());
}
