//! What axe-core finds on the pages: nothing that keeps people from reading them, by
//! screen reader, by keys, in the light and in the dark.

use std::fs;
use std::path::Path;

use fathom_model::RunStatus;
use fathom_testkit::{Browser, axe_core, require};

use crate::report::live::PageServer;
use crate::report::runs::{name_of, run};
use crate::report::{fathom, records, report};

/// Every rule there is, and where each is broken.
const FOUND: &str = "axe.run(document, { resultTypes: ['violations'] })
    .then((found) => found.passes.length < 10 ? ['no rules'] : found.violations.flatMap((rule) => rule.nodes.map((node) =>
      `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`)))";

/// A browser that has axe-core at hand.
struct Examiner {
    browser: Browser,
    axe: String,
    /// What was found, with the page.
    found: Vec<String>,
}

impl Examiner {
    fn start() -> Result<Self, String> {
        let axe = fs::read_to_string(axe_core()?).map_err(|error| error.to_string())?;
        Ok(Self {
            browser: Browser::start()?,
            axe: axe + "; true",
            found: Vec::new(),
        })
    }

    /// Looks at the page that is shown, once `ready` holds.
    fn look(&mut self, page: &str, ready: &str) {
        for (width, dark) in [(1280, false), (1280, true), (390, false)] {
            self.browser.look(width, 900, dark).unwrap();
            self.browser.wait_for(ready).unwrap();
            self.browser.eval(&self.axe).unwrap();
            let found = self.browser.eval(FOUND).unwrap();
            let dark = if dark { ", dark" } else { "" };
            for one in found.as_array().unwrap() {
                let one = one.as_str().unwrap_or_default();
                self.found.push(format!("{page}, {width} px{dark}: {one}"));
            }
        }
    }

    fn open(&mut self, page: &str, file: &Path, ready: &str) {
        self.browser.open(file).unwrap();
        self.look(page, ready);
    }

    fn visit(&mut self, page: &str, url: &str, ready: &str) {
        self.browser.visit(url).unwrap();
        self.look(page, ready);
    }
}

const DRAWN: &str = "document.querySelector('.hero canvas') !== null";
const SHOWN: &str = "document.querySelector('main') !== null";

#[test]
fn axe_core_finds_nothing() {
    let mut examiner = require!(Examiner::start());
    let runs = tempfile::tempdir().unwrap();
    let (a, b) = (
        run(runs.path(), "first", "old", 10_000.0),
        run(runs.path(), records::HOSTILE, "new", 12_000.0),
    );
    let one = records::begun(runs.path(), 2, 30)
        .finish(RunStatus::Interrupted)
        .unwrap();
    let many = records::campaign(runs.path(), 3);
    for (name, record) in [("one run", &one), ("many", &many)] {
        let (file, _) = report(runs.path(), record);
        examiner.open(name, &file, DRAWN);
    }
    // A point, in its dialog, over the page.
    examiner.browser.eval("location.hash = '#p3'").unwrap();
    let open = "document.querySelector('dialog')?.open === true";
    examiner.look("a point", open);

    // A search, whose answer stands first.
    let searches = tempfile::tempdir().unwrap();
    let job = searches.path().join("a.fio");
    fs::write(&job, "[a]\nrw=randread\nfilename=x\nsize=4m\nbs=4k\n").unwrap();
    let job = job.to_str().unwrap();
    let find = ["find", job, "--knee", "--to", "8", "--engine", "sim", "-q"];
    assert!(fathom(searches.path(), &find).status.success());
    let file = searches.path().join("page.html");
    let written = fathom(
        searches.path(),
        &["report", "--out", file.to_str().unwrap()],
    );
    assert!(written.status.success());
    examiner.open(
        "a search",
        &file,
        "document.querySelector('.hero svg') !== null",
    );

    let server = PageServer::start(runs.path(), &["serve-runs", "0"]);
    let url = server.url.clone();
    examiner.visit("the list", &url, SHOWN);
    examiner.visit("nothing found", &format!("{url}?text=none"), SHOWN);
    let (a, b) = (name_of(&a), name_of(&b));
    examiner.visit("a comparison", &format!("{url}compare?a={a}&b={b}"), SHOWN);
    examiner.visit("a history", &format!("{url}history?text=job"), SHOWN);
    examiner.visit("of the list", &format!("{url}runs/{a}/"), SHOWN);
    server.end();
    let live = records::begun(runs.path(), 1, 20);
    let server = PageServer::start(runs.path(), &["report", "--live=0"]);
    examiner.visit("a run that goes on", &server.url, DRAWN);
    server.end();
    drop(live);
    assert!(examiner.found.is_empty(), "{:#?}", examiner.found);
}
