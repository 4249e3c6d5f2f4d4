//! Files that were there before a run, and are not its own.

use std::fs;

use super::{ENGINES, program};

fn refused(output: &std::process::Output, said: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(told.contains(said), "{told}");
}

#[test]
fn a_file_that_is_older_than_the_run_is_deleted_by_no_job_without_its_word() {
    for engine in ENGINES {
        for how in [
            "rw=read\nunlink=1",
            "rw=write\nunlink=1",
            "ioengine=filedelete\nrw=read",
        ] {
            let program = program();
            let text = format!("[a]\nfilename=precious\nsize=64k\n{how}\n");
            program.file("a.fio", &text);
            program.file("precious", &"x".repeat(64 << 10));
            let run = |more: &[&str]| {
                program
                    .run(&[&["job", "run", "a.fio", "-q", "--engine", engine][..], more].concat())
            };
            let precious = program.path().join("precious");
            for more in [&[][..], &["--destroy", "other"], &["--dry-run"]] {
                refused(&run(more), "would delete");
                assert_eq!(
                    fs::read(&precious).unwrap(),
                    vec![b'x'; 64 << 10],
                    "{engine} {how}"
                );
            }
            assert!(program.records().is_empty());
            let done = run(&["--destroy", "precious"]);
            assert!(done.status.success(), "{engine} {how}: {done:?}");
            assert!(!precious.exists(), "{engine} {how}");
        }
        // Its own files, by fio's names for them, and those of its own run.
        let program = program();
        program.file("own.fio", "[a]\nrw=write\nsize=64k\nunlink=1\n");
        program.file("a.0.0", "of a run before");
        program.good(&["job", "run", "own.fio", "-q", "--engine", engine]);
        assert!(!program.path().join("a.0.0").exists());
        let job = |name: &str, more: &str| {
            program.file(
                &format!("{name}.fio"),
                &format!("[{name}]\nfilename=f\nsize=64k\n{more}\n"),
            );
        };
        job("makes", "rw=write");
        job("deletes", "rw=read\nunlink=1");
        let both = [
            "job",
            "run",
            "makes.fio",
            "deletes.fio",
            "-q",
            "--engine",
            engine,
        ];
        program.good(&both);
        assert!(!program.path().join("f").exists());
    }
}

#[test]
fn a_log_replaces_no_file_that_is_not_such_a_log() {
    for engine in ENGINES {
        for (option, name) in [
            ("write_bw_log=l", "l_bw.1.log"),
            ("write_iops_log=l", "l_iops.1.log"),
            ("write_lat_log=l", "l_clat.1.log"),
            ("write_hist_log=l\nlog_hist_msec=100", "l_clat_hist.1.log"),
            ("write_iolog=l", "l"),
            (
                "verify=crc32c\nverify_state_save=1",
                "local-a-0-verify.state",
            ),
        ] {
            let program = program();
            let text = format!("[a]\nrw=write\nsize=64k\n{option}\n");
            program.file("a.fio", &text);
            program.file(name, "years of work\n");
            let run = ["job", "run", "a.fio", "-q", "--engine", engine];
            refused(&program.run(&run), "no log of this kind");
            let kept = program.path().join(name);
            assert_eq!(
                fs::read_to_string(&kept).unwrap(),
                "years of work\n",
                "{engine} {name}"
            );
            // A run's own logs are replaced by those of the next.
            fs::remove_file(&kept).unwrap();
            program.good(&run);
            program.good(&run);
        }
    }
}

#[test]
fn a_file_with_other_names_is_made_longer_by_no_job_that_reads_it() {
    for engine in ENGINES {
        let program = program();
        program.file("a.fio", "[a]\nrw=read\nfilename=short\nsize=64k\n");
        let short = program.file("short", "short");
        let other = program.path().join("other");
        fs::hard_link(&short, &other).unwrap();
        let run = ["job", "run", "a.fio", "-q", "--engine", engine];
        refused(&program.run(&run), "2 names");
        assert_eq!(fs::read_to_string(&other).unwrap(), "short");
        fs::remove_file(&other).unwrap();
        program.good(&run);
    }
}

#[test]
fn the_files_of_the_kernel_are_no_targets() {
    let before = fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap();
    for engine in ENGINES {
        for target in ["/proc/sys/vm/dirty_ratio", "/sys/power/state", "/proc/new"] {
            for how in ["rw=read", "rw=write"] {
                let program = program();
                let text = format!("[a]\n{how}\nfilename={target}\nsize=4k\n");
                program.file("a.fio", &text);
                let output = program.run(&["job", "run", "a.fio", "-q", "--engine", engine]);
                refused(&output, "a file of the kernel");
            }
        }
    }
    assert_eq!(
        fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap(),
        before
    );
}

/// All of a plan is judged before its first step, and not only the step that would do it.
#[test]
fn what_a_later_step_would_do_to_files_of_others_is_refused_before_the_first() {
    let program = program();
    program.file("precious", &"x".repeat(64 << 10));
    let [makes, deletes] = ["rw=write", "rw=read\nunlink=1"];
    let step = |file: &str, how: &str| {
        let text = format!("[{file}]\nfilename={file}\nsize=64k\n{how}\n");
        format!("[[step]]\nname = \"{file}\"\njob = \"\"\"\n{text}\"\"\"\n")
    };
    let plan = [step("new", makes), step("precious", deletes)].concat();
    program.file("plan.toml", &plan);
    program.good(&["init", "campaign"]);
    program.good(&["config", "-C", "campaign", "defconfig", "debug-quick"]);
    let precious = program.path().join("precious");
    let target = format!("DUT_FILENAME={}", precious.display());
    program.good(&["config", "-C", "campaign", "set", &target]);
    let template = program.path().join("campaign/templates/performance.fio");
    let text = fs::read_to_string(&template).unwrap();
    fs::write(
        &template,
        text.replace("bs={{ bs }}\n", "bs={{ bs }}\nunlink=1\n"),
    )
    .unwrap();
    let runs = [
        &["run", "plan.toml"][..],
        &["run", "plan.toml", "--dry-run"],
        &["run", "-C", "campaign"],
    ];
    for engine in ENGINES {
        for run in runs {
            let output = program.run(&[run, &["--engine", engine]].concat());
            refused(&output, "would delete");
            assert!(program.records().is_empty(), "{run:?}");
            assert!(!program.path().join("new").exists(), "{run:?}");
            assert_eq!(fs::read(&precious).unwrap(), vec![b'x'; 64 << 10]);
        }
    }
    program.good(&[
        "run",
        "plan.toml",
        "--engine",
        "native",
        "--destroy",
        "precious",
    ]);
    assert!(!precious.exists());
}

#[test]
fn what_a_run_prints_replaces_nothing_but_such_output() {
    for (engine, format) in [("fio", "json"), ("native", "normal"), ("native", "terse")] {
        let program = program();
        program.file("a.fio", "[a]\nrw=write\nsize=64k\n");
        let format = format!("--output-format={format}");
        let run = [
            "job", "run", "a.fio", "-q", "--output", "told", "--engine", engine, &format,
        ];
        for others in ["years of work\n", "{\"years\": \"of work\"}\n"] {
            let told = program.file("told", others);
            refused(&program.run(&run), "no output of this format");
            assert_eq!(fs::read_to_string(&told).unwrap(), others, "{engine}");
            assert!(!program.path().join("a.0.0").exists(), "{engine}");
        }
        fs::remove_file(program.path().join("told")).unwrap();
        program.good(&run);
        program.good(&run);
    }
}
