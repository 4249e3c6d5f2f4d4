//! `fathom serve` and `fathom job run --client` with real fio servers: what is
//! added up, and every way in which a server can fail.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use fathom_testkit::{ProgramUnderTest, await_that, free_port};
use serde_json::Value;

mod failures;
mod figures;
mod floods;
mod serve;

/// Fathom in a folder of its own.
struct Bench(ProgramUnderTest);

impl Deref for Bench {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.0
    }
}

impl Bench {
    fn new() -> Self {
        Self(ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")))
    }

    /// A run with `--json`: its exit code and its document.
    fn json(&self, args: &[&str]) -> (i32, Value) {
        let output = self.run(&[args, &["--json", "-q"]].concat());
        let doc = serde_json::from_slice(&output.stdout);
        let doc = doc.unwrap_or_else(|e| panic!("{e}: {output:?}"));
        (output.status.code().unwrap(), doc)
    }
}

/// A `fathom serve` that is ended with everything below it.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn new(address: &str) -> Self {
        Self::with(address, &[])
    }

    fn with(address: &str, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(["serve", address])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line:?}");
        let address = address.to_owned();
        Self { child, address }
    }

    /// One on a port of its own.
    fn local() -> Self {
        Self::new(&format!("127.0.0.1,{}", free_port()))
    }

    /// fio's own server below it.
    fn fio(&self) -> u32 {
        let [guard] = children(self.child.id())[..] else {
            panic!("fathom serve has one child, its guard");
        };
        children(guard)[0]
    }

    /// The process that serves a connection, and those that run its jobs.
    fn session(&self) -> (u32, Vec<u32>) {
        let connection = *children(self.fio()).last().unwrap();
        (connection, below(connection))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(self.child.id(), "TERM");
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
}

fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed.split_whitespace().flat_map(str::parse).collect()
}

fn below(pid: u32) -> Vec<u32> {
    let own = children(pid);
    let further: Vec<u32> = own.iter().flat_map(|&child| below(child)).collect();
    [own, further].concat()
}

/// An address at which nobody listens.
fn nobodys_address() -> String {
    format!("127.0.0.99,{}", free_port())
}

/// Jobs that last `seconds` and need nothing but a CPU.
fn null_job(bench: &Bench, seconds: u32) -> String {
    let text = format!(
        "[a]\nioengine=null\nrw=randread\nsize=1g\nrate_iops=200\ntime_based\nruntime={seconds}\n"
    );
    bench.file("a.fio", &text).to_str().unwrap().to_owned()
}

/// The samples of the last run so far, as lines.
fn samples(bench: &Bench) -> String {
    let shown = bench.run(&["show", "--samples=csv"]);
    String::from_utf8(shown.stdout).unwrap()
}

/// That the last run says what to do.
fn advises(bench: &Bench, advice: &str) {
    let shown = bench.run(&["show"]);
    let said = String::from_utf8_lossy(&shown.stdout);
    assert!(
        said.contains(&format!("to do: {advice}")),
        "{advice}: {said}"
    );
}

/// The failures of a document: kind, what it is about, message.
fn failures(doc: &Value) -> Vec<(String, String, String)> {
    let all = doc["failures"].as_array().into_iter().flatten();
    all.map(|failure| {
        let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("subject"), text("message"))
    })
    .collect()
}

fn total(doc: &Value) -> &Value {
    let jobs = doc["jobs"].as_array().unwrap();
    jobs.iter()
        .find(|job| job["name"] == "All clients")
        .unwrap_or_else(|| panic!("no sum: {doc}"))
}
