//! What each construct means, and what is said when it is wrong.

use std::sync::Arc;

use fathom_kconfig::{
    AnswerError, AnswerKind, Config, Error, ErrorKind, Loader, MemoryFiles, OldConfig, SetError,
    SymbolKind, Tree, Tri, WarningKind,
};

fn read(text: &str) -> Result<Tree, Error> {
    Loader::new(&MemoryFiles::from_iter([("Kconfig", text)])).load("Kconfig")
}

fn config(text: &str) -> Config {
    Config::new(Arc::new(read(text).unwrap()))
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn set(config: &mut Config, values: &[(&str, &str)]) {
    for (name, value) in values {
        config.set_by_name(name, value).unwrap();
    }
}

/// What is wrong, and what is said.
const MISTAKES: &[(&str, &str)] = &[
    (
        "confg A\n\tbool\n",
        "Kconfig:1:1: 'confg' is no word of the language; did you mean config?",
    ),
    (
        "config A\n\tbol \"a\"\n",
        "Kconfig:2:2: 'bol' is no word of the language; did you mean bool?",
    ),
    (
        "config A\n\tbool \"a\n",
        "Kconfig:2:7: the text has no closing \"",
    ),
    (
        "config A\n\tbool a\n",
        "Kconfig:2:7: expected the prompt in quotes, found 'a'",
    ),
    (
        "config\n",
        "Kconfig:1:7: expected the name of the symbol, found the end of the line",
    ),
    (
        "config A B\n",
        "Kconfig:1:10: expected the end of the line, found 'B'",
    ),
    ("config y\n", "Kconfig:1:1: y is a value, not a symbol"),
    (
        "config A\n\tbool\n\tdepends on B &&\n",
        "Kconfig:3:17: expected a symbol, a value or an expression, found the end of the line",
    ),
    (
        "config A\n\tbool\n\tdepends on (B\n",
        "Kconfig:3:15: expected &&, || or the closing parenthesis, found the end of the line",
    ),
    (
        "config A\n\tdepends B\n",
        "Kconfig:2:10: expected 'on', found 'B'",
    ),
    (
        "config A\n\tdepends on B & C\n",
        "Kconfig:2:15: the character '&' means nothing here: write && for and",
    ),
    (
        "config A\n\tdefault y when B\n",
        "Kconfig:2:12: expected 'if' or the end of the line, found 'when'",
    ),
    (
        "config A\n\trange 1\n",
        "Kconfig:2:9: expected the greatest value, found the end of the line",
    ),
    (
        "config A\n\tvisible if B\n",
        "Kconfig:2:2: a config has no attribute 'visible'",
    ),
    (
        "menu \"m\"\n\tdefault y\nendmenu\n",
        "Kconfig:2:2: a menu has no attribute 'default'",
    ),
    (
        "menu \"m\"\n",
        "Kconfig:1:1: the menu of line 1 has no endmenu before the end of the file",
    ),
    (
        "menu \"m\"\nendif\n",
        "Kconfig:2:1: endif where the menu of line 1 still needs its endmenu",
    ),
    (
        "endmenu\n",
        "Kconfig:1:1: endmenu closes nothing that this file has opened",
    ),
    (
        "bool \"a\"\n",
        "Kconfig:1:1: 'bool' must follow the entry that it belongs to",
    ),
    (
        "config A\n\toption modles\n",
        "Kconfig:2:9: there is no option 'modles'; did you mean modules?",
    ),
    (
        "config A\n\tint\n\tdefault B || C\n",
        "Kconfig:1:1: A, an int, can have only a symbol or a constant as default",
    ),
    (
        "source Kconfig.a\n",
        "Kconfig:1:8: expected the name of the file in quotes, found 'Kconfig.a'",
    ),
    (
        "config A\n\tdefault B && \\\n\t\tC D\n",
        "Kconfig:3:5: expected 'if' or the end of the line, found 'D'",
    ),
    (
        "$(error-if,y,no such thing)\n",
        "Kconfig:1:1: no such thing",
    ),
    (
        "config A\n\tdefault \"$(shell,id)\"\n",
        "Kconfig:2:11: $(shell,id): running commands is not allowed here",
    ),
    (
        "A = $(B)\nB = $(A)\nconfig $(A)\n",
        "Kconfig:3:8: the variable A uses itself",
    ),
];

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, expected) in MISTAKES {
        assert_eq!(error(text), *expected, "{text}");
    }
}

#[test]
fn loops_are_shown_step_by_step() {
    let said =
        error("config A\n\tbool \"a\"\n\tdepends on B\nconfig B\n\tbool \"b\"\n\tdepends on A\n");
    let expected = "Kconfig:1:1: the value of A depends on itself\n  \
        A (Kconfig:1:1) depends on B\n  B (Kconfig:4:1) depends on A";
    assert_eq!(said, expected);
    let selected = "config A\n\tbool \"a\"\n\tselect B\n\tdepends on B\nconfig B\n\tbool\n";
    assert_eq!(read(selected).unwrap_err().kind, ErrorKind::DependencyLoop);
    let choice = "choice\n\tprompt \"c\"\n\tdepends on A\nconfig A\n\tbool \"a\"\nendchoice\n";
    assert!(
        error(choice).contains("the choice c (Kconfig:1:1) depends on A"),
        "{}",
        error(choice)
    );
    // Members that depend on each other are one, too.
    let members = "choice\n\tprompt \"c\"\nconfig A\n\tbool \"a\"\n\tdepends on !B\nconfig B\n\tbool \"b\"\n\tdepends on !A\nendchoice\n";
    assert_eq!(read(members).unwrap_err().kind, ErrorKind::DependencyLoop);
    assert!(
        error("config A\n\tbool \"a\"\n\tdefault A\n").contains("A (Kconfig:1:1) depends on A")
    );
}

#[test]
fn files_that_source_themselves_or_are_missing_are_refused() {
    let files = MemoryFiles::from_iter([
        ("Kconfig", "source \"a/Kconfig\"\n"),
        ("a/Kconfig", "\nrsource \"b\"\n"),
        ("a/b", "source \"a/Kconfig\"\n"),
        ("near", "rsource \"a/Kconfg\"\n"),
        ("optional", "osource \"none\"\norsource \"no/*\"\n"),
    ]);
    let load = |name: &str| Loader::new(&files).load(name);
    let error = load("Kconfig").unwrap_err();
    assert_eq!(error.kind, ErrorKind::SourceLoop);
    let expected = "a/b:1:1: a/Kconfig sources itself\n  \
        a/Kconfig:2:1 sources a/b\n  a/b:1:1 sources a/Kconfig";
    assert_eq!(error.to_string(), expected);
    let error = load("near").unwrap_err();
    let expected =
        "near:1:9: no file is called a/Kconfg (osource would allow that); did you mean a/Kconfig?";
    assert_eq!(error.to_string(), expected);
    assert_eq!(load("nothing").unwrap_err().kind, ErrorKind::Source);
    assert_eq!(load("optional").unwrap().files(), ["optional"]);
}

#[test]
fn depends_on_a_if_b_counts_only_while_b_is_on() {
    let tree = "config MODULES\n\tdef_bool y\nconfig A\n\ttristate \"a\"\nconfig B\n\ttristate \"b\"\n\
        config C\n\ttristate \"c\"\n\tdepends on A if B\n";
    let mut config = config(tree);
    let c = config.tree().find("C").unwrap();
    for (a, b, expected) in [
        ("n", "n", Tri::Y),
        ("n", "m", Tri::N),
        ("n", "y", Tri::N),
        ("m", "m", Tri::M),
        ("m", "n", Tri::Y),
        ("y", "y", Tri::Y),
    ] {
        set(&mut config, &[("A", a), ("B", b)]);
        assert_eq!(config.visibility(c), expected, "A={a} B={b}");
    }
    assert_eq!(
        config.tree().expr_text(config.tree().symbol(c).depends),
        "A || B = n"
    );
}

#[test]
fn any_symbol_can_stand_for_modules() {
    let mut config =
        config("config MODS\n\tbool \"m\"\n\tmodules\nconfig A\n\ttristate \"a\"\n\tdefault m\n");
    let a = config.tree().find("A").unwrap();
    assert_eq!((config.kind(a), config.text(a)), (SymbolKind::Bool, "y"));
    set(&mut config, &[("MODS", "y")]);
    assert_eq!(
        (config.kind(a), config.text(a)),
        (SymbolKind::Tristate, "m")
    );
}

#[test]
fn commands_run_only_where_the_caller_allows_it() {
    let files = MemoryFiles::from_iter([(
        "Kconfig",
        "config A\n\tstring\n\tdefault \"$(shell,uname -s)\"\n$(info,read)\n",
    )]);
    let run = |command: &str| Ok(format!("<{command}>\nnext\n"));
    let tree = Loader::new(&files).shell(run).load("Kconfig").unwrap();
    assert_eq!(tree.messages(), ["read"]);
    assert_eq!(
        Config::new(Arc::new(tree)).get("A"),
        Some("<uname -s> next")
    );
}

#[test]
fn help_is_what_is_indented() {
    let tree = read("config A\n\tbool\n\thelp\n\t  One.\n\n\t    Two.\n\n\n\tdefault y\nconfig B\n\thelp\nconfig C\n").unwrap();
    let help = |name: &str| {
        tree.node(tree.symbol(tree.find(name).unwrap()).nodes[0])
            .help
            .clone()
    };
    assert_eq!(help("A").as_deref(), Some("One.\n\n  Two."));
    assert_eq!(help("B").as_deref(), Some(""));
    assert_eq!(help("C"), None);
    let place = tree
        .node(tree.symbol(tree.find("B").unwrap()).nodes[0])
        .position
        .line;
    assert_eq!(place, 10);
}

#[test]
fn doubtful_trees_are_read_with_warnings() {
    for (text, expected) in [
        ("config A\n", "Kconfig:1:1: A has no type"),
        (
            "config A\n\tbool \"a\"\n\tint\n",
            "Kconfig:3:2: A was a bool before and is now an int",
        ),
        (
            "config A\n\tbool \"a\"\n\tdefault \"yes\"\n",
            "Kconfig:1:1: \"yes\" is no default for A, a bool",
        ),
        (
            "config A\n\tint \"a\"\n\tdefault ten\n",
            "Kconfig:1:1: ten is no default for A, an int",
        ),
        (
            "config A\n\tint \"a\"\n\trange 1 ten\n",
            "Kconfig:1:1: ten is no bound for A",
        ),
        (
            "config A\n\tbool \"a\"\n\trange 1 2\n",
            "Kconfig:1:1: A has a range but is a bool",
        ),
        (
            "config A\n\tbool \"a\"\n\tselect B\n",
            "Kconfig:1:1: A selects B, which is not defined",
        ),
        (
            "config A\n\tbool \"a\"\n\timply B\nconfig B\n\tint\n",
            "Kconfig:1:1: A implies B: both must be bool or tristate",
        ),
        (
            "config A\n\tbool \" a\"\n",
            "Kconfig:2:2: the prompt begins or ends with blanks: they are left out",
        ),
        (
            "config A\n\tbool \"a\"\n\thelp\nconfig B\n\tbool\n",
            "Kconfig:3:2: the help text is empty",
        ),
        (
            "choice\nconfig A\n\tbool \"a\"\nendchoice\n",
            "Kconfig:1:1: the choice has no prompt: it is never shown",
        ),
        (
            "choice\n\tprompt \"c\"\n\tdefault B\nconfig A\n\tbool \"a\"\nendchoice\n",
            "Kconfig:1:1: B, the default of the choice c, is not in it",
        ),
        (
            "config $(f,x)A\n\tbool\n",
            "Kconfig:1:1: there is no function f: it expands to nothing",
        ),
    ] {
        let warnings: Vec<String> = read(text)
            .unwrap()
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(warnings, [expected], "{text}");
    }
    assert_eq!(
        read("config A\n\tbool\n\tdepends on B || C = 3\n")
            .unwrap()
            .undefined(),
        ["B", "C"]
    );
}

const VALUES: &str = "config ON\n\tbool \"on\"\n\
    config SELECTS\n\tbool \"selects\"\n\tselect TARGET\n\
    config TARGET\n\tbool \"target\"\n\tdepends on ON\n\
    config DEPTH\n\tint \"depth\"\n\trange 1 64\n\tdefault 4\n\tdepends on ON\n\
    config QUIET\n\tbool\n\tdefault y if ON\n\
    config NAME\n\tstring \"name\"\n";

#[test]
fn values_are_refused_kept_or_taken() {
    let mut config = config(VALUES);
    assert_eq!(config.set_by_name("CONFIG_ON", "y"), Ok(true));
    assert_eq!(config.set_by_name("DEPTH", "32"), Ok(true));
    assert_eq!(config.set_by_name("DEPTH", "100"), Ok(false));
    assert_eq!(config.get("DEPTH"), Some("4"));
    let error = config.set_by_name("DEPTH", "many").unwrap_err();
    assert_eq!(error.to_string(), "\"many\" is no value for DEPTH, an int");
    let error = config.set_by_name("DEPHT", "1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "DEPHT is not defined; did you mean DEPTH?"
    );
    assert!(matches!(
        config.set_by_name("ON", "m"),
        Err(SetError::Invalid { .. })
    ));
    assert!(config.set_by_name("NAME", "two\nlines").is_err());
    // A wish that cannot be met now is met later.
    set(&mut config, &[("ON", "n"), ("DEPTH", "7")]);
    assert_eq!(config.get("DEPTH"), Some(""));
    set(&mut config, &[("ON", "y")]);
    assert_eq!(config.get("DEPTH"), Some("7"));
    let depth = config.tree().find("DEPTH").unwrap();
    config.unset(depth);
    assert_eq!(config.get("DEPTH"), Some("4"));
}

#[test]
fn what_has_no_effect_is_said() {
    let mut config = config(VALUES);
    let text = "CONFIG_SELECTS=y\nCONFIG_DEPTH=99\nCONFIG_QUIET=y\nCONFIG_NAME=bare\nCONFIG_TARGT=y\n\
        CONFIG_ON=maybe\nCONFIG_SELECTS=y\nwhat is this\n# CONFIG_NAME is not set\n";
    let read: Vec<String> = config
        .read(text, ".config")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        read,
        [
            ".config:4:1: bare is no value for NAME, a string",
            ".config:5:1: TARGT is not defined: ignored; did you mean TARGET?",
            ".config:6:1: maybe is no value for ON, a bool",
            ".config:7:1: SELECTS was set to y above and is now set to y",
            ".config:8:1: neither a value nor a comment: what is this",
        ]
    );
    let kinds: Vec<WarningKind> = config
        .warnings()
        .iter()
        .map(|warning| warning.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            WarningKind::UnmetSelect,
            WarningKind::NotApplied,
            WarningKind::NotApplied
        ]
    );
    let said = config.warnings()[0].to_string();
    assert_eq!(
        said,
        "Kconfig:6:1: TARGET is selected by SELECTS although it depends on ON, which is n"
    );
    set(&mut config, &[("ON", "y")]);
    let said: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["Kconfig:9:1: DEPTH: 99 is outside 1 to 64; 4 is used"],
        "QUIET is y by itself now"
    );
}

#[test]
fn oldconfig_asks_for_what_is_new_and_for_what_that_opens() {
    let tree = "config A\n\tbool \"a\"\nif A\nconfig DEPTH\n\tint \"depth\"\n\trange 1 9\n\tdefault 3\nendif\n\
        choice\n\tprompt \"engine\"\n\tdefault TWO\nconfig ONE\n\tbool \"one\"\nconfig TWO\n\tbool \"two\"\nendchoice\n\
        config NAME\n\tstring \"name\"\n\tdefault \"x\"\nconfig KNOWN\n\tbool \"known\"\n";
    let mut config = config(tree);
    config.read("# CONFIG_KNOWN is not set\n", "old");
    let mut questions = OldConfig::new(&mut config);
    assert_eq!(questions.answer("y"), Err(AnswerError::NothingAsked));
    let mut asked = Vec::new();
    let mut answers = ["maybe", "Y", "12", "", "3", "1", "other"].into_iter();
    while let Some(question) = questions.question() {
        let tree = questions.config().tree();
        let prompt = tree
            .node(question.node)
            .prompt
            .as_ref()
            .unwrap()
            .text
            .clone();
        let result = questions.answer(answers.next().unwrap());
        asked.push(match result {
            Ok(()) => format!("{prompt} [{}]", question.default),
            Err(error) => format!("{prompt}: {error}"),
        });
        if let AnswerKind::Member(members) = question.wanted {
            assert_eq!(members.len(), 2);
        }
    }
    assert_eq!(
        asked,
        [
            "a: \"maybe\" is not one of n, y",
            "a [n]",
            "depth: 12 is not in the range 1 to 9",
            "depth [3]",
            "engine: \"3\" is not one of ONE, TWO",
            "engine [TWO]",
            "name [x]",
        ]
    );
    let expected = "CONFIG_A=y\nCONFIG_DEPTH=3\nCONFIG_ONE=y\n# CONFIG_TWO is not set\nCONFIG_NAME=\"other\"\n# CONFIG_KNOWN is not set\n";
    assert_eq!(config.write(""), expected);
    assert!(config.new_symbols().is_empty());
    assert_eq!(OldConfig::new(&mut config).question(), None);
}

#[test]
fn randconfig_is_random_and_the_same_for_a_seed() {
    let tree = "config A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\nconfig C\n\tbool \"c\"\n\
        choice\n\tprompt \"d\"\nconfig D1\n\tbool \"d1\"\nconfig D2\n\tbool \"d2\"\nendchoice\n";
    let mut config = config(tree);
    let mut of = |seed| {
        config.randomize(seed);
        config.write("")
    };
    let all: std::collections::BTreeSet<String> = (0..200).map(&mut of).collect();
    assert_eq!(all.len(), 16, "every one of the possible configs");
    assert_eq!(of(7), of(7));
}

#[test]
fn the_menu_shows_what_the_user_can_see() {
    let tree = "mainmenu \"Top\"\nmenuconfig NET\n\tbool \"net\"\nconfig TCP\n\tbool \"tcp\"\n\tdepends on NET\n\
        config DEPTH\n\tint \"depth\"\n\tdefault 3\n\tdepends on HIDDEN\nconfig HIDDEN\n\tbool\n\
        comment \"a comment\"\nmenu \"sub\"\nendmenu\nconfig FORCED\n\tbool \"forced\"\nconfig FORCES\n\tdef_bool y\n\tselect FORCED\n\
        choice\n\tprompt \"pick\"\nconfig ONE\n\tbool \"one\"\nendchoice\n";
    let mut config = config(tree);
    let rows = |config: &Config, hidden| -> Vec<String> {
        let rows = config.rows(config.tree().root(), hidden);
        let shown = rows.iter().map(|row| {
            let arrow = if row.enters { " >" } else { "" };
            format!("{}{}{}{arrow}", " ".repeat(row.indent), row.value, row.text)
        });
        shown.collect()
    };
    let all = ["[ ]net", "a comment", "sub >", "-*-forced", "(one)pick >"];
    assert_eq!(rows(&config, false), all);
    set(&mut config, &[("NET", "y")]);
    assert_eq!(rows(&config, false)[0], "[*]net >");
    assert_eq!(rows(&config, true)[1..3], ["()depth", "- -HIDDEN"]);
    let net = config
        .tree()
        .symbol(config.tree().find("NET").unwrap())
        .nodes[0];
    assert_eq!(config.rows(net, false)[0].text, "tcp");
    let tcp = config
        .tree()
        .symbol(config.tree().find("TCP").unwrap())
        .nodes[0];
    assert_eq!(config.path(tcp), [config.tree().root(), net]);
}

#[test]
fn a_search_and_an_explanation_say_where_and_why() {
    let tree = "config DEPTH\n\tint \"I/O depth\"\n\tdepends on RANGE && !(OFF || LATER)\nconfig RANGE\n\tbool \"range\"\n\
        config MAX_DEPTH\n\tint \"most\"\n\thelp\n\t  Up to this range.\nconfig OFF\n\tbool \"off\"\n\
        config LATER\n\tbool\n\tdefault y if OFF\nconfig PULLS\n\tbool \"pulls\"\n\tselect LATER\n";
    let mut config = config(tree);
    let names = |config: &Config, query: &str| -> Vec<String> {
        let hits = config.search(query);
        hits.iter()
            .map(|hit| config.tree().symbol(hit.symbol).name.clone())
            .collect()
    };
    assert_eq!(names(&config, "depth"), ["DEPTH", "MAX_DEPTH"]);
    assert_eq!(names(&config, "config_range"), ["RANGE", "MAX_DEPTH"]);
    assert_eq!(names(&config, "max range"), ["MAX_DEPTH"]);
    assert!(names(&config, " ").is_empty() && names(&config, "nowhere").is_empty());
    set(&mut config, &[("PULLS", "y")]);
    let explained = config.explain(config.tree().find("DEPTH").unwrap());
    let missing: Vec<&str> = explained.missing().map(|part| part.text.as_str()).collect();
    assert_eq!(missing, ["RANGE", "!(OFF || LATER)"]);
    let later = config.explain(config.tree().find("LATER").unwrap());
    assert_eq!(
        later.selected_by,
        [(config.tree().find("PULLS").unwrap(), Tri::Y)]
    );
    assert!(later.prompts.is_empty() && later.default.is_none());
}

#[test]
fn a_transitional_symbol_is_read_and_never_written() {
    let tree = "config OLD_DEPTH\n\tint\n\ttransitional\n\
        config DEPTH\n\tint \"depth\"\n\tdefault OLD_DEPTH if OLD_DEPTH > 0\n\tdefault 1\n\
        config OLD\n\tbool\n\ttransitional\nconfig NEW\n\tbool \"new\"\n\tdefault OLD\n";
    let mut config = config(tree);
    assert_eq!(
        config.write(""),
        "CONFIG_DEPTH=1\n# CONFIG_NEW is not set\n"
    );
    assert!(
        config
            .read("CONFIG_OLD_DEPTH=32\nCONFIG_OLD=y\n", "old")
            .is_empty()
    );
    assert_eq!(config.write(""), "CONFIG_DEPTH=32\nCONFIG_NEW=y\n");
    assert!(config.warnings().is_empty());
}

#[test]
fn a_member_of_two_choices_stays_in_the_first() {
    let members = "config A\n\tbool \"a\"\nconfig B\n\tbool \"b\"\n";
    let choice = |prompt: &str| format!("choice\n\tprompt \"{prompt}\"\n{members}endchoice\n");
    let mut config = config(&(choice("first") + &choice("second")));
    let said = config.tree().warnings()[0].to_string();
    assert_eq!(
        said,
        "Kconfig:10:1: A is a member of another choice and stays in that"
    );
    set(&mut config, &[("B", "y")]);
    let written = config.write("");
    assert_eq!(written, "# CONFIG_A is not set\nCONFIG_B=y\n");
    config.read(&written, "again");
    assert_eq!(config.write(""), written);
}

#[test]
fn a_text_in_a_choice_is_nothing_to_pick_at_random() {
    let tree =
        "choice\n\tprompt \"c\"\nconfig A\n\tbool \"a\"\nconfig S\n\tstring \"s\"\nendchoice\n";
    let mut config = config(tree);
    for seed in 0..8 {
        config.randomize(seed);
        assert_eq!(config.get("A"), Some("y"));
    }
}
