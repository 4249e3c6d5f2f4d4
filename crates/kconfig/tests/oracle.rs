//! Side by side with PyPI's kconfiglib: the same configs from the same trees
//! and the same values, over trees written to cover the language, over random
//! trees, and over the campaign tree that ships with Fathom.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use fathom_kconfig::{Config, DiskFiles, Loader, SymbolKind, Tree};

use crate::random::{self, Numbers};

const RS: &str = "\u{1e}";
/// Random `.config`s for each tree.
const CASES: usize = 200;

/// The environment that both sides see.
fn env(name: &str) -> Option<String> {
    match name {
        "DEV" => Some(String::new()),
        "ORACLE_DEV" => Some("/dev/oracle".to_owned()),
        "ORACLE_NUMBER" => Some("17".to_owned()),
        _ => None,
    }
}

/// Python with kconfiglib, made once.
fn python() -> Result<PathBuf, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder =
        FOLDER.get_or_init(|| fathom_testkit::kconfiglib(env!("CARGO_TARGET_TMPDIR").as_ref()));
    folder.clone().map(|folder| folder.join("bin/python"))
}

/// A tree as both sides read it, in a folder of its own.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if path.is_dir() {
            copy_tree(&path, &to.join(name));
        } else {
            fs::write(
                to.join(name),
                for_kconfiglib(&fs::read_to_string(&path).unwrap()),
            )
            .unwrap();
        }
    }
}

/// kconfiglib does not know `depends on A if B`: what the kernel documents it
/// to mean stands there instead. The test tree itself is read as written.
fn for_kconfiglib(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let conditional = line
            .trim_start()
            .strip_prefix("depends on ")
            .and_then(|rest| rest.split_once(" if "));
        match conditional {
            Some((what, when)) => writeln!(out, "\tdepends on ({what}) || {when} = n").unwrap(),
            None => writeln!(out, "{line}").unwrap(),
        }
    }
    out
}

fn load(folder: &Path) -> Result<Arc<Tree>, fathom_kconfig::Error> {
    Loader::new(&DiskFiles::new(folder))
        .env(env)
        .load("Kconfig")
        .map(Arc::new)
}

/// Values for symbols of a tree: mostly ones that its types have.
fn random_config(tree: &Tree, numbers: &mut Numbers) -> String {
    let share = 1 + numbers.below(10);
    let mut lines: Vec<String> = tree
        .symbols()
        .iter()
        .filter_map(|&id| {
            let symbol = tree.symbol(id);
            if numbers.below(10) >= share {
                return None;
            }
            let value = match symbol.kind {
                _ if numbers.below(40) == 0 => {
                    numbers.one_of(&["", "maybe", "\"", "12x", "\"y\"", "-"])
                }
                SymbolKind::Bool => numbers.one_of(&["y", "n", "y", "yes", "m"]),
                SymbolKind::Tristate | SymbolKind::Unknown => numbers.one_of(&["y", "m", "n", "m"]),
                SymbolKind::String => numbers.one_of(&[
                    "\"\"",
                    "\"a b\"",
                    "\"a \\\"b\\\" \\\\ c\"",
                    "\"3\"",
                    "\"10\"",
                    "\"x\" rest",
                    "\"y\"",
                    "bare",
                ]),
                SymbolKind::Int => {
                    numbers.one_of(&["0", "1", "-3", "7", "010", "42", "100", "99999999999"])
                }
                SymbolKind::Hex => numbers.one_of(&["0x0", "1f", "0xFF", "0X10", "-0x1", "40"]),
            };
            Some(match value {
                "n" => format!("# CONFIG_{} is not set", symbol.name),
                value => format!("CONFIG_{}={value}", symbol.name),
            })
        })
        .collect();
    if numbers.below(4) == 0 {
        lines.push("CONFIG_NOBODY_KNOWS=y".to_owned());
        lines.push("# a comment".to_owned());
        lines.push("nonsense".to_owned());
    }
    if numbers.below(2) == 0 {
        for at in (1..lines.len()).rev() {
            lines.swap(at, numbers.below(at + 1));
        }
    }
    lines.join("\n") + "\n"
}

/// Compares all trees in the sub-folders of `root` with kconfiglib. With
/// `random`, trees that both sides refuse are right too.
fn compare(root: &Path, cases: usize, refusals: bool) -> usize {
    let mut folders: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let mut all = Vec::new();
    for (n, folder) in folders.iter().enumerate() {
        let tree = load(folder);
        let mut numbers = Numbers::new(n as u64 + 1);
        let texts: Vec<String> = match &tree {
            Ok(tree) => (0..cases)
                .map(|_| random_config(tree, &mut numbers))
                .collect(),
            Err(error) if refusals => vec![error.to_string()],
            Err(error) => panic!("{}: {error}", folder.display()),
        };
        fs::write(folder.join("cases.txt"), texts.join(RS)).unwrap();
        all.push((folder, tree, texts));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.py");
    let output = Command::new(python().unwrap())
        .arg(script)
        .arg(root)
        .envs(["DEV", "ORACLE_DEV", "ORACLE_NUMBER"].map(|name| (name, env(name).unwrap())))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut compared = 0;
    for (folder, tree, texts) in all {
        let expected = fs::read_to_string(folder.join("expected.txt")).unwrap();
        let expected: Vec<&str> = expected.split(RS).collect();
        let place = folder.display();
        let kconfig = fs::read_to_string(folder.join("Kconfig")).unwrap();
        let tree = match (tree, expected[0] == "ERROR") {
            (Ok(tree), false) => tree,
            (Err(_), true) => continue,
            (Ok(_), true) => panic!(
                "{place}: only kconfiglib refuses:\n{}\n{kconfig}",
                expected[1]
            ),
            (Err(error), false) => panic!("{place}: kconfiglib reads it: {error}\n{kconfig}"),
        };
        compare_operations(&tree, &expected[..3], &format!("{place}\n{kconfig}"));
        let mut config = Config::new(tree);
        for (n, text) in texts.iter().enumerate() {
            config.read(text, "case");
            let [full, min, new] = [3, 4, 5].map(|part| expected[3 * n + part]);
            let about = format!("{place} case {n}\n{kconfig}\n--- case\n{text}");
            same(&config.write(""), full, &format!("the .config of {about}"));
            same(
                &config.write_min(""),
                min,
                &format!("the minimal config of {about}"),
            );
            same(
                &new_symbols(&config),
                new,
                &format!("the new symbols of {about}"),
            );
            compared += 1;
        }
    }
    compared
}

/// Both texts, or the lines in which they differ.
fn same(ours: &str, theirs: &str, about: &str) {
    if ours == theirs {
        return;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let only = |own: &[&str], other: &[&str]| {
        let lines = own.iter().filter(|line| !other.contains(line)).copied();
        lines.collect::<Vec<_>>().join("\n    ")
    };
    let (a, b) = (only(&a, &b), only(&b, &a));
    panic!("{about}\n--- only here:\n    {a}\n--- only kconfiglib:\n    {b}\n--- ours:\n{ours}");
}

fn compare_operations(tree: &Arc<Tree>, expected: &[&str], about: &str) {
    let mut config = Config::new(Arc::clone(tree));
    same(
        &config.write(""),
        expected[0],
        &format!("alldefconfig of {about}"),
    );
    config.all_yes();
    same(
        &config.write(""),
        expected[1],
        &format!("allyesconfig of {about}"),
    );
    config.all_no();
    same(
        &config.write(""),
        expected[2],
        &format!("allnoconfig of {about}"),
    );
}

fn new_symbols(config: &Config) -> String {
    let new = config.new_symbols();
    let lines: Vec<String> = new.iter().map(|&id| config.assignment(id)).collect();
    lines.join("\n")
}

#[test]
fn trees_that_cover_the_language_give_what_kconfiglib_gives() {
    if let Err(reason) = python() {
        let name = "trees_that_cover_the_language_give_what_kconfiglib_gives";
        return fathom_testkit::skip(name, &reason);
    }
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees");
    let work = tempfile::tempdir().unwrap();
    copy_tree(&trees, work.path());
    assert!(fs::read_dir(work.path()).unwrap().count() >= 30);
    // As written they mean the same as in the words that kconfiglib knows.
    for entry in fs::read_dir(&trees).unwrap() {
        let folder = entry.unwrap().path();
        let copy = work.path().join(folder.file_name().unwrap());
        let written = load(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut numbers = Numbers::new(7);
        let (mut a, mut b) = (
            Config::new(Arc::clone(&written)),
            Config::new(load(&copy).unwrap()),
        );
        for _ in 0..20 {
            let text = random_config(&written, &mut numbers);
            assert_eq!(a.read(&text, "x"), b.read(&text, "x"));
            assert_eq!(a.write(""), b.write(""), "{}\n{text}", folder.display());
        }
    }
    let compared = compare(work.path(), CASES, false);
    println!("{compared} configs are the same");
}

#[test]
fn random_trees_give_what_kconfiglib_gives() {
    if let Err(reason) = python() {
        return fathom_testkit::skip("random_trees_give_what_kconfiglib_gives", &reason);
    }
    let seed = std::env::var("ORACLE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let count: u64 = std::env::var("ORACLE_TREES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(150);
    let work = tempfile::tempdir().unwrap();
    for n in 0..count {
        let folder = work.path().join(format!("{n:04}"));
        fs::create_dir(&folder).unwrap();
        let tree = random::tree(&mut Numbers::new(seed * 1_000_003 + n));
        fs::write(folder.join("Kconfig"), tree).unwrap();
    }
    let compared = compare(work.path(), 20, true);
    println!("{compared} configs are the same");
    assert!(
        compared >= usize::try_from(count).unwrap() * 5,
        "too many trees were refused"
    );
}

#[test]
fn the_campaign_tree_gives_what_kconfiglib_gives() {
    if let Err(reason) = python() {
        return fathom_testkit::skip("the_campaign_tree_gives_what_kconfiglib_gives", &reason);
    }
    let campaigns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("campaigns");
    copy_tree(&campaigns.join("kconfig"), &folder.join("kconfig"));
    fs::copy(campaigns.join("Kconfig"), folder.join("Kconfig")).unwrap();
    compare(work.path(), CASES, false);
}
