//! Small job files over the whole grammar. `valid`: fio and Fathom take them;
//! `invalid`: both refuse; `stricter`: fio takes them for something else than
//! is written, as their first lines say, and Fathom refuses; `looser`: fio 3.33
//! refuses what Fathom keeps, with a warning.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fathom_jobfile::table::table;
use fathom_jobfile::{CheckedJobFile, JobFile, Severity, cmdline};
use fathom_model::io_engine::io_engine;
use fathom_model::{JobOption, JobSpec};

use crate::jobfile::fio;

const FOLDERS: [&str; 4] = ["valid", "invalid", "stricter", "looser"];

fn files(folder: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{folder}");
    files
}

fn read(path: &Path) -> CheckedJobFile {
    JobFile::read(path, &fio::variable).unwrap()
}

#[test]
fn fathom_takes_what_it_should() {
    for folder in FOLDERS {
        for path in files(folder) {
            let accepted = !read(&path).has_errors();
            assert_eq!(
                accepted,
                ["valid", "looser"].contains(&folder),
                "{}",
                path.display()
            );
        }
    }
}

/// One run of fio for each file: whether it takes it, and what it shows.
#[test]
fn fio_agrees() {
    let cases: Vec<(&str, PathBuf)> = FOLDERS
        .iter()
        .flat_map(|folder| files(folder).into_iter().map(|path| (*folder, path)))
        .collect();
    let runs: Vec<Vec<String>> = cases
        .iter()
        .map(|(_, path)| {
            let path = path.to_str().unwrap().to_owned();
            vec!["--parse-only".into(), "--showcmd".into(), path]
        })
        .collect();
    let Some(outputs) = fio::run_each("fio_agrees", &runs) else {
        return;
    };
    for ((folder, path), output) in cases.iter().zip(outputs) {
        let text = fio::text(&output);
        // fio drops a job with a broken include and still ends with 0.
        let accepted = output.status.success()
            && !text.contains("dropped")
            && !text.contains("while parsing include");
        let expected = ["valid", "stricter"].contains(folder);
        assert_eq!(accepted, expected, "{}: {text}", path.display());
        // fio prints this one's notice into the middle of the command.
        if *folder == "valid" && !path.ends_with("deprecated.fio") {
            same_options(path, &output);
        }
    }
}

fn same_options(path: &Path, output: &std::process::Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = stdout
        .lines()
        .find(|line| line.starts_with("fio "))
        .unwrap();
    let (mut ours, mut theirs) = (expected(&read(path).file), shown(line));
    sort(&mut ours);
    sort(&mut theirs);
    assert_eq!(ours, theirs, "{}", path.display());
}

/// Options in a form that does not depend on aliases and order.
type Section = BTreeMap<String, Vec<String>>;

fn add(section: &mut Section, name: &str, value: Option<&str>) {
    let name = table().canonical(name).to_owned();
    let value = value.unwrap_or("(none)").trim_matches('"').to_owned();
    section.entry(name).or_default().push(value);
}

/// What `fio --showcmd` is to print. For a global section fio prints all
/// global options so far; those after a job stand, wrongly, behind its name.
fn expected(file: &JobFile) -> Vec<Section> {
    let mut globals = Section::new();
    let mut shown = vec![Section::new()];
    for section in file.sections() {
        if section.is_global() {
            for option in section.options() {
                add(&mut globals, &option.name, option.value.as_deref());
            }
            let last = shown.last_mut().unwrap();
            for (name, values) in &globals {
                last.entry(name.clone()).or_default().extend(values.clone());
            }
            continue;
        }
        let mut own = Section::new();
        own.insert("(section)".into(), vec![section.name.trim().to_owned()]);
        for option in section.options() {
            add(&mut own, &option.name, option.value.as_deref());
        }
        shown.push(own);
    }
    shown
}

/// What `fio --showcmd` printed.
fn shown(line: &str) -> Vec<Section> {
    let mut shown = vec![Section::new()];
    for word in line.trim().split(" --").skip(1) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if name == "name" {
            shown.push(Section::from([(
                "(section)".into(),
                vec![value.unwrap().trim().to_owned()],
            )]));
        } else {
            add(shown.last_mut().unwrap(), name, value);
        }
    }
    shown
}

fn sort(sections: &mut [Section]) {
    for values in sections.iter_mut().flat_map(|section| section.values_mut()) {
        for value in values.iter_mut() {
            *value = value.trim().to_owned();
        }
        values.sort();
    }
}

/// All at once: each job carries its globals, so none disturbs another.
#[test]
fn fio_takes_the_command_lines() {
    let mut args = vec!["--parse-only".to_owned()];
    for path in files("valid") {
        // Here fio opens the library while it parses.
        if !path.ends_with("external_engine.fio") {
            args.extend(cmdline(&read(&path).file.jobs()));
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(output) = fio::run("fio_takes_the_command_lines", &args, Path::new("/")) {
        assert!(output.status.success(), "{}", fio::text(&output));
    }
}

type NameValue = (String, Option<String>);

/// Jobs without the places of their options.
fn plain(jobs: &[JobSpec]) -> Vec<(String, Vec<NameValue>)> {
    let option = |option: &JobOption| (option.name.clone(), option.value.clone());
    jobs.iter()
        .map(|job| (job.name.clone(), job.options.iter().map(option).collect()))
        .collect()
}

#[test]
fn rendered_files_mean_the_same() {
    for folder in ["valid", "looser", "stricter"] {
        for path in files(folder) {
            let file = read(&path).file;
            let text = file.render();
            // Rendered files need neither the included files nor the variables,
            // except for values that a job file cannot hold otherwise.
            let again = JobFile::parse(&text, Path::new("/nowhere/x.fio"), &fio::variable).file;
            assert_eq!(
                plain(&again.jobs()),
                plain(&file.jobs()),
                "{}",
                path.display()
            );
            assert_eq!(again.render(), text, "{}", path.display());
        }
    }
}

#[test]
fn command_lines_come_back_as_job_files() {
    for path in files("valid") {
        if path.ends_with("variable_with_semicolon.fio") || path.ends_with("variable_odd.fio") {
            // A job file cannot hold these values without a variable.
            continue;
        }
        let args = cmdline(&read(&path).file.jobs());
        let back = JobFile::from_cmdline(&args);
        if back.has_errors() {
            // Only for names that a job file trims.
            assert!(path.ends_with("names.fio"), "{:?}", back.diagnostics);
            continue;
        }
        let again = JobFile::parse(&back.file.render(), Path::new("x.fio"), &|_| None);
        assert_eq!(cmdline(&again.file.jobs()), args, "{}", path.display());
    }
}

#[test]
fn diagnostics_are_as_a_person_sees_them() {
    for folder in FOLDERS {
        let mut text = String::new();
        for path in files(folder) {
            let diagnostics = read(&path).diagnostics;
            let name = path.file_name().unwrap().to_str().unwrap();
            if diagnostics.is_empty() {
                continue;
            }
            writeln!(text, "── {name}").unwrap();
            for diagnostic in diagnostics {
                let corpus = format!("{}/tests/corpus/{folder}/", env!("CARGO_MANIFEST_DIR"));
                let full = format!("{diagnostic}\n{}\n", diagnostic.excerpt());
                text.push_str(&full.replace(&corpus, ""));
            }
        }
        insta::assert_snapshot!(format!("diagnostics_{folder}"), text);
    }
}

#[test]
fn every_diagnostic_has_a_place_in_its_line() {
    for folder in FOLDERS {
        for path in files(folder) {
            for diagnostic in read(&path).diagnostics {
                let length = diagnostic.text.chars().count();
                assert!(diagnostic.line > 0 && diagnostic.column > 0, "{diagnostic}");
                assert!(diagnostic.column as usize <= length + 1, "{diagnostic}");
                assert!(
                    diagnostic.severity == Severity::Error
                        || folder != "invalid"
                        || !diagnostic.message.is_empty()
                );
            }
        }
    }
}

#[test]
fn table_agrees_with_fio() {
    if !fio::is_the_tables("table_agrees_with_fio") {
        return;
    }
    let help = |args: &[&str]| {
        fio::text(&fio::run("table_agrees_with_fio", args, Path::new("/")).unwrap())
    };
    let names = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, _)| name.trim().to_owned())
            .filter(|name| !name.is_empty() && !name.contains(' '))
            .collect()
    };
    let all = names(&help(&["--cmdhelp=all"]));
    assert!(all.len() > 200);
    for name in all {
        let spec = table().find(&name).find(|spec| spec.is_general());
        assert!(spec.is_some(), "{name} is not in the table");
    }
    let engines = help(&["--enghelp"]);
    for engine in engines.lines().filter_map(|line| line.strip_prefix('\t')) {
        assert!(
            io_engine(engine).is_some(),
            "engine {engine} is not in the table"
        );
        for name in names(&help(&[&format!("--enghelp={engine}")])) {
            let known = table()
                .find(&name)
                .any(|spec| spec.engines.contains(&engine));
            assert!(known, "{name} of {engine} is not in the table");
        }
    }
}
