//! What shells complete, asked of the shells themselves.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_testkit::{ProgramUnderTest, Tmux, program, require, skip};

/// A folder with a run, a campaign and the scripts of all shells.
fn place() -> ProgramUnderTest {
    let fathom = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let job = "-q job run --engine native -- --name=first --rw=read --size=1m --ioengine=null";
    let run = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(job.split(' '))
        .current_dir(fathom.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(["completions", shell])
            .output()
            .unwrap();
        fs::write(fathom.path().join(shell), script.stdout).unwrap();
    }
    fathom
}

/// The folder of the program, first in the path of a shell.
fn path() -> String {
    let dir = Path::new(env!("CARGO_BIN_EXE_fathom")).parent().unwrap();
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap())
}

#[test]
fn fish_offers_runs_baselines_defconfigs_tests_engines_and_devices() {
    let name = "fish_offers_runs_baselines_defconfigs_tests_engines_and_devices";
    require!(program("fish"));
    let fathom = place();
    let offered = |line: &str| {
        let script = format!("source fish; complete -C '{line}'");
        let output = Command::new("fish")
            .args(["--no-config", "-c", &script])
            .current_dir(fathom.path())
            .env("PATH", path())
            .env("HOME", fathom.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let disk = fathom_testkit::LoopDevice::new(1 << 20);
    for (line, value) in [
        ("fathom sho", "show"),
        ("fathom show 2", "-first\tjob run first, complete"),
        ("fathom quick here /tmp --baseline H", "HDD\t"),
        ("fathom baseline show H", "HDD\t"),
        ("fathom quick here /tmp clean", "cleanup"),
        (
            "fathom quick here /tmp 1",
            "1 file, 1 thread, seq 1M writes, simple",
        ),
        ("fathom init x --defconfig surv", "survey-10min"),
        ("fathom engines libai", "libaio"),
        ("fathom job run --engine na", "native\t"),
        ("fathom purge /dev/sda --method nvme-f", "nvme-format"),
        ("fathom job run fi", "fish"),
    ] {
        let all = offered(line);
        assert!(all.contains(value), "{line}: {all}");
    }
    match &disk {
        Ok(disk) => {
            let all = offered("fathom purge /dev/loo");
            let path = disk.path().display().to_string();
            assert!(all.contains(&path), "{path}: {all}");
        }
        Err(reason) => skip(name, reason),
    }
    // What no help tells is offered nowhere, also where nothing else begins so.
    for line in [
        "fathom ag",
        "fathom pod",
        "fathom quick here --ev",
        "fathom quick here --req",
        "fathom run --du",
        "fathom purge /dev/sda --max-t",
        "fathom job run --destroy ",
    ] {
        let all = offered(line);
        let hidden = [
            "agent",
            "pod",
            "--events",
            "--request",
            "--dut",
            "--max-time",
        ];
        assert!(!hidden.iter().any(|it| all.contains(it)), "{line}: {all}");
        assert!(!all.contains('\u{1}'), "{line}: {all}");
    }
}

#[test]
fn bash_and_zsh_complete_at_the_key() {
    for needed in ["bash", "zsh", "tmux"] {
        require!(program(needed));
    }
    let fathom = place();
    let runs = fs::read_dir(fathom.path().join("fathom-runs")).unwrap();
    let run = runs.flatten().next().unwrap().file_name();
    let run = run.into_string().unwrap();
    let path = path();
    for (shell, start) in [
        ("bash --norc -i", "source ./bash; PS1='ready> '"),
        (
            "zsh -f -i",
            "autoload -Uz compinit; compinit -D; source ./zsh; PS1='ready> '",
        ),
    ] {
        let command = format!("env PATH='{path}' HOME=. {shell}");
        let tmux = Tmux::start(150, 40, fathom.path(), &command).unwrap();
        tmux.type_text(start);
        tmux.press(&["Enter"]);
        tmux.wait_until("ready", |screen| {
            screen.lines().any(|line| line.starts_with("ready>"))
        });
        tmux.type_text("fathom sho");
        tmux.press(&["Tab"]);
        tmux.wait_for("fathom show");
        tmux.type_text("2");
        tmux.press(&["Tab"]);
        tmux.wait_for(&format!("fathom show {run}"));
        tmux.press(&["C-u"]);
        // A name with blanks and commas is one word.
        tmux.type_text(r"fathom quick here /tmp 1\ file,\ 1\ thread,\ seq\ 1M\ w");
        tmux.press(&["Tab"]);
        tmux.wait_for("1\\ file,\\ 1\\ thread,\\ seq\\ 1M\\ writes,\\ simple");
    }
}
