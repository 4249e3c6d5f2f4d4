use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::JobFile;

fn jobs(text: &str) -> Vec<JobSpec> {
    JobFile::parse(text, Path::new("test.fio"), &|_| None)
        .file
        .jobs()
}

/// What is done to each path of a job, in the order of their names.
fn actions(text: &str, dir: &Path) -> Vec<(String, JobPathUse)> {
    let mut found: Vec<_> = all(&jobs(text), dir)
        .unwrap()
        .into_iter()
        .filter(|used| used.path != dir)
        .map(|used| {
            let below = used.path.strip_prefix(dir).unwrap_or(&used.path);
            (below.display().to_string(), used.action)
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn action(text: &str, dir: &Path) -> JobPathUse {
    match &actions(text, dir)[..] {
        [(_, action)] => *action,
        other => panic!("{other:?}"),
    }
}

const M: u64 = 1 << 20;

#[test]
fn a_file_too_short_for_reads_is_laid_out_and_one_long_enough_is_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::File::create(dir.path().join("x"))
        .unwrap()
        .set_len(16 * M)
        .unwrap();
    let of = |options: &str| action(&format!("[a]\nfilename=x\n{options}\n"), dir.path());
    let longer = |to: u64| JobPathUse::LayOut {
        from: Some(16 * M),
        to,
    };
    assert_eq!(of("rw=randread\nsize=20m"), longer(20 * M));
    assert_eq!(of("rw=read\nsize=16m"), JobPathUse::Read);
    assert_eq!(of("rw=read\nsize=50%"), JobPathUse::Read);
    assert_eq!(of("rw=read"), JobPathUse::Read);
    assert_eq!(of("rw=read\noffset=4m\nsize=16m"), longer(20 * M));
    assert_eq!(
        of("rw=read\nsize=10m\noffset_increment=8m\nnumjobs=3"),
        longer(26 * M)
    );
    assert_eq!(of("rw=read\nfilesize=32m\nsize=1m"), longer(32 * M));
    assert_eq!(of("rw=read\nfilesize=1m-64m"), JobPathUse::Read);
    assert_eq!(of("rw=read\nsize=20m\ncreate_on_open=1"), JobPathUse::Read);
    assert_eq!(of("rw=randrw\nsize=20m"), JobPathUse::Write);
    let missing = action("[a]\nfilename=y\nrw=read\nsize=20m\n", dir.path());
    assert_eq!(
        missing,
        JobPathUse::LayOut {
            from: None,
            to: 20 * M
        }
    );
    // Of several jobs the longest counts.
    let two = "[a]\nfilename=x\nsize=20m\n[b]\nfilename=x\nsize=24m\n[c]\nfilename=x\n";
    let found = actions(two, dir.path());
    assert_eq!(
        found,
        [("x".into(), longer(24 * M)), ("x".into(), JobPathUse::Read)]
    );
}

#[test]
fn a_share_of_a_file_that_is_too_short_is_no_length() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), [1; 1000]).unwrap();
    let told = all(&jobs("[a]\nfilename=x\noffset=50%\nsize=4k\n"), dir.path());
    assert_eq!(told.unwrap_err().kind, FailureKind::NoSize);
}

#[test]
fn a_tree_is_all_its_files_and_neither_links_nor_what_they_lead_to() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("t");
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    fs::write(tree.join("one"), "x").unwrap();
    fs::write(tree.join("deep/er/two"), "x").unwrap();
    symlink("/dev/null", tree.join("link")).unwrap();
    symlink("..", tree.join("deep/up")).unwrap();
    let found = actions("[a]\nopendir=t\nrw=write\n", dir.path());
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["t/deep/er/two", "t/one"]);
    assert!(found.iter().all(|(_, action)| *action == JobPathUse::Write));
    assert!(all(&jobs("[a]\nopendir=none\n"), dir.path()).is_err());
}

/// `:` parts the names of a list; a tree is one folder, and `directory` may stand
/// before its files.
#[test]
fn a_tree_is_one_folder_whatever_its_name_is() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["c:d", "c", "d", "e\\:f", "below/c:d"] {
        fs::create_dir_all(dir.path().join(folder)).unwrap();
        fs::write(dir.path().join(folder).join("x"), "x").unwrap();
    }
    let paths = |options: &str| -> Vec<String> {
        let text = format!("[a]\nrw=write\n{options}\n");
        let found = actions(&text, dir.path()).into_iter();
        found.map(|(path, _)| path).collect()
    };
    assert_eq!(paths("opendir=c:d"), ["c:d/x"]);
    assert_eq!(paths("opendir=e\\:f"), ["e\\:f/x"]);
    assert_eq!(
        paths("directory=below:nowhere\nopendir=c:d"),
        ["below/c:d/x", "c:d/x"]
    );
}

#[test]
fn of_a_replayed_log_the_names_count_in_the_folder_too() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    for name in ["d/x", "x", "y"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let log = dir.path().join("log");
    let lines = "fio version 2 iolog\nx add\nx open\nx write 0 4\ny add\ny read 0 1\n";
    fs::write(&log, lines).unwrap();
    let text = format!("[a]\ndirectory=d\nread_iolog={}\n", log.display());
    let found = actions(&text, dir.path());
    let written = found
        .iter()
        .filter(|(_, action)| *action == JobPathUse::Write);
    let written: Vec<&str> = written.map(|(path, _)| path.as_str()).collect();
    assert_eq!(written, ["d/x", "x"]);
    let found = actions(&format!("{text}replay_redirect=x\n"), dir.path());
    let written = found
        .iter()
        .filter(|(_, action)| *action == JobPathUse::Write);
    let written: Vec<&str> = written.map(|(path, _)| path.as_str()).collect();
    assert_eq!(written, ["d/x", "x"]);
}

#[test]
fn all_files_of_a_format_that_are_there_are_found_however_many_it_names() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["x.1.9999", "x.2.0", "x.0.20000", "y.0.1"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let text = "[a]\nrw=write\nnumjobs=2\nnrfiles=10000\nfilename_format=x.$jobnum.$filenum\n";
    let found = actions(text, dir.path());
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["x.0.0", "x.1.9999"]);
    let more = text.replace("10000", "1000000");
    assert!(all(&jobs(&more), dir.path()).is_err());
}

#[test]
fn generated_files_that_are_there_are_found_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.0.0", "a.7.12", "a.x.0", "b.0.0", "a.0"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let found = actions("[a]\nrw=write\nsize=1m\n", dir.path());
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["a.0.0", "a.7.12"]);
}

#[test]
fn logs_and_states_are_found_with_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "x_slat.3.log",
        "x_slat.4.log.fz",
        "x_other.1.log",
        "local-a-2-verify.state",
        "f.4096.expected",
    ] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let text = "[a]\nfilename=f\nrw=write\nverify=crc32c\nwrite_lat_log=x\nwrite_iops_log\n\
                verify_dump=1\nexec_prerun=true\nexec_postrun=true\n";
    let logs: Vec<String> = actions(text, dir.path())
        .into_iter()
        .filter(|(_, action)| *action == JobPathUse::Log)
        .map(|(path, _)| path)
        .collect();
    let wanted = [
        "a.0.received",
        "a.postrun.txt",
        "a.prerun.txt",
        "a_iops.1.log",
        "f.4096.expected",
        "local-a-0-verify.state",
        "local-a-2-verify.state",
        "x_clat.1.log",
        "x_lat.1.log",
        "x_slat.1.log",
        "x_slat.3.log",
        "x_slat.4.log.fz",
    ];
    assert_eq!(logs, wanted);
}
