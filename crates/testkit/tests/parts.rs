//! The parts do what they promise, and go away.

use std::fs;
use std::path::Path;

use fathom_testkit::{FaultFs, Loop, Mounted, skip};

#[test]
fn faults_strike_where_ordered_and_the_mount_goes_away() {
    let name = "faults_strike_where_ordered_and_the_mount_goes_away";
    let faulty = match FaultFs::mount() {
        Ok(faulty) => faulty,
        Err(reason) => return skip(name, &reason),
    };
    let at = faulty.path().to_owned();
    fs::write(at.join("a"), "one").expect("no fault was ordered");
    faulty.control("write 1 28");
    let full = fs::write(at.join("a"), "two").expect_err("ENOSPC was ordered");
    assert_eq!(full.raw_os_error(), Some(28));
    fs::write(at.join("a"), "three").expect("the fault was for once");
    faulty.control("read+ 1 5");
    assert!(fs::read(at.join("a")).is_err());
    assert!(fs::read(at.join("a")).is_err());
    faulty.control("clear");
    assert_eq!(fs::read(at.join("a")).expect("cleared"), b"three");
    drop(faulty);
    assert!(!at.join(".faultctl").exists());
}

#[test]
fn a_small_file_system_and_its_loop_device_go_away() {
    let name = "a_small_file_system_and_its_loop_device_go_away";
    let small = match Mounted::ext4(16 << 20) {
        Ok(small) => small,
        Err(reason) => return skip(name, &reason),
    };
    let (at, device) = (small.path().to_owned(), small.device().to_owned());
    fs::write(at.join("a"), "kept").expect("a fresh file system has room");
    let mounts = fs::read_to_string("/proc/mounts").expect("/proc is mounted");
    assert!(mounts.contains(at.to_str().expect("a plain path")));
    drop(small);
    let name = device.file_name().expect("a device has a name");
    let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
    let text = fs::read_to_string(backing).unwrap_or_default();
    assert!(!text.contains("fathom-test-"), "still attached: {text}");
}

#[test]
fn a_loop_device_has_the_size_asked_for() {
    let name = "a_loop_device_has_the_size_asked_for";
    let device = match Loop::new(8 << 20) {
        Ok(device) => device,
        Err(reason) => return skip(name, &reason),
    };
    let kernel_name = device.path().file_name().expect("a device has a name");
    let size = Path::new("/sys/block").join(kernel_name).join("size");
    let sectors = fs::read_to_string(size).expect("the kernel tells the size");
    assert_eq!(sectors.trim(), "16384");
}
