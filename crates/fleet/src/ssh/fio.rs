//! An engine that drives the fio of another machine over ssh with plain POSIX
//! sh: for hosts where Fathom itself cannot run.

use std::fs;
use std::io::Read;
use std::process::Child;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fathom_device::bounded::TEXT_BYTES_MAX;
use fathom_device::threads::{self, NoThread};
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};
use fathom_fio_output::failures::{Evidence, FioEnd, judge};
use fathom_fio_output::{json, raw};
use fathom_jobfile::JobFile;
use fathom_model::{Event, Failure, FailureKind};

use super::session::{SSH_FAILED, close_stdin};
use super::{SshSession, client};

/// Runs fio in the folder `$1` with the other arguments as its own. Its jobs end
/// with their connection: a watcher ends fio as soon as stdin closes. It asks
/// first, since fio then still reports; after 5 s it kills fio and its jobs,
/// which sit in sessions of their own and outlive it otherwise.
const RUN_FIO: &str = "cd \"$1\" || exit 91; shift; exec 3<&0; \
    fio \"$@\" </dev/null 3<&- & p=$!; \
    ( read x <&3; kill -TERM $p; sleep 5; \
      k=$(ps -A -o pid= -o ppid= | while read a b; do if [ \"$b\" = $p ]; then echo $a; fi; done); \
      kill -KILL $p $k ) >/dev/null 2>&1 & w=$!; \
    exec 3<&-; wait $p; rc=$?; kill $w 2>/dev/null; exit $rc";
/// How long fio may take to end after it was asked to; its watcher kills it after 5 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often the wait for fio looks at the requests to end.
const TICK: Duration = Duration::from_millis(50);
/// More than fio prints for any job of a series; the rest is not kept.
const OUTPUT_LIMIT_BYTES: u64 = 64 << 20;

/// The fio of another machine.
#[derive(Debug)]
pub struct RemoteFio {
    session: Rc<SshSession>,
    version: Option<String>,
}

impl RemoteFio {
    /// The fio at the other end of `session`; `version` as it says itself.
    pub fn new(session: Rc<SshSession>, version: Option<String>) -> Self {
        Self { session, version }
    }

    fn argv(&self, request: &Request) -> Result<Vec<String>, EngineError> {
        let path = &request.job_file;
        let checked = JobFile::read(path, &|_| None).map_err(|source| EngineError::File {
            path: path.clone(),
            source,
        })?;
        let mut argv = vec!["--output-format=json".to_owned()];
        argv.extend(fathom_jobfile::cmdline(&checked.file.jobs()));
        argv.extend(request.extra_args.iter().cloned());
        Ok(argv)
    }

    /// What fio's outputs say of a run that ended with `code`.
    fn conclude(
        &self,
        (code, stdout, stderr): (Option<i32>, &[u8], &[u8]),
        stopped: bool,
        sink: &mut dyn Sink,
    ) -> Outcome {
        let document = json::scan(stdout).documents.into_iter().last();
        // ssh's own status, and no report of fio's: the line was cut.
        if document.is_none() && !stopped && code.is_none_or(|code| code == SSH_FAILED) {
            let lost = self.session.lose().to_string();
            let _ = sink.event(Event::Failure(Failure::new(FailureKind::Other, lost)));
            // No later test can reach that machine: the run ends here.
            return Outcome::Interrupted;
        }
        let report = document
            .as_ref()
            .map_or(0..0, |document| document.raw.clone());
        let around = [&stdout[..report.start], &stdout[report.end..], stderr];
        let messages: Vec<String> = around.into_iter().flat_map(lines).collect();
        let results = document.map(|document| document.results);
        let verdict = judge(&Evidence {
            end: code.map_or(FioEnd::Unknown, FioEnd::Exited),
            stopped,
            messages: &messages,
            results: results.as_ref(),
            normal: "",
            cut: false,
            unreadable: None,
            expected: &[],
        });
        let is_good = verdict.failures.is_empty();
        for text in verdict.notes {
            let _ = sink.event(Event::Note { text });
        }
        if !stopped {
            for failure in verdict.failures {
                let _ = sink.event(Event::Failure(failure));
            }
        }
        if let Some(results) = results {
            let _ = sink.event(Event::Finished {
                results: Box::new(results),
            });
        }
        match (stopped, is_good) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Complete,
            (false, false) => Outcome::Failed,
        }
    }
}

impl Engine for RemoteFio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        if control.stop_requests() > 0 {
            return Ok(Outcome::Interrupted);
        }
        let argv = self.argv(request)?;
        let work_dir = request.work_dir.to_string_lossy();
        let mut args: Vec<&str> = vec![&work_dir];
        args.extend(argv.iter().map(String::as_str));
        let mut child = self.session.spawn(RUN_FIO, &args).map_err(|error| {
            EngineError::Failed(Failure::new(FailureKind::Other, error.to_string()))
        })?;
        let there = ["ssh", self.session.target(), "fio"].map(str::to_owned);
        let _ = sink.event(Event::EngineStarted {
            engine: self.name().to_owned(),
            version: self.version.clone(),
            argv: there.into_iter().chain(argv).collect(),
            pid: None,
        });
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let out = out.map(|from| collect(from, OUTPUT_LIMIT_BYTES));
        let err = err.map(|from| collect(from, TEXT_BYTES_MAX as u64));
        let (stdout, stderr) = match (out.transpose(), err.transpose()) {
            (Ok(stdout), Ok(stderr)) => (stdout, stderr),
            (Err(error), _) | (_, Err(error)) => {
                client::kill(&mut child, true);
                return Err(EngineError::Failed(error.into()));
            }
        };
        let code = wait(&mut child, control, request.deadline);
        let (stdout, stderr) = (join(stdout), join(stderr));
        keep_raw(request, &stdout, &stderr)?;
        let stopped = control.stop_requests() > 0;
        Ok(self.conclude((code, &stdout, &stderr), stopped, sink))
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let full = text.lines().map(str::trim).filter(|line| !line.is_empty());
    full.map(str::to_owned).collect()
}

fn collect(
    mut from: impl Read + Send + 'static,
    most: u64,
) -> Result<JoinHandle<Vec<u8>>, NoThread> {
    threads::spawn("fio-there", move || {
        let mut bytes = Vec::new();
        // What came before an error is still fio's.
        let _ = from.by_ref().take(most).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        bytes
    })
}

fn join(handle: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    handle
        .and_then(|handle| handle.join().ok())
        .unwrap_or_default()
}

/// Waits for the client's end; gives its exit status, or `None` when a signal
/// ended it.
fn wait(child: &mut Child, control: &Control, deadline: Option<Duration>) -> Option<i32> {
    let started = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) => {}
            Err(_) => return None,
        }
        let is_late = deadline.is_some_and(|deadline| started.elapsed() > deadline);
        if asked.is_none() && (control.stop_requests() > 0 || is_late) {
            asked = Some(Instant::now());
            close_stdin(child);
        }
        let is_hopeless = asked.is_some_and(|asked| asked.elapsed() > PATIENCE);
        if is_hopeless || control.stop_requests() > 1 {
            client::kill(child, true);
        }
        thread::sleep(TICK);
    }
}

fn keep_raw(request: &Request, stdout: &[u8], stderr: &[u8]) -> Result<(), EngineError> {
    let keep = |name: &str, bytes: &[u8]| {
        let path = request.raw_dir.join(name);
        fs::create_dir_all(&request.raw_dir)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|source| EngineError::File { path, source })
    };
    keep(raw::OUT, stdout)?;
    keep(raw::ERR, stderr)
}
