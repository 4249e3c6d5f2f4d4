//! Variables of job files: of the machine that drives the run, of each machine,
//! of nobody.

use super::*;

fn job_in(folder: &str) -> String {
    format!("[a]\ndirectory={folder}\nfilename=f\nrw=write\nbs=4k\nsize=16k\n")
}

/// What each machine is told stands in the dry run: the job file as it was
/// written, and the values for each.
#[test]
fn values_go_to_machines_beside_the_job_file_as_it_was_written() {
    let bench = Bench::new();
    let text = job_in("${DIR}/${SUB}/${FATHOM_NOT_SET}") + "numjobs=$ncpus\n";
    let job = bench.job(&text);
    let list = bench.0.path().join("hosts");
    fs::write(&list, "m1 DIR=/column SUB=one # the first\nm2\nm3 DIR=/x\n").unwrap();
    let run = |args: &[&str]| {
        let hosts = ["job", "run", &job, "--dry-run", "--json", "--hosts"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let command = command.args(hosts).arg(&list).args(args);
        let command = command.current_dir(bench.0.path());
        command.env("DIR", "/here").env_remove("SUB").output()
    };
    let done = run(&["--var", "m3:DIR=/third", "--var=m2:SUB=two"]).unwrap();
    let doc: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    let wanted = serde_json::json!({
        "m1": {"DIR": "/column", "SUB": "one"},
        "m2": {"DIR": "/here", "SUB": "two"},
        "m3": {"DIR": "/third"},
    });
    assert_eq!(doc["variables"], wanted);
    let sent = doc["plan"]["files"][0]["text"].as_str().unwrap();
    assert_eq!(sent, text);
    for (args, words) in [
        (["--var", "m4:DIR=x"], "m4 is not one of the hosts"),
        (["--var", "DRI=x"], "no job file names ${DRI}"),
    ] {
        let refused = run(&args).unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn each_machine_replaces_what_the_driving_one_does_not_know() {
    let lab = fathom_testkit::require!(Lab::new(2, &[]));
    let bench = Bench::new();
    let run = |job: &str, more: &[&str]| {
        let args = ["job", "run", job, "--engine=native", "--hosts=m1,m2"];
        let mut command = bench.command(&lab, &[&args, more, &["--json", "-q"]].concat());
        document(command.env_remove("XDG_STATE_HOME").spawn().unwrap())
    };
    // Each machine's ssh sessions have one of their own.
    let job = bench.job(&job_in("${XDG_STATE_HOME}"));
    let (code, doc) = run(&job, &[]);
    assert_eq!(code, Some(0), "{doc}");
    assert!((0..2).all(|place| lab.state(place).join("f").is_file()));
    // Each is told its own.
    let own = [0, 1].map(|_| TempDir::with_prefix("fathom-own-").unwrap());
    let of = |place: usize| format!("m{}:OWN={}", place + 1, own[place].path().display());
    let job = bench.job(&job_in("${OWN}"));
    let (code, doc) = run(&job, &["--var", &of(0), "--var", &of(1)]);
    assert_eq!(code, Some(0), "{doc}");
    assert!(own.iter().all(|own| own.path().join("f").is_file()));
    // What nobody knows is no path.
    let (code, doc) = run(&job, &["--var", &of(0)]);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    let [(_, host, said)] = &told[..] else {
        panic!("{told:?}")
    };
    assert!(host == "m2" && said.contains("OWN is not set"), "{told:?}");
    // Here it would end the line.
    let (code, doc) = run(&job, &["--var", "OWN=/tmp/x;y"]);
    assert_eq!(code, Some(1), "{doc}");
    let told = failures(&doc);
    let said = |(_, _, said): &(String, String, String)| said.contains("value of OWN cannot");
    assert!(told.len() == 2 && told.iter().all(said), "{told:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// A campaign's templates may name variables too.
#[test]
fn a_campaign_on_several_hosts_gives_each_its_own_value() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.good(&["init", "campaign"]);
    program.good(&["config", "-C", "campaign", "defconfig", "debug-quick"]);
    let as_it_is = ["DUT_FILENAME=/dev/nothing", "STEADY_STATE_PROVISIONING=n"];
    program.good(&[&["config", "-C", "campaign", "set"], &as_it_is[..]].concat());
    let template = program.path().join("campaign/templates/performance.fio");
    let text = fs::read_to_string(&template).unwrap();
    let text = text.replace("norandommap\n", "norandommap\ndescription=${NOTE}\n");
    fs::write(&template, text).unwrap();
    let vars = ["--var", "NOTE=all", "--var", "h2:NOTE=own"];
    let run = ["run", "-C", "campaign", "--dry-run", "--json"];
    let told = program.good(&[&run[..], &["--hosts", "h1,h2"], &vars].concat());
    let doc: Value = serde_json::from_slice(&told.stdout).unwrap();
    let of = |host: &str| doc["variables"][host]["NOTE"].clone();
    assert_eq!((of("h1"), of("h2")), ("all".into(), "own".into()), "{doc}");
    let alone = program.run(&[&run[..], &vars].concat());
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
}
