//! What a value is refused for, in words.

use std::sync::Arc;

use fathom_kconfig::{Config, Loader, MemoryFiles, ValueRefusal};

const TREE: &str = r#"
config MODULES
	bool "Modules"
	modules

config A
	bool "A"

if A
config TEXT
	string "Text"
	depends on B || D
endif

config B
	bool "B"
	select C

config C
	tristate "C"

config D
	bool
	default y if B

config NUMBER
	int "Number"
	range 1 10

config HEX
	hex "Hex"
	range 0x10 0xff

choice
	prompt "Which"

config ONE
	bool "One"

config TWO
	bool "Two"

config THREE
	bool "Three"
	depends on A

endchoice
"#;

fn config() -> Config {
    let files = MemoryFiles::from_iter([("Kconfig", TREE)]);
    Config::new(Arc::new(Loader::new(&files).load("Kconfig").unwrap()))
}

fn said(config: &Config, name: &str, value: &str) -> String {
    let id = config.tree().named(name).unwrap();
    let refusal = config.refusal(id, value);
    refusal.map_or_else(|| "yes".to_owned(), |refusal| refusal.to_string())
}

#[test]
fn a_refusal_says_what_it_needs() {
    let mut config = config();
    assert_eq!(
        said(&config, "TEXT", "x"),
        "TEXT cannot be set: it needs B || D (does not hold) and A (now n)"
    );
    assert_eq!(
        said(&config, "D", "y"),
        "D cannot be set: it has no prompt and follows from other symbols"
    );
    assert_eq!(
        said(&config, "NUMBER", "11"),
        "NUMBER=11 is not in the range 1 to 10"
    );
    assert_eq!(
        said(&config, "HEX", "0x5"),
        "HEX=0x5 is not in the range 0x10 to 0xff"
    );
    assert_eq!(
        said(&config, "NUMBER", "ten"),
        "\"ten\" is no value for NUMBER, an int"
    );
    assert_eq!(
        said(&config, "ONE", "n"),
        "ONE is what is picked in the choice \"Which\": pick another of it: TWO"
    );
    assert_eq!(
        said(&config, "THREE", "y"),
        "THREE cannot be set: it needs A (now n)"
    );
    assert_eq!(said(&config, "C", "m"), "C cannot be m now: it can be n, y");
    config.set_by_name("B", "y").unwrap();
    assert_eq!(
        said(&config, "C", "n"),
        "C cannot be n: it is selected by B"
    );
}

#[test]
fn what_can_be_set_and_what_is_so_already_is_not_refused() {
    let mut config = config();
    for (name, value) in [
        ("A", "y"),
        ("B", "n"),
        ("D", "n"),
        ("NUMBER", "10"),
        ("TWO", "y"),
        ("TWO", "n"),
    ] {
        assert_eq!(said(&config, name, value), "yes", "{name}={value}");
    }
    config.set_by_name("TEXT", "x").unwrap();
    for name in ["A", "B"] {
        config.set_by_name(name, "y").unwrap();
    }
    assert_eq!(said(&config, "TEXT", "x"), "yes", "the wish came true");
    let id = config.tree().named("CONFIG_ONE").unwrap();
    assert!(
        matches!(config.refusal(id, "n"), Some(ValueRefusal::Picked { others, .. }) if others == ["TWO", "THREE"])
    );
}

#[test]
fn a_name_is_found_as_people_write_it() {
    let config = config();
    let tree = config.tree();
    assert_eq!(tree.named("CONFIG_NUMBER"), tree.named("NUMBER"));
    assert_eq!(
        tree.named("NUMBRE").unwrap_err().to_string(),
        "NUMBRE is not defined; did you mean NUMBER?"
    );
}
