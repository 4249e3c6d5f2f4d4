//! Input that nobody would write by hand: no panic, no overflow, an answer in
//! bounded time.

use std::fmt::Write as _;
use std::sync::Arc;

use fathom_kconfig::{Config, Error, ErrorKind, Loader, MemoryFiles, Tree};
use proptest::prelude::*;

use crate::random;

fn read(text: &str) -> Result<Tree, Error> {
    Loader::new(&MemoryFiles::from_iter([("Kconfig", text)])).load("Kconfig")
}

fn kind(text: &str) -> ErrorKind {
    read(text).unwrap_err().kind
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    assert_eq!(kind(&"menu \"m\"\n".repeat(deep)), ErrorKind::Limit);
    assert_eq!(kind(&"if A\n".repeat(deep)), ErrorKind::Limit);
    assert_eq!(
        kind(&format!("if {}A\n", "(".repeat(deep))),
        ErrorKind::Limit
    );
    assert_eq!(
        kind(&format!("if {}A\n", "!".repeat(deep))),
        ErrorKind::Limit
    );
    assert_eq!(
        kind(&format!("{}A{}\n", "$(".repeat(deep), ")".repeat(deep))),
        ErrorKind::Macro
    );
}

#[test]
fn long_chains_are_no_recursion() {
    // Each depends on the one before: implicit menus, and a long way to values.
    let mut text = String::from("config S0\n\tbool \"s\"\n");
    for n in 1..20_000 {
        let before = n - 1;
        let _ = write!(
            text,
            "config S{n}\n\tbool \"s\"\n\tdepends on S{before}\n\tdefault S{before}\n"
        );
    }
    let mut config = Config::new(Arc::new(read(&text).unwrap()));
    config.set_by_name("S0", "y").unwrap();
    assert_eq!(config.get("S19999"), Some("y"));
    assert_eq!(config.write("").lines().count(), 20_000);
    assert!(config.rows(config.tree().root(), true).len() == 20_000);
    // One symbol with very many lines of depends on.
    let many = format!(
        "config A\n\tbool \"a\"\n{}",
        "\tdepends on B\n".repeat(20_000)
    );
    let tree = read(&many).unwrap();
    assert!(
        tree.expr_text(tree.symbol(tree.find("A").unwrap()).depends)
            .contains('…')
    );
    assert_eq!(Config::new(Arc::new(tree)).write(""), "");
}

#[test]
fn a_large_condition_is_shared_by_all_that_stand_under_it() {
    let condition: Vec<String> = (0..5_000).map(|n| format!("X{n}")).collect();
    let mut text = format!("menu \"m\"\n\tdepends on {}\n", condition.join(" || "));
    for n in 0..5_000 {
        let _ = write!(text, "config S{n}\n\tbool \"s\"\n");
    }
    text.push_str("endmenu\n");
    assert_eq!(Config::new(Arc::new(read(&text).unwrap())).write(""), "");
}

#[test]
fn files_that_multiply_are_refused() {
    let mut files: Vec<(String, String)> = (0..40)
        .map(|n| {
            (
                format!("f{n}"),
                format!("source \"f{}\"\n", n + 1).repeat(2),
            )
        })
        .collect();
    files.push(("f40".to_owned(), String::new()));
    let error = Loader::new(&MemoryFiles::from_iter(files))
        .load("f0")
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
}

/// Everything that can be asked of a tree, and that a written config reads back
/// as the same.
fn use_all(tree: Tree, dotconfig: &str) {
    let mut config = Config::new(Arc::new(tree));
    config.read(dotconfig, "case");
    for _ in 0..2 {
        let (whole, short) = (config.write(""), config.write_min(""));
        let _ = (
            config.warnings(),
            config.new_symbols(),
            config.rows(config.tree().root(), true),
        );
        for &id in config.tree().symbols() {
            let _ = (config.explain(id), config.assignable(id), config.line(id));
        }
        config.read(&whole, "again");
        assert_eq!(config.write(""), whole, "what was written reads back");
        config.read(&short, "short");
        assert_eq!(config.write(""), whole, "the short form says the same");
        config.randomize(3);
    }
}

#[test]
fn what_is_written_reads_back_for_random_trees() {
    for seed in 0..200 {
        let text = random::tree(&mut random::Numbers::new(seed));
        if let Ok(tree) = read(&text) {
            let mut config = Config::new(Arc::new(tree));
            config.randomize(seed);
            let whole = config.write("");
            config.read(&whole, "again");
            assert_eq!(config.write(""), whole, "{text}");
        }
    }
}

/// Pieces of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "config A\n",
        "config B\n",
        "menuconfig C\n",
        "\tbool \"p\"\n",
        "\ttristate \"t\" if A\n",
        "\tint\n",
        "\thex \"h\"\n",
        "\tstring \"s\"\n",
        "\tdefault y\n",
        "\tdefault B if A\n",
        "\tdefault 5\n",
        "\tselect B\n",
        "\timply A if C\n",
        "\tdepends on A\n",
        "\tdepends on !B || C = m if A\n",
        "\trange 1 5\n",
        "\thelp\n\t  h\n",
        "menu \"m\"\n",
        "endmenu\n",
        "\tvisible if B\n",
        "choice\n",
        "choice N\n",
        "endchoice\n",
        "\toptional\n",
        "if A\n",
        "endif\n",
        "comment \"c\"\n",
        "X := $(X)1\n",
        "Y = $(Y)$(X)\n",
        "$(info,$(Y))\n",
        "config $(X)\n",
        "source \"*\"\n",
        "osource \"nope\"\n",
        "\tmodules\n",
        "(",
        ")",
        "\"",
        "\\\n",
        "$(",
        "#",
        "\t",
        "é",
        "&&",
        "\r\n",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_soup_of_words_makes_it_panic(text in soup()) {
        match read(&text) {
            Ok(tree) => {
                let mut config = Config::new(Arc::new(tree));
                config.all_yes();
                let _ = (config.write(""), config.warnings(), config.rows(config.tree().root(), true));
            }
            Err(error) => prop_assert!(error.position.is_some(), "{}", error),
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,200}", dotconfig in "(?s).{0,200}") {
        let _ = read(&text);
        let tree = read("config A\n\tbool \"a\"\nconfig S\n\tstring \"s\"\nconfig I\n\tint \"i\"\n").unwrap();
        use_all(tree, &dotconfig);
    }

    #[test]
    fn every_string_survives_a_config(value in "[^\n\r]{0,40}") {
        let tree = Arc::new(read("config S\n\tstring \"s\"\n").unwrap());
        let mut config = Config::new(tree);
        config.set_by_name("S", &value).unwrap();
        let text = config.write("");
        config.reset();
        prop_assert!(config.read(&text, "x").is_empty());
        prop_assert_eq!(config.get("S"), Some(value.as_str()));
    }
}
