//! What becomes of runs: listed with their sizes, removed, archived, tagged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fathom_model::environment::{BlockDevice, Target};
use fathom_model::{Environment, Event, Failure, FailureKind, JobResult, Results, RunStatus};
use fathom_record::{Header, Writer};
use serde_json::Value;

fn fathom(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(words)
        .current_dir(dir)
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(dir: &Path, words: &[&str]) -> Value {
    let output = fathom(dir, &[words, &["--json"]].concat());
    assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with runs of these names; their folders.
fn place(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let runs = names.iter().map(|name| {
        let job =
            format!("[{name}]\nrw=randread\nfilename=/dev/sim\nsize=1M\nruntime=2\ntime_based\n");
        fs::write(dir.path().join(format!("{name}.fio")), job).unwrap();
        let job = format!("{name}.fio");
        let words = ["job", "run", &job, "--engine", "sim", "--quiet"];
        let output = fathom(dir.path(), &words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let entries = fs::read_dir(dir.path().join("fathom-runs")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let called = format!("-{name}-");
        let is_it = |path: &PathBuf| path.to_string_lossy().contains(&called);
        paths.find(is_it).unwrap()
    });
    let runs = runs.collect();
    (dir, runs)
}

fn id(run: &Path) -> &str {
    run.file_name().unwrap().to_str().unwrap()
}

#[test]
fn runs_are_listed_with_their_sizes_and_tags() {
    let (dir, runs) = place(&["one", "two"]);
    fs::write(runs[0].join("raw/large"), vec![0; 3 << 20]).unwrap();
    let all = json(dir.path(), &["runs"]);
    assert!(
        all["runs"][0]["folder_bytes"].as_u64() > Some(3 << 20),
        "{all}"
    );
    let text = stdout(&fathom(dir.path(), &["runs"]));
    assert!(text.contains("size") && text.contains("3.00 MiB"), "{text}");
    let one = json(dir.path(), &["runs", "two"]);
    assert_eq!(one["runs"].as_array().unwrap().len(), 1, "{one}");
    assert_eq!(code(&fathom(dir.path(), &["runs", "three"])), 5);
    // What is done with runs has no options of the list.
    let output = fathom(dir.path(), &["runs", "-n", "1", "rm", "two", "--yes"]);
    assert_eq!(code(&output), 2);
    assert!(runs[1].exists());
}

#[test]
fn runs_are_removed_after_a_word_and_no_others() {
    let (dir, runs) = place(&["one", "two", "three"]);
    let dir = dir.path();
    let [one, two, three] = [&runs[0], &runs[1], &runs[2]];
    let removed = |words: &[&str]| fathom(dir, &[&["runs", "rm"], words].concat());
    // Nobody can be asked.
    let output = removed(&["one"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("--yes"));
    let dry = json(dir, &["runs", "rm", "one", "--dry-run"]);
    assert_eq!(dry["runs"][0]["id"], id(one));
    assert_eq!(dry["runs"][0]["removed"], false);
    assert!(dry["runs"][0]["bytes"].as_u64() > Some(100));
    // One that goes on: nothing at all is removed.
    let writer = Writer::reopen(two).unwrap();
    let output = removed(&["one", "two", "--yes"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(one.exists() && two.exists());
    drop(writer);
    // A part that fits several, a run elsewhere, a link.
    assert_eq!(code(&removed(&["2", "--yes"])), 5);
    let elsewhere = dir.join("elsewhere");
    fs::rename(three, &elsewhere).unwrap();
    assert_eq!(code(&removed(&["elsewhere", "--yes"])), 4);
    std::os::unix::fs::symlink(&elsewhere, three).unwrap();
    assert_eq!(code(&removed(&[id(three), "--yes"])), 4);
    assert!(elsewhere.join("events.jsonl").exists());
    let output = removed(&["one", id(one), "--yes"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("removed 1 run"), "{output:?}");
    assert!(!one.exists() && two.exists());
    let names = fs::read_dir(dir.join("fathom-runs")).unwrap();
    assert!(
        !names
            .flatten()
            .any(|it| it.file_name().to_string_lossy().starts_with('.'))
    );
}

#[test]
fn an_archive_is_read_where_it_lies() {
    let (dir, runs) = place(&["one", "two"]);
    let dir = dir.path();
    let shown = |words: &[&str]| {
        let output = fathom(dir, words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let before = ["one", "two"].map(|run| json(dir, &["show", run]));
    let written = json(
        dir,
        &["runs", "archive", "one", "two", "-o", "both.tar.zst"],
    );
    assert_eq!(written["runs"].as_array().unwrap().len(), 2);
    shown(&["runs", "archive", "one"]);
    let one = format!("{}.tar.zst", id(&runs[0]));
    assert!(
        fathom(dir, &["runs", "archive", "one", "two"])
            .status
            .code()
            == Some(2)
    );
    fs::remove_dir_all(dir.join("fathom-runs")).unwrap();

    assert_eq!(json(dir, &["show", &one]), before[0]);
    assert_eq!(json(dir, &["show", "both.tar.zst/one"]), before[0]);
    assert_eq!(json(dir, &["show", "both.tar.zst/two"]), before[1]);
    // Of several the last, as of a folder.
    assert_eq!(json(dir, &["show", "both.tar.zst"]), before[1]);
    let all = json(dir, &["runs", "both.tar.zst"]);
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    assert_eq!(json(dir, &["runs", &one])["runs"][0]["id"], id(&runs[0]));
    let compared = json(dir, &["compare", &one, "both.tar.zst/two"]);
    assert_eq!(compared["a"][0], id(&runs[0]));
    // What is made of it lies here.
    shown(&["report", &one]);
    assert!(dir.join(format!("{}.report.html", id(&runs[0]))).is_file());
    // Neither is it a run to go on with, nor one to remove or to tag.
    for words in [
        &["runs", "rm", &one, "--yes"] as &[&str],
        &["runs", "tag", &one, "a=b"],
        &["resume", &one],
    ] {
        assert_eq!(code(&fathom(dir, words)), 5, "{words:?}");
    }
    fs::write(dir.join("bad.tar.zst"), [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).unwrap();
    let output = fathom(dir, &["show", "bad.tar.zst"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    // As tar reads it.
    let tar = Command::new("tar")
        .args(["--zstd", "-tf", &one])
        .current_dir(dir)
        .output()
        .unwrap();
    let listed = String::from_utf8(tar.stdout).unwrap();
    assert!(
        !tar.status.success() || listed.contains("events.jsonl"),
        "{listed}"
    );
}

#[test]
fn an_archive_leaves_nothing_behind() {
    let (dir, runs) = place(&["one"]);
    let dir = dir.path();
    let tmp = dir.join("tmp");
    fs::create_dir(&tmp).unwrap();
    fathom(dir, &["runs", "archive", "one"]);
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["show", &format!("{}.tar.zst", id(&runs[0]))])
        .current_dir(dir)
        .env("TMPDIR", &tmp)
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
    // One that goes on is not archived.
    let _writer = Writer::reopen(&runs[0]).unwrap();
    let output = fathom(dir, &["runs", "archive", "one", "-o", "x.tar.zst"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(!dir.join("x.tar.zst").exists());
}

#[test]
fn tags_and_notes_come_after_the_fact() {
    let (dir, runs) = place(&["one"]);
    let dir = dir.path();
    let log = fs::read(runs[0].join("events.jsonl")).unwrap();
    assert_eq!(code(&fathom(dir, &["history", "--tag", "bios=old"])), 5);
    let words = [
        "runs",
        "tag",
        "one",
        "bios=old",
        "fan=a b",
        "--note",
        "loose \u{1b}[31mcable",
    ];
    let row = json(dir, &words);
    assert_eq!(row["runs"][0]["tags"]["fan"], "a b", "{row}");
    assert_eq!(code(&fathom(dir, &["history", "--tag", "bios=old"])), 0);
    assert_eq!(
        code(&fathom(dir, &["runs", "tag", "one", "--remove", "bios"])),
        0
    );
    assert_eq!(code(&fathom(dir, &["history", "--tag", "bios=old"])), 5);
    assert_eq!(
        code(&fathom(dir, &["runs", "tag", "one", "--remove", "bios"])),
        2
    );
    assert_eq!(code(&fathom(dir, &["runs", "tag", "one", "bios"])), 2);
    let text = stdout(&fathom(dir, &["show", "one"]));
    assert!(
        text.contains("noted at 20") && text.contains("cable"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(fs::read(runs[0].join("events.jsonl")).unwrap(), log);
}

/// What a run told, once it has.
fn told(dir: &Path, words: &[&str]) -> (i32, String, String) {
    let file = dir.join("told");
    let _ = fs::remove_file(&file);
    let command = "env | grep ^FATHOM_ | sort >told.part && mv told.part told";
    let output = fathom(dir, &[words, &["--notify", command]].concat());
    let text = fs::read_to_string(&file).unwrap_or_default();
    (code(&output), text, stderr(&output))
}

#[test]
fn somebody_is_told_how_a_run_ended() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let body = "rw=randread\nfilename=/dev/sim\nsize=1M\nruntime=2\ntime_based\n";
    // The name of a run is that of its file: never read by a shell.
    let file = "$(touch hit) `touch hit`.fio";
    fs::write(dir.join(file), format!("[a]\n{body}")).unwrap();
    let job = ["job", "run", file, "--engine", "sim", "-q"];
    let (code, text, _) = told(dir, &job);
    assert_eq!(code, 0, "{text}");
    for line in [
        "FATHOM_STATUS=complete",
        "FATHOM_VERDICT=valid",
        "FATHOM_COMMAND=job run",
        "FATHOM_EXIT=0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    assert!(
        text.contains("FATHOM_MESSAGE=") && text.contains("FATHOM_DIR=/"),
        "{text}"
    );
    assert!(!dir.join("hit").exists());
    let sim = "format = \"fathom-sim-device\"\nversion = 1\n[fail]\nafter_s = 1\n";
    fs::write(dir.join("bad.toml"), sim).unwrap();
    let (code, text, _) = told(dir, &[&job as &[&str], &["--sim", "bad.toml"]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("FATHOM_STATUS=failed"), "{text}");
    assert!(text.contains("FATHOM_EXIT=1"), "{text}");
    // What was refused, or only shown, has not run.
    let (_, text, _) = told(dir, &["job", "run", "nothing.fio"]);
    assert_eq!(text, "");
    let (_, text, _) = told(dir, &[&job as &[&str], &["--dry-run"]].concat());
    assert_eq!(text, "");
    let (code, _, stderr) = told(dir, &["show"]);
    assert_eq!(code, 2, "{stderr}");
    // That it cannot be told is no failure of the run.
    let output = fathom(dir, &[&job as &[&str], &["--notify", "exit 3"]].concat());
    assert_eq!(self::code(&output), 0);
    assert!(
        self::stderr(&output).contains("--notify: 'exit 3' ended with"),
        "{output:?}"
    );
}

/// A run whose texts and fields are full of names.
fn named_run(runs: &Path) -> PathBuf {
    let device = BlockDevice {
        name: "nvme0n1".into(),
        model: Some("ACME Fast".into()),
        serial: Some("S4EWNX0R123456".into()),
        by_id: vec![
            "nvme-ACME_Fast_S4EWNX0R123456".into(),
            "wwn-0x5000c500a1b2c3d4".into(),
        ],
        ..BlockDevice::default()
    };
    let header = Header {
        environment: Some(Environment {
            hostname: "warehouse1.corp.acme.example".into(),
            targets: vec![Target {
                path: "/srv/customer-x/disk.img".into(),
                device: Some(device),
                ..Target::default()
            }],
            ..Environment::default()
        }),
        ..Header::new("nightly of warehouse1", "job run")
    };
    let mut writer = Writer::create(runs, &header).unwrap();
    let text = "alice@warehouse1.corp.acme.example: S4EWNX0R123456 at /srv/customer-x/disk.img \
                (0x5000c500a1b2c3d4), 10.20.30.40, /home/alice/a.fio";
    let (name, hosts) = ("mix on warehouse1".to_owned(), Vec::new());
    let names = vec![name.clone()];
    writer.append(&Event::Jobs { names, hosts }).unwrap();
    writer.append(&Event::Note { text: text.into() }).unwrap();
    let mut failure = Failure::new(FailureKind::Io, text);
    failure.subject = Some("/srv/customer-x/disk.img".into());
    writer.append(&Event::Failure(failure)).unwrap();
    let mut job = JobResult {
        name,
        runtime_ms: Some(1000),
        ..JobResult::default()
    };
    job.options
        .insert("filename".into(), "/srv/customer-x/disk.img".into());
    let results = Results {
        jobs: vec![job],
        ..Results::default()
    };
    writer
        .append(&Event::Finished {
            results: Box::new(results),
        })
        .unwrap();
    let dir = writer.finish(RunStatus::Complete).unwrap();
    fs::create_dir_all(dir.join("jobs")).unwrap();
    let job = format!("# {text}\n[mix]\nfilename=/srv/customer-x/disk.img\n");
    fs::write(dir.join("jobs/warehouse1.fio"), job).unwrap();
    dir
}

#[test]
fn what_is_given_away_does_not_say_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = named_run(&dir.join("fathom-runs"));
    let secrets = [
        "S4EWNX0R123456",
        "5000c500a1b2c3d4",
        "warehouse1",
        "corp.acme",
        "alice",
        "customer-x",
        "10.20.30.40",
    ];
    let shown = |words: &[&str]| {
        let output = fathom(dir, words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    };
    let holds = |bytes: &[u8], secret: &str| {
        let bytes = bytes.to_ascii_lowercase();
        let secret = secret.to_ascii_lowercase();
        bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes())
    };
    shown(&["report", "--redact"]);
    let page = fs::read(run.join("report.redacted.html")).unwrap();
    // The test itself can see them.
    shown(&["report"]);
    let open = fs::read(run.join("report.html")).unwrap();
    for secret in &secrets[2..] {
        assert!(holds(&open, secret), "{secret} is not in the open report");
    }
    shown(&[
        "runs",
        "tag",
        "nightly",
        "rack=warehouse1",
        "--note",
        "alice was here",
    ]);
    shown(&[
        "runs",
        "archive",
        "nightly",
        "--redact",
        "-o",
        "public.tar.zst",
    ]);
    let archive = fs::read(dir.join("public.tar.zst")).unwrap();
    let archive = zstd::decode_all(&archive[..]).unwrap();
    for secret in secrets {
        assert!(!holds(&page, secret), "{secret} is in the report");
        assert!(!holds(&archive, secret), "{secret} is in the archive");
    }
    assert!(holds(&page, "serial-1") || holds(&page, "host-1"));
    let document = json(dir, &["show", "public.tar.zst"]);
    assert_eq!(document["environment"]["hostname"], "host-1");
    assert_eq!(
        document["environment"]["targets"][0]["device"]["model"],
        "ACME Fast"
    );
    let all = json(dir, &["runs", "public.tar.zst"]);
    assert_eq!(all["runs"][0]["tags"]["rack"], "host-1");
}
