//! The test support itself: a fault that does not come would make other tests lie.
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use fathom_testkit::{
    Browser, FaultFs, FaultOp, LoopDevice, SmallFs, await_that, exclusive, free_port, require,
};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

#[test]
fn faults_come_when_they_are_asked_for() {
    let faultfs = require!(FaultFs::new());
    let path = faultfs.path().join("file");
    let mut file = File::create(&path).unwrap();
    let mut write = || file.write(&[7; 512]).map_err(|e| e.raw_os_error().unwrap());

    faultfs.fail_once(FaultOp::Write, 2, EIO);
    assert_eq!([write(), write(), write()], [Ok(512), Err(EIO), Ok(512)]);
    faultfs.fail_from(FaultOp::Write, 2, ENOSPC);
    assert_eq!(
        [write(), write(), write()],
        [Ok(512), Err(ENOSPC), Err(ENOSPC)]
    );
    faultfs.clear();
    faultfs.short_write(1);
    assert_eq!([write(), write()], [Ok(256), Ok(512)]);

    faultfs.fail_once(FaultOp::Fsync, 1, EIO);
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(EIO));
    faultfs.fail_once(FaultOp::Open, 1, EIO);
    assert_eq!(File::open(&path).unwrap_err().raw_os_error(), Some(EIO));
    faultfs.fail_once(FaultOp::Read, 1, EIO);
    let mut read = File::open(&path).unwrap();
    assert_eq!(
        read.read(&mut [0; 8]).unwrap_err().raw_os_error(),
        Some(EIO)
    );
    faultfs.clear();
    faultfs.delay(Duration::from_millis(1));
    let began = Instant::now();
    assert_eq!(read.read(&mut [0; 8]).unwrap(), 8);
    let [reads, writes] = faultfs.served();
    assert_eq!((reads.ios, writes.ios), (1, 0));
    assert!(Duration::from_millis(1) <= reads.took && reads.took <= began.elapsed());

    faultfs.clear();
    faultfs.hold_reads_from(2);
    let reader = thread::spawn(move || [0; 2].map(|_| read.read(&mut [0; 8]).unwrap()));
    await_that("a read waits", || faultfs.held() == 1);
    assert_eq!(faultfs.served()[0].ios, 1);
    faultfs.release();
    assert_eq!(reader.join().unwrap(), [8, 8]);
    assert_eq!((faultfs.held(), faultfs.served()[0].ios), (0, 2));
}

#[test]
fn turns_and_ports_are_each_tests_own() {
    let turn = exclusive("testkit");
    let (tell, told) = channel();
    let other = thread::spawn(move || {
        let _turn = exclusive("testkit");
        tell.send(()).unwrap();
    });
    assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
    drop(turn);
    told.recv().unwrap();
    other.join().unwrap();
    assert_ne!(free_port(), free_port());
}

#[test]
fn a_small_file_system_fills_up() {
    let small = require!(SmallFs::new(8 << 20, ""));
    let full = fs::write(small.path().join("file"), vec![0; 16 << 20]).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(ENOSPC));
    assert!(small.device().starts_with("/dev"));
}

#[test]
fn a_loop_device_has_its_size_and_goes_away() {
    let device = require!(LoopDevice::new(1 << 20));
    assert_eq!(fs::read(device.path()).unwrap().len(), 1 << 20);
    // The number may serve another test at once, the image behind it may not.
    let name = device.path().file_name().unwrap();
    let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
    let image = fs::read_to_string(&backing).unwrap();
    drop(device);
    // The kernel detaches when the last opener, udev for one, has closed it.
    let gone = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        fs::read_to_string(&backing).ok().as_ref() != Some(&image)
    });
    assert!(gone, "{image} is still attached");
}

#[test]
fn a_browser_tells_what_a_page_complains_of_and_asks_for() {
    let mut browser = require!(Browser::start());
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let mut show = |html: &str| {
        fs::write(&page, html).unwrap();
        browser.open(&page).unwrap();
        browser
            .wait_for("document.readyState === 'complete'")
            .unwrap();
        let two = browser.eval("Promise.resolve(1 + 1)").unwrap();
        (two, browser.errors().len())
    };
    assert_eq!(show("<p>quiet"), (2.into(), 0));
    assert_eq!(show("<script>no.such = 1</script>"), (2.into(), 1));
    assert!(show("<img src='http://127.0.0.1:9/'>").1 > 1);
    assert!(browser.eval("throw new Error('no')").is_err());
    let png = dir.path().join("page.png");
    browser.look(300, 200, false).unwrap();
    browser.screenshot(&png).unwrap();
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
}
