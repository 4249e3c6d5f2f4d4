//! Tests of plan files.

use std::path::Path;

use fathom_analysis::snia::{DriveClass, SniaTest};
use fathom_prepare::provision::SteadyFor;
use fathom_suites::prio;
use proptest::prelude::*;

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// As a file beside the examples: mix.fio is there.
fn parse(text: &str) -> Result<Study, Vec<String>> {
    let path = root().join("docs/studies/test.toml");
    let folder = format!("{}/", path.parent().unwrap().display());
    match Study::parse(text, &path, &|_| None) {
        Ok(study) => Ok(study),
        Err(CampaignError::Definition(faults)) => {
            let faults = faults
                .iter()
                .map(|fault| fault.to_string().replace(&folder, ""));
            Err(faults.collect())
        }
        Err(other) => panic!("{other}"),
    }
}

fn good(text: &str) -> Study {
    parse(text).unwrap_or_else(|faults| panic!("{}\n{text}", faults.join("\n")))
}

/// What is said about a text; its lines, without the file.
fn faults(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err(text);
    faults
        .iter()
        .map(|fault| fault.replacen("test.toml:", "", 1))
        .collect()
}

fn names(study: &Study) -> Vec<&str> {
    study.steps.iter().map(|step| step.name.as_str()).collect()
}

#[test]
fn the_examples_are_good() {
    let nightly = Study::read(&root().join("docs/studies/nightly.toml"), &|_| None).unwrap();
    assert_eq!(
        names(&nightly),
        [
            "governor",
            "purge",
            "precondition",
            "mix",
            "rand-4k-1",
            "rand-4k-8",
            "rand-64k-1",
            "rand-64k-8"
        ]
    );
    assert_eq!(nightly.assertions.len(), 4 + 4);
    let hosts = Study::read(&root().join("docs/studies/hosts.toml"), &|_| None).unwrap();
    assert_eq!(
        names(&hosts),
        ["fill-1", "mix-1", "fill-2", "mix-2", "fill-3", "mix-3"]
    );
    assert_eq!(
        hosts.targets.of(Some("bench1")),
        Some(Path::new("/dev/nvme0n1"))
    );
    assert_eq!(
        hosts.targets.of(Some("bench2")),
        Some(Path::new("/dev/nvme1n1"))
    );
    let smallest = Study::read(&root().join("docs/studies/smallest.toml"), &|_| None).unwrap();
    assert_eq!(
        (smallest.name.as_str(), names(&smallest)),
        ("smallest", vec!["mix"])
    );
}

#[test]
fn the_page_shows_the_examples_and_every_key() {
    let page = std::fs::read_to_string(root().join("docs/STUDIES.md")).unwrap();
    for example in ["nightly", "hosts", "smallest"] {
        let text = std::fs::read_to_string(root().join(format!("docs/studies/{example}.toml")));
        let text = text.unwrap();
        let shown = text.split_once('\n').unwrap().1;
        assert!(
            page.contains(shown.trim()),
            "{example}.toml is not on the page as it is"
        );
    }
    let kinds = keys::KINDS
        .iter()
        .flat_map(|kind| kind.options.iter().chain([&kind.key]));
    for key in keys::top().chain(keys::STEP).chain(kinds) {
        let name = format!("`{}`", key.name);
        assert!(page.contains(&name), "{name} is not in docs/STUDIES.md");
    }
}

#[test]
fn the_schema_for_editors_is_current() {
    let path = root().join("docs/study.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/study.schema.json is not current: run this test with FATHOM_BLESS=1"
    );
}

#[test]
fn a_step_prepares_or_measures_as_its_kind_says() {
    let study = good(
        r#"
        [target]
        path = "/dev/nvme0n1"
        [[step]]
        purge = "nvme-format"
        samples = 16
        [[step]]
        precondition = "mixed"
        method = "snia"
        purge-method = "blkdiscard"
        [[step]]
        quick = "/mnt/disk"
        size = "64M"
        "#,
    );
    assert_eq!(names(&study), ["purge", "precondition", "quick"]);
    let actions: Vec<&StudyAction> = study.steps.iter().map(|step| &step.action).collect();
    let [
        StudyAction::Purge(purge),
        StudyAction::Precondition(precondition),
        StudyAction::Quick(quick),
    ] = actions.as_slice()
    else {
        panic!("{study:#?}");
    };
    assert_eq!(
        (purge.want().unwrap().samples, purge.method.as_str()),
        (16, "nvme-format")
    );
    let of_tomorrow = StudyPurge {
        method: "scrub".to_owned(),
        ..purge.clone()
    };
    assert!(of_tomorrow.want().is_err(), "and not \"auto\"");
    assert_eq!(precondition.workload, SteadyFor::Mixed);
    assert_eq!(precondition.purge.as_deref(), Some("blkdiscard"));
    assert_eq!(quick.folder.as_deref(), Some(Path::new("/mnt/disk")));
    assert_eq!(quick.size_bytes, Some(64 << 20));
}

#[test]
fn a_step_has_the_options_of_its_kind() {
    let study = good(
        r#"
        [target]
        path = "/dev/nvme0n1"
        [[step]]
        snia = "wsat"
        class = "client"
        stop-fills = 2
        threads = 3
        [[step]]
        prio = ["baseline", "cdl-multi"]
        dldsplit = { 1 = 10, 2 = 20 }
        qds = [1, 32]
        [[step]]
        command = "echo ${HOME}"
        undo = "true"
        timeout = "10s"
        "#,
    );
    assert_eq!(names(&study), ["snia-wsat", "prio", "command"]);
    let actions: Vec<&StudyAction> = study.steps.iter().map(|step| &step.action).collect();
    let [
        StudyAction::Snia(snia),
        StudyAction::Prio(prio),
        StudyAction::Command(command),
    ] = actions.as_slice()
    else {
        panic!("{study:#?}");
    };
    assert_eq!(
        (snia.test, snia.class),
        (SniaTest::Wsat, DriveClass::Client)
    );
    assert_eq!(
        (snia.wanted.stop_fills, snia.wanted.jobs),
        (Some(2.0), Some(3))
    );
    let multi = prio::PrioWorkload::Multi(prio::Split(vec![(1, 10), (2, 20)]));
    assert_eq!(prio.workloads, [prio::PrioWorkload::Baseline, multi]);
    assert_eq!(prio.dev, Path::new("/dev/nvme0n1"));
    assert_eq!(
        (prio.load.bs, prio.load.depths.0.as_slice()),
        (131_072, &[1, 32][..])
    );
    assert_eq!(command.command, "echo ${HOME}");
    assert_eq!(command.timeout, Some(Duration::from_secs(10)));
}

#[test]
fn a_study_is_stored_and_read_back() {
    let study = Study::read(&root().join("docs/studies/nightly.toml"), &|_| None).unwrap();
    let stored = serde_json::to_string(&study).unwrap();
    assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), study);
}

#[test]
fn a_job_is_a_file_or_a_text() {
    let study = good(
        "[[step]]\njob = \"mix.fio\"\nset = { iodepth = 4, fsync_on_close = true }\n[[step]]\njob = \"\"\"\n[a]\nrw=read\nsize=1m\n\"\"\"",
    );
    let StudyAction::Job(file) = &study.steps[0].action else {
        panic!()
    };
    assert_eq!(
        file.source,
        JobSource::File(root().join("docs/studies/mix.fio"))
    );
    let set = [("iodepth", "4"), ("fsync_on_close", "1")];
    assert_eq!(
        file.set,
        set.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let StudyAction::Job(text) = &study.steps[1].action else {
        panic!()
    };
    assert_eq!(
        text.source,
        JobSource::Text("[a]\nrw=read\nsize=1m\n".to_owned())
    );
}

#[test]
fn variables_of_job_files_are_those_of_the_machines_that_run_them() {
    let step = "[[step]]\njob = \"\"\"\n[a]\nrw=read\nfilename=${DISK}/a\n\"\"\"\n";
    refused(&[(step, "5:")]);
    good(&format!("hosts = [\"bench1\"]\n{step}"));
}

#[test]
fn loops_go_round_in_the_order_in_which_they_are_written() {
    let study = good(
        "[[step]]\nfor = { z = [2, 1], a = [\"x\"] }\njob = \"mix.fio\"\nset = { iodepth = \"${z}\", description = \"d${a}\" }",
    );
    assert_eq!(names(&study), ["mix-2-x", "mix-1-x"]);
    let StudyAction::Job(job) = &study.steps[0].action else {
        panic!()
    };
    let set = [("iodepth", "2"), ("description", "dx")];
    assert_eq!(
        job.set,
        set.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn a_number_of_a_loop_stays_one() {
    let study = good(
        "[target]\npath = \"/dev/x\"\n[[step]]\nfor = { n = [1, 2] }\nsnia = \"iops\"\nthreads = \"${n}\"",
    );
    let StudyAction::Snia(snia) = &study.steps[1].action else {
        panic!()
    };
    assert_eq!(snia.wanted.jobs, Some(2));
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let said = faults(
        "naem = \"x\"\nmax-time = 5\n[[step]]\njob = \"mixx.fio\"\n[[step]]\njobs = \"a\"\n[[step]]\npurge = true\nquick = \"/x\"\n",
    );
    let told = [
        "1:1: a plan file has no key 'naem'; did you mean name?",
        "2:12: max-time: give a time, as in \"10s\", \"5m\" or \"8h\"",
        "4:7: job: ",
        "6:1: a step does one of purge, precondition, job, quick, campaign, snia, prio, command, and not jobs; did you mean job?",
        "9:1: a step does one thing: this one has purge and quick",
    ];
    assert_eq!(said.len(), told.len(), "{said:#?}");
    for (said, told) in said.iter().zip(told) {
        assert!(said.starts_with(told), "{said}");
    }
    assert!(said[2].ends_with("did you mean mix.fio?"), "{}", said[2]);
}

/// Each of these texts is refused, for the reason that begins so.
fn refused(cases: &[(&str, &str)]) {
    for (text, told) in cases {
        let said = faults(text);
        assert!(
            said.iter().any(|said| said.starts_with(told)),
            "{text}\n{said:#?}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_has_its_place() {
    refused(&[
        ("", "1:1: there is nothing to do"),
        ("a = [\n", "1:6: unclosed array"),
        ("a = 1\na = 2\n", "2:1: duplicate key"),
        ("[[step]]\npurge = true\n", "1:1: this step needs a target"),
        (
            "hosts = [\"a\", \"a\"]\n[[step]]\njob = \"mix.fio\"\n",
            "1:15: hosts: a is there twice",
        ),
        (
            "sim = \"mix.fio\"\n[[step]]\njob = \"mix.fio\"\n",
            "1:7: sim describes",
        ),
        (
            "hosts = [\"bench1\"]\n[target.host.bensh1]\npath = \"/x\"\n[[step]]\njob = \"mix.fio\"\n",
            "2:14: bensh1 is not in hosts; did you mean bench1?",
        ),
        (
            "hosts = [\"bench1\"]\n[target]\n[[step]]\njob = \"mix.fio\"\n",
            "2:1: [target] has no path for bench1",
        ),
        (
            "format = \"fathom.study/2\"\n[[step]]\njob = \"mix.fio\"\n",
            "1:10: format: ",
        ),
    ]);
}

#[test]
fn what_is_wrong_with_a_job_has_its_place() {
    let step = |text: &str, told: &str| refused(&[(&format!("[[step]]\n{text}\n"), told)]);
    step(
        "job = \"mix.fio\"\nset = { iodept = 4 }",
        "3:9: set: fio has no option 'iodept'; did you mean iodepth?",
    );
    step(
        "job = \"mix.fio\"\nset = { iodepth = \"many\" }",
        "3:7: set: ",
    );
    step(
        "job = \"mix.fio\"\nsection = [\"mxi\"]",
        "3:12: section: the job file has no section mxi; did you mean mix?",
    );
    step("job = \"\"\"\n[a]\nrw=read\niodepth=x\n\"\"\"", "5:9: ");
    step("job = \"[a]\\nrw=read\\niodepth=x\"", "2:");
    step(
        "job = \"mix.fio\"\n[[step]]\njob = \"mix.fio\"",
        "3:1: another step is called mix",
    );
}

#[test]
fn what_is_wrong_with_a_step_has_its_place() {
    for (step, told) in [
        ("quick = \"/x\"\ngroup = \"curent\"", "5:9: group: "),
        (
            "quick = \"/x\"\ntest = \"nothing\"",
            "5:8: test: the group current has no test nothing",
        ),
        (
            "quick = \"/x\"\nsamples = 3",
            "5:1: a quick step has no key 'samples'",
        ),
        (
            "campaign = \"nowhere\"",
            "4:12: campaign: there is no folder",
        ),
        ("campaign = \".\"", "4:12: "),
        (
            "snia = \"iops\"\nmixes = [\"65/34\"]",
            "4:8: snia: '65/34' is no mix",
        ),
        (
            "snia = \"iosp\"",
            "4:8: snia: 'iosp' is not one of iops, throughput, latency, wsat; did you mean iops?",
        ),
        (
            "precondition = \"seq\"\npurge-method = \"wipe\"",
            "5:16: purge-method: there is no such method",
        ),
        (
            "precondition = \"seq\"\nno-purge = true\npurge-method = \"auto\"",
            "6:16: purge-method: no-purge is set",
        ),
        (
            "prio = \"ncq-prio\"",
            "4:8: prio: ncq-prio needs percentage",
        ),
        (
            "prio = \"baseline\"\ndld = 1",
            "5:7: dld: only cdl-single has a use for it",
        ),
        (
            "prio = \"cdl-multi\"\ndldsplit = { 1 = 60, 2 = 60 }",
            "5:12: dldsplit: the shares add up to 120",
        ),
        (
            "prio = \"cdl-multi\"\ndldsplit = { 8 = 60 }",
            "5:14: dldsplit: limits have",
        ),
        (
            "prio = \"baseline\"\nbs = 1000",
            "5:6: bs: it must be a multiple",
        ),
        ("prio = \"baseline\"\nt2a = \"mix.fio\"", "mix.fio:"),
    ] {
        let text = format!("[target]\npath = \"/dev/x\"\n[[step]]\n{step}\n");
        refused(&[(&text, told)]);
    }
}

#[test]
fn what_stands_behind_prio_or_on_hosts_in_vain_is_told_at_its_line() {
    let step = |text: &str| format!("[[step]]\n{text}\n");
    let target = "[target]\npath = \"/dev/x\"\n";
    let prio = |name: &str| step(&format!("name = \"{name}\"\nprio = \"baseline\""));
    let command = step("command = \"true\"");
    good(&[target, &prio("a"), &command, &prio("b")].concat());
    let job = step("job = \"mix.fio\"");
    refused(&[(
        &[target, &prio("a"), &prio("b"), &job].concat(),
        "10:1: this stands behind b, whose switches stay until the run ends",
    )]);
    let quick = step("quick = \"/x\"");
    refused(&[(
        &["hosts = [\"a\"]\n", &quick].concat(),
        "3:1: this is no step on hosts: run it by fathom quick --hosts",
    )]);
}

#[test]
fn loops_that_cannot_be_meant_are_refused() {
    for (step, told) in [
        (
            "for = { bs = [\"4k\"] }\njob = \"mix.fio\"",
            "2:9: nothing in this step uses ${bs}",
        ),
        (
            "for = { bs = [\"4k\"] }\njob = \"mix.fio\"\nset = { bs = \"${sb}\" }",
            "4:15: no loop here has a variable sb; did you mean bs?",
        ),
        (
            "for = { bs = [\"4k\"] }\njob = \"mix.fio\"\nset = { bs = \"${sb}\" }",
            "2:9: nothing in this step uses ${bs}; did you mean sb?",
        ),
        (
            "for = { bs = [] }\njob = \"mix.fio\"\nset = { bs = \"${bs}\" }",
            "2:14: for: bs has no values",
        ),
        (
            "for = { bs = \"4k\" }\njob = \"mix.fio\"\nset = { bs = \"${bs}\" }",
            "2:14: for: give a list of values for bs",
        ),
        (
            "for = { bs = [1, 1] }\njob = \"mix.fio\"\nset = { bs = \"${bs}\" }",
            "2:18: for: bs has the value 1 twice",
        ),
        (
            "for = { bs = [1, 2] }\nname = \"a\"\njob = \"mix.fio\"\nset = { bs = \"${bs}\" }",
            "1:1: another step is called a",
        ),
        (
            "for = { a = [1] }\njob = \"mix.fio\"\n[[step.step]]\njob = \"mix.fio\"",
            "3:1: a step with steps of its own has no key 'job'",
        ),
        (
            "[[step.step]]\njob = \"mix.fio\"",
            "1:1: a step with steps of its own needs a 'for'",
        ),
        (
            "for = { a = [1] }\n[[step.step]]\nfor = { a = [1] }\nname = \"${a}\"\njob = \"mix.fio\"",
            "4:9: for: a is a variable of the loop outside",
        ),
    ] {
        let text = format!("[[step]]\n{step}\n");
        let said = faults(&text);
        assert!(
            said.iter().any(|said| said.starts_with(told)),
            "{text}\n{said:#?}"
        );
    }
    let many: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let many = many.join(",");
    let text = format!(
        "[[step]]\nfor = {{ a = [{many}], b = [{many}], c = [{many}] }}\ncommand = \"${{a}} ${{b}} ${{c}}\""
    );
    assert!(faults(&text)[0].contains("more than 10000 steps"));
    let long = "x".repeat(1 << 18);
    let text = format!("[[step]]\nfor = {{ a = [{many}] }}\ncommand = \"echo ${{a}} {long}\"");
    assert!(faults(&text)[0].contains("too much text"));
}

#[test]
fn conditions_are_checked_against_the_steps() {
    let two = "[[step]]\nname = \"two\"\njob = \"\"\"\n[r]\nrw=read\nsize=1m\n[w]\nrw=write\nsize=1m\n[v]\nrw=write\nsize=1m\n\"\"\"\n[[step]]\ncommand = \"true\"\n";
    for (assert, told) in [
        (
            "mxi.read.iops >= 1",
            "1:12: assert: there is no step mxi; did you mean mix?",
        ),
        (
            "mix.trim.iops >= 1",
            "1:16: assert: mix has no figures of trim, only of read and write",
        ),
        (
            "mix.reed.iops >= 1",
            "1:16: assert: 'reed' is not a direction: read, write, trim, sync or mixed; did you mean read?",
        ),
        ("mix.read.ipos >= 1", "1:21: assert: 'ipos' is not a figure"),
        (
            "mix.read.iops => 1",
            "1:26: assert: '=>' is not a comparison",
        ),
        (
            "mix.read.iops == 1",
            "1:26: assert: a measured value is never exactly",
        ),
        ("mix.read.p99 <= 2", "1:28: assert: a time needs its unit"),
        (
            "mix.read.iops >= 1m",
            "1:29: assert: 'm' is not a unit here: write it as in 100k; did you mean M?",
        ),
        (
            "two.write.iops >= 1",
            "1:12: assert: two has several jobs: name one, as in two/w or two/v",
        ),
        ("two/x.write.iops >= 1", "1:16: assert: two has no job x"),
        (
            "two/r.write.iops >= 1",
            "1:18: assert: two has no figures of write, only of read",
        ),
        (
            "command.read.iops >= 1",
            "1:12: assert: command has no figures",
        ),
    ] {
        let text = format!("assert = [\"{assert}\"]\n[[step]]\njob = \"mix.fio\"\n{two}");
        assert_eq!(faults(&text).len(), 1, "{:#?}", faults(&text));
        assert!(faults(&text)[0].starts_with(told), "{:#?}", faults(&text));
    }
    let text = format!(
        "assert = [\"two.read.n == 1k\", \"w.write.bw >= 1MiB/s\", \"two/v.write.clat.p99.9 < 1s\"]\n{two}"
    );
    let jobs = good(&text)
        .assertions
        .into_iter()
        .map(|assertion| assertion.job);
    let jobs: Vec<Option<String>> = jobs.collect();
    assert_eq!(jobs, [Some("r".into()), Some("w".into()), Some("v".into())]);
}

#[test]
fn a_name_with_dots_stands_in_quotes() {
    let step = "[[step]]\nname = \"a.b\"\njob = \"mix.fio\"\n";
    let study = good(&format!("assert = ['\"a.b\".read.p99.9 <= 2ms']\n{step}"));
    assert_eq!(study.assertions[0].step, "a.b");
    let said = faults(&format!("assert = [\"a.b.read.p99.9 <= 2ms\"]\n{step}"));
    assert!(
        said[0].starts_with("1:14: assert: 'b' is not a direction"),
        "{said:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn any_study_is_read_or_refused(parts in prop::collection::vec(0_usize..40, 0..40)) {
        const PARTS: [&str; 40] = [
            "[[step]]\n", "[[step.step]]\n", "[target]\n", "[target.host.a]\n", "path = \"/x\"\n",
            "job = \"mix.fio\"\n", "job = \"[${a}]\"\n", "for = { a = [1, 2] }\n", "for = { a = [] }\n",
            "for = { \"\" = 1 }\n", "name = \"${a}\"\n", "name = \"\"\n", "assert = [\"read.iops > 1\"]\n",
            "assert = [\"\", \".\", \"'\"]\n", "assert = [\"a.read.p99 < 1ms\"]\n", "step = 3\n", "step = [1]\n",
            "hosts = [\"a\"]\n", "purge = true\n", "prio = []\n", "prio = \"cdl-multi\"\n",
            "dldsplit = { 300 = 3 }\n", "dldsplit = 1\n", "qds = [0]\n", "snia = \"wsat\"\n", "range = \"900%\"\n",
            "stop-fills = nan\n", "cell = \"99999999999999h\"\n", "quick = false\n", "group = \"../x.toml\"\n",
            "precondition = \"seq\"\n", "config = \".\"\n", "command = \"${a}${b}${\"\n", "undo = 2020-01-01\n",
            "set = { bs = \"${a}\" }\n", "set = { x = {} }\n", "section = [\"mix\"]\n", "max-written = -1\n",
            "campaign = \".\"\n", "max-written = 99999999999999999999999\n",
        ];
        let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
        let _ = parse(&text);
    }

    #[test]
    fn any_condition_is_read_or_refused(text in "[a-z0-9.\"'<>= /µ]{0,40}", within in any::<bool>()) {
        if let Err((at, _)) = assertion::parse(&text, within) {
            prop_assert!(text.is_char_boundary(at), "{at}");
        }
    }
}
