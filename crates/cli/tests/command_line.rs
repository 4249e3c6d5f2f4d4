//! What every command owes its user: help with examples, quiet ends, a manual.

use std::fs;
use std::process::{Command, Output, Stdio};

use fathom_model::Exit;

fn fathom(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(args)
        .stdin(Stdio::null())
        .env("COLUMNS", "200")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn help(command: &[String]) -> String {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let output = fathom(&args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    stdout(&output)
}

/// Every command, found as a reader finds them: from the lists in the help texts.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(command) = open.pop() {
        let text = help(&command);
        // The top has a list in each group; those of the others are called Commands.
        let groups = text.split("\n\n").filter(|part| match command.is_empty() {
            true => !["Options:", "Examples:", "Exit codes:", "Usage:"]
                .iter()
                .any(|heading| part.starts_with(heading)),
            false => part.starts_with("Commands:\n"),
        });
        for line in groups.flat_map(|part| part.lines().skip(1)) {
            // Deeper lines go on with the description above.
            let Some(name) = line
                .strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
            else {
                continue;
            };
            let name = name.split_whitespace().next().unwrap();
            if name != "help" {
                let mut below: Vec<String> = command.clone();
                below.push(name.to_owned());
                open.push(below);
            }
        }
        found.push(command);
    }
    found
}

#[test]
fn every_help_has_examples_and_fits_a_terminal() {
    let commands = commands();
    assert!(commands.len() > 50, "{commands:?}");
    let mut wrong = Vec::new();
    for command in commands {
        let (name, text) = (command.join(" "), help(&command));
        if !text.contains("\nExamples:\n") {
            wrong.push(format!("fathom {name}: no examples"));
        }
        if let Some(line) = text.lines().find(|line| line.chars().count() > 100) {
            wrong.push(format!("fathom {name}: longer than 100 columns: {line}"));
        }
        if text.contains('\u{1b}') {
            wrong.push(format!("fathom {name}: colour into a pipe"));
        }
        let call = format!("fathom {name}");
        let examples = text.split("\nExamples:\n").nth(1).unwrap_or_default();
        if !examples.contains(call.trim()) {
            wrong.push(format!("{call}: the examples do not call it"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_exit_code_is_documented() {
    let text = help(&[]);
    let codes = text.split("\nExit codes:\n").nth(1).unwrap();
    let documented: Vec<u8> = codes
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    let all = [
        Exit::Success,
        Exit::Failed,
        Exit::Usage,
        Exit::Input,
        Exit::Refused,
        Exit::Missing,
        Exit::Record,
        Exit::ConditionFailed,
        Exit::Waits,
        Exit::Interrupted,
    ];
    assert_eq!(documented, all.map(Exit::code));
}

#[test]
fn the_version_is_the_package_s() {
    let output = fathom(&["--version"]);
    assert_eq!(
        stdout(&output),
        concat!("fathom ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_wrong_command_line_is_told_apart() {
    assert_eq!(fathom(&["--nonsense"]).status.code(), Some(2));
    let alone = fathom(&[]);
    assert_eq!(alone.status.code(), Some(2));
    let told = String::from_utf8(alone.stderr).unwrap();
    assert_eq!(told.lines().count(), 5, "{told}");
    assert!(
        told.lines().all(|line| line.starts_with("fathom ")),
        "{told}"
    );
}

#[test]
fn what_was_meant_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.fio"), "[a]\nrw=read\nsize=1m\n").unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for (args, code, meant) in [
        ("x.fio", 2, "did you mean: fathom job run x.fio"),
        ("list", 2, "did you mean: fathom runs"),
        ("folder", 2, "did you mean: fathom quick here folder"),
        ("job x.fio", 2, "did you mean: fathom job run x.fio"),
        ("check x.fio", 2, "did you mean: fathom job check x.fio"),
        ("run x.fio", 3, "to do: fathom job run x.fio"),
        ("plan x.fio", 3, "to do: fathom job run x.fio"),
        ("--json", 2, "for example: fathom doctor"),
        ("soak", 2, "for example: fathom soak "),
        (
            "resume --host",
            2,
            "for example: fathom resume --host root@lab1",
        ),
        ("snia iops", 2, "for example: fathom snia iops /dev/"),
        (
            "show --nonsense",
            2,
            "'fathom show --help' lists what there is",
        ),
        ("config sett", 2, "'set'"),
        ("job run --rw=read", 2, "fathom job run -- --name=a"),
        ("graph --format foo", 2, "for example: fathom graph "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(args.split(' '))
            .current_dir(dir.path())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args}: {told}");
        assert!(told.contains(meant), "{args}: {told}");
        assert!(!told.contains("agent"), "{args}: {told}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let output = fathom(&["man", dir.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    for command in commands() {
        let mut name = vec!["fathom".to_owned()];
        name.extend(command);
        let path = dir.path().join(format!("{}.1", name.join("-")));
        let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{}", path.display());
        assert!(page.contains(".SH OPTIONS"), "{}", path.display());
    }
    let top = fs::read_to_string(dir.path().join("fathom.1")).unwrap();
    assert!(top.contains(".SH EXIT CODES"), "{top}");
}

#[test]
fn every_shell_has_its_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&fathom(&["completions", shell]));
        assert!(script.contains("FATHOM_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn a_closed_pipe_ends_output_quietly() {
    // Larger than any pipe's buffer, so that the writer meets the closed end.
    let mut child = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn doctor_names_what_it_looked_at() {
    let output = fathom(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "fathom.doctor/1");
    let checks = document["checks"].as_array().unwrap();
    let fio = checks.iter().find(|check| check["name"] == "fio").unwrap();
    let native = checks.iter().find(|check| check["name"] == "native");
    let ready = fio["state"] == "ok" || native.unwrap()["state"] == "ok";
    assert_eq!(document["ready"], ready);
    assert_eq!(output.status.code(), Some(if ready { 0 } else { 5 }));
    for check in checks.iter().filter(|check| check["state"] == "missing") {
        assert!(check["fix"].is_string(), "{check}");
    }
}

#[test]
fn doctor_without_fio_says_how_to_get_it() {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("doctor")
        .env("PATH", empty.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("absent   fio"), "{text}");
    assert!(text.contains("native-"), "{text}");
    assert!(text.contains("jobs can be run here"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_says_what_an_ordinary_user_cannot_make() {
    use std::os::unix::process::CommandExt as _;

    let name = "doctor_says_what_an_ordinary_user_cannot_make";
    if !rustix::process::geteuid().is_root() {
        return fathom_testkit::skip(name, "becoming another user takes root");
    }
    // A folder that anybody may look into, as the one of the build need not be.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), everybody).unwrap();
    let program = dir.path().join("fathom");
    // By a process of its own: what a test beside this one starts would keep a file that
    // is written here open, and nobody can execute it then.
    let copied = Command::new("cp")
        .args([env!("CARGO_BIN_EXE_fathom").as_ref(), program.as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    let output = Command::new(&program)
        .args(["doctor", "--json"])
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    for name in ["loop devices", "zram devices"] {
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        assert_eq!(check["state"], "absent", "{check}");
    }
}

#[test]
fn an_option_that_a_command_does_not_take_says_why() {
    for (args, why) in [
        (&["purge", "/dev/none", "--max-time", "1h"][..], "cut short"),
        (&["purge", "/dev/none", "--engine", "sim"], "no engine"),
        (
            &["snia", "wsat", "/dev/none", "--hosts", "a,b"],
            "one machine",
        ),
        (
            &["provision", "--hosts=a,b", "/dev/none"],
            "on each machine",
        ),
        (&["cluster", "rand", "--destroy", "S1"], "claimed itself"),
    ] {
        let output = fathom(args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains(why), "{args:?}: {told}");
        // What is not offered is in no help.
        let words: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        let command = &words[..words
            .iter()
            .position(|it| it.starts_with(['/', '-']))
            .unwrap()];
        let option = words.iter().find(|word| word.starts_with("--")).unwrap();
        let option = option.split('=').next().unwrap();
        assert!(!help(command).contains(option), "{args:?}");
    }
}
