//! Logs of I/Os that are replayed: they name their targets themselves.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use fathom_testkit::{SmallFs, require};

use super::{ENGINES, SIZE, content, job, program, refused};

/// A log leads nowhere where a job may not go: by name, by the numbers of
/// a block trace in either byte order, and by `replay_redirect`.
#[test]
fn a_replayed_log_writes_to_no_mounted_device() {
    let program = program();
    let mounted = require!(SmallFs::new(SIZE, "ro"));
    let device = mounted.device().to_str().unwrap();
    let before = content(mounted.device());
    let text = format!(
        "fio version 3 iolog\n0 y add\n0 {device} add\n0 y open\n0 {device} open\n\
         5 y read 0 4096\n9 {device} trim 0 4096\n9 {device} close\n"
    );
    program.file("text", &text);
    let number = fs::metadata(mounted.device()).unwrap().rdev();
    // The kernel's own numbers, in its own layout (include/linux/kdev_t.h).
    let number = (libc::major(number) << 20) | libc::minor(number);
    // Magic, sequence, time, sector, bytes, a queued write, process, device, CPU, error.
    let fields = [
        0x6561_7407,
        1,
        1,
        0,
        8,
        0,
        4096,
        2 << 16 | 1,
        1,
        number,
        0,
        0,
    ];
    fs::write(
        program.path().join("little"),
        fields.map(u32::to_le_bytes).concat(),
    )
    .unwrap();
    let mut swapped = fields;
    swapped.swap(2, 3);
    swapped.swap(4, 5);
    fs::write(
        program.path().join("big"),
        swapped.map(u32::to_be_bytes).concat(),
    )
    .unwrap();
    program.file("reads", "fio version 2 iolog\nx add\nx read 0 4096\n");
    for engine in ENGINES {
        for log in ["text", "little", "big"] {
            let log = format!("--read_iolog={log}");
            refused(&program, &job(engine, &["--name=a", &log]), "is mounted on");
        }
        let redirect = format!("--replay_redirect={device}");
        let options = ["--name=a", "--read_iolog=reads", &redirect];
        refused(&program, &job(engine, &options), "is mounted on");
    }
    // What is not understood may name any device.
    program.file("odd", "fio version 2 iolog\nx add\nx write 0 4096 0\n");
    for engine in ENGINES {
        let told = program.run(&job(engine, &["--name=a", "--read_iolog=odd"]));
        let said = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(4), "{said}");
        assert!(
            said.contains("odd:3:16: nothing is expected here"),
            "{said}"
        );
    }
    assert!(!program.path().join("x").exists());
    assert!(
        content(mounted.device()) == before,
        "the device has changed"
    );
}
