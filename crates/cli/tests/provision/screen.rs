//! What a person sees while drives are provisioned.

use fathom_testkit::{Tmux, require};

use crate::provision::support::Lab;

fn command(lab: &Lab) -> String {
    // A fill of 20 s and more, whose end no busy machine comes to meet.
    lab.simulated("slow.toml", "pace_ms = 1000\nbandwidth_mib = 60\n");
    let gone = "pace_ms = 200\nbandwidth_mib = 60\nvanish_after_s = 4\n";
    lab.simulated("gone.toml", gone);
    lab.sizes("1600m", "20s");
    let drives: Vec<String> = (0..8).map(|n| format!("/dev/nvme{n}n1")).collect();
    format!(
        "{} provision {} --workload mixed --engine sim --sim slow.toml --sim gone.toml \
         --sim slow.toml; sleep 60",
        env!("CARGO_BIN_EXE_fathom"),
        drives.join(" ")
    )
}

/// The lines of the drives, behind the table of what it takes.
fn drives(screen: &str) -> Vec<&str> {
    let lines = screen
        .lines()
        .skip_while(|line| !line.starts_with("8 drives"));
    lines.filter(|line| line.starts_with("nvme")).collect()
}

#[test]
fn the_dashboard_has_a_line_for_each_of_eight_drives() {
    let lab = Lab::new();
    let tmux = require!(Tmux::start(100, 30, lab.path(), &command(&lab)));
    let is_so = |(nth, line): (usize, &&str)| match nth {
        1 => line.contains("✗ ") && line.contains("gone"),
        n if n % 2 == 0 => line.contains("1/2 fill-seq-1") && line.contains(" left"),
        _ => line.contains("1/4 fill-seq-1") && line.contains("━"),
    };
    let screen = tmux.wait_until("one drive has failed, seven run", |screen| {
        let lines = drives(screen);
        screen.contains("7 run  1 failed")
            && screen.contains("MiB/s")
            && lines.len() == 8
            && lines.iter().enumerate().all(is_so)
    });
    assert!(
        screen.contains("SIMULATION: no device is measured"),
        "{screen}"
    );
    tmux.press(&["C-c"]);
    let screen = tmux.wait_for("fathom provision --resume");
    let rows = |word: &str| screen.lines().filter(|line| line.contains(word)).count();
    assert_eq!(rows("stopped"), 7, "{screen}");
    assert!(
        !screen.contains("fill-seq-1  ━"),
        "nothing of it is left: {screen}"
    );
}

#[test]
fn the_dashboard_keeps_to_a_narrow_window() {
    let lab = Lab::new();
    let tmux = require!(Tmux::start(50, 20, lab.path(), &command(&lab)));
    let screen = tmux.wait_for(" s left");
    assert_eq!(drives(&screen).len(), 8, "no line is broken: {screen}");
}
