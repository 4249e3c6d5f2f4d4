//! The page that follows a run: in a real browser, and what its server says.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fathom_model::{Direction, Event, RunStatus};
use fathom_record::Writer;
use fathom_testkit::{Browser, require, signal};

use crate::report::browser::picture;
use crate::report::records;

/// A server of pages, ended when it is dropped.
pub struct PageServer {
    child: Child,
    /// `http://127.0.0.1:8766/`.
    pub url: String,
}

impl PageServer {
    pub fn start(runs: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .arg("--runs")
            .arg(runs)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let url = line.split(' ').next().unwrap_or_default().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, url }
    }

    /// `127.0.0.1:8766`.
    pub fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.strip_suffix('/').unwrap()
    }

    /// What is answered to a line and a host.
    pub fn ask(&self, line: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Ends it as a person does.
    pub fn end(mut self) {
        signal(&self.child, "-INT");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on for some seconds behind those that are there.
fn go_on(writer: &mut Writer, from: u64, seconds: u64) {
    for second in from + 1..=from + seconds {
        let sample = records::sample(second * 1000, 0, Direction::Read, 1000, 90_000);
        writer.append(&Event::Sample(sample)).unwrap();
        writer.append(&records::interval(second * 1000)).unwrap();
    }
}

/// How much of the time axis the graph of the first time series holds, in seconds.
const SEEN: &str = "document.querySelector('#time .chart')?.chart?.plot.data[0].at(-1)";

/// What a person looks at: one job, its latencies, by scrolling down to them, zoomed in,
/// with one line hidden.
fn look_closely(browser: &mut Browser) {
    browser
        .eval(
            "(() => { document.getElementById('time').scrollIntoView();
               document.querySelector('#time [data-metric=clat]').click();
               const jobs = document.querySelector('#time select.job');
               jobs.value = '1'; jobs.dispatchEvent(new Event('change'));
               window.before = true; })()",
        )
        .unwrap();
    browser.wait_for(&format!("{SEEN} === 20")).unwrap();
    browser
        .eval(
            "(() => { const { chart } = document.querySelector('#time .chart'); chart.zoom([5, 15]);
               chart.host.querySelector('.legend button').click(); })()",
        )
        .unwrap();
}

#[test]
fn the_page_follows_a_run_and_keeps_what_was_chosen() {
    let mut browser = require!(Browser::start());
    let runs = tempfile::tempdir().unwrap();
    let mut writer = records::begun(runs.path(), 2, 20);
    let server = PageServer::start(runs.path(), &["report", "--live=0"]);
    browser.look(1280, 700, false).unwrap();
    browser.visit(&server.url).unwrap();
    let bar = "document.querySelector('.following span').textContent";
    browser
        .wait_for(&format!("{bar} === 'Follows the run.'"))
        .unwrap();
    look_closely(&mut browser);
    let top = "Math.round(document.getElementById('time').getBoundingClientRect().top)";
    let before = browser.eval(top).unwrap();

    go_on(&mut writer, 20, 40);
    // Another page, of the same place, with more in it.
    browser
        .wait_across_loads("window.before === undefined")
        .unwrap();
    let chosen = "document.querySelector('#time select.job').value === '1'
        && document.querySelector('#time [aria-selected=true]').dataset.metric === 'clat'";
    browser.wait_across_loads(chosen).unwrap();
    let view = "JSON.stringify(document.querySelector('#time .chart')?.chart?.view())";
    let kept = browser.wait_across_loads(&format!(
        "{view}.startsWith('{{\"range\":[5,15],\"hidden\":[\"')"
    ));
    kept.unwrap();
    browser
        .wait_across_loads(&format!("{top} === {before}"))
        .unwrap();
    browser
        .eval(
            "(() => { const jobs = document.querySelector('#time select.job');
               jobs.value = 'all'; jobs.dispatchEvent(new Event('change')); })()",
        )
        .unwrap();
    browser
        .wait_across_loads(&format!("{SEEN} === 60"))
        .unwrap();
    picture(&mut browser, "live.png");

    // The run ends: the page says so.
    go_on(&mut writer, 60, 1);
    writer.finish(RunStatus::Complete).unwrap();
    let over = format!("{bar} === 'The run has ended: complete.'");
    browser.wait_across_loads(&over).unwrap();
    browser
        .wait_across_loads(&format!("{SEEN} === 61"))
        .unwrap();
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());

    // The server goes and comes again, as a connection does.
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    server.end();
    browser
        .wait_for(&format!("{bar}.startsWith('The server does not answer')"))
        .unwrap();
    let again = PageServer::start(runs.path(), &["report", &format!("--live={port}")]);
    browser.wait_across_loads(&over).unwrap();
    again.end();
}

#[test]
fn a_live_page_is_for_this_machine_and_for_looking_only() {
    let runs = tempfile::tempdir().unwrap();
    let writer = records::begun(runs.path(), 1, 3);
    let server = PageServer::start(runs.path(), &["report", "--live=0"]);
    let own = server.address().to_owned();
    let page = server.ask("GET /", &own);
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("connect-src 'self'"));
    assert!(page.contains("<meta name=\"fathom-live\" content=\""));
    // Through ssh -L the port is another.
    assert!(
        server
            .ask("GET /state", "localhost:1")
            .contains("\"status\":\"running\"")
    );
    for (line, host, status) in [
        ("GET /", "evil.example", "421"),
        ("POST /", own.as_str(), "405"),
        ("GET /events.jsonl", own.as_str(), "404"),
        ("GET /../../../etc/passwd", own.as_str(), "404"),
        ("GET /%2e%2e/%2e%2e/etc/passwd", own.as_str(), "404"),
    ] {
        let said = server.ask(line, host);
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line}: {said}"
        );
    }
    // A record that is gone is told, and the server stays.
    let dir = writer.dir().to_owned();
    drop(writer);
    fs::remove_dir_all(dir).unwrap();
    assert!(server.ask("GET /state", &own).starts_with("HTTP/1.1 500 "));
    server.end();
    // A page that is written stays by itself.
    let record = records::begun(runs.path(), 1, 3)
        .finish(RunStatus::Complete)
        .unwrap();
    let (_, text) = crate::report::report(runs.path(), &record);
    assert!(!text.contains("connect-src") && !text.contains("fathom-live"));
}
