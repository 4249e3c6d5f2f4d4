//! The menu in a real terminal.

use std::fs;

use fathom_testkit::Tmux;

use super::support::Campaign;

/// The menu of a campaign in a terminal, behind a shell that goes on after it.
fn open(campaign: &Campaign, width: u16, height: u16, env: &str) -> Result<Tmux, String> {
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let shell = format!(
        "env -u DEV TERM=screen-256color {env} {fathom} config; echo \"ended: $?\"; exec cat"
    );
    let tmux = Tmux::start(width, height, campaign.path(), &shell)?;
    tmux.wait_for("Enterprise drive");
    Ok(tmux)
}

#[test]
fn a_campaign_is_configured_in_the_menu() {
    let campaign = Campaign::new();
    let tmux = match open(&campaign, 80, 24, "") {
        Ok(tmux) => tmux,
        Err(reason) => {
            return fathom_testkit::skip("a_campaign_is_configured_in_the_menu", &reason);
        }
    };
    tmux.wait_for("no .config yet");
    // Search, jump, edit with an error first.
    tmux.press(&["/"]);
    tmux.type_text("config_repeat");
    tmux.wait_for("REPEAT_INTERLEAVED");
    tmux.press(&["Enter"]);
    tmux.wait_for("Fathom campaign › Running");
    tmux.press(&["Enter"]);
    tmux.wait_for("REPEAT: a number from 1 to 1000");
    tmux.press(&["BSpace", "0", "Enter"]);
    tmux.wait_for("REPEAT=0 is not in the range 1 to 1000");
    tmux.press(&["BSpace", "5", "Enter"]);
    tmux.wait_for("Order of repetitions");
    // A choice, help, save.
    tmux.press(&["Down", "Down", "?"]);
    tmux.wait_for("Defined in  kconfig/run.kconfig");
    // Alone: with what follows at once it would be Alt and a key.
    tmux.press(&["Escape"]);
    tmux.wait_for("Time limit of a point");
    tmux.press(&["Up", "Enter"]);
    tmux.wait_for("(X) Interleaved");
    tmux.press(&["Down", "Space"]);
    tmux.wait_for("Order of repetitions  (In a row)");
    tmux.press(&["s"]);
    tmux.wait_for("saved to .config");
    assert!(campaign.file(".config").contains("CONFIG_REPEAT=5\n"));
    assert!(
        campaign
            .file(".config")
            .contains("CONFIG_REPEAT_IN_A_ROW=y\n")
    );
    // A change that is thrown away.
    tmux.press(&["Home", "Enter"]);
    tmux.wait_for("DESTROY_CONFIRM: text");
    tmux.type_text("q n ÿ");
    tmux.press(&["Enter"]);
    tmux.wait_for("not saved");
    tmux.press(&["q"]);
    tmux.wait_for("Changes are not saved");
    tmux.press(&["n"]);
    tmux.wait_for("ended: 0");
    assert!(
        campaign
            .file(".config")
            .contains("CONFIG_DESTROY_CONFIRM=\"\"\n")
    );
    assert_eq!(tmux.variable("alternate_on"), "0");
    assert_eq!(tmux.variable("cursor_flag"), "1");
}

#[test]
fn the_menu_fits_every_window_and_follows_its_size() {
    let campaign = Campaign::new();
    campaign.says(&["defconfig", "all-tests"]);
    let tmux = match open(&campaign, 60, 15, "") {
        Ok(tmux) => tmux,
        Err(reason) => {
            return fathom_testkit::skip(
                "the_menu_fits_every_window_and_follows_its_size",
                &reason,
            );
        }
    };
    tmux.press(&["Down", "Down", "Enter", "End"]);
    tmux.wait_for("↑ ");
    tmux.resize(80, 24);
    // The help below appears where there is room for it.
    let screen = tmux.wait_for("BW_WD_SS_SLOPE_DUR=");
    assert_eq!(screen.lines().count(), 24, "{screen}");
    tmux.resize(24, 6);
    tmux.wait_until("a small window", |screen| {
        screen.lines().all(|line| line.chars().count() <= 24)
    });
    tmux.resize(100, 40);
    tmux.wait_for("Generic steady state provisioning");
    tmux.press(&["q"]);
    tmux.wait_for("ended: 0");
}

#[test]
fn the_terminal_is_itself_again_after_a_signal() {
    let campaign = Campaign::new();
    campaign.says(&["olddefconfig"]);
    let before = campaign.file(".config");
    for signal in ["TERM", "HUP", "INT", "Ctrl-C"] {
        let shell = format!(
            "env -u DEV TERM=screen-256color {} config & echo $! > pid; fg; stty -a",
            env!("CARGO_BIN_EXE_fathom")
        );
        let script = campaign.path().join("shell.sh");
        fs::write(&script, format!("set -m\n{shell}\nexec cat\n")).unwrap();
        let tmux = match Tmux::start(100, 30, campaign.path(), "bash shell.sh") {
            Ok(tmux) => tmux,
            Err(reason) => {
                let name = "the_terminal_is_itself_again_after_a_signal";
                return fathom_testkit::skip(name, &reason);
            }
        };
        tmux.wait_for("Enterprise drive");
        tmux.press(&["n"]);
        tmux.wait_for("not saved");
        assert_eq!(tmux.variable("alternate_on"), "1");
        if signal == "Ctrl-C" {
            tmux.press(&["C-c"]);
        } else {
            let pid = campaign.file("pid");
            let kill = std::process::Command::new("kill")
                .args(["-s", signal, pid.trim()])
                .status();
            assert!(kill.unwrap().success());
        }
        let screen = tmux.wait_for("icanon");
        assert!(
            screen.contains("the changes were not saved"),
            "{signal}: {screen}"
        );
        assert!(
            screen.contains(" icanon") && screen.contains(" echo "),
            "{signal}: {screen}"
        );
        assert_eq!(tmux.variable("alternate_on"), "0", "{signal}");
        assert_eq!(tmux.variable("cursor_flag"), "1", "{signal}");
        assert_eq!(campaign.file(".config"), before, "{signal}");
    }
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let campaign = Campaign::new();
    let has_colour = |screen: &str| screen.contains("\u{1b}[35m") || screen.contains("[38;5;5m");
    for (env, expected) in [("", true), ("NO_COLOR=1", false)] {
        let tmux = match open(&campaign, 80, 24, env) {
            Ok(tmux) => tmux,
            Err(reason) => {
                return fathom_testkit::skip(
                    "colours_are_used_only_where_they_are_wanted",
                    &reason,
                );
            }
        };
        tmux.wait_for("no .config yet");
        let screen = tmux.screen_with_colors();
        assert_eq!(has_colour(&screen), expected, "{env}: {screen:?}");
        assert!(
            screen.contains("[7m") || screen.contains(";7m"),
            "the current row is inverse: {screen:?}"
        );
    }
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_is_refused() {
    let campaign = Campaign::new();
    let fathom = env!("CARGO_BIN_EXE_fathom");
    let shell = format!("TERM=dumb {fathom} config menu; echo \"ended: $?\"; exec cat");
    match Tmux::start(80, 24, campaign.path(), &shell) {
        Ok(tmux) => assert!(tmux.wait_for("ended: 2").contains("TERM says")),
        Err(reason) => {
            fathom_testkit::skip("a_terminal_that_cannot_move_its_cursor_is_refused", &reason);
        }
    }
}
