//! ATA behind SCSI/ATA translation: the exact commands, and what drives do
//! instead of them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom_device::command::{Command, CommandData, Reply};
use fathom_device::purge::{PASSWORD, Purge};
use fathom_model::{Exit, ExpectedContent};
use fathom_testkit::{LoopDevice, require};

use crate::purge::drive::{Drive, bad, good, opcode};
use crate::purge::{Machine, SIZE, all_kept, kept, run, want, words};

const IDENTIFY: u8 = 0xec;
const SET_PASSWORD: u8 = 0xf1;
const PREPARE: u8 = 0xf3;
const ERASE: u8 = 0xf4;
const DISABLE: u8 = 0xf6;
const SANITIZE: u8 = 0xb4;

/// Words by their number.
type Words = &'static [(usize, u16)];

/// IDENTIFY DEVICE data with these words.
fn identify(words: &[(usize, u16)]) -> Vec<u8> {
    let mut data = vec![0; 512];
    for (at, word) in words {
        data[2 * at..2 * at + 2].copy_from_slice(&word.to_le_bytes());
    }
    data
}

/// Security with enhanced erase, 2 × 30 and 2 × 3 minutes; every sanitize.
const ABLE: [(usize, u16); 4] = [(59, 0xf000), (89, 30), (90, 0x8003), (128, 0x21)];

fn machine(device: &Path) -> Machine {
    let machine = Machine::new();
    let name = device.file_name().unwrap().to_str().unwrap();
    let dir = machine.disk(name, SIZE, Some(device));
    std::fs::create_dir_all(dir.join("device")).unwrap();
    std::fs::write(dir.join("device/scsi_level"), "6\n").unwrap();
    std::fs::write(dir.join("device/vendor"), "ATA     \n").unwrap();
    machine
}

/// ABORTED COMMAND with the registers of an aborted command: status 51h, error
/// 04h, as QEMU's and real drives' come through libata.
fn aborted() -> Reply {
    let mut sense = vec![0x72, 0x0b, 0, 0, 0, 0, 0, 14, 9, 12];
    sense.extend([0, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x51]);
    bad(2, &sense)
}

/// The registers of a command that went well, as CK_COND has them given back.
fn registers(count: u16, lba: u16) -> Reply {
    let mut sense = vec![0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 1, 0];
    sense.extend(count.to_be_bytes());
    let lba = lba.to_le_bytes();
    sense.extend([0, lba[0], 0, lba[1], 0, 0, 0x40, 0x50]);
    bad(2, &sense)
}

/// A drive that answers IDENTIFY by `words`, SCSI's own questions with an error,
/// everything else by `other`.
fn drive(
    device: &Path,
    words: &'static [(usize, u16)],
    other: impl Fn(u8) -> Reply + Send + Sync + 'static,
) -> Drive {
    Drive::new(device, move |command| match opcode(command) {
        Some(IDENTIFY) => good(identify(words)),
        Some(code) if matches!(command, Command::Scsi { cdb, .. } if cdb[0] == 0x85) => other(code),
        _ => bad(
            2,
            &[0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0],
        ),
    })
}

fn cdb(command: &Command) -> Vec<u8> {
    match command {
        Command::Scsi { cdb, .. } => cdb.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_security_erase_sets_a_password_prepares_and_erases() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    for (method, word0, minutes) in [
        ("ata-security-erase", 0, 60),
        ("ata-security-erase-enhanced", 2, 6),
    ] {
        let drive = drive(device.path(), &ABLE, |_| Reply::default()).erasing_at(ERASE);
        let purge = Purge::new(&machine.sys(), &drive, &want(method), device.path()).unwrap();
        let offer = purge.capabilities.offer(purge.method, &want(method));
        assert_eq!(offer.estimate.unwrap().as_secs(), 60 * minutes);
        let done = run(&purge, &drive).unwrap();
        assert_eq!(done.verification.promise, ExpectedContent::Gone);
        erase_is_exact(&drive.orders(), word0, minutes);
        let like = purge.like();
        assert!(
            like.starts_with("hdparm --user-master u --security-erase"),
            "{like}"
        );
    }
}

fn erase_is_exact(orders: &[Command], word0: u8, minutes: u64) {
    let [set, prepare, erase] = orders else {
        panic!("{orders:?}")
    };
    // PIO out, a sector; no data; PIO out, a sector.
    let order = |protocol: u8, flags: u8, count: u8, command: u8| {
        let mut cdb = vec![0x85, protocol << 1, flags, 0, 0, 0, count];
        cdb.extend([0, 0, 0, 0, 0, 0, 0x40, command, 0]);
        cdb
    };
    assert_eq!(cdb(set), order(5, 0x06, 1, SET_PASSWORD));
    assert_eq!(cdb(prepare), order(3, 0x20, 0, PREPARE));
    assert_eq!(cdb(erase), order(5, 0x06, 1, ERASE));
    let Command::Scsi {
        data: CommandData::Out(sent),
        timeout,
        ..
    } = erase
    else {
        panic!("{erase:?}")
    };
    let password = PASSWORD.as_bytes();
    assert_eq!((sent.len(), sent[0], &sent[2..8]), (512, word0, password));
    assert!(timeout.as_secs() > 2 * 60 * minutes, "{timeout:?}");
}

/// `hdparm --security-erase` ends with 0 when the drive has aborted it.
#[test]
fn an_aborted_erase_takes_the_password_away_again_and_is_told() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    for fails_at in [PREPARE, ERASE] {
        let drive = drive(device.path(), &ABLE, move |code| match code {
            code if code == fails_at => aborted(),
            _ => Reply::default(),
        });
        let purge = Purge::new(
            &machine.sys(),
            &drive,
            &want("ata-security-erase"),
            device.path(),
        );
        let error = run(&purge.unwrap(), &drive).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the drive aborted it (ATA error 0x04)"),
            "{error}"
        );
        assert_eq!(error.exit(), Exit::Failed);
        let orders = drive.orders();
        assert_eq!(
            orders.last().and_then(opcode),
            Some(DISABLE),
            "{fails_at:#x}: {orders:?}"
        );
        let Some(Command::Scsi {
            data: CommandData::Out(sent),
            ..
        }) = orders.last()
        else {
            panic!()
        };
        assert_eq!(&sent[2..8], PASSWORD.as_bytes());
    }
    // Where the password was not taken there is none to take away.
    let drive = drive(device.path(), &ABLE, |_| aborted());
    let purge = Purge::new(
        &machine.sys(),
        &drive,
        &want("ata-security-erase"),
        device.path(),
    );
    run(&purge.unwrap(), &drive).unwrap_err();
    assert_eq!(drive.count(DISABLE), 0);
}

#[test]
fn an_erase_that_says_good_and_does_nothing_is_caught() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let drive = drive(device.path(), &ABLE, |_| Reply::default());
    let purge = Purge::new(
        &machine.sys(),
        &drive,
        &want("ata-security-erase"),
        device.path(),
    );
    all_kept(kept(run(&purge.unwrap(), &drive)));
}

#[test]
fn what_stands_against_an_erase_is_told_with_what_to_do() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let cases: [(Words, &str, &str); 6] = [
        (&[(128, 0)], "ata-security-erase", "no security feature set"),
        (
            &[(128, 1)],
            "ata-security-erase-enhanced",
            "no enhanced security erase",
        ),
        (&[(128, 0x29)], "ata-security-erase", "suspend the machine"),
        (&[(128, 0x07)], "ata-security-erase", "--security-unlock"),
        (&[(128, 0x03)], "ata-security-erase", "--security-disable"),
        (
            &[(59, 0xffff), (128, 1)],
            "ata-sanitize-block",
            "no such sanitize",
        ),
    ];
    for (words, method, wanted) in cases {
        let drive = drive(device.path(), words, |code| panic!("{code:#x} was given"));
        let error = Purge::new(&machine.sys(), &drive, &want(method), device.path()).unwrap_err();
        assert_eq!(error.exit(), Exit::Missing);
        assert!(error.to_string().contains(wanted), "{method}: {error}");
    }
    // An order of choice, and what is passed over in it.
    let drive = drive(device.path(), &[(128, 0x09)], |_| aborted());
    let auto = Purge::new(&machine.sys(), &drive, &want("auto"), device.path()).unwrap();
    assert_eq!(auto.method.to_string(), "overwrite");
    assert_eq!(auto.passed_over.len(), 5, "{:?}", auto.passed_over);
}

#[test]
fn an_ata_sanitize_is_followed_by_its_registers() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    // Started; half done; done without error.
    let going = || {
        let asked = AtomicUsize::new(0);
        move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => registers(0, 0),
            1 => registers(0x4000, 0x8000),
            _ => registers(0x8000, 0xffff),
        }
    };
    for (method, features, count, lba, promise) in [
        (
            "ata-sanitize-block",
            0x12,
            0,
            [0x42, 0x72, 0, 0x45, 0, 0x6b],
            ExpectedContent::Gone,
        ),
        (
            "ata-sanitize-crypto",
            0x11,
            0,
            [0x43, 0x70, 0, 0x79, 0, 0x72],
            ExpectedContent::Gone,
        ),
        (
            "ata-sanitize-overwrite",
            0x14,
            1,
            [0, 0, 0x57, 0, 0x4f, 0],
            ExpectedContent::Zeros,
        ),
    ] {
        let drive = drive(device.path(), &ABLE, going());
        let purge = Purge::new(&machine.sys(), &drive, &want(method), device.path()).unwrap();
        // What the drive says is not believed: nothing was erased.
        let seen = kept(run(&purge, &drive));
        assert_eq!(seen.promise, promise);
        all_kept(seen);
        let orders = drive.orders();
        let mut wanted = vec![0x85, 3 << 1 | 1, 0x20, 0, features, 0, count];
        wanted.extend(lba);
        wanted.extend([0x40, SANITIZE, 0]);
        assert_eq!(cdb(&orders[0]), wanted, "{method}");
        let status = [
            0x85, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, SANITIZE, 0,
        ];
        assert!(
            orders[1..].iter().all(|order| cdb(order) == status),
            "{orders:?}"
        );
        assert_eq!(orders.len(), 3);
    }
    let failed = |answer: fn(usize) -> Reply| {
        let asked = AtomicUsize::new(0);
        let drive = drive(device.path(), &ABLE, move |_| {
            answer(asked.fetch_add(1, Ordering::SeqCst))
        });
        let purge = Purge::new(
            &machine.sys(),
            &drive,
            &want("ata-sanitize-block"),
            device.path(),
        );
        run(&purge.unwrap(), &drive).unwrap_err().to_string()
    };
    assert!(failed(|_| aborted()).contains("aborted it (ATA error 0x04)"));
    assert!(failed(|_| registers(0, 0)).contains("the sanitize was not done"));
}

/// In fixed format there is no room for the upper half of the count, in which a drive says
/// that it is done: SAS adapters translate so.
#[test]
fn registers_in_fixed_format_are_read_too() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let fixed = |key: u8, status: u8, upper: bool, lba: u16, code: [u8; 2]| {
        let flags = if upper { 0x40 } else { 0 };
        let [low, high] = lba.to_le_bytes();
        let error = if key == 0xb { 4 } else { 0 };
        let mut sense = vec![0x70, 0, key, error, status, 0x40, 0, 10, flags];
        sense.extend([low, high, 0, code[0], code[1], 0, 0, 0, 0]);
        bad(2, &sense)
    };
    let sanitized = |answers: [Reply; 3]| {
        let asked = AtomicUsize::new(0);
        let drive = drive(device.path(), &ABLE, move |_| {
            answers[asked.fetch_add(1, Ordering::SeqCst).min(2)].clone()
        });
        let drive = drive.erasing_at(SANITIZE);
        let want = want("ata-sanitize-block");
        let purge = Purge::new(&machine.sys(), &drive, &want, device.path());
        run(&purge.unwrap(), &drive)
    };
    const TOLD: [u8; 2] = [0, 0x1d];
    let done = sanitized([
        fixed(1, 0x50, false, 0, TOLD),
        fixed(1, 0x50, true, 0x8000, TOLD),
        fixed(1, 0x50, true, 0xffff, TOLD),
    ]);
    assert_eq!(done.unwrap().method, "ata-sanitize-block");
    let aborted = fixed(0xb, 0x51, false, 0, [0, 0]);
    let error = sanitized([aborted.clone(), aborted.clone(), aborted]).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("aborted it (ATA error 0x04)"), "{told}");
    let not_done = fixed(1, 0x50, false, 0xffff, TOLD);
    let error = sanitized([not_done.clone(), not_done.clone(), not_done]).unwrap_err();
    assert!(error.to_string().contains("was not done"), "{error}");
}

/// A way that the drive has promised and refuses costs nothing: the next one is gone.
#[test]
fn a_way_that_fails_and_changes_nothing_is_followed_by_the_next() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let attempts = |method: &str, erases: bool| {
        let drive = drive(device.path(), &ABLE, |_| aborted());
        let drive = match erases {
            true => drive.erasing_at(SANITIZE),
            false => drive,
        };
        let purge = Purge::new(&machine.sys(), &drive, &want(method), device.path());
        let mut told = Vec::new();
        let purge = purge.unwrap();
        let done = purge.run(&drive, &words(&[device.path()]), &|| false, &mut |it| {
            if let fathom_device::purge::PurgeProgress::End { issued } = it {
                told.push((issued.command.clone(), issued.status));
            }
        });
        (done, told)
    };
    let (done, told) = attempts("auto", false);
    let done = done.unwrap();
    let tried: Vec<_> = done.tried.iter().map(|it| it.method.as_str()).collect();
    let erase = ["ata-security-erase-enhanced", "ata-security-erase"];
    let sanitize = ["ata-sanitize-block", "ata-sanitize-crypto"];
    assert_eq!(tried, [sanitize, erase].concat());
    assert_eq!(done.method, "overwrite");
    assert!(done.tried.iter().all(|it| it.reason.contains("aborted")));
    let refused = told.iter().filter(|(_, status)| *status != 0).count();
    assert_eq!(refused, 4, "each attempt is told: {told:#?}");
    // One that says that it has done it has not done it either.
    let liar = drive(device.path(), &ABLE, |_| registers(0x8000, 0xffff));
    let purge = Purge::new(&machine.sys(), &liar, &want("auto"), device.path());
    let done = run(&purge.unwrap(), &liar).unwrap();
    assert_eq!((done.method.as_str(), done.tried.len()), ("overwrite", 4));
    // By its name, or where data are gone, no other way is gone.
    assert!(attempts("ata-sanitize-block", false).0.is_err());
    let (lost, _) = attempts("auto", true);
    assert!(lost.unwrap_err().to_string().contains("aborted"));
}

#[test]
fn capacity_that_a_drive_hides_is_told() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let found = |words: Words, answer: fn(u8) -> Reply| {
        let drive = drive(device.path(), words, answer);
        let purge = Purge::new(&machine.sys(), &drive, &want("overwrite"), device.path());
        let hidden = purge.unwrap().capabilities.hidden;
        let each = hidden.into_iter();
        each.map(|it| (it.what, it.bytes)).collect::<Vec<_>>()
    };
    fn highest(lba: u64) -> Reply {
        let l = lba.to_le_bytes();
        let mut sense = vec![0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 1, 0, 0, 0];
        sense.extend([l[3], l[0], l[4], l[1], l[5], l[2], 0x40, 0x50]);
        bad(2, &sense)
    }
    // 32768 sectors are shown, of 40000 behind the protected area, of 50000 in all.
    const ALL: Words = &[(82, 0x0400), (83, 0x4c00), (100, 0x8000)];
    let answer = |code: u8| match code {
        0x27 => highest(39_999),
        0xb1 => {
            let mut data = vec![0; 512];
            data[6..14].copy_from_slice(&49_999u64.to_le_bytes());
            good(data)
        }
        _ => aborted(),
    };
    let told = found(ALL, answer);
    let hpa = ("host protected area (HPA)".to_owned(), 7_232 * 512);
    let dco = (
        "device configuration overlay (DCO)".to_owned(),
        10_000 * 512,
    );
    assert_eq!(told, [hpa, dco]);
    assert_eq!(
        found(ALL, |_| aborted()),
        [],
        "a drive that does not answer"
    );
    const AMAC: Words = &[(83, 0x4400), (100, 0x8000), (119, 0x4100)];
    let amac = found(AMAC, |code| match code {
        0x78 => highest(0x1_0000_0000),
        _ => aborted(),
    });
    let bytes = (0x1_0000_0001 - 0x8000) * 512;
    assert_eq!(amac, [("accessible max address (AMAC)".to_owned(), bytes)]);
    assert_eq!(
        found(&[(100, 0x8000)], |code| panic!("{code:#x} was given")),
        []
    );
}
