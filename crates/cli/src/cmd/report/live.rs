//! The report of a run that goes on: made anew when somebody looks and the record has grown.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fathom_model::RunStatus;
use fathom_record::RunSummary;
use fathom_report::html::{self, PageExtras};
use serde::Serialize;

use super::baselines::WantedBaselines;
use crate::cmd::answered;
use crate::http::Response;

/// Of the time that pages take to make, so many times as much passes before the next: what
/// measures is to have its machine for itself.
const REST: u32 = 10;

/// How far a record is, as the page asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordState {
    /// Another one where there is more in the record, or it has ended.
    tag: String,
    /// As [`RunStatus`] has it.
    pub status: RunStatus,
}

impl RecordState {
    /// That of a record now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(dir: &Path) -> anyhow::Result<Self> {
        let status = RunSummary::read(dir)?.status.unwrap_or(RunStatus::Running);
        let bytes = fathom_record::log_bytes(dir);
        let tag = format!("{bytes}-{status}");
        Ok(Self { tag, status })
    }
}

/// The page of one run.
#[derive(Debug)]
pub struct LivePage {
    dir: PathBuf,
    /// Where the list of all runs is. A page of that list says that the run has ended by its
    /// status; one that was served for the sake of that run alone by a sentence.
    list: Option<&'static str>,
    baselines: WantedBaselines,
    /// The last page, while somebody makes it nobody else does.
    made: Mutex<Option<MadePage>>,
}

#[derive(Debug)]
struct MadePage {
    state: RecordState,
    text: Vec<u8>,
    at: Instant,
    took: Duration,
}

impl MadePage {
    fn new(page: &LivePage, state: RecordState) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut text = Vec::new();
        let follows = page.list.is_none() || state.status == RunStatus::Running;
        let extras = PageExtras {
            against: &page.baselines.against(&page.dir)?,
            answer: Some(&answered::of(&page.dir)),
            tag: follows.then_some(state.tag.as_str()),
            list: page.list,
        };
        html::write_with(&page.dir, extras, &mut text)?;
        Ok(Self {
            state,
            text,
            at: Instant::now(),
            took: begun.elapsed(),
        })
    }

    /// Whether it is shown whatever the record holds by now.
    fn is_fresh(&self, now: &RecordState) -> bool {
        let may_rest = self.state.status == now.status;
        self.state == *now || (may_rest && self.at.elapsed() < self.took * REST)
    }
}

impl LivePage {
    /// Not made yet.
    pub fn new(dir: PathBuf, baselines: WantedBaselines) -> Self {
        Self {
            dir,
            list: None,
            baselines,
            made: Mutex::default(),
        }
    }

    /// As [`LivePage::new`], with the address of a list of all runs.
    pub fn of_list(dir: PathBuf, list: &'static str) -> Self {
        Self {
            list: Some(list),
            ..Self::new(dir, WantedBaselines::default())
        }
    }

    /// The page.
    pub fn page(&self) -> Response {
        let answer = self.current(|made| Response::ok(PAGE, made.text.clone()));
        answer.unwrap_or_else(failed)
    }

    /// How far the page would be that [`LivePage::page`] gives.
    pub fn state(&self) -> Response {
        let state = RecordState::of(&self.dir).map(|now| match &*self.last() {
            Some(made) if made.is_fresh(&now) => made.state.clone(),
            _ => now,
        });
        let json = state.and_then(|state| Ok(serde_json::to_vec(&state)?));
        json.map_or_else(failed, |json| Response::ok("application/json", json))
    }

    fn last(&self) -> MutexGuard<'_, Option<MadePage>> {
        self.made.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn current<T>(&self, give: impl FnOnce(&MadePage) -> T) -> anyhow::Result<T> {
        let mut last = self.last();
        // What comes while the page is made is told by the next question.
        let now = RecordState::of(&self.dir)?;
        let made = match last.take().filter(|made| made.is_fresh(&now)) {
            Some(made) => made,
            None => MadePage::new(self, now)?,
        };
        Ok(give(last.insert(made)))
    }
}

/// Pages, as HTTP names them.
pub const PAGE: &str = "text/html; charset=utf-8";

/// Why there is no page.
pub fn failed(error: anyhow::Error) -> Response {
    Response::refusal("500 Internal Server Error", &format!("{error:#}"))
}
