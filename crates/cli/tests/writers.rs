//! Every option and argument of the command line whose value is a path, found in the help
//! texts, with what must stay as it is: a device, the file behind one, a file of the user
//! that a link leads to.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use fathom_testkit::{LoopDevice, ProgramUnderTest, require};

use crate::command_line::{commands, help};

/// Options and arguments that name what is there to be read, or a folder of records.
const READ: [&str; 25] = [
    "--dev",
    "--dir",
    "--file",
    "--fio",
    "--kubeconfig",
    "--program",
    "--remote-config",
    "--runs",
    "--sim",
    "--t2a",
    "--t2b",
    "ab FILE",
    "doctor PATH",
    "find FILE",
    "import PATH",
    "job check FILE",
    "job run FILE",
    "job show FILE",
    "lat FILE|PREFIX|DIR",
    "plan FILE.toml",
    "plot PREFIX|FILE|DIR",
    "prio FILE",
    "repeat FILE",
    "run FILE.toml",
    "soak FILE",
];
/// What only a device, a cluster or a measurement brings to write anything.
const ELSEWHERE: [&str; 6] = [
    "--logs",
    "--outdir",
    "prio pages FILE|DEVICE",
    "prio plot DIR",
    "quick PATH|cleanup",
    "find --svg",
];
const OURS: &str = "years of work";

/// What a command needs beside the path.
fn rest(command: &str) -> &'static [&'static str] {
    match command {
        "cluster image" => &["--program", "/sbin/ldconfig"],
        "compare" => &["demo", "demo"],
        "export" => &["csv", "demo"],
        "graph" | "report" => &["demo"],
        "job run" => &["a.fio", "--engine=native", "--output-format=json"],
        "plot" => &["x_lat.1.log"],
        "query" => &["select 1"],
        "runs archive" => &["demo", "--force"],
        _ => &[],
    }
}

/// A folder with a campaign, a record and a log.
fn place() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.good(&["init", "."]);
    program.good(&["config", "alldefconfig"]);
    program.good(&["demo", "."]);
    program.file("a.fio", "[a]\nrw=write\nsize=4k\nfilename=data\n");
    program.file("x_lat.1.log", "1, 2, 0, 4096, 0\n2, 2, 0, 4096, 0\n");
    program
}

/// What must stay: a device, the file behind it, and a file of the user.
struct Kept {
    device: LoopDevice,
    dir: tempfile::TempDir,
    inode: u64,
}

impl Kept {
    fn new() -> Result<Self, String> {
        let device = LoopDevice::new(1 << 20)?;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis"), OURS).unwrap();
        let inode = fs::metadata(device.behind()).unwrap().ino();
        Ok(Self { device, dir, inode })
    }

    fn paths(&self) -> [PathBuf; 3] {
        let thesis = self.dir.path().join("thesis");
        [self.device.path(), self.device.behind(), &thesis].map(Path::to_owned)
    }

    fn check(&self, what: &[String]) {
        let [device, behind, thesis] = self.paths();
        let is_device = fs::symlink_metadata(&device).unwrap().file_type();
        assert!(is_device.is_block_device(), "{what:?}");
        let meta = fs::symlink_metadata(&behind).unwrap();
        assert_eq!((meta.ino(), meta.len()), (self.inode, 1 << 20), "{what:?}");
        assert!(
            fs::read(&behind).unwrap().iter().all(|it| *it == 0),
            "{what:?}"
        );
        assert_eq!(fs::read_to_string(thesis).unwrap(), OURS, "{what:?}");
    }
}

pub(crate) fn files(dir: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir.join(below)).unwrap().flatten() {
        let name = below.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => files(dir, &name, found),
            false => found.push(name),
        }
    }
}

/// Makes links, of the names that a command writes below a folder, to what must stay.
fn plant(folder: &Path, names: &[PathBuf], to: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in names {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        symlink(to, folder.join(name)).unwrap();
    }
}

fn words(command: &[String], option: &str, value: &Path) -> Vec<String> {
    let mut words = command.to_vec();
    words.extend(rest(&command.join(" ")).iter().map(|&word| word.to_owned()));
    words.extend(option.starts_with("--").then(|| option.to_owned()));
    words.push(value.display().to_string());
    words
}

fn run(program: &ProgramUnderTest, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let _ = program.run(&words);
}

/// An option of each command whose value is a path, with a device, the file behind
/// one, and links to them and to another file.
#[test]
fn no_command_writes_to_what_is_no_file_of_its_own() {
    let kept = require!(Kept::new());
    let program = place();
    let demo = program.records().pop().unwrap();
    fs::rename(&demo, demo.with_file_name("demo")).unwrap();
    let work = tempfile::tempdir().unwrap();
    let (mut named, mut written) = (BTreeSet::new(), BTreeSet::new());
    for (nth, (command, option)) in options().into_iter().enumerate() {
        let key = key(&command, &option);
        named.insert(key.clone());
        if READ.contains(&&*key) {
            continue;
        }
        let at = |name: &str| work.path().join(format!("{nth}-{name}"));
        let made = at("made");
        run(&program, &words(&command, &option, &made));
        let mut names = Vec::new();
        if made.is_dir() {
            files(&made, Path::new(""), &mut names);
            names.truncate(3);
        }
        if made.is_file() || !names.is_empty() {
            written.insert(key);
        }
        for (to, path) in kept.paths().into_iter().enumerate() {
            let link = at(&format!("to-{to}"));
            match names.is_empty() {
                true => symlink(&path, &link).unwrap(),
                false => plant(&link, &names, &path),
            }
            let mut values = vec![link];
            // The last is named as itself by who may replace it.
            values.extend((to < 2).then_some(path));
            for value in values {
                let words = words(&command, &option, &value);
                run(&program, &words);
                kept.check(&words);
            }
        }
    }
    let listed = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
    let quiet: BTreeSet<String> = listed(&[READ.as_slice(), &ELSEWHERE].concat());
    let expected: BTreeSet<String> = named.difference(&written).cloned().collect();
    assert_eq!(expected, quiet, "what has a path and has written nothing");
}

/// By its name alone, or with its command where it is none of an option of many.
fn key(command: &[String], option: &str) -> String {
    let alone = option.starts_with("--") && option != "--svg";
    match alone {
        true => option.to_owned(),
        false => format!("{} {option}", command.join(" ")),
    }
}

fn options() -> Vec<(Vec<String>, String)> {
    let of = |command: Vec<String>| {
        let paths = paths(&command).into_iter();
        paths
            .map(move |option| (command.clone(), option))
            .collect::<Vec<_>>()
    };
    commands().into_iter().flat_map(of).collect()
}

/// The names that commands of a campaign write without being told.
#[test]
fn no_command_of_a_campaign_writes_through_a_link_out_of_its_folder() {
    let kept = require!(Kept::new());
    let program = place();
    for command in commands() {
        let is_config = command.first().is_some_and(|it| it == "config") && command.len() == 2;
        if !is_config || command.ends_with(&["menu".to_owned()]) {
            continue;
        }
        let mut words = command.clone();
        match &*command[1] {
            "set" => words.push("DUT_RUNTIME=7s".to_owned()),
            "unset" | "get" | "explain" | "search" => words.push("DUT_RUNTIME".to_owned()),
            "defconfig" => words.push("quick".to_owned()),
            _ => {}
        }
        let name = match &*command[1] {
            "savedefconfig" => "defconfig",
            "set" => ".config.old",
            _ => ".config",
        };
        for path in kept.paths() {
            let link = program.path().join(name);
            let _ = fs::remove_file(&link);
            symlink(&path, &link).unwrap();
            run(&program, &words);
            kept.check(&words);
            let is_link = link.is_symlink() || name == ".config.old";
            assert!(is_link || !link.exists(), "{words:?}");
            fs::remove_file(&link).unwrap();
        }
        program.good(&["config", "alldefconfig"]);
    }
}

/// The options and arguments of a command whose value is a path, as its help has them.
fn paths(command: &[String]) -> Vec<String> {
    let is_path = |value: &str| {
        let names = ["FILE", "DIR", "PATH", "FOLDER"];
        value
            .split('|')
            .any(|one| names.contains(&one.trim_end_matches(".toml")))
    };
    let text = help(command);
    let usage = text.lines().find(|line| line.starts_with("Usage:"));
    let words = usage.into_iter().flat_map(|line| line.split_whitespace());
    let bare = |word: &str| {
        let value = word.trim_end_matches("...");
        let value = value.strip_prefix(['<', '[']);
        value.map(|value| value.trim_end_matches(['>', ']']).to_owned())
    };
    let mut found: Vec<String> = words.filter_map(bare).filter(|it| is_path(it)).collect();
    for line in text.lines() {
        let Some((before, after)) = line.split_once("--") else {
            continue;
        };
        let is_short = before.trim().is_empty() || before.trim().len() == 3;
        let mut words = after.split([' ', '=']);
        if let (true, Some(name), Some(value)) = (is_short, words.next(), words.next())
            && bare(value).is_some_and(|value| is_path(&value))
        {
            found.push(format!("--{name}"));
        }
    }
    found
}

/// A defconfig is updated by a defconfig, a page by a page; what else has the name stays.
#[test]
fn a_file_that_holds_something_else_is_not_replaced() {
    let program = place();
    let demo = program.records().pop().unwrap();
    let demo = demo.file_name().unwrap().to_str().unwrap();
    for words in [
        &["config", "savedefconfig", "thesis"][..],
        &["report", demo, "--out", "thesis"],
        &["runs", "archive", demo, "--out", "thesis"],
        &["query", "select 1", "--db", "thesis"],
        &["history", "--html", "thesis"],
    ] {
        let thesis = program.file("thesis", OURS);
        let output = program.run(words);
        assert!(!output.status.success(), "{words:?}: {output:?}");
        assert_eq!(fs::read_to_string(&thesis).unwrap(), OURS, "{words:?}");
    }
    for _ in 0..2 {
        program.good(&["config", "savedefconfig", "mine"]);
        program.good(&["report", demo, "--out", "page"]);
        program.good(&["config", "set", "DUT_RUNTIME=7s"]);
    }
}
