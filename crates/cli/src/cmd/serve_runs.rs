//! `fathom serve-runs`: the folder of records as pages, to look at and never to change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use fathom_model::Exit;
use fathom_record::{ListedRun, RecordError};
use fathom_report::compare::{self, CompareFigure, ComparedRun};
use fathom_report::history;
use fathom_report::html::{HistoryPage, ListedRow, RunsPage, history_page, runs_page};

use super::compare::{compared, of_two};
use super::report::live::{LivePage, PAGE, RecordState, failed};
use super::runs::{self, RunRow};
use super::{Global, pages};
use crate::http::{ListenAddress, Request, Response, Server};

/// The port where none is told: the one behind that of a live report.
const PORT: u16 = 8767;
/// Runs of a page of the list.
const ROWS: usize = 100;
/// Runs that a history goes back, as `fathom history` does where nobody says.
const HISTORY_RUNS: usize = 200;
/// Pages of runs that are kept, each as large as a report.
const PAGES_KEPT: usize = 8;

/// Show the recorded runs as pages in a browser: a list, reports, comparisons
///
/// Nothing can be changed. A run that goes on is followed. There are no accounts: on another
/// address than this machine's own a proxy in front says who may look.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
ADDR is HOST:PORT, HOST or a port; without a host only this machine reaches it.

Examples:
  fathom serve-runs --open                   the runs under ./fathom-runs, in the browser
  fathom --runs /srv/runs serve-runs 9000    those of another folder, on another port
  fathom serve-runs 10.0.0.7                 for everybody who reaches that address
  ssh -L 8767:localhost:8767 lab1 fathom --runs /srv/runs serve-runs")]
pub struct Args {
    /// Where to listen [default: 127.0.0.1:8767, or any port that is free]
    #[arg(value_name = "ADDR", default_value = "", hide_default_value = true)]
    address: ListenAddress,
    /// Show it in the browser
    #[arg(long)]
    open: bool,
}

/// Serves them.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    // A folder that cannot be read is told here, not in a browser.
    fathom_record::list(&global.runs)?;
    let server = Server::bind_or_any(&args.address, PORT)?;
    let folder = RunsFolder {
        global: global.clone(),
        rows: Mutex::default(),
        pages: Mutex::default(),
        compared: Mutex::default(),
        working: Mutex::default(),
    };
    let answer = move |request: &Request| folder.answer(request);
    pages::serve(global, server, args.open, Arc::new(answer), &mut || {})
}

/// A folder of records, and what was made of it.
struct RunsFolder {
    global: Global,
    /// What the list says of a run, as long as its record is the same.
    rows: Mutex<BTreeMap<String, (RecordState, RunRow)>>,
    /// The pages that were asked for last.
    pages: Mutex<VecDeque<(String, Arc<LivePage>)>>,
    /// The runs of the last history.
    compared: Mutex<BTreeMap<String, (RecordState, ComparedRun)>>,
    /// Whoever makes a page that is work: one at a time, however many ask.
    working: Mutex<()>,
}

impl RunsFolder {
    fn answer(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/" => self.list(request).unwrap_or_else(failed),
            "/compare" => {
                let _working = lock(&self.working);
                self.compare(request)
            }
            "/history" => {
                let _working = lock(&self.working);
                self.history(request).unwrap_or_else(failed)
            }
            path => {
                let run = path.strip_prefix("/runs/");
                match run.and_then(|rest| rest.rsplit_once('/')) {
                    Some((id, "")) => {
                        let _working = lock(&self.working);
                        self.with_page(id, LivePage::page)
                    }
                    Some((id, "state")) => self.with_page(id, LivePage::state),
                    _ => Response::not_found(),
                }
            }
        }
    }

    /// The folder of a run by its name in the list, which leads nowhere else.
    fn dir_of(&self, id: &str) -> Option<PathBuf> {
        let mut parts = Path::new(id).components();
        let is_name = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        );
        let dir = self.global.runs.join(id);
        (is_name && dir.join(fathom_record::EVENTS).exists() && !leads_elsewhere(&dir))
            .then_some(dir)
    }

    fn with_page(&self, id: &str, give: fn(&LivePage) -> Response) -> Response {
        let Some(dir) = self.dir_of(id) else {
            return Response::not_found();
        };
        let page = {
            let mut pages = lock(&self.pages);
            let known = pages.iter().position(|(of, _)| of == id);
            let page = known.and_then(|at| pages.remove(at)).unwrap_or_else(|| {
                let page = LivePage::of_list(dir, "../../");
                (id.to_owned(), Arc::new(page))
            });
            let shared = Arc::clone(&page.1);
            pages.push_front(page);
            pages.truncate(PAGES_KEPT);
            shared
        };
        give(&page)
    }

    fn list(&self, request: &Request) -> anyhow::Result<Response> {
        let wanted = Wanted::of(request);
        let mut found = 0;
        let mut rows = Vec::new();
        for listed in self.listed()?.into_iter().rev() {
            if !self.is_wanted(&listed, &wanted) {
                continue;
            }
            if (wanted.before..wanted.before + ROWS).contains(&found) {
                rows.push(shown(self.row(&listed), tags(&listed)));
            }
            found += 1;
        }
        let page = runs_page(&RunsPage {
            folder: self.global.runs.display().to_string(),
            text: wanted.text,
            tag: wanted.tag,
            verdict: wanted.verdict,
            rows,
            found,
            before: wanted.before,
            each: ROWS,
        });
        Ok(Response::ok(PAGE, page))
    }

    /// The runs, oldest first; of one that leads elsewhere no more than that.
    fn listed(&self) -> Result<Vec<ListedRun>, RecordError> {
        let mut all = fathom_record::list(&self.global.runs)?;
        for run in all.iter_mut().filter(|run| leads_elsewhere(&run.dir)) {
            let why = "it is a link or holds links, and is not shown";
            run.summary = Err(RecordError::NotFound(why.to_owned()));
            run.command = None;
        }
        Ok(all)
    }

    fn is_wanted(&self, run: &ListedRun, wanted: &Wanted) -> bool {
        let is_verdict = || {
            let verdict = self.row(run).verdict;
            verdict.map_or("none", |level| level.name()) == wanted.verdict
        };
        wanted.fits(run) && (wanted.verdict.is_empty() || is_verdict())
    }

    /// A figure over the last runs that are wanted.
    fn history(&self, request: &Request) -> anyhow::Result<Response> {
        let wanted = Wanted::of(request);
        let asked = request.value("figure");
        let figure = CompareFigure::ALL.into_iter();
        let figure = figure.clone().find(|one| one.name() == asked);
        let figure = figure.unwrap_or(CompareFigure::Iops);
        let mut listed = self.listed()?;
        listed.retain(|run| self.is_wanted(run, &wanted));
        let older = listed.len().saturating_sub(HISTORY_RUNS);
        let mut runs = Vec::new();
        let mut unread = 0;
        for run in &listed[older..] {
            match self.compared_run(run) {
                Ok(run) => runs.push(run),
                Err(_) => unread += 1,
            }
        }
        let kept = listed
            .iter()
            .map(|run| run.id.as_str())
            .collect::<BTreeSet<_>>();
        lock(&self.compared).retain(|id, _| kept.contains(id.as_str()));
        let mut doc = history::history(&runs, figure);
        let job = request.value("job");
        doc.choose(job);
        let mut notes = Vec::new();
        if older > 0 {
            notes.push(format!("The last {HISTORY_RUNS} runs; {older} are older."));
        }
        if unread > 0 {
            notes.push(format!("{unread} of the runs cannot be read."));
        }
        let page = HistoryPage {
            text: wanted.text,
            tag: wanted.tag,
            verdict: wanted.verdict,
            job: job.to_owned(),
            figure: figure.name(),
            figures: CompareFigure::ALL.map(CompareFigure::name).to_vec(),
            notes,
        };
        Ok(Response::ok(PAGE, history_page(&page, &doc)))
    }

    /// The figures of a run; read once while its record stays as it is.
    fn compared_run(&self, run: &ListedRun) -> anyhow::Result<ComparedRun> {
        if let Err(why) = &run.summary {
            anyhow::bail!("{why}");
        }
        let now = RecordState::of(&run.dir)?;
        let mut known = lock(&self.compared);
        if let Some((_, run)) = known.get(&run.id).filter(|(state, _)| *state == now) {
            return Ok(run.clone());
        }
        let mut read = compared(&run.dir)?;
        fathom_document::drop_histograms(&mut read.doc);
        known.insert(run.id.clone(), (now, read.clone()));
        Ok(read)
    }

    /// What the list says of a run; made once while its record stays as it is.
    fn row(&self, run: &ListedRun) -> RunRow {
        if run.summary.is_err() {
            return runs::unreadable(run);
        }
        let make = || runs::row(ListedRun::read(&run.dir));
        let Ok(now) = RecordState::of(&run.dir) else {
            return make();
        };
        // One at a time: many figures are work.
        let mut rows = lock(&self.rows);
        match rows.get(&run.id).filter(|(state, _)| *state == now) {
            Some((_, row)) => row.clone(),
            None => {
                let row = make();
                rows.insert(run.id.clone(), (now, row.clone()));
                row
            }
        }
    }

    fn compare(&self, request: &Request) -> Response {
        let (a, b) = (request.value("a"), request.value("b"));
        if a.is_empty() || b.is_empty() || a == b {
            let why = "two runs are compared: choose one as A and another as B";
            return Response::refusal("400 Bad Request", why);
        }
        let (Some(a), Some(b)) = (self.dir_of(a), self.dir_of(b)) else {
            return Response::not_found();
        };
        let compared = of_two(&self.global, &a, &b).and_then(|request| {
            let doc = compare::comparison(&request);
            Ok(Response::ok(PAGE, compare::html(&doc, &request)?))
        });
        compared.unwrap_or_else(failed)
    }
}

/// What is looked for in the list.
struct Wanted {
    text: String,
    tag: String,
    verdict: String,
    before: usize,
}

impl Wanted {
    fn of(request: &Request) -> Self {
        Self {
            text: request.value("text").to_owned(),
            tag: request.value("tag").trim().to_owned(),
            verdict: request.value("verdict").to_owned(),
            before: request.value("from").parse().unwrap_or(0),
        }
    }

    /// Whether a run has the words and the tag.
    fn fits(&self, run: &ListedRun) -> bool {
        let tags = tags(run);
        let is_it = |tag: &String| {
            let name = tag.split_once('=').map(|(name, _)| name);
            *tag == self.tag || name == Some(&self.tag)
        };
        let name = run.summary.as_ref().map_or("", |it| it.name.as_str());
        let command = run.command.as_deref().unwrap_or_default();
        let own = format!("{} {name} {command} {}", run.id, tags.join(" ")).to_lowercase();
        let wanted = self.text.to_lowercase();
        (self.tag.is_empty() || tags.iter().any(is_it))
            && wanted.split_whitespace().all(|word| own.contains(word))
    }
}

/// The tags of a run, `NAME=VALUE`.
fn tags(run: &ListedRun) -> Vec<String> {
    let tags = run.summary.iter().flat_map(|summary| &summary.tags);
    tags.map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Whether a record is a link or has links, which would show what is not in it. Its raw outputs are
/// shown nowhere.
fn leads_elsewhere(record: &Path) -> bool {
    if fs::symlink_metadata(record).is_ok_and(|record| record.is_symlink()) {
        return true;
    }
    let mut open = vec![record.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => return true,
                Ok(kind) if kind.is_dir() && entry.file_name() != "raw" => open.push(entry.path()),
                _ => {}
            }
        }
    }
    false
}

fn shown(run: RunRow, tags: Vec<String>) -> ListedRow {
    ListedRow {
        id: run.id,
        name: run.name.unwrap_or_default(),
        command: run.command.unwrap_or_default(),
        label: run.label,
        status: run.status,
        verdict: run.verdict,
        started: run.started,
        duration_ms: run.duration_ms,
        rates: run.figure.map(|figure| (figure.iops, figure.bw_bytes)),
        tags,
        reason: run.reason,
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|e| e.into_inner())
}
