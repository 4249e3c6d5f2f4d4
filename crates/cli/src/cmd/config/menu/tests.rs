//! Keys in, rows and screens out: the menu without a terminal.

use std::sync::Arc;

use fathom_kconfig::{Config, Loader, MemoryFiles};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dialog::Dialog;
use super::draw::{MenuStyle, draw};
use super::state::{Effect, Menu, SaveTarget};

const TREE: &str = r#"mainmenu "Test"

config MODULES
	bool "Modules"
	modules
	default y
	help
	  Whether there are modules.

	  A second paragraph.

config DRIVER
	tristate "Driver"

menuconfig NET
	bool "Network"
	help
	  Everything about the network.

config PORT
	int "Port"
	depends on NET
	range 1 65535
	default 80
	help
	  The port to listen on.

config MASK
	hex "Mask"
	depends on NET
	range 0x1 0xff
	default 0x10

choice
	prompt "Speed"
	help
	  How fast.

config SLOW
	bool "Slow"

config FAST
	bool "Fast"

endchoice

config FORCED
	bool "Forced"

config FORCES
	bool "Forces"
	default y
	select FORCED

comment "A comment"

menu "More"

config TEXT
	string "Text"
	default "words"

menu "Empty unless network"
	visible if NET

config DEEP
	bool "Deep"
	help
	  A switch at the bottom.

endmenu

endmenu
"#;

fn config() -> Config {
    let files = MemoryFiles::from_iter([("Kconfig", TREE)]);
    Config::new(Arc::new(Loader::new(&files).load("Kconfig").unwrap()))
}

/// A menu whose `.config` says everything.
fn menu() -> Menu {
    let mut config = config();
    let text = config.write("");
    config.read(&text, ".config");
    Menu::new(config, Some(text))
}

/// Presses keys: characters as they are, others in angle brackets.
fn press(menu: &mut Menu, keys: &str) -> Option<Effect> {
    let mut last = None;
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let (name, behind) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, behind)) => (name, behind),
            None => rest.split_at(c.len_utf8()),
        };
        rest = behind;
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let key = match name {
            "Enter" => plain(KeyCode::Enter),
            "Esc" => plain(KeyCode::Esc),
            "Up" => plain(KeyCode::Up),
            "Down" => plain(KeyCode::Down),
            "Left" => plain(KeyCode::Left),
            "Right" => plain(KeyCode::Right),
            "End" => plain(KeyCode::End),
            "Home" => plain(KeyCode::Home),
            "PgDn" => plain(KeyCode::PageDown),
            "PgUp" => plain(KeyCode::PageUp),
            "BS" => plain(KeyCode::Backspace),
            "Del" => plain(KeyCode::Delete),
            _ if name.starts_with("C-") => {
                let c = name.chars().nth(2).unwrap();
                KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
            }
            _ if name.chars().count() > 1 => plain(KeyCode::F(name[1..].parse().unwrap())),
            _ => plain(KeyCode::Char(c)),
        };
        last = menu.key(key);
    }
    last
}

/// The rows as text; `>` before the current one.
fn rows(menu: &Menu) -> Vec<String> {
    let (at, _) = menu.place();
    let row = |(n, row): (usize, fathom_kconfig::MenuRow)| {
        let mark = if n == at { ">" } else { " " };
        let indent = "  ".repeat(row.indent);
        let enters = if row.enters { " --->" } else { "" };
        let new = if menu.is_new(row.node) { " (NEW)" } else { "" };
        format!("{mark}{indent}{} {}{enters}{new}", row.value, row.text)
    };
    menu.rows().into_iter().enumerate().map(row).collect()
}

fn current(menu: &Menu) -> String {
    menu.current().map(|row| row.text).unwrap_or_default()
}

fn value<'m>(menu: &'m Menu, name: &str) -> &'m str {
    menu.config.get(name).unwrap()
}

fn noted(menu: &Menu) -> &str {
    menu.note.as_ref().map_or("", |(_, note)| note)
}

/// What a terminal of this size shows.
fn screen(menu: &mut Menu, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(frame, menu, MenuStyle { color: false }))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn keys_turn_switches_and_change_what_is_shown() {
    let mut menu = menu();
    assert_eq!(
        rows(&menu),
        [
            ">[*] Modules",
            " < > Driver",
            " [ ] Network",
            " (Slow) Speed --->",
            " -*- Forced",
            " [*] Forces",
            "  A comment",
            "  More --->",
        ]
    );
    // Around: n, m, y, n.
    press(&mut menu, "j");
    for expected in ["m", "y", "n"] {
        press(&mut menu, " ");
        assert_eq!(value(&menu, "DRIVER"), expected);
    }
    press(&mut menu, "m");
    assert_eq!(rows(&menu)[1], ">{M} Driver".replace("{M}", "<M>"));
    // Without modules there is no m.
    press(&mut menu, "<Up>n<Down>");
    assert_eq!(rows(&menu)[1], ">[*] Driver");
    press(&mut menu, "m");
    assert_eq!(noted(&menu), "DRIVER cannot be m now: it can be n, y");
    // What is selected says by whom.
    press(&mut menu, "jjjn");
    assert_eq!(current(&menu), "Forced");
    assert_eq!(noted(&menu), "FORCED cannot be n: it is selected by FORCES");
    press(&mut menu, " ");
    assert!(noted(&menu).contains("FORCES"), "Space says so, too");
    press(&mut menu, "jnk ");
    assert_eq!(
        value(&menu, "FORCED"),
        "n",
        "and can be turned when it is free"
    );
    assert!(menu.is_changed());
}

#[test]
fn a_menuconfig_is_turned_on_before_it_is_entered() {
    let mut menu = menu();
    press(&mut menu, "jj<Enter>");
    assert_eq!(rows(&menu)[2], ">[*] Network --->");
    press(&mut menu, "<Enter>");
    assert_eq!(rows(&menu), [">(80) Port (NEW)", " (0x10) Mask (NEW)"]);
    press(&mut menu, "<Left>");
    assert_eq!(current(&menu), "Network");
    press(&mut menu, "n");
    assert_eq!(rows(&menu)[2], ">[ ] Network");
}

#[test]
fn a_choice_is_a_list_of_which_one_is_picked() {
    let mut menu = menu();
    press(&mut menu, "jjj<Right>");
    assert_eq!(rows(&menu), [">(X) Slow", " ( ) Fast"]);
    press(&mut menu, "n");
    assert!(
        noted(&menu).contains("pick another of it: FAST"),
        "{}",
        noted(&menu)
    );
    press(&mut menu, "j ");
    assert_eq!(value(&menu, "FAST"), "y");
    assert_eq!(
        rows(&menu)[3],
        ">(Fast) Speed --->",
        "picking is the end of choosing"
    );
    press(&mut menu, " ");
    assert_eq!(
        rows(&menu),
        [" ( ) Slow", ">(X) Fast"],
        "it opens on what is picked"
    );
    press(&mut menu, "hr");
    assert_eq!(value(&menu, "SLOW"), "y", "back to the default");
}

#[test]
fn values_are_edited_with_their_range_and_errors_in_place() {
    let mut menu = menu();
    press(&mut menu, "jjy<Enter><Enter>");
    insta::assert_snapshot!("edit", screen(&mut menu, 60, 15));
    press(&mut menu, "000000<Enter>");
    insta::assert_snapshot!("edit_out_of_range", screen(&mut menu, 60, 15));
    assert_eq!(value(&menu, "PORT"), "80");
    // The next key corrects it, and the error goes.
    press(&mut menu, "<BS><BS><BS><BS><BS>");
    let Some(Dialog::Edit(edit)) = &menu.dialog else {
        panic!("it is still open")
    };
    assert_eq!((edit.input.text().as_str(), &edit.error), ("800", &None));
    press(&mut menu, "<Enter>");
    assert_eq!(value(&menu, "PORT"), "800");
    press(&mut menu, "j<Enter><C-u>x<Enter>");
    let Some(Dialog::Edit(edit)) = &menu.dialog else {
        panic!("it is still open")
    };
    assert_eq!(
        edit.error.as_deref(),
        Some("\"x\" is no value for MASK, a hex")
    );
    press(&mut menu, "<C-u>0xff<Enter>");
    assert_eq!(value(&menu, "MASK"), "0xff");
    press(&mut menu, "<Enter>1<Esc>");
    assert_eq!(value(&menu, "MASK"), "0xff", "Esc takes nothing");
    press(&mut menu, "r");
    assert_eq!(value(&menu, "MASK"), "0x10");
}

#[test]
fn a_line_is_edited_as_in_a_shell() {
    let mut menu = menu();
    press(&mut menu, "G<Enter><Enter>");
    for (keys, text) in [
        ("", "words"),
        (" and more", "words and more"),
        ("<C-w>", "words and "),
        ("<C-w>", "words "),
        ("<C-a>q ?", "q ?words "),
        ("<Del>", "q ?ords "),
        ("<End><BS><Left><Left><C-k>", "q ?or"),
        ("<Home><Right><C-u>", " ?or"),
        ("<C-e>µ", " ?orµ"),
    ] {
        press(&mut menu, keys);
        let Some(Dialog::Edit(edit)) = &menu.dialog else {
            panic!("it is open")
        };
        assert_eq!(edit.input.text(), text, "{keys}");
    }
    press(&mut menu, "<Enter>");
    assert_eq!(value(&menu, "TEXT"), " ?orµ");
}

#[test]
fn a_search_jumps_to_the_entry_also_to_a_hidden_one() {
    let mut menu = menu();
    press(&mut menu, "/deep");
    insta::assert_snapshot!("search", screen(&mut menu, 60, 15));
    press(&mut menu, "<Enter>");
    assert!(menu.hidden, "it cannot be set now: everything is shown");
    assert_eq!(current(&menu), "Deep");
    assert_eq!(menu.open_menus().count(), 3);
    press(&mut menu, "y");
    assert_eq!(noted(&menu), "DEEP cannot be set: it needs NET (now n)");
    press(&mut menu, "/CONFIG_FAST<Enter>");
    assert_eq!(rows(&menu), [" (X) Slow", ">( ) Fast"]);
    press(&mut menu, "<Esc>");
    assert_eq!(current(&menu), "Speed");
    press(&mut menu, "/nothing at all<Enter>");
    assert!(
        matches!(menu.dialog, Some(Dialog::Search(_))),
        "nothing to go to"
    );
    press(&mut menu, "<Esc>");
    assert!(menu.dialog.is_none());
    press(&mut menu, "/<Down><Down><Enter>");
    assert_eq!(
        current(&menu),
        "Network",
        "without a word everything is found"
    );
}

#[test]
fn help_explains_conditions_and_where_it_is_defined() {
    let mut menu = menu();
    press(&mut menu, "/port<F1>");
    insta::assert_snapshot!("help", screen(&mut menu, 60, 15));
    press(&mut menu, "<Esc>");
    assert!(
        matches!(menu.dialog, Some(Dialog::Search(_))),
        "back to the search"
    );
    press(&mut menu, "<Esc>?<End>");
    assert!(screen(&mut menu, 40, 9).contains("Defined in  Kconfig, line 3"));
    press(&mut menu, "<Home>");
    assert!(screen(&mut menu, 40, 9).contains("MODULES: Modules"));
    press(&mut menu, "q");
    assert!(menu.dialog.is_none());
}

#[test]
fn hidden_entries_are_shown_on_demand() {
    let mut menu = menu();
    press(&mut menu, "jja");
    assert_eq!(current(&menu), "Network", "the place stays");
    press(&mut menu, "<Enter>");
    assert_eq!(
        rows(&menu),
        [">() Port", " () Mask"],
        "a menu that is off opens, too"
    );
    press(&mut menu, "<Enter>");
    assert_eq!(noted(&menu), "PORT cannot be set: it needs NET (now n)");
    press(&mut menu, "<F5>G<Enter>");
    insta::assert_snapshot!("hidden", screen(&mut menu, 60, 15));
    press(&mut menu, "a");
    assert!(!menu.hidden);
    assert_eq!(rows(&menu), [">(words) Text"]);
}

#[test]
fn changes_that_are_not_saved_are_asked_about() {
    let mut menu = menu();
    assert_eq!(press(&mut menu, "q"), Some(Effect::Quit), "nothing to save");
    press(&mut menu, "n");
    assert_eq!(press(&mut menu, "<Esc>"), None);
    insta::assert_snapshot!("unsaved", screen(&mut menu, 60, 15));
    assert_eq!(press(&mut menu, "<Esc>"), None);
    assert!(menu.dialog.is_none(), "back to the menu");
    assert_eq!(press(&mut menu, "<F9>n"), Some(Effect::Quit));
    let Some(Effect::Save { path, text, target }) = press(&mut menu, "qy") else {
        panic!("it is to be saved")
    };
    assert_eq!(
        (path.to_str(), target),
        (Some(".config"), SaveTarget::ConfigThenQuit)
    );
    assert!(text.contains("# CONFIG_MODULES is not set\n"));
    menu.saved(".config", target, text, Err("the disk is full".to_owned()));
    assert_eq!(noted(&menu), "the disk is full");
    assert!(menu.is_changed(), "a failed save saves nothing");
    let Some(Effect::Save { text, target, .. }) = press(&mut menu, "s") else {
        panic!("it is to be saved")
    };
    menu.saved(".config", target, text, Ok(true));
    assert!(!menu.is_changed());
    press(&mut menu, "y");
    assert_eq!(press(&mut menu, "<C-c>"), Some(Effect::Interrupt));
}

#[test]
fn a_change_that_is_taken_back_is_none() {
    let mut menu = menu();
    screen(&mut menu, 60, 15);
    press(&mut menu, "nyj<C-d><C-u><PgDn><PgUp>");
    assert_eq!(current(&menu), "Modules");
    assert!(!menu.is_changed());
}

#[test]
fn files_are_loaded_and_saved_elsewhere() {
    let mut menu = menu();
    press(&mut menu, "o<C-u>");
    assert_eq!(press(&mut menu, "<Enter>"), None, "no name");
    assert_eq!(
        press(&mut menu, "other<Enter>"),
        Some(Effect::Load("other".into()))
    );
    menu.load("other", Err("there is no other".to_owned()));
    assert!(screen(&mut menu, 60, 15).contains("there is no other"));
    press(&mut menu, "<Enter>");
    menu.load("other", Ok("CONFIG_NET=y\nrubbish\n".to_owned()));
    assert!(screen(&mut menu, 60, 15).contains("other:2:1: neither a value"));
    assert_eq!(value(&menu, "NET"), "n", "nothing of a bad file is taken");
    menu.load("other", Ok("CONFIG_NET=y\nCONFIG_GONE=y\n".to_owned()));
    assert!(menu.dialog.is_none());
    assert!(
        noted(&menu).contains("other:2:1: GONE is not defined"),
        "{}",
        noted(&menu)
    );
    assert_eq!(value(&menu, "NET"), "y");
    let Some(Effect::Save { path, text, target }) = press(&mut menu, "d<Enter>") else {
        panic!("it is to be saved")
    };
    assert_eq!(
        (path.to_str(), &*text),
        (Some("defconfig"), "CONFIG_NET=y\n")
    );
    menu.saved("defconfig", target, text, Ok(true));
    assert!(menu.is_changed(), ".config was not written");
    let Some(Effect::Save { path, target, .. }) = press(&mut menu, "S<C-u>copy<Enter>") else {
        panic!("it is to be saved")
    };
    assert_eq!(
        (path.to_str(), target),
        (Some("copy"), SaveTarget::Elsewhere)
    );
}

#[test]
fn loading_closes_menus_that_are_no_longer_there() {
    let mut menu = menu();
    press(&mut menu, "jjy<Enter>j");
    assert_eq!(current(&menu), "Mask");
    menu.load("other", Ok("# CONFIG_NET is not set\n".to_owned()));
    assert_eq!(
        menu.open_menus().count(),
        2,
        "the entry itself can still be seen"
    );
    assert!(screen(&mut menu, 60, 15).contains("nothing here can be set now"));
    press(&mut menu, "j<Esc>");
    assert_eq!(current(&menu), "Network");
}

#[test]
fn without_a_config_nothing_is_new_and_everything_is_unsaved() {
    let mut menu = Menu::new(config(), None);
    assert!(rows(&menu).iter().all(|row| !row.contains("NEW")));
    assert!(menu.is_changed());
    insta::assert_snapshot!("first", screen(&mut menu, 80, 24));
}

#[test]
fn a_small_window_scrolls_and_says_how_much_is_outside() {
    let mut menu = menu();
    insta::assert_snapshot!("small_top", screen(&mut menu, 30, 9));
    press(&mut menu, "G");
    insta::assert_snapshot!("small_end", screen(&mut menu, 30, 9));
    // Any size draws something and keeps the current row in sight.
    for (width, height) in [(1, 1), (20, 3), (20, 4), (21, 5), (60, 15), (300, 100)] {
        for keys in ["", "?", "/", "o", "S", "q", "<Home><Enter>"] {
            press(&mut menu, keys);
            let shown = screen(&mut menu, width, height);
            assert_eq!(shown.lines().count(), usize::from(height));
            press(&mut menu, "<Esc>");
            if menu.dialog.is_some() {
                press(&mut menu, "<Esc>");
            }
        }
    }
}

#[test]
fn names_and_marks_are_shown_on_demand() {
    let mut menu = menu();
    press(&mut menu, "cf");
    insta::assert_snapshot!("names", screen(&mut menu, 80, 24));
}
