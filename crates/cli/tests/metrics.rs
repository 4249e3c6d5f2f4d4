//! What a run tells Prometheus while it goes on.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use fathom_testkit::{ProgramUnderTest, await_that, free_port, prometheus, signal, skip};
use serde_json::Value;

/// A job of 500 reads a second that ends when it is told to, with a name that would break
/// out of its quotes.
const JOB: [&str; 7] = [
    "--name=a\"}\\ 1",
    "--ioengine=null",
    "--rw=randread",
    "--size=1m",
    "--rate_iops=500",
    "--time_based",
    "--runtime=600",
];

/// A run whose metrics are served.
struct Running {
    fathom: ProgramUnderTest,
    child: Child,
    /// `127.0.0.1:9765`.
    address: String,
    /// Nobody reads it, and nobody must wait for who does.
    _said: BufReader<ChildStderr>,
}

impl Running {
    fn begin(options: &[&str]) -> Self {
        let fathom = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        let run = ["job", "run", "--engine", "native", "--metrics=0"];
        let args = [&run[..], options, &["--"], &JOB].concat();
        let mut child = fathom.start(&args);
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics: http://");
        let address = address.and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self {
            fathom,
            child,
            address,
            _said: said,
        }
    }

    /// What is served now; `accept`: the formats that are understood.
    fn scraped(&self, accept: &str) -> String {
        get(&self.address, "/metrics", accept)
    }

    /// Its I/Os as they are told.
    fn ios(&self) -> u64 {
        let text = self.scraped("text/plain");
        value(&text, "fathom_io_operations_total").map_or(0, |ios| ios as u64)
    }

    /// Stops it.
    fn stop(&mut self) {
        signal(&self.child, "-INT");
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        assert!(
            TcpStream::connect(&self.address).is_err(),
            "it ends with the command"
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    body.to_owned()
}

/// The first value of this name.
fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([' ', '{']))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_run_is_scraped_while_it_goes_on_and_leaves_its_last_word_in_a_file() {
    let mut run = Running::begin(&["--tag", "host=lab", "--metrics-file", "run.prom"]);
    await_that("I/Os are counted", || run.ios() > 0);
    let before = run.ios();
    await_that("they become more", || run.ios() > before);
    let text = run.scraped("text/plain");
    let name = r#"jobname="a\"}\\ 1",direction="read""#;
    for series in [
        format!("fathom_io_bytes_total{{{name}}} "),
        format!("fathom_io_completion_latency_seconds_count{{{name}}} "),
        "fathom_run_status{status=\"running\"} 1\n".to_owned(),
        "fathom_run_tag_info{tag=\"host\",value=\"lab\"} 1\n".to_owned(),
        "engine=\"native\"".to_owned(),
        "fathom_interval_completion_latency_seconds{direction=\"read\",percentile=\"99\"} "
            .to_owned(),
    ] {
        assert!(text.contains(&series), "{series}\n{text}");
    }
    let open = run.scraped("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.1");
    assert!(open.ends_with("# EOF\n") && open.contains("# TYPE fathom_io_bytes counter\n"));
    check(
        "a_run_is_scraped_while_it_goes_on_and_leaves_its_last_word_in_a_file",
        &text,
    );
    let ios = run.ios() as f64;
    run.stop();
    let folder = run.fathom.path();
    let file = fs::read_to_string(folder.join("run.prom")).unwrap();
    assert!(
        file.contains("fathom_run_status{status=\"interrupted\"} 1\n"),
        "{file}"
    );
    assert!(value(&file, "fathom_io_operations_total").unwrap() >= ios);
    // It was put in place whole, and nothing else was left.
    let left = fs::read_dir(folder).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let parts: Vec<String> = names.filter(|name| name.ends_with(".part")).collect();
    assert!(parts.is_empty(), "{parts:?}");
}

/// Whether Prometheus' own judge of metrics finds a fault.
fn check(test: &str, text: &str) {
    let promtool = match prometheus() {
        Ok(folder) => folder.join("promtool"),
        Err(reason) => return skip(test, &reason),
    };
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}

/// A Prometheus, ended when it is dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    fn start(program: &Path, dir: &Path, target: &str) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n\
             - {{job_name: fathom, static_configs: [{{targets: ['{target}']}}]}}\n"
        );
        let (file, data) = (dir.join("prometheus.yml"), dir.join("data"));
        fs::write(&file, config).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self { child, address };
        await_that("Prometheus answers", || {
            TcpStream::connect(&started.address).is_ok()
        });
        started
    }

    /// What an expression comes to.
    fn ask(&self, expression: &str) -> Vec<Value> {
        let mut query = String::new();
        for byte in expression.bytes() {
            query += &format!("%{byte:02X}");
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let answer: Value = serde_json::from_str(body).unwrap_or_default();
        answer["data"]["result"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Expressions of the dashboard that stands in the repository.
fn dashboard() -> Vec<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/grafana/fathom.json"
    );
    let text = fs::read_to_string(path).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect()
}

/// What Grafana puts in the place of its variables.
fn filled(expression: &str) -> String {
    expression
        .replace("$instance", ".*")
        .replace("$__rate_interval", "10s")
}

#[test]
fn a_real_prometheus_scrapes_a_run_and_answers_every_question_of_the_dashboard() {
    let name = "a_real_prometheus_scrapes_a_run_and_answers_every_question_of_the_dashboard";
    let program = match prometheus() {
        Ok(folder) => folder.join("prometheus"),
        Err(reason) => return skip(name, &reason),
    };
    let mut run = Running::begin(&[]);
    let dir = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&program, dir.path(), &run.address);
    // It asks for OpenMetrics first; one fault and nothing of the page is taken.
    await_that("it is scraped", || !prometheus.ask("up == 1").is_empty());
    await_that("the rate is known", || {
        let found = prometheus.ask("rate(fathom_io_operations_total[10s]) > 0");
        !found.is_empty()
    });
    let labels = &prometheus.ask("fathom_io_bytes_total")[0]["metric"];
    assert_eq!(labels["jobname"], "a\"}\\ 1");
    for expression in dashboard() {
        // What has not happened has no series: whether it is understood is the question.
        let asked = format!("({}) or vector(0)", filled(&expression));
        assert!(!prometheus.ask(&asked).is_empty(), "{expression}");
        let is_of_last = expression.contains("fathom_interval_");
        if is_of_last {
            await_that(&expression, || {
                !prometheus.ask(&filled(&expression)).is_empty()
            });
        }
    }
    drop(prometheus);
    run.stop();
}

/// A dashboard that asks for what nobody tells stays empty.
#[test]
fn the_dashboard_asks_for_series_that_the_documentation_has() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/METRICS.md");
    let page = fs::read_to_string(path).unwrap();
    let expressions = dashboard();
    assert!(expressions.len() >= 8);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for expression in &expressions {
        let words = expression.split(|c| !is_name(c));
        for name in words.filter(|word| word.starts_with("fathom_")) {
            let told = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(page.contains(&format!("`{told}`")), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_served_is_told_before_anything_runs() {
    let fathom = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = format!("--metrics={}", taken.local_addr().unwrap());
    let job = ["--", "--name=a", "--ioengine=null", "--size=1m"];
    for (option, code, words) in [
        (taken.as_str(), 5, "another program does"),
        ("--metrics=192.0.2.1:0", 5, "no address of this machine"),
        ("--metrics=a b", 2, "HOST:PORT"),
    ] {
        let args = [&["job", "run", "--engine", "native", option][..], &job].concat();
        let output = fathom.run(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{option}: {said}");
        assert!(said.contains(words), "{option}: {said}");
    }
    assert!(fathom.records().is_empty());
}
