//! Traps of the quick series, and of commands that write on other machines.

use fathom_testkit::{Sshd, free_port, require};

use super::*;
use crate::quick::support::SMALL_GROUP;

/// The folder `target` for a quick series whose first file is a link to an image.
fn quick_folder(program: &ProgramUnderTest, image: &Path) -> PathBuf {
    let folder = program.path().join("target/stb-testdir");
    fs::create_dir_all(&folder).unwrap();
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    fs::write(folder.join("CACHEDIR.TAG"), tag).unwrap();
    symlink(image, folder.join("2files.0")).unwrap();
    program.file("small.toml", SMALL_GROUP);
    folder
}

/// Test files of the quick series that are something else.
#[test]
fn the_quick_series_writes_to_no_image_and_removes_nothing_of_others() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let before = content(device.behind());
    let folder = quick_folder(&program, device.behind());
    for engine in ENGINES {
        let args = [
            "quick",
            "here",
            "target",
            "--group",
            "small.toml",
            "--engine",
            engine,
        ];
        refused(&program, &args, "is behind loop device");
        assert!(
            content(device.behind()) == before,
            "{engine}: the image has changed"
        );
    }
    fs::remove_file(folder.join("2files.0")).unwrap();
    // A tree that is mounted in the folder, of the same file system.
    let others = program.path().join("others");
    fs::create_dir(&others).unwrap();
    fs::write(others.join("1file.0"), "years of work").unwrap();
    let point = folder.join("4files.0");
    fs::create_dir(&point).unwrap();
    let bound = Command::new("mount")
        .arg("--bind")
        .args([&others, &point])
        .status()
        .unwrap();
    assert!(bound.success());
    let told = program.run(&["quick", "here", "target", "cleanup"]);
    let _ = Command::new("umount").arg(&point).status();
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    assert_eq!(
        fs::read_to_string(others.join("1file.0")).unwrap(),
        "years of work"
    );
    fs::remove_dir(&point).unwrap();
    program.good(&["quick", "here", "target", "cleanup"]);
    assert!(!folder.exists());
    let mut all = OpenOptions::new()
        .append(true)
        .open(others.join("1file.0"))
        .unwrap();
    all.write_all(b".").unwrap();
}

/// What a machine refuses, the one that drives it refuses too: over ssh, with every
/// command that takes `--hosts`.
#[test]
fn no_host_writes_to_a_device_in_use() {
    let sshd = require!(Sshd::new(&[]));
    let mut program = program();
    program.set("FATHOM_SSH", sshd.command());
    let mounted = require!(SmallFs::new(SIZE, "ro"));
    let before = content(mounted.device());
    let (shown, word) = (mounted.device().to_str().unwrap(), word(mounted.device()));
    let there = ["--hosts", sshd.host(), "--destroy", &word];
    let filename = format!("--filename={shown}");
    let options = ["--", "--name=a", "--rw=randwrite", "--size=1m", &filename];
    let reason = "is mounted on";
    for engine in ENGINES {
        let args = [&there[..], &options].concat();
        refused(&program, &job_run(engine, &args), reason);
        let prio = ["prio", "--dev", shown, "--baseline", "--rw", "randwrite"];
        let args = [&prio, &["--engine", engine][..], &there].concat();
        refused(&program, &args, reason);
    }
    no_campaign_writes(&program, shown, &there, reason);
    assert!(content(mounted.device()) == before, "{shown} has changed");

    // The image of a device that is set up is a file of the series there.
    let device = require!(LoopDevice::new(SIZE));
    let before = content(device.behind());
    quick_folder(&program, device.behind());
    let target = program.path().join("target");
    let group = ["quick", "--group", "small.toml", "--hosts", sshd.host()];
    for engine in ENGINES {
        let args = [&group[..], &["--engine", engine, target.to_str().unwrap()]].concat();
        refused(&program, &args, "is behind loop device");
        assert!(
            content(device.behind()) == before,
            "{engine}: it has changed"
        );
    }
}

/// Devices of fio servers, which nobody here can look at, need the word for each
/// server: without it no server is told a job.
#[test]
fn no_fio_server_writes_to_a_device_without_its_word() {
    let program = program();
    let device = require!(LoopDevice::new(SIZE));
    let before = content(device.path());
    let shown = device.path().to_str().unwrap();
    let address = format!("127.0.0.1,{}", free_port());
    let mut server = program.start(&["serve", &address]);
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.as_mut().unwrap());
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line:?}");
    let here = word(device.path());
    let other = format!("127.0.0.2:{shown}");
    for options in jobs(shown) {
        let text = options[1..].join("\n").replace("--", "");
        program.file("w.fio", &format!("[a]\n{text}\n"));
        for words in [&[][..], &["--destroy", &here], &["--destroy", &other]] {
            let args = [&["w.fio", "--client", &address], words].concat();
            refused(&program, &job_run("fio", &args), "--destroy 127.0.0.1");
        }
    }
    let log = format!(
        "fio version 2 iolog\n{shown} add\n{shown} open\n{shown} write 0 4096\n{shown} close\n"
    );
    let replayed = program.file("replayed", &log);
    let text = format!("[a]\nread_iolog={}\n", replayed.display());
    program.file("replay.fio", &text);
    let there = program.file(
        "there.fio",
        &format!("[a]\nrw=write\nsize=1m\nfilename={shown}\n"),
    );
    for args in [
        vec!["replay.fio", "--client", &address],
        vec![
            "--client",
            &address,
            "--remote-config",
            there.to_str().unwrap(),
        ],
    ] {
        refused(&program, &job_run("fio", &args), "--destroy 127.0.0.1");
    }
    fathom_testkit::signal(&server, "-TERM");
    let _ = server.wait();
    assert!(content(device.path()) == before, "{shown} has changed");
}
