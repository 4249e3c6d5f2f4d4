//! Many connections at a time, and several that lead to one machine.

use fathom_testkit::{Sshd, require};

use super::*;

/// Names that all lead to one sshd.
fn names(count: usize) -> String {
    let names: Vec<String> = (1..=count).map(|nth| format!("door{nth}")).collect();
    names.join(",")
}

fn quick_cleanup(bench: &Bench, ssh: &str, names: &str, limit: &str) -> std::process::Output {
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_fathom"), "quick"]);
    command
        .args(["--hosts", names])
        .arg(bench.0.path())
        .arg("cleanup");
    let command = command.current_dir(bench.0.path()).env("FATHOM_SSH", ssh);
    command.stdin(Stdio::null()).output().unwrap()
}

/// An sshd, that of a jump host among them, turns away who comes while too many
/// have not logged in.
#[test]
fn many_hosts_behind_a_narrow_door_are_all_reached() {
    let narrow = Sshd::configured(&[], "MaxStartups 2:100:2\n");
    let sshd = require!(narrow);
    let done = quick_cleanup(&Bench::new(), &sshd.command(), &names(12), "-Sn 64");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}\n{}", sshd.log());
    let out = String::from_utf8_lossy(&done.stdout);
    assert_eq!(out.matches("there is no ").count(), 12, "{out}");
    // The door was narrow: else nothing is proven.
    assert!(sshd.log().contains("MaxStartups"), "{}", sshd.log());
}

#[test]
fn the_limit_of_open_files_is_raised_or_named() {
    let bench = Bench::new();
    let seen = bench.0.path().join("seen");
    let ssh = bench.0.path().join("ssh");
    let text = format!(
        "ulimit -Sn >> '{}'; echo 'Permission denied' >&2; exit 255\n",
        seen.display()
    );
    fs::write(&ssh, text).unwrap();
    let ssh = format!("sh {}", ssh.display());
    let done = quick_cleanup(&bench, &ssh, &names(3), "-Sn 64");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let seen = fs::read_to_string(seen).unwrap();
    // Connected to once each: who is denied is not tried again.
    let limits: Vec<u64> = seen.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(limits.len(), 3, "{seen}");
    assert!(limits.iter().all(|&limit| limit > 64), "{seen}");
    let done = quick_cleanup(&bench, &ssh, &names(3), "-n 64");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(5), "{said}");
    assert!(said.contains("3 machines take 70 open files"), "{said}");
}

/// Two names of one machine: its figures would count twice.
#[test]
fn one_machine_under_two_names_takes_part_once() {
    let tmp = TempDir::with_prefix("fathom-same-").unwrap();
    let environment = [("TMPDIR", tmp.path().to_str().unwrap())];
    let sshd = require!(Sshd::new(&environment));
    let bench = Bench::new();
    let job = bench.job("[a]\nioengine=null\nrw=randread\nsize=1m\n");
    let run = |more: &[&str]| {
        let args = ["job", "run", &job, "--engine=native", "--json", "-q"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let command = command.args(args).args(["--hosts", "door1,door2"]);
        let command = command.args(more).current_dir(bench.0.path());
        let command = command.env("FATHOM_SSH", sshd.command());
        document(command.stdout(Stdio::piped()).spawn().unwrap())
    };
    let same = ("same_host".to_owned(), "door2".to_owned());
    let (code, doc) = run(&[]);
    assert_eq!((code, &doc["status"]), (Some(4), &"failed".into()), "{doc}");
    assert!(doc["jobs"].as_array().unwrap().is_empty(), "{doc}");
    let told = failures(&doc);
    assert_eq!((&told[0].0, &told[0].1), (&same.0, &same.1), "{told:?}");
    assert!(told[0].2.contains("same machine as door1"), "{told:?}");
    let (code, doc) = run(&["--min-hosts", "1"]);
    assert_eq!(
        (code, &total(&doc)["clients"]),
        (Some(0), &1.into()),
        "{doc}"
    );
    assert_eq!(doc["jobs"][0]["hostname"], "door1");
    let (code, doc) = run(&["--allow-same-host"]);
    assert_eq!(
        (code, &total(&doc)["clients"]),
        (Some(0), &2.into()),
        "{doc}"
    );
    assert_eq!(failures(&doc), []);
}
