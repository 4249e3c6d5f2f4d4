//! The rules of docs/ARCHITECTURE.md, checked on the sources themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod cycles;

/// Test support: any crate may use it in its tests, none in what is shipped.
const TEST_SUPPORT: &str = "testkit";
/// A file that is longer can no longer be read in one sitting.
const MAX_LINES: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders below the workspace")
        .to_path_buf()
}

/// Every file below `dir` whose name ends with one of `endings`, in order.
fn files(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().unwrap().is_dir() {
                let built = matches!(
                    &*name,
                    "target" | ".git" | "quick-runs" | "fathom-runs" | "corpus" | "artifacts"
                );
                if !built {
                    open.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    files(&root().join("crates"), &[".rs"])
}

/// The crate that a source belongs to, for example `engine`.
fn crate_of(path: &Path) -> String {
    let below = path.strip_prefix(root().join("crates")).unwrap();
    below.iter().next().unwrap().to_string_lossy().into_owned()
}

/// The code of a file that is shipped: without comments and without the tests
/// at its end.
fn shipped_code(path: &Path) -> Vec<(usize, String)> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(n, line)| (n + 1, line.to_owned()))
        .collect()
}

fn is_shipped(path: &Path) -> bool {
    let below = path.strip_prefix(root().join("crates")).unwrap();
    let for_tests = below
        .iter()
        .any(|part| part == "tests" || part == "tests.rs");
    crate_of(path) != TEST_SUPPORT && !for_tests && below.iter().any(|part| part == "src")
}

/// The table of docs/ARCHITECTURE.md: crate → what it may know.
fn allowed_edges() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let all: BTreeSet<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    rows.iter()
        .map(|row| {
            let knows = match row[2] {
                "all" => all.clone(),
                "–" => BTreeSet::new(),
                some => some.split(',').map(|name| name.trim().to_owned()).collect(),
            };
            (row[0].to_owned(), knows)
        })
        .collect()
}

/// The workspace's crates among the dependencies of one kind.
fn dependencies(manifest: &toml::Table, kind: &str) -> BTreeSet<String> {
    manifest
        .get(kind)
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(toml::Table::keys)
        .filter_map(|name| name.strip_prefix("fathom-"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_know_only_whom_the_architecture_allows() {
    let allowed = allowed_edges();
    assert!(allowed.len() >= 8, "the table was not found: {allowed:?}");
    let mut wrong = Vec::new();
    for path in files(&root().join("crates"), &["Cargo.toml"]) {
        let name = crate_of(&path);
        let manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        let Some(knows) = allowed.get(&name) else {
            wrong.push(format!(
                "{name} is not in the table of docs/ARCHITECTURE.md"
            ));
            continue;
        };
        for other in dependencies(&manifest, "dependencies").difference(knows) {
            wrong.push(format!("{name} → {other}"));
        }
        let mut in_tests = knows.clone();
        in_tests.insert(TEST_SUPPORT.to_owned());
        for other in dependencies(&manifest, "dev-dependencies").difference(&in_tests) {
            wrong.push(format!("{name} → {other} (in its tests)"));
        }
        if dependencies(&manifest, "dependencies").contains(TEST_SUPPORT) {
            wrong.push(format!("{name} ships {TEST_SUPPORT}"));
        }
    }
    assert!(wrong.is_empty(), "edges that are not allowed: {wrong:#?}");
}

#[test]
fn only_the_command_prints_and_only_main_ends_the_process() {
    let printing = [
        "println!",
        "print!(",
        "eprint!(",
        "dbg!",
        "io::stdout()",
        "io::stderr()",
    ];
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|path| is_shipped(path)) {
        // What ssh says is passed on to where ssh itself would have written it.
        let passes_on = path.ends_with("fleet/src/ssh/client.rs");
        let is_out = path.ends_with("cli/src/out.rs") || passes_on;
        for (n, line) in shipped_code(&path) {
            // Asking whether it is a terminal writes nothing.
            let asks = line.contains("is_terminal");
            let prints = printing.iter().any(|word| line.contains(word)) && !asks && !is_out;
            let exits = line.contains("process::exit(");
            if prints || exits {
                wrong.push(format!("{}:{n}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_can_be_read_in_one_sitting() {
    let long: Vec<String> = sources()
        .iter()
        .map(|path| (path, fs::read_to_string(path).unwrap().lines().count()))
        .filter(|&(_, lines)| lines > MAX_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines: {long:#?}");
}

#[test]
fn every_file_says_first_what_it_is() {
    let silent: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|path| is_shipped(path))
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no //! at the top: {silent:#?}");
}

#[test]
fn every_stored_format_is_described() {
    let format = fs::read_to_string(root().join("docs/FORMAT.md")).unwrap();
    let mut missing = BTreeSet::new();
    for path in sources().into_iter().filter(|path| is_shipped(path)) {
        for (_, line) in shipped_code(&path) {
            for text in line.split('"').skip(1).step_by(2) {
                let names_a_format = text
                    .strip_prefix("fathom.")
                    .and_then(|rest| rest.split_once('/'))
                    .is_some_and(|(_, version)| version.parse::<u32>().is_ok());
                if names_a_format && !format.contains(text) {
                    missing.insert(text.to_owned());
                }
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/FORMAT.md: {missing:#?}");
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let endings = [
        ".rs", ".md", ".toml", ".sh", ".svg", ".json", "Makefile", "run",
    ];
    let homes = ["/root/", "/Users/"];
    let this = Path::new("cli/tests/architecture.rs");
    // There it is the home of a Debian that the script makes.
    let bare = Path::new("tools/bare.sh");
    let mut wrong = Vec::new();
    for path in files(&root(), &endings) {
        // Captured outputs say what the machine of their time said.
        let captured = path
            .iter()
            .any(|part| part == "fixtures" || part == "quick");
        if path.ends_with(this) || path.ends_with(bare) || captured {
            continue;
        }
        for (n, line) in fs::read_to_string(&path)
            .unwrap_or_default()
            .lines()
            .enumerate()
        {
            if homes.iter().any(|home| line.contains(home)) {
                wrong.push(format!("{}:{}: {}", path.display(), n + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What two branches have both added is easily kept twice when they meet.
#[test]
fn no_table_and_no_list_of_the_documents_says_a_thing_twice() {
    const BEGIN: usize = 48;
    let mut pages = files(&root().join("docs"), &[".md"]);
    pages.extend(["README.md", "CHANGELOG.md"].map(|page| root().join(page)));
    let mut twice = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut rows = BTreeSet::new();
        let mut begins = BTreeSet::new();
        for (n, line) in (1..).zip(text.lines()) {
            let is_known = match line.strip_prefix('|') {
                Some(row) => {
                    let name = row.split('|').next().unwrap_or_default().trim();
                    !name.is_empty() && !rows.insert(name)
                }
                None => {
                    rows.clear();
                    // What is drawn begins with blanks.
                    let is_text = line.len() > BEGIN + 12 && !line.starts_with(' ');
                    let begin = line.get(..BEGIN).filter(|_| is_text);
                    begin.is_some_and(|begin| !begins.insert(begin))
                }
            };
            if is_known {
                twice.push(format!("{}:{n}: {line:.60}", page.display()));
            }
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
}

/// What is to be one, how it is found in a line, and how many there are still. A number
/// may fall and never rise.
const ONE: [(&str, &[&str], usize); 5] = [
    ("writers of dry runs", &["\"fathom.dry-run/1\""], 1),
    // The executor, and the phases of a cluster.
    ("owners of a run's session", &["Session::new("], 2),
    // The executor, a campaign here and on several machines, job run, prio and quick there,
    // a cluster's, two imports', and the copy of a run on another machine.
    (
        "makers of records",
        &[" Writer::create(", "(Writer::create("],
        10,
    ),
    // A plan's, that of job files, that of the quick series, and what they all call.
    (
        "places that choose an engine",
        &["EngineHandle::choose(", "choice::choose("],
        4,
    ),
    // The one of all runs, the series of quick, whose lines others read, the overview of
    // many drives, a purge by hand, whose progress no record has, and the menu of a
    // configuration, which is none of a run.
    ("screens", &["struct Screen", "struct Dashboard"], 5),
];

#[test]
fn what_must_be_one_does_not_become_more() {
    let sources = sources().into_iter().filter(|path| is_shipped(path));
    let code: Vec<(PathBuf, Vec<(usize, String)>)> = sources
        .map(|path| (path.clone(), shipped_code(&path)))
        .collect();
    for (what, patterns, most) in ONE {
        let mut found = Vec::new();
        for (path, lines) in &code {
            let is_one = |line: &str| patterns.iter().any(|it| line.contains(it));
            let hits = lines.iter().filter(|(_, line)| is_one(line));
            found.extend(hits.map(|(n, _)| format!("{}:{n}", path.display())));
        }
        assert!(!found.is_empty(), "{what}: the pattern finds none");
        assert!(
            found.len() <= most,
            "{what}: {most} at most, and there are {found:#?}"
        );
    }
}

/// Ways to make a file or write over one. What a user names goes through
/// `fathom_fleet::named_file` and `fathom_record::replace`, which make no file of a device,
/// follow no link out of a folder, and leave nothing half-written. Every other place is
/// here, with its reason.
const WRITERS: [(&str, usize, &str); 29] = [
    ("campaign/src/folder/init.rs", 1, "new files only"),
    ("suites/src/prio/script.rs", 1, "in a record's folder"),
    (
        "suites/src/quick/folder.rs",
        1,
        "the tag of a folder of its own",
    ),
    (
        "prepare/src/logs.rs",
        1,
        "behind what is there, in no link's or device's place",
    ),
    ("campaign/src/run/records.rs", 1, "in a record's folder"),
    ("cli/src/cmd/demo.rs", 1, "in a new folder"),
    ("cli/src/cmd/doctor/native.rs", 1, "in a temporary folder"),
    ("cli/src/cmd/hosts.rs", 1, "in a record's folder"),
    ("cli/src/cmd/import.rs", 1, "in a record's folder"),
    ("cli/src/cmd/import/fio_tests.rs", 1, "in a record's folder"),
    ("cli/src/cmd/lat/save.rs", 1, "judged, many at a time"),
    ("cli/src/cmd/serve.rs", 1, "its own state"),
    ("cli/src/pictures.rs", 1, "in a temporary folder"),
    ("cluster/src/caches.rs", 1, "in a record's folder"),
    ("cluster/src/cluster_run.rs", 1, "in a record's folder"),
    (
        "cluster/src/background_load/drive.rs",
        1,
        "in a volume that it has claimed",
    ),
    ("device/src/command.rs", 1, "attributes of sysfs"),
    ("device/src/scratch.rs", 1, "in a temporary folder"),
    (
        "engine/src/checked.rs",
        5,
        "what was checked, and nothing else",
    ),
    ("engine-fio/src/client/mod.rs", 1, "in a record's folder"),
    ("fio-output/src/raw.rs", 2, "in a record's folder"),
    ("engine-native/src/native/files.rs", 2, "by engine::checked"),
    (
        "engine-native/src/native/iolog_file.rs",
        1,
        "by engine::checked",
    ),
    (
        "engine-native/src/native/output.rs",
        1,
        "in a record's folder",
    ),
    (
        "engine-native/src/native/scheduler.rs",
        2,
        "attributes of sysfs",
    ),
    ("fleet/src/hosts/file_parts.rs", 1, "in a record's folder"),
    ("fleet/src/ssh/fio.rs", 1, "in a record's folder"),
    ("flow/src/command.rs", 1, "in a record's folder"),
    ("flow/src/plan_log.rs", 2, "in a record's folder"),
];

#[test]
fn every_file_is_made_by_the_one_writer_or_for_a_reason() {
    const WAYS: [&str; 9] = [
        "File::create(",
        "File::create_new(",
        "fs::write(",
        "fs::rename(",
        "fs::copy(",
        ".create(true",
        ".create(job",
        ".create_new(true",
        "OFlags::CREATE",
    ];
    let uses = |code: &str, way: &str| {
        let is_word = |before: &str| before.ends_with(|c: char| c.is_alphanumeric());
        let mut places = code.match_indices(way);
        places.any(|(at, _)| way.starts_with('.') || !is_word(&code[..at]))
    };
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for path in sources().iter().filter(|path| is_shipped(path)) {
        // The record's own folder is written by its crate alone.
        if matches!(crate_of(path).as_str(), "record" | "testkit") {
            continue;
        }
        let name = path.strip_prefix(root().join("crates")).unwrap();
        for (line, code) in shipped_code(path) {
            if WAYS.iter().any(|way| uses(&code, way)) {
                let name = name.display().to_string();
                found.entry(name).or_default().push(line);
            }
        }
    }
    let mut faults = Vec::new();
    for (name, lines) in &found {
        match WRITERS.iter().find(|(known, ..)| known == name) {
            Some((_, count, _)) if *count == lines.len() => {}
            known => faults.push(format!(
                "{name}: lines {lines:?} make files, and {} is known",
                known.map_or(0, |(_, count, _)| *count)
            )),
        }
    }
    let gone = WRITERS
        .iter()
        .filter(|(name, ..)| !found.contains_key(*name));
    faults.extend(gone.map(|(name, ..)| format!("{name} makes no files any more")));
    assert!(faults.is_empty(), "{faults:#?}");
}
