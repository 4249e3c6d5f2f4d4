//! What drives say of themselves: answers as the specifications lay them out,
//! played back, and the commands that ask for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use fathom_device::cdl::CdlPage;
use fathom_device::command::{Command, Played, Reply};
use fathom_device::health::{LimitCount, MissedTime, limit_counts};
use fathom_device::{Health, Sys};
use fathom_model::LedgerEvent;

/// A disk as the kernel shows it, with these attributes.
fn disk(name: &str, attributes: &[(&str, &str)]) -> (tempfile::TempDir, Sys) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("sys/devices").join(name);
    let write = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    // Documentation/block/stat.rst: 12 requests, 4000 sectors written.
    write("stat", " 5 0 64 1 12 0 4000 3 0 4 4 0 0 0 0 0 0\n");
    for (path, text) in attributes {
        write(path, text);
    }
    fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
    symlink(&dir, root.path().join("sys/class/block").join(name)).unwrap();
    fs::create_dir_all(root.path().join("dev")).unwrap();
    fs::write(root.path().join("dev").join(name), "").unwrap();
    let boot = root.path().join("proc/sys/kernel/random");
    fs::create_dir_all(&boot).unwrap();
    fs::write(boot.join("boot_id"), "0f0e\n").unwrap();
    let sys = Sys::recorded(root.path());
    (root, sys)
}

fn good(data: Vec<u8>) -> Reply {
    Reply {
        data,
        ..Reply::default()
    }
}

/// A command that the device does not know: CHECK CONDITION (SAM-5 5.3.1), or
/// Invalid Opcode (NVMe Base Specification 2.0, 3.3.3.2.1).
fn refused() -> Reply {
    Reply {
        status: 2,
        ..Reply::default()
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn cdbs(tape: &Played) -> Vec<Vec<u8>> {
    let issued = tape.issued().into_iter();
    let cdb = |command| match command {
        Command::Scsi { cdb, .. } => cdb,
        other => panic!("{other}"),
    };
    issued.map(|(_, command)| cdb(command)).collect()
}

/// NVMe Base Specification 2.0, 5.16.1.3: SMART / Health Information.
fn smart() -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = 0b10_0101;
    put(&mut page, 1, &311_u16.to_le_bytes());
    page[3] = 97;
    page[5] = 104;
    put(&mut page, 32, &7_u128.to_le_bytes());
    put(&mut page, 48, &2_000_000_u128.to_le_bytes());
    put(&mut page, 112, &31_u128.to_le_bytes());
    put(&mut page, 128, &8760_u128.to_le_bytes());
    put(&mut page, 144, &3_u128.to_le_bytes());
    put(&mut page, 160, &1_u128.to_le_bytes());
    page
}

#[test]
fn nvme_drives_tell_by_their_smart_log() {
    let (_root, sys) = disk("nvme1n3", &[("nsid", "7\n")]);
    let tape = Played::new([good(smart())]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/nvme1n3"));
    assert_eq!(health.host_written_bytes, Some(1_024_000_000_000));
    assert_eq!(health.host_read_bytes, Some(3_584_000));
    assert_eq!(
        (health.used_percent, health.spare_percent),
        (Some(104.0), Some(97.0))
    );
    assert_eq!(health.powered, Some(Duration::from_secs(8760 * 3600)));
    assert_eq!(health.temperature_celsius, Some(38.0));
    assert_eq!(
        (
            health.power_cycles,
            health.unsafe_shutdowns,
            health.media_errors
        ),
        (Some(31), Some(3), Some(1))
    );
    assert_eq!(
        health.warnings,
        [
            "few spare blocks are left",
            "its media are no longer reliable",
            "its persistent memory region is read-only"
        ]
    );
    assert_eq!(health.kernel_written_bytes, Some(4000 * 512));
    assert_eq!(
        health.seen(),
        LedgerEvent::Seen {
            host_written_bytes: Some(1_024_000_000_000),
            used_percent: Some(104.0),
            power_on_hours: Some(8760),
            kernel_written_bytes: Some(2_048_000),
            boot: Some("0f0e".into()),
        }
    );
    // The whole log of the controller, whatever the namespace: 128 dwords.
    let (path, command) = tape.issued().remove(0);
    assert_eq!(path, Path::new("/dev/nvme1n3"));
    assert_eq!(
        command.to_string(),
        "nvme admin-passthru --opcode=0x02 --namespace-id=4294967295 --cdw10=0x7f0002"
    );
}

#[test]
fn what_an_nvme_drive_does_not_report_is_not_zero() {
    let (_root, sys) = disk("nvme0n1", &[("nsid", "1\n")]);
    let mut page = vec![0; 512];
    put(&mut page, 112, &u128::MAX.to_le_bytes());
    let silent = Health::of_path(&Played::new([good(page)]), &sys, Path::new("/dev/nvme0n1"));
    assert_eq!(silent.host_written_bytes, None);
    assert_eq!(
        (silent.temperature_celsius, silent.power_cycles),
        (None, None)
    );
    assert_eq!(silent.used_percent, Some(0.0));
    for reply in [refused(), good(vec![0; 64])] {
        let health = Health::of_path(&Played::new([reply]), &sys, Path::new("/dev/nvme0n1"));
        assert_eq!((health.used_percent, health.powered), (None, None));
        assert_eq!(health.kernel_written_bytes, Some(2_048_000));
    }
}

/// A log page with parameters (SPC-5 7.3.2): code, control byte, length, value.
fn page(code: u8, parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (code, value) in parameters {
        body.extend(code.to_be_bytes());
        body.extend([0x03, value.len() as u8]);
        body.extend(*value);
    }
    let mut page = vec![code, 0];
    page.extend((body.len() as u16).to_be_bytes());
    page.extend(body);
    // Drives fill the room they are given.
    page.resize(512, 0);
    page
}

fn scsi() -> (tempfile::TempDir, Sys) {
    let attributes = [
        ("device/vendor", "ACME    \n"),
        ("queue/logical_block_size", "4096\n"),
    ];
    disk("sdc", &attributes)
}

#[test]
fn scsi_drives_tell_by_their_log_pages() {
    let (_root, sys) = scsi();
    // Statistics and Performance: commands, blocks received, blocks transmitted.
    let mut moved = vec![0; 64];
    put(&mut moved, 16, &1_000_u64.to_be_bytes());
    put(&mut moved, 24, &2_000_u64.to_be_bytes());
    let tape = Played::new([
        good(page(0x19, &[(1, &moved)])),
        good(page(0x11, &[(1, &[0, 0, 0, 6])])),
        good(page(
            0x15,
            &[
                (0, &[0, 0, 0x02, 0x58, 0, 0, 0, 0, 0, 0, 0, 0]),
                (1, &[0; 20]),
            ],
        )),
        good(page(0x0d, &[(0, &[0, 33]), (1, &[0, 65])])),
    ]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/sdc"));
    assert_eq!(health.host_written_bytes, Some(4_096_000));
    assert_eq!(health.host_read_bytes, Some(8_192_000));
    assert_eq!(health.used_percent, Some(6.0));
    assert_eq!(health.powered, Some(Duration::from_secs(600 * 60)));
    assert_eq!(health.powered_step, Duration::from_secs(60));
    assert_eq!(health.temperature_celsius, Some(33.0));
    assert_eq!(
        cdbs(&tape),
        [0x59, 0x51, 0x55, 0x4d].map(|page| vec![0x4d, 0, page, 0, 0, 0, 0, 2, 0, 0])
    );
}

#[test]
fn pages_that_a_scsi_drive_lacks_or_mistakes_are_passed_over() {
    let (_root, sys) = scsi();
    let torn = {
        // Longer than what came.
        let mut torn = page(0x15, &[(0, &[0, 0, 0, 9, 0, 0])]);
        torn.truncate(9);
        torn
    };
    let tape = Played::new([
        refused(),
        good(page(0x00, &[(1, &[0, 0, 0, 6])])),
        good(torn),
        good(page(0x0d, &[(0, &[0, 0xff])])),
    ]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/sdc"));
    assert_eq!(
        (health.host_written_bytes, health.used_percent),
        (None, None)
    );
    assert_eq!((health.powered, health.temperature_celsius), (None, None));
}

fn ata() -> (tempfile::TempDir, Sys) {
    let attributes = [
        ("device/vendor", "ATA     \n"),
        ("queue/logical_block_size", "512\n"),
    ];
    disk("sda", &attributes)
}

/// IDENTIFY DEVICE data: word 84 valid, with General Purpose Logging (ACS-4
/// 7.12.7.41).
fn identity(word84: u16) -> Vec<u8> {
    let mut data = vec![0; 512];
    put(&mut data, 168, &word84.to_le_bytes());
    data
}

/// A page of statistics (ACS-4 9.5): its number, and values with their flags.
fn statistics(number: u8, values: &[(usize, u64, u8)]) -> Vec<u8> {
    let mut page = vec![0; 512];
    put(&mut page, 0, &[1, 0, number]);
    for (at, value, flags) in values {
        put(
            &mut page,
            *at,
            &(value | u64::from(*flags) << 56).to_le_bytes(),
        );
    }
    page
}

fn list(pages: &[u8]) -> Vec<u8> {
    let mut page = statistics(0, &[]);
    page[8] = pages.len() as u8;
    put(&mut page, 9, pages);
    page
}

#[test]
fn ata_drives_tell_by_their_statistics_behind_the_translation() {
    const VALID: u8 = 0xc0;
    let (_root, sys) = ata();
    let general = [
        (8, 12, VALID),
        (16, 4321, VALID),
        (24, 1 << 40, VALID),
        // Supported, and not valid now.
        (40, 5, 0x80),
    ];
    let tape = Played::new([
        good(identity(0x4020)),
        good(list(&[0, 1, 4, 5, 7])),
        good(statistics(1, &general)),
        good(statistics(4, &[(8, 2, VALID)])),
        good(statistics(5, &[(8, 0xfb, VALID)])),
        good(statistics(7, &[(8, 255, VALID)])),
    ]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/sda"));
    assert_eq!(health.host_written_bytes, Some(1 << 49));
    assert_eq!(health.host_read_bytes, None);
    assert_eq!(health.powered, Some(Duration::from_secs(4321 * 3600)));
    assert_eq!(
        (health.power_cycles, health.media_errors),
        (Some(12), Some(2))
    );
    assert_eq!(health.temperature_celsius, Some(-5.0));
    assert_eq!(health.used_percent, Some(255.0));
    let cdbs = cdbs(&tape);
    assert_eq!(
        cdbs[0],
        [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]
    );
    assert_eq!(
        cdbs[5],
        [
            0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x04, 0, 0x07, 0, 0, 0, 0x2f, 0
        ]
    );
}

#[test]
fn an_ata_drive_is_not_asked_for_logs_and_pages_that_it_lacks() {
    let (_root, sys) = ata();
    // Bits 15:14 are 00b: the word is not valid.
    let tape = Played::new([good(identity(0x0020))]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/sda"));
    assert_eq!((health.powered, tape.issued().len()), (None, 1));

    let rotating = statistics(1, &[(16, 5, 0xc0)]);
    let tape = Played::new([good(identity(0x4020)), good(list(&[0, 1])), good(rotating)]);
    let health = Health::of_path(&tape, &sys, Path::new("/dev/sda"));
    assert_eq!(health.powered, Some(Duration::from_secs(5 * 3600)));
    assert_eq!((health.used_percent, tape.issued().len()), (None, 3));
}

fn missed(page: CdlPage, number: u8, missed: MissedTime, n: u64) -> LimitCount {
    LimitCount {
        page,
        number,
        missed,
        n,
    }
}

#[test]
fn scsi_disks_tell_how_many_ios_missed_each_limit() {
    let limits = ("device/cdl_supported", "1\n");
    let (_root, sys) = disk("sdc", &[("device/vendor", "ACME    \n"), limits]);
    let node = sys.by_path(Path::new("/dev/sdc")).unwrap();
    let counters = |inactive: u32, active: u32, duration: u32| {
        let mut value = [inactive, active, duration].map(u32::to_be_bytes).concat();
        value.resize(32, 0);
        value
    };
    let (reads, writes) = (counters(1, 2, 3), counters(0, 0, u32::MAX));
    let mut log = page(0x59, &[(1, &[0; 8]), (0x11, &reads), (0x27, &writes)]);
    log[1] = 0x21;
    let tape = Played::new([good(log.clone())]);
    use MissedTime::{Active, Duration, Inactive};
    assert_eq!(
        limit_counts(&tape, &node),
        [
            missed(CdlPage::T2a, 1, Inactive, 1),
            missed(CdlPage::T2a, 1, Active, 2),
            missed(CdlPage::T2a, 1, Duration, 3),
            missed(CdlPage::T2b, 7, Inactive, 0),
            missed(CdlPage::T2b, 7, Active, 0),
            missed(CdlPage::T2b, 7, Duration, u32::MAX.into()),
        ]
    );
    assert_eq!(cdbs(&tape), [[0x4d, 0, 0x59, 0x21, 0, 0, 0, 4, 0, 0]]);
    // Another page than the one that was asked for, one that is cut, none.
    log[1] = 0;
    for reply in [good(log), good(vec![0x59, 0x21, 1, 0, 0]), refused()] {
        assert_eq!(limit_counts(&Played::new([reply]), &node), []);
    }
    // A disk without limits is asked nothing.
    let (_root, sys) = scsi();
    let node = sys.by_path(Path::new("/dev/sdc")).unwrap();
    let tape = Played::new([]);
    assert_eq!(limit_counts(&tape, &node), []);
    assert_eq!(tape.issued().len(), 0);
}

#[test]
fn ata_disks_count_what_each_limit_chooses() {
    const VALID: u8 = 0xc0;
    let limits = ("device/cdl_supported", "1\n");
    let (_root, sys) = disk("sda", &[("device/vendor", "ATA     \n"), limits]);
    let node = sys.by_path(Path::new("/dev/sda")).unwrap();
    // A and B of reads with limit 1, A of reads with limit 2, B of writes with limit 7, and
    // counters that the disk has and does not keep now, or that are off.
    let counters = statistics(
        9,
        &[
            (16, 5, VALID),
            (128, 6, VALID),
            (24, 0, VALID),
            (184 + 48, 7, VALID),
            (32, 8, 0x80),
            (40, 9, VALID),
        ],
    );
    let mut log = vec![0; 512];
    put(&mut log, 64 + 12, &[1, 2]);
    put(&mut log, 96 + 12, &[3, 0]);
    put(&mut log, 128 + 12, &[1, 0]);
    // All commands with limit 4: no misses.
    put(&mut log, 160 + 12, &[4, 0]);
    put(&mut log, 288 + 6 * 32 + 12, &[0, 3]);
    let tape = Played::new([
        good(identity(0x4020)),
        good(list(&[0, 1, 9])),
        good(counters),
        good(log),
    ]);
    assert_eq!(
        limit_counts(&tape, &node),
        [
            missed(CdlPage::T2a, 1, MissedTime::Inactive, 5),
            missed(CdlPage::T2a, 1, MissedTime::Active, 6),
            missed(CdlPage::T2a, 2, MissedTime::Either, 0),
            missed(CdlPage::T2b, 7, MissedTime::Either, 7),
        ]
    );
    // A disk without that page is not asked for it.
    let tape = Played::new([good(identity(0x4020)), good(list(&[0, 1]))]);
    assert_eq!(limit_counts(&tape, &node), []);
    assert_eq!(tape.issued().len(), 2);
}

#[test]
fn virtual_devices_are_asked_nothing() {
    for (name, attributes) in [
        ("loop3", &[][..]),
        ("zram0", &[]),
        ("vda", &[("device/vendor", "0x1af4\n")]),
    ] {
        let (_root, sys) = disk(name, attributes);
        let tape = Played::default();
        let health = Health::of_path(&tape, &sys, &Path::new("/dev").join(name));
        assert_eq!(tape.issued(), []);
        assert_eq!(health.kernel_written_bytes, Some(2_048_000), "{name}");
        assert_eq!(health.host_written_bytes, None);
    }
    let (_root, sys) = disk("loop3", &[]);
    let none = Health::of_path(&Played::default(), &sys, Path::new("/dev/loop4"));
    assert_eq!(none, Health::default());
}
