//! The campaign tree that ships with Fathom: complete, explained, and the same
//! as fio-tests where it has the same names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use fathom_kconfig::{Config, DiskFiles, Item, Loader, Tree};

use crate::random::Numbers;

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn campaigns() -> PathBuf {
    crate_dir().join("../../campaigns")
}

fn load(folder: &Path, dev: &str) -> Arc<Tree> {
    let env = |name: &str| (name == "DEV").then(|| dev.to_owned());
    Arc::new(
        Loader::new(&DiskFiles::new(folder))
            .env(env)
            .load("Kconfig")
            .unwrap(),
    )
}

#[test]
fn every_entry_is_explained_and_nothing_is_doubtful() {
    let tree = load(&campaigns(), "");
    assert!(tree.warnings().is_empty(), "{:#?}", tree.warnings());
    assert!(tree.undefined().is_empty(), "{:?}", tree.undefined());
    let mut open = vec![tree.root()];
    let mut silent = Vec::new();
    while let Some(id) = open.pop() {
        let node = tree.node(id);
        open.extend(&node.children);
        let is_entry = matches!(node.item, Item::Symbol(_) | Item::Choice(_));
        if is_entry && node.help.as_deref().unwrap_or_default().len() < 20 {
            silent.push(node.position.to_string());
        }
        let long = node
            .help
            .iter()
            .flat_map(|help| help.lines())
            .any(|line| line.chars().count() > 76);
        assert!(
            !long,
            "{}: a line of help is too long for a terminal",
            node.position
        );
    }
    assert!(silent.is_empty(), "entries without help: {silent:#?}");
}

#[test]
fn the_environment_names_the_device() {
    for (dev, expected) in [("", "/dev/nvme0n1"), ("/dev/sdx", "/dev/sdx")] {
        let config = Config::new(load(&campaigns(), dev));
        assert_eq!(config.get("DUT_FILENAME"), Some(expected));
    }
}

#[test]
fn every_defconfig_says_what_it_is_and_holds_nothing_but_differences() {
    let tree = load(&campaigns(), "");
    let mut names = Vec::new();
    for entry in fs::read_dir(campaigns().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            text.starts_with("# "),
            "{name} does not say in its first line what it is"
        );
        let mut config = Config::new(Arc::clone(&tree));
        let warnings = config.read(&text, &name);
        assert!(warnings.is_empty(), "{warnings:#?}");
        assert!(
            config.warnings().is_empty(),
            "{name}: {:#?}",
            config.warnings()
        );
        let is_value = |line: &&str| !line.starts_with('#') || line.starts_with("# CONFIG_");
        let values: String = text
            .lines()
            .filter(is_value)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(config.write_min(""), values, "{name}");
        names.push(name);
    }
    for wanted in [
        "survey-10min",
        "all-tests",
        "provision-seq",
        "provision-random",
        "debug-quick",
        "nvme2n1-all",
    ] {
        assert!(
            names.iter().any(|name| name == wanted),
            "{wanted} is missing"
        );
    }
}

#[test]
fn a_survey_writes_nothing() {
    let mut config = Config::new(load(&campaigns(), ""));
    let text = fs::read_to_string(campaigns().join("configs/survey-10min")).unwrap();
    config.read(&text, "survey-10min");
    for name in [
        "STEADY_STATE_PROVISIONING",
        "SNIA_TESTS",
        "PURGING",
        "PRECONDITIONING",
        "PROFILE_SEQWRITE",
        "PROFILE_RANDWRITE",
        "PROFILE_RANDWRITE_70_30",
        "PROFILE_RANDWRITE_97_3",
    ] {
        assert!(!config.is_on(name), "{name}");
    }
}

/// `fio-tests/Kconfig` is a transcription of the other tool's symbols.
#[test]
fn a_config_of_fio_tests_loads_and_means_the_same() {
    let theirs = load(&crate_dir().join("tests/fio-tests"), "");
    let ours = load(&campaigns(), "");
    for &id in theirs.symbols() {
        let symbol = theirs.symbol(id);
        let own = ours.find(&symbol.name).map(|id| ours.symbol(id));
        assert_eq!(
            own.map(|own| own.kind),
            Some(symbol.kind),
            "{}",
            symbol.name
        );
    }
    let mut numbers = Numbers::new(4);
    let (mut a, mut b) = (
        Config::new(Arc::clone(&theirs)),
        Config::new(Arc::clone(&ours)),
    );
    for _ in 0..300 {
        let text = some_of_fio_tests(&theirs, &mut numbers);
        // Once the few lines that somebody has set, once the whole .config.
        let whole = {
            a.read(&text, "minimal");
            a.write("")
        };
        for (text, is_whole) in [(&text, false), (&whole, true)] {
            a.read(text, "theirs");
            assert_eq!(b.read(text, "ours"), [], "{text}");
            for &id in theirs.symbols() {
                let name = &theirs.symbol(id).name;
                // There a client drive has no default for the jobs of the filling.
                let slip = name == "PRECONDITION_NUMJOBS" && !is_whole && a.get(name) == Some("");
                let own = ours.find(name).unwrap();
                assert!(
                    slip || b.text(own) == a.text(id),
                    "{name}: {}\n{text}",
                    b.text(own)
                );
                assert_eq!(b.visibility(own), a.visibility(id), "{name}\n{text}");
            }
        }
    }
}

fn some_of_fio_tests(tree: &Tree, numbers: &mut Numbers) -> String {
    let share = 1 + numbers.below(9);
    let mut lines = String::new();
    for &id in tree.symbols() {
        let symbol = tree.symbol(id);
        let has_prompt = symbol
            .nodes
            .iter()
            .any(|&node| tree.node(node).prompt.is_some());
        if numbers.below(10) >= share || !has_prompt {
            continue;
        }
        let value = match symbol.kind {
            kind if kind.is_logical() => numbers.one_of(&["y", "n", "y"]),
            kind if kind.is_number() => numbers.one_of(&["1", "2", "3"]),
            _ => numbers.one_of(&["\"5\"", "\"128k\"", "\"\""]),
        };
        lines += &match value {
            "n" => format!("# CONFIG_{} is not set\n", symbol.name),
            value => format!("CONFIG_{}={value}\n", symbol.name),
        };
    }
    lines
}
