//! `fathom serve-runs`: the folder of records in a real browser, and what it does not show.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fathom_model::{Outcome, RunStatus};
use fathom_record::Writer;
use fathom_testkit::{Browser, require};
use serde_json::json;

use crate::report::browser::picture;
use crate::report::live::PageServer;
use crate::report::records;

/// A run that has ended, with a tag.
pub fn run(runs: &Path, name: &str, tag: &str, iops: f64) -> PathBuf {
    let mut header = records::header(name, "job run");
    header.facts.insert("tags".into(), json!({"build": tag}));
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    records::begin(&mut append, &["job"]);
    append(records::finished(vec![records::job(
        "job",
        records::figures(iops, 90_000.0, 10_000),
    )]));
    append(fathom_model::Event::StepEnded {
        outcome: Outcome::Complete,
    });
    writer.finish(RunStatus::Complete).unwrap()
}

pub fn name_of(record: &Path) -> String {
    record.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The names of the runs in the list.
const IDS: &str = "[...document.querySelectorAll('#runs tbody a')].map((a) => a.textContent)";

fn rows(browser: &mut Browser) -> usize {
    browser.eval(IDS).unwrap().as_array().unwrap().len()
}

/// By words, by tag, by verdict: an address that can be kept.
fn choose(browser: &mut Browser, url: &str) {
    for (asked, found) in [
        ("text=FIRST", 1),
        ("text=job+run", 2),
        ("tag=build", 2),
        ("tag=build%3Dnew", 1),
        ("tag=build%3Dnone", 0),
        ("verdict=none", 0),
        ("text=first&tag=build%3Dnew", 0),
    ] {
        browser.visit(&format!("{url}?{asked}")).unwrap();
        assert_eq!(rows(browser), found, "{asked}");
    }
    browser.visit(url).unwrap();
    let form = "document.querySelector('form[role=search]')";
    browser
        .eval(&format!(
            "{form}.elements.text.value = 'first'; {form}.requestSubmit()"
        ))
        .unwrap();
    browser
        .wait_across_loads("location.search.includes('text=first')")
        .unwrap();
    browser
        .wait_across_loads(&format!("{IDS}.length === 1"))
        .unwrap();
}

#[test]
fn runs_are_listed_chosen_opened_and_compared() {
    let mut browser = require!(Browser::start());
    let runs = tempfile::tempdir().unwrap();
    run(runs.path(), "first", "old", 10_000.0);
    let second = run(runs.path(), records::HOSTILE, "new", 12_000.0);
    records::campaign(runs.path(), 3);
    let server = PageServer::start(runs.path(), &["serve-runs", "0"]);
    browser.look(1280, 800, false).unwrap();
    browser.visit(&server.url).unwrap();
    assert_eq!(rows(&mut browser), 3);
    picture(&mut browser, "runs.png");

    choose(&mut browser, &server.url);

    // Two of them, side by side.
    browser.visit(&server.url).unwrap();
    browser
        .eval(
            "(() => { const [, b, a] = document.querySelectorAll('#runs tbody tr');
               a.querySelector('[name=a]').checked = true;
               b.querySelector('[name=b]').checked = true;
               document.querySelector('form[action=compare]').requestSubmit(); })()",
        )
        .unwrap();
    browser
        .wait_across_loads("document.querySelector('h1')?.textContent === 'Comparison'")
        .unwrap();
    let said = browser.eval("document.body.textContent").unwrap();
    assert!(said.as_str().unwrap().contains("1.2"), "{said}");
    picture(&mut browser, "compared.png");

    // A figure over them, of the one that is looked for.
    browser.visit(&format!("{}?text=job", server.url)).unwrap();
    browser
        .eval("document.querySelector('[formaction=history]').click()")
        .unwrap();
    browser
        .wait_across_loads("document.querySelectorAll('section svg').length === 1")
        .unwrap();
    let said = browser.eval("document.querySelector('section').textContent");
    let said = said.unwrap().to_string();
    assert!(
        said.contains("job read, IOPS") && said.contains("2 runs"),
        "{said}"
    );
    picture(&mut browser, "history.png");
    let asked = "history?figure=p99+latency&job=none";
    browser.visit(&format!("{}{asked}", server.url)).unwrap();
    let said = browser.eval("document.querySelector('main').textContent");
    assert!(said.unwrap().to_string().contains("no run like that"));

    // A report, with the way back.
    browser.visit(&server.url).unwrap();
    let link = format!("a[href*=\"{}\"]", &name_of(&second)[..15]);
    browser
        .eval(&format!("document.querySelectorAll('{link}')[0].click()"))
        .unwrap();
    browser
        .wait_across_loads("document.querySelector('nav a')?.textContent === 'All runs'")
        .unwrap();
    assert_eq!(browser.eval("window.harmed ?? null").unwrap(), json!(null));
    browser
        .eval("document.querySelector('nav a').click()")
        .unwrap();
    browser
        .wait_across_loads(&format!("{IDS}.length === 3"))
        .unwrap();
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
    server.end();
}

#[test]
fn a_run_that_goes_on_is_followed_from_the_list() {
    let runs = tempfile::tempdir().unwrap();
    let writer = records::begun(runs.path(), 1, 3);
    let server = PageServer::start(runs.path(), &["serve-runs", "0"]);
    let host = server.address().to_owned();
    let id = name_of(writer.dir());
    assert!(server.ask("GET /", &host).contains(">running<"));
    let page = format!("GET /runs/{id}/");
    assert!(server.ask(&page, &host).contains("fathom-live"));
    let state = server.ask(&format!("{page}state"), &host);
    assert!(state.contains("\"status\":\"running\""), "{state}");
    writer.finish(RunStatus::Complete).unwrap();
    assert!(server.ask("GET /", &host).contains(">complete<"));
    assert!(!server.ask(&page, &host).contains("fathom-live"));
    server.end();
}

#[test]
fn nothing_but_the_records_of_the_folder_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, beside) = (dir.path().join("runs"), dir.path().join("beside"));
    let own = run(&runs, "own", "a", 1000.0);
    let other = run(&beside, "other", "b", 1000.0);
    // A record from elsewhere whose job files lie elsewhere.
    let linked = run(&runs, "linked", "c", 1000.0);
    fs::write(beside.join("secret"), "nobody reads this").unwrap();
    symlink(&beside, linked.join("jobs")).unwrap();
    // And one that is a link itself.
    let (id, hidden) = (name_of(&other), "20260101T000000Z-hidden");
    symlink(beside.join(id), runs.join(hidden)).unwrap();
    let server = PageServer::start(&runs, &["serve-runs", "0"]);
    let host = server.address().to_owned();
    let (own, linked, other) = (name_of(&own), name_of(&linked), name_of(&other));
    assert!(
        server
            .ask(&format!("GET /runs/{own}/"), &host)
            .starts_with("HTTP/1.1 200 ")
    );
    let above = format!("..%2Fbeside%2F{other}");
    for path in [
        format!("/runs/../beside/{other}/"),
        format!("/runs/{above}/"),
        format!("/runs/%2E%2E/beside/{other}/"),
        format!("/runs/{}/", beside.join(&other).display()),
        format!("/runs/{linked}/"),
        format!("/runs/{hidden}/"),
        "/runs/../".to_owned(),
        "/runs/./".to_owned(),
        "/runs//".to_owned(),
        format!("/runs/{own}/events.jsonl"),
        format!("/compare?a={own}&b={above}"),
        format!("/compare?a={own}&b=nothing"),
    ] {
        let said = server.ask(&format!("GET {path}"), &host);
        assert!(said.starts_with("HTTP/1.1 404 "), "{path}: {said}");
    }
    let history = server.ask("GET /history", &host);
    assert!(
        history.contains(&own) && !history.contains(&linked) && !history.contains(hidden),
        "{history}"
    );
    for path in ["/compare", &format!("/compare?a={own}&b={own}")] {
        let said = server.ask(&format!("GET {path}"), &host);
        assert!(said.starts_with("HTTP/1.1 400 "), "{path}: {said}");
    }
    let list = server.ask("GET /", &host);
    assert!(!list.contains("nobody reads this"));
    assert_eq!(
        list.matches("holds links, and is not shown").count(),
        2,
        "{list}"
    );
    assert!(!list.contains(&format!("runs/{linked}/")), "{list}");
    assert!(
        server
            .ask("GET /", "evil.example")
            .starts_with("HTTP/1.1 421 ")
    );
    server.end();
}
