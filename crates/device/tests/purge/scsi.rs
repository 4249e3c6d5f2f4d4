//! SCSI: SANITIZE and FORMAT UNIT, followed by REQUEST SENSE.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom_device::command::{Command, CommandData, Reply};
use fathom_device::purge::Purge;
use fathom_model::{Exit, ExpectedContent};
use fathom_testkit::{LoopDevice, require};

use crate::purge::drive::{Drive, bad, good, opcode};
use crate::purge::{Machine, SIZE, all_kept, kept, run, want};

const REQUEST_SENSE: u8 = 0x03;
const FORMAT_UNIT: u8 = 0x04;
const SANITIZE: u8 = 0x48;
const OPERATION_CODES: u8 = 0xa3;

fn machine(device: &Path) -> Machine {
    let machine = Machine::new();
    let name = device.file_name().unwrap().to_str().unwrap();
    let dir = machine.disk(name, SIZE, Some(device));
    std::fs::create_dir_all(dir.join("device")).unwrap();
    std::fs::write(dir.join("device/scsi_level"), "7\n").unwrap();
    std::fs::write(dir.join("device/vendor"), "ACME\n").unwrap();
    machine
}

/// Sense data in fixed format; `progress` with SKSV.
fn sense(key: u8, code: u8, qualifier: u8, progress: Option<u16>) -> Vec<u8> {
    let mut sense = vec![
        0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0,
    ];
    if let Some(progress) = progress {
        sense[15] = 0x80;
        sense[16..18].copy_from_slice(&progress.to_be_bytes());
    }
    sense
}

/// A drive that knows every command (or, with `told` false, does not say), whose
/// answers to REQUEST SENSE are `states`, the last for ever.
fn drive(device: &Path, told: bool, states: Vec<Vec<u8>>, start: Reply) -> Drive {
    let asked = AtomicUsize::new(0);
    Drive::new(device, move |command| match opcode(command) {
        Some(OPERATION_CODES) if told => good(vec![0, 3, 0, 10]),
        Some(REQUEST_SENSE) => {
            let at = asked.fetch_add(1, Ordering::SeqCst);
            good(states[at.min(states.len() - 1)].clone())
        }
        Some(SANITIZE | FORMAT_UNIT) => start.clone(),
        // READ CAPACITY(16) with type 2 protection; no pages.
        Some(0x9e) => good([&[0; 12][..], &[3], &[0; 19]].concat()),
        _ => bad(2, &sense(5, 0x20, 0, None)),
    })
}

#[test]
fn scsi_sanitizes_and_formats_are_followed_to_their_end() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let sanitize =
        |action: u8, length: u8| vec![SANITIZE, 0x80 | action, 0, 0, 0, 0, 0, 0, length, 0];
    let zeros = CommandData::Out(vec![1, 0, 0, 4, 0, 0, 0, 0]);
    let header = CommandData::Out(vec![0, 2, 0, 0]);
    for (method, cdb, data, code, promise) in [
        (
            "scsi-sanitize-block",
            sanitize(2, 0),
            CommandData::None,
            0x1b,
            ExpectedContent::Gone,
        ),
        (
            "scsi-sanitize-crypto",
            sanitize(3, 0),
            CommandData::None,
            0x1b,
            ExpectedContent::Gone,
        ),
        (
            "scsi-sanitize-overwrite",
            sanitize(1, 8),
            zeros,
            0x1b,
            ExpectedContent::Zeros,
        ),
        // Protection of type 2 stays: FMTPINFO 11b.
        (
            "scsi-format",
            vec![FORMAT_UNIT, 0xd0, 0, 0, 0, 0],
            header,
            0x04,
            ExpectedContent::Gone,
        ),
    ] {
        // Descriptor format says it in another place.
        let half = vec![0x72, 2, 4, code, 0, 0, 0, 8, 2, 6, 0, 0, 0x80, 0x80, 0, 0];
        let states = vec![sense(2, 4, code, Some(0x4000)), half, sense(0, 0, 0, None)];
        let drive = drive(device.path(), true, states, Reply::default()).erasing_at(cdb[0]);
        let purge = Purge::new(&machine.sys(), &drive, &want(method), device.path()).unwrap();
        let mut shares = Vec::new();
        let words = crate::purge::words(&[device.path()]);
        let done = purge.run(&drive, &words, &|| false, &mut |progress| {
            if let fathom_device::purge::PurgeProgress::Part {
                share: Some(share), ..
            } = progress
            {
                shares.push(share);
            }
        });
        assert_eq!(done.unwrap().verification.promise, promise, "{method}");
        assert!(
            shares.contains(&0.25) && shares.contains(&0.5),
            "{shares:?}"
        );
        let orders = drive.orders();
        let [
            Command::Scsi {
                cdb: given,
                data: sent,
                ..
            },
        ] = &orders[..]
        else {
            panic!("{orders:?}")
        };
        assert_eq!((given, sent), (&cdb, &data), "{method}");
    }
}

#[test]
fn scsi_devices_that_refuse_fail_or_lie_are_told() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let done = |states: Vec<Vec<u8>>, start: Reply| {
        let drive = drive(device.path(), true, states, start);
        let purge = Purge::new(
            &machine.sys(),
            &drive,
            &want("scsi-sanitize"),
            device.path(),
        );
        run(&purge.unwrap(), &drive)
    };
    let idle = || vec![sense(0, 0, 0, None)];
    let refused = done(idle(), bad(2, &sense(5, 0x24, 0, None))).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("illegal request (sense 5h/24h/00h)"),
        "{refused}"
    );
    // 31h/03h: SANITIZE COMMAND FAILED.
    let failed = done(
        vec![sense(2, 4, 0x1b, None), sense(3, 0x31, 3, None)],
        Reply::default(),
    );
    let failed = failed.unwrap_err();
    assert!(
        failed
            .to_string()
            .contains("medium error (sense 3h/31h/03h)"),
        "{failed}"
    );
    assert_eq!(failed.exit(), Exit::Failed);
    all_kept(kept(done(idle(), Reply::default())));
}

/// QEMU's disks do not list their commands, and take FORMAT UNIT as done.
#[test]
fn a_command_that_the_device_does_not_speak_of_is_tried_by_name_only() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path());
    let drive = || {
        drive(
            device.path(),
            false,
            vec![sense(0, 0, 0, None)],
            Reply::default(),
        )
    };
    let auto = Purge::new(&machine.sys(), &drive(), &want("auto"), device.path()).unwrap();
    assert_eq!(auto.method.to_string(), "overwrite");
    let (_, reason) = &auto.passed_over[0];
    assert!(reason.contains("does not say"), "{reason}");
    let named = Purge::new(
        &machine.sys(),
        &drive(),
        &want("scsi-format"),
        device.path(),
    )
    .unwrap();
    all_kept(kept(run(&named, &drive())));
}
