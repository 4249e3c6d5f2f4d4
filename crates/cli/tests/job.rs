//! `fathom job check`, `show` and `from-cmdline` as a person uses them.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::path::Path;

use assert_cmd::Command;

fn fathom(folder: &Path, args: &[&str]) -> std::process::Output {
    Command::cargo_bin("fathom")
        .unwrap()
        .args(args)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn out(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const JOBS: &str = "\
[global]
ioengine=libaio
size=1m
[a]
rw=randread
userspace_reap
[b]
ioengine=psync
description=two words
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// fio runs both and says nothing, so a run does too; a check refuses it.
#[test]
fn a_section_named_twice_is_refused_by_a_check_and_run() {
    let folder = folder(&[(
        "twice.fio",
        "[a]\nrw=read\nsize=64k\n[a]\nrw=read\nsize=64k\n",
    )]);
    let output = fathom(folder.path(), &["job", "check", "twice.fio"]);
    assert_eq!(output.status.code(), Some(3), "{}", out(&output));
    assert!(out(&output).contains("twice.fio:4:1: error: a second section [a]"));
    let output = fathom(folder.path(), &["job", "run", "--dry-run", "twice.fio"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).contains("warning: a second section [a]"));
}

#[test]
fn check_reports_every_error_of_every_file() {
    let folder = folder(&[
        ("good.fio", JOBS),
        ("bad.fio", "[a]\nsize=1m\nbs=4q\niodepht=4\nrw=raed\n"),
    ]);
    let output = fathom(
        folder.path(),
        &["job", "check", "good.fio", "bad.fio", "none.fio"],
    );
    assert_eq!(output.status.code(), Some(3));
    insta::assert_snapshot!(out(&output));

    let output = fathom(folder.path(), &["job", "check", "good.fio"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_unknown_option_is_a_warning_unless_strict() {
    let folder = folder(&[("x.fio", "[a]\nsize=1m\nnew_in_fio_9=4\n")]);
    let output = fathom(folder.path(), &["job", "check", "x.fio"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(out(&output).contains("3:1: warning: unknown option new_in_fio_9"));
    let output = fathom(folder.path(), &["job", "check", "--strict", "x.fio"]);
    assert_eq!(output.status.code(), Some(3));
}

/// fio names more I/O engines than it can load.
#[test]
fn an_engine_that_nobody_has_is_an_error_where_fio_is() {
    let jobs = "[a]\nioengine=nosuchengine\nsize=1m\n[b]\nioengine=libaio\nsize=1m\n";
    let folder = folder(&[("x.fio", jobs)]);
    let output = fathom(folder.path(), &["job", "check", "x.fio"]);
    if fathom_testkit::program("fio").is_ok() {
        assert_eq!(output.status.code(), Some(3), "{}", out(&output));
        let said =
            "x.fio:2:1: error: neither the fio here nor the native engine has 'nosuchengine'";
        assert!(out(&output).contains(said), "{}", out(&output));
    } else {
        assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    }
}

#[test]
fn check_prints_one_document() {
    let folder = folder(&[("x.fio", "[a]\nsize=1m\niodepht=4\ndirect=yes\n")]);
    let output = fathom(folder.path(), &["job", "check", "--json", "x.fio"]);
    assert_eq!(output.status.code(), Some(3));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["errors"], 1);
    assert_eq!(document["diagnostics"][0]["suggestion"], "iodepth");
    assert_eq!(document["diagnostics"][1]["line"], 4);
    assert_eq!(document["diagnostics"][1]["column"], 8);
}

#[test]
fn show_resolves_and_overrides() {
    let folder = folder(&[("x.fio", JOBS)]);
    let output = fathom(folder.path(), &["job", "show", "x.fio"]);
    insta::assert_snapshot!(out(&output));
    let args = [
        "job",
        "show",
        "x.fio",
        "--section",
        "b",
        "--set",
        "size=4k",
        "--cmdline",
    ];
    let expected = "fio --name=b --ioengine=psync --description='two words' --size=4k\n";
    assert_eq!(out(&fathom(folder.path(), &args)), expected);
}

#[test]
fn show_refuses_what_cannot_run() {
    let folder = folder(&[("x.fio", JOBS), ("bad.fio", "[a]\nsize=1q\n")]);
    for (args, message) in [
        (vec!["job", "show", "bad.fio"], "unknown unit 'q'"),
        (
            vec!["job", "show", "x.fio", "--section", "c"],
            "no job section [c] in x.fio; it has a, b",
        ),
        (
            vec!["job", "show", "x.fio", "--set", "rw=foo"],
            "rw cannot be 'foo'",
        ),
        (
            vec!["job", "show", "none.fio"],
            "cannot read the job file none.fio",
        ),
    ] {
        let output = fathom(folder.path(), &args);
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        assert!(err(&output).contains(message), "{}", err(&output));
        assert_eq!(out(&output), "");
    }
}

#[test]
fn a_command_line_becomes_a_job_file_and_goes_back() {
    let folder = folder(&[]);
    let options = [
        "--rw=read",
        "--name=a",
        "--size",
        "1m",
        "--name=b",
        "--time_based",
        "--runtime=3",
    ];
    let mut args = vec!["job", "from-cmdline", "--"];
    args.extend(options);
    let text = out(&fathom(folder.path(), &args));
    assert_eq!(
        text,
        "[global]\nrw=read\n\n[a]\nsize=1m\n\n[b]\ntime_based\nruntime=3\n"
    );
    std::fs::write(folder.path().join("x.fio"), text).unwrap();
    let back = out(&fathom(
        folder.path(),
        &["job", "show", "x.fio", "--cmdline"],
    ));
    assert_eq!(
        back,
        "fio --name=a --rw=read --size=1m --name=b --rw=read --time_based --runtime=3\n"
    );
}

#[test]
fn an_option_of_set_is_told_once_and_by_its_own_place() {
    let folder = folder(&[("x.fio", JOBS)]);
    let show = |set: &str| fathom(folder.path(), &["job", "show", "x.fio", "--set", set]);
    let wrong = show("bs=4q");
    assert_eq!(wrong.status.code(), Some(3));
    assert_eq!(err(&wrong).matches("unknown unit 'q'").count(), 1);
    assert!(err(&wrong).starts_with("--set:1:5: error: "));
    let unknown = show("iodepht=4");
    assert_eq!(unknown.status.code(), Some(0));
    assert_eq!(err(&unknown).matches("warning: unknown option").count(), 1);
}

#[test]
fn a_file_that_is_not_there_has_no_line() {
    let folder = folder(&[]);
    let output = fathom(folder.path(), &["job", "check", "none.fio"]);
    assert!(out(&output).starts_with("none.fio: error: cannot be read"));
}

#[test]
fn a_comment_in_another_encoding_keeps_no_job_from_running() {
    let folder = folder(&[]);
    let file = folder.path().join("x.fio");
    std::fs::write(&file, b"; caf\xe9\n[a]\nsize=1m\n").unwrap();
    let output = fathom(folder.path(), &["job", "check", "x.fio"]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("1:6: warning: not UTF-8"));
    std::fs::write(&file, b"[a]\nsize=1m\nfilename=caf\xe9\n").unwrap();
    let output = fathom(folder.path(), &["job", "check", "x.fio"]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn an_option_of_fathom_behind_the_dashes_is_told_from_one_of_fio() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--name=a", "--rw=read", "--size=1m", "-q"];
    let output = fathom(
        folder.path(),
        &[&["job", "from-cmdline", "--"], &args[..]].concat(),
    );
    let told = err(&output) + &out(&output);
    let said = "unknown option q; kept as it is. Options behind '--' are fio's; those of fathom itself stand before it";
    assert!(told.contains(said), "{told}");
}
