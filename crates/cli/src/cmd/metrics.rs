//! `--metrics`, `--metrics-file`: of everything that runs something, what it does while it
//! goes on, for Prometheus.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use clap::{ArgMatches, FromArgMatches as _};
use fathom_model::Event;
use fathom_record::{Entries, Header};
use fathom_report::metrics::{MetricsFormat, RunMetrics, exposition};

use super::measuring::innermost;
use super::notify::Notices;
use crate::http::{ListenAddress, Request, Response, Server};
use crate::out;

/// The port where none is told: the next thousand behind that of fio's servers.
const PORT: u16 = 9765;
/// The file is not written more often: whoever reads it comes every 15 s.
const FILE_EVERY: Duration = Duration::from_secs(1);

/// Where what a run does is told while it goes on.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MetricsArgs {
    /// Serve Prometheus what the run does, over HTTP while it goes on
    /// [default ADDR: 127.0.0.1:9765]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    metrics: Option<ListenAddress>,
    /// Write the same to a file, for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
}

/// The metrics of this command, for everybody who asks.
#[derive(Debug, Clone, Default)]
pub struct Exporter {
    asked: MetricsArgs,
    /// Who is told of a run that becomes invalid.
    notices: Notices,
    told: Arc<Mutex<Told>>,
}

#[derive(Debug, Default)]
struct Told {
    /// By the device, where there are several; else by nothing.
    runs: BTreeMap<String, RunMetrics>,
    /// When the file was written; `None`: not yet, or it cannot be.
    written: Option<Instant>,
    is_file_lost: bool,
}

impl Exporter {
    /// What this command line asks for.
    pub fn of(matches: &ArgMatches) -> Self {
        let own = |at: &ArgMatches| {
            at.try_contains_id("metrics").ok()?;
            MetricsArgs::from_arg_matches(at).ok()
        };
        Self {
            asked: innermost(matches, &own).unwrap_or_default(),
            notices: Notices::of(matches),
            ..Self::default()
        }
    }

    fn is_asked(&self) -> bool {
        self.asked.metrics.is_some() || self.asked.metrics_file.is_some() || self.notices.is_asked()
    }

    /// Waits until everybody has been told.
    pub fn await_notices(&self) {
        self.notices.await_all();
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Serves from now on, until the program ends.
    ///
    /// # Errors
    /// When there is nothing to listen on, or the file must not be written.
    pub fn start(&self, quiet: bool) -> anyhow::Result<()> {
        if let Some(file) = &self.asked.metrics_file {
            super::may_write(file)?;
        }
        let Some(asked) = &self.asked.metrics else {
            return Ok(());
        };
        let server = Server::bind(asked, PORT)?;
        if !quiet {
            out::note(format_args!("metrics: {}metrics", server.url()));
        }
        if server.is_public() && !quiet {
            out::note("metrics: everybody who reaches that address can read them");
        }
        let exporter = self.clone();
        server.serve(Arc::new(move |request| exporter.answer(request)))?;
        Ok(())
    }

    fn answer(&self, request: &Request) -> Response {
        if request.path != "/metrics" {
            return Response::not_found();
        }
        let format = MetricsFormat::accepted(&request.accept);
        Response::ok(format.content_type(), self.text(format))
    }

    fn text(&self, format: MetricsFormat) -> String {
        let told = self.told();
        let runs = told.runs.iter().map(|(device, run)| (device.as_str(), run));
        exposition(&runs.collect::<Vec<_>>(), format)
    }

    /// A run begins, or goes on, in this record.
    pub fn begin(&self, record: &Path) {
        if !self.is_asked() {
            return;
        }
        // Who cannot be read says what it does, and not what it is.
        let header = Entries::open(record).map(|entries| entries.header);
        let header = header.unwrap_or_else(|_| Header::new("", ""));
        let id = record.file_name().unwrap_or_default().to_string_lossy();
        self.notices.begin(record);
        self.begin_with("", &id, &header);
    }

    /// A run begins; `device`: which of several it is about.
    pub fn begin_with(&self, device: &str, id: &str, header: &Header) {
        if self.is_asked() {
            let run = RunMetrics::new(id, header);
            self.told().runs.insert(device.to_owned(), run);
        }
    }

    /// Takes the next event of the run.
    pub fn take(&self, event: &Event) {
        self.take_of("", event);
    }

    /// Takes the next event of the run that is about this device.
    pub fn take_of(&self, device: &str, event: &Event) {
        if !self.is_asked() {
            return;
        }
        if let Some(run) = self.told().runs.get_mut(device) {
            let step = run.step().unwrap_or_default().to_owned();
            let before = run.invalid_figures();
            run.take(event);
            if before == 0 && run.invalid_figures() > 0 {
                self.notices.invalid(run, &step);
            }
        }
        match event {
            Event::Interval { .. } | Event::StepEnded { .. } => self.write_file(false),
            Event::Ended { .. } => self.write_file(true),
            _ => {}
        }
    }

    /// Puts the file in place. That it cannot be written ends it, not the run.
    fn write_file(&self, is_last: bool) {
        let Some(file) = &self.asked.metrics_file else {
            return;
        };
        let mut told = self.told();
        let is_due = told.written.is_none_or(|at| at.elapsed() >= FILE_EVERY);
        if told.is_file_lost || !(is_due || is_last) {
            return;
        }
        told.written = Some(Instant::now());
        drop(told);
        let text = self.text(MetricsFormat::Prometheus);
        let written = fathom_fleet::named_file::write(file, |out| out.write_all(text.as_bytes()));
        if let Err(error) = written {
            self.told().is_file_lost = true;
            let file = file.display();
            out::note(format_args!("fathom: {file}: no metrics any more: {error}"));
        }
    }
}
