//! NVMe: the format with all its options, sanitize, namespaces.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fathom_device::command::{Command, CommandData, Played, Reply};
use fathom_device::purge::{FormatNvm, Purge, PurgeError, PurgeSettings};
use fathom_model::{Exit, ExpectedContent};
use fathom_testkit::{LoopDevice, require};

use crate::purge::drive::{Drive, bad, good};
use crate::purge::{Machine, SIZE, all_kept, kept, run, want, words};

/// What a controller says: Format NVM (OACS bit 1), FNA, SANICAP.
fn controller(fna: u8, sanicap: u32) -> Vec<u8> {
    let mut data = vec![0; 4096];
    data[256] = 2;
    data[524] = fna;
    data[328..332].copy_from_slice(&sanicap.to_le_bytes());
    data
}

/// A namespace with the LBA formats 0: 512, 1: 512+8, 2: 4096, 3: 4096+64 and 4:
/// one that is not available; format `now` in force; DPC types 1 and 3, last
/// bytes only; metadata at the end of blocks only.
fn namespace(now: u8) -> Vec<u8> {
    let mut data = vec![0; 4096];
    data[25] = 4;
    data[26] = now;
    data[27] = 1;
    data[28] = 0b1_0101;
    data[33] = 1;
    for (index, (metadata, shift)) in [(0u16, 9u8), (8, 9), (0, 12), (64, 12), (0, 0)]
        .into_iter()
        .enumerate()
    {
        let at = 128 + 4 * index;
        data[at..at + 2].copy_from_slice(&metadata.to_le_bytes());
        data[at + 2] = shift;
    }
    data
}

fn list(ids: &[u32]) -> Vec<u8> {
    let mut data: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    data.resize(4096, 0);
    data
}

/// Answers Identify, everything else by `other`.
fn answers(
    fna: u8,
    sanicap: u32,
    ids: &'static [u32],
    other: impl Fn(&Command) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Command) -> Reply + Send + Sync + 'static {
    move |command| match command {
        Command::Nvme {
            opcode: 6, dwords, ..
        } => good(match dwords[0] {
            1 => controller(fna, sanicap),
            0 => namespace(0),
            2 => list(ids),
            other => panic!("identify {other}"),
        }),
        _ => other(command),
    }
}

/// A machine with an NVMe drive whose namespace 3 is the loop device, and one
/// with namespace 1 when there is another.
fn machine(device: &Path, other: Option<&Path>) -> Machine {
    let machine = Machine::new();
    let controller = machine.path("sys/devices/nvme7");
    std::fs::create_dir_all(&controller).unwrap();
    std::fs::write(controller.join("rescan_controller"), "").unwrap();
    let all = [(Some(device), 3), (other, 1)];
    for (real, nsid) in all
        .into_iter()
        .filter_map(|(real, nsid)| Some((real?, nsid)))
    {
        let name = real.file_name().unwrap().to_str().unwrap();
        let dir = machine.disk(name, SIZE, Some(real));
        std::fs::write(dir.join("nsid"), format!("{nsid}\n")).unwrap();
        std::os::unix::fs::symlink(&controller, dir.join("device")).unwrap();
    }
    machine
}

fn with(format: FormatNvm) -> PurgeSettings {
    PurgeSettings {
        format,
        ..want("nvme-format")
    }
}

/// A format as it was given.
struct Given {
    nsid: u32,
    dword10: u32,
    timeout: Duration,
    like: String,
    /// What was written to attributes behind it.
    after: Vec<String>,
}

fn format_of(machine: &Machine, device: &Path, format: FormatNvm) -> Result<Given, PurgeError> {
    let replies = [controller(0b110, 0), namespace(1), list(&[3])].map(good);
    let issue = Played::new(replies);
    let purge = Purge::new(&machine.sys(), &issue, &with(format), device)?;
    // What was asked went to the controller, whose number is not the namespace's.
    let drive = Path::new("/dev/nvme7");
    assert!(issue.issued().iter().all(|(path, _)| path == drive));
    let nothing = Played::new([Reply::default(), Reply::default()]);
    // The samples stay where they are: it is only about the commands.
    let _ = kept(run(&purge, &nothing));
    let issued = nothing.issued();
    let (path, command) = &issued[0];
    assert_eq!(path, drive);
    let Command::Nvme {
        opcode: 0x80,
        nsid,
        dwords,
        data: CommandData::None,
        timeout,
    } = command
    else {
        panic!("{command:?}")
    };
    assert_eq!(dwords[1..], [0; 5]);
    let after = issued[1..].iter().map(|(_, command)| match command {
        Command::Attribute { path, value } => {
            format!("{value} > {}", path.file_name().unwrap().display())
        }
        other => panic!("{other:?}"),
    });
    Ok(Given {
        nsid: *nsid,
        dword10: dwords[0],
        timeout: *timeout,
        like: purge.like(),
        after: after.collect(),
    })
}

/// Settings from a text such as `ses=0 lbaf=2`; what is not there is absent.
fn settings(text: &str) -> FormatNvm {
    let mut format = FormatNvm::default();
    for (name, value) in text.split(' ').filter_map(|pair| pair.split_once('=')) {
        let byte = || Some(value.parse().unwrap());
        match name {
            "ses" => format.ses = byte(),
            "lbaf" => format.lbaf = byte(),
            "ms" => format.ms = byte(),
            "pi" => format.pi = byte(),
            "pil" => format.pil = byte(),
            "nsid" => format.nsid = Some(value.parse().unwrap()),
            "timeout" => format.timeout = Some(Duration::from_secs(value.parse().unwrap())),
            "reset" => format.reset = true,
            other => panic!("{other}"),
        }
    }
    format
}

#[test]
fn every_option_of_a_format_stands_where_the_specification_has_it() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let erase = 1 << 9;
    for (options, nsid, dword10, seconds, after) in [
        // LBA format 1 is in force, and stays.
        ("", 3, 1 | erase, 600, ""),
        ("ses=0", 3, 1, 600, ""),
        ("ses=2", 3, 1 | 2 << 9, 600, ""),
        ("lbaf=2", 3, 2 | erase, 600, "1 > rescan_controller"),
        ("ms=1", 3, 1 | 1 << 4 | erase, 600, ""),
        ("pi=1", 3, 1 | 1 << 5 | erase, 600, ""),
        ("pi=3 pil=0", 3, 1 | 3 << 5 | erase, 600, ""),
        ("nsid=4294967295", u32::MAX, 1 | erase, 600, ""),
        ("nsid=3 timeout=5400", 3, 1 | erase, 5400, ""),
        ("reset=1", 3, 1 | erase, 600, "1 > reset_controller"),
    ] {
        let given = format_of(&machine, device.path(), settings(options)).unwrap();
        let found = (given.nsid, given.dword10, given.timeout.as_secs());
        assert_eq!(found, (nsid, dword10, seconds), "{options}: {}", given.like);
        assert_eq!(given.after.join(" "), after, "{options}");
    }
    let all = settings("ses=0 lbaf=3 ms=1 pi=3 pil=0 timeout=2");
    let like = "nvme format --namespace-id=0x3 --ses=0 --lbaf=3 --ms=1 --pi=3 --pil=0 --timeout=2000 /dev/nvme7";
    assert_eq!(format_of(&machine, device.path(), all).unwrap().like, like);
}

#[test]
fn settings_that_the_drive_lacks_are_refused_before_anything_is_written() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let refused = |options: &str, fna: u8, check: bool| {
        let replies = [controller(fna, 0), namespace(0), list(&[3])].map(good);
        let want = PurgeSettings {
            check,
            ..with(settings(options))
        };
        Purge::new(&machine.sys(), &Played::new(replies), &want, device.path()).err()
    };
    for (options, reason) in [
        ("lbaf=5", "no LBA format 5: 0 to 4"),
        ("lbaf=4", "LBA format 4 of the namespace is not available"),
        ("ses=2", "no cryptographic erase"),
        ("pi=2 lbaf=1", "type 2 is not supported"),
        ("pi=1", "needs 8 bytes of metadata, LBA format 0 has 0"),
        ("pi=1 lbaf=1 pil=1", "first bytes is not supported"),
        ("ms=0 lbaf=1", "metadata setting 0 is not supported"),
        ("nsid=4294967295", "formats no namespace by FFFFFFFFh"),
    ] {
        let error = refused(options, 0b1000, true).unwrap();
        assert_eq!(error.exit(), Exit::Input, "{error}");
        assert!(error.to_string().contains(reason), "{options}: {error}");
        // PURGE_NVME_PURGE_VERIFY=n: the drive is asked to do it.
        assert!(refused(options, 0b1000, false).is_none());
    }
    for (options, reason) in [
        ("ses=3", "no secure erase 3: 0, 1, 2"),
        ("lbaf=64", "no LBA format 64: 0 to 63"),
        ("ms=2", "no metadata setting 2"),
        (
            "nsid=1",
            "namespace 1 is not this device, which is namespace 3",
        ),
    ] {
        for check in [true, false] {
            let error = refused(options, 0b100, check).unwrap();
            assert!(error.to_string().contains(reason), "{options}: {error}");
        }
    }
    let replies = [vec![0; 4096], namespace(0), list(&[3])].map(good);
    let issue = Played::new(replies);
    let error = Purge::new(&machine.sys(), &issue, &want("nvme-format"), device.path());
    let error = error.unwrap_err();
    assert_eq!(error.exit(), Exit::Missing);
    assert!(
        error.to_string().contains("no Format NVM (OACS bit 1)"),
        "{error}"
    );
}

#[test]
fn a_format_is_believed_by_its_blocks_alone() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let purged = |drive: Drive| {
        let purge = Purge::new(&machine.sys(), &drive, &want("nvme-format"), device.path());
        (run(&purge.unwrap(), &drive), drive.count(0x80))
    };
    let done = |_: &Command| Reply::default();
    let (honest, count) =
        purged(Drive::new(device.path(), answers(0, 0, &[3], done)).erasing_at(0x80));
    let honest = honest.unwrap();
    assert_eq!(
        (honest.verification.promise, count),
        (ExpectedContent::Gone, 1)
    );
    assert_eq!(honest.verification.zeros, honest.verification.samples);

    let (liar, _) = purged(Drive::new(device.path(), answers(0, 0, &[3], done)));
    all_kept(kept(liar));

    // 10Ah: invalid format; the kernel adds Do Not Retry (4000h).
    let (refuser, _) = purged(Drive::new(
        device.path(),
        answers(0, 0, &[3], |_| bad(0x410a, &[])),
    ));
    let error = refuser.unwrap_err();
    let told = "nvme format --namespace-id=0x3 --ses=1 --lbaf=0 --ms=0 --timeout=600000 /dev/nvme7: the drive says no: it does not take this format (status 0x10a)";
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(error.exit(), Exit::Failed);
}

/// SPROG and SSTAT of the log page 81h.
fn log(progress: u16, status: u16) -> Reply {
    let mut data = vec![0; 512];
    data[..2].copy_from_slice(&progress.to_le_bytes());
    data[2..4].copy_from_slice(&status.to_le_bytes());
    // Times: overwrite not told, block erase 90 s, crypto 2 s.
    data[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    data[12..16].copy_from_slice(&90u32.to_le_bytes());
    data[16..20].copy_from_slice(&2u32.to_le_bytes());
    good(data)
}

/// A drive that is asked for its log once beforehand, then says what stands in
/// `states`, the last for ever.
fn sanitizing(
    ids: &'static [u32],
    states: &'static [(u16, u16)],
    start: Reply,
) -> impl Fn(&Command) -> Reply + Send + Sync {
    let asked = AtomicUsize::new(0);
    answers(0, 0b111, ids, move |command| match command {
        Command::Nvme { opcode: 2, .. } => {
            let at = asked.fetch_add(1, Ordering::SeqCst);
            let state = at
                .checked_sub(1)
                .map_or((0, 0), |at| states[at.min(states.len() - 1)]);
            log(state.0, state.1)
        }
        Command::Nvme { opcode: 0x84, .. } => start.clone(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_sanitize_is_followed_to_its_end() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let going: &[(u16, u16)] = &[(0, 2), (0x8000, 2), (0xffff, 0x101)];
    for (method, dword10, promise, estimate) in [
        ("nvme-sanitize-block", 2, ExpectedContent::Gone, Some(90)),
        ("nvme-sanitize-crypto", 4, ExpectedContent::Gone, Some(2)),
        (
            "nvme-sanitize-overwrite",
            3 | 1 << 4,
            ExpectedContent::Zeros,
            None,
        ),
    ] {
        let drive = Drive::new(device.path(), sanitizing(&[3], going, Reply::default()));
        let drive = drive.erasing_at(0x84);
        let mut want = want(method);
        want.choice = method.parse().unwrap();
        let purge = Purge::new(&machine.sys(), &drive, &want, device.path()).unwrap();
        let offer = purge.capabilities.offer(purge.method, &want);
        assert_eq!(
            offer.estimate.map(|time| time.as_secs()),
            estimate,
            "{method}"
        );
        let mut shares = Vec::new();
        let done = purge.run(
            &drive,
            &words(&[device.path()]),
            &|| false,
            &mut |progress| {
                if let fathom_device::purge::PurgeProgress::Part {
                    share: Some(share), ..
                } = progress
                {
                    shares.push(share);
                }
            },
        );
        let done = done.unwrap();
        assert_eq!(done.verification.promise, promise);
        assert!(shares.contains(&0.5), "{shares:?}");
        let orders = drive.orders();
        let [
            Command::Nvme {
                opcode: 0x84,
                nsid: 0,
                dwords,
                ..
            },
        ] = &orders[..]
        else {
            panic!("{orders:?}")
        };
        assert_eq!(dwords, &[dword10, 0, 0, 0, 0, 0], "{method}");
        assert_eq!(drive.count(2), 4, "{method}");
    }
}

#[test]
fn a_sanitize_that_is_not_done_is_told() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let result = |states, start| {
        let drive = Drive::new(device.path(), sanitizing(&[3], states, start));
        let purge = Purge::new(
            &machine.sys(),
            &drive,
            &want("nvme-sanitize-block"),
            device.path(),
        );
        run(&purge.unwrap(), &drive)
    };
    let failed = result(&[(0, 2), (0, 3)], Reply::default()).unwrap_err();
    assert!(failed.to_string().contains("SSTAT 3"), "{failed}");
    // It was taken, and never began.
    let never = result(&[(0, 0)], Reply::default()).unwrap_err();
    assert!(never.to_string().contains("never was sanitized"), "{never}");
    let refused = result(&[(0, 0)], bad(0x4002, &[])).unwrap_err();
    assert!(
        refused.to_string().contains("a field of the command"),
        "{refused}"
    );
    // It says that it is done, and all data are there.
    all_kept(kept(result(&[(0xffff, 1)], Reply::default())));
}

/// One that is attached elsewhere, or to nothing, cannot be looked at.
#[test]
fn a_namespace_that_is_no_device_here_keeps_all_from_being_sanitized() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let drive = Drive::new(
        device.path(),
        sanitizing(&[1, 3], &[(0, 1)], Reply::default()),
    );
    let want = want("nvme-sanitize-block");
    let purge = Purge::new(&machine.sys(), &drive, &want, device.path()).unwrap();
    let refusal = purge.check(&words(&[device.path()])).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("namespace 1 of the same drive"),
        "{refusal}"
    );
    assert!(matches!(run(&purge, &drive), Err(PurgeError::Refused(_))));
    assert_eq!(drive.orders(), []);
}

/// A drive whose namespaces 1 and 3 are loop devices.
fn drive_of_two(device: &Path, fna: u8) -> Drive {
    Drive::new(device, answers(fna, 0b010, &[1, 3], |_| log(0xffff, 1))).erasing_at(0x80)
}

#[test]
fn other_namespaces_are_passed_over_where_there_is_a_choice() {
    let device = require!(LoopDevice::new(SIZE));
    let other = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), Some(other.path()));
    // FNA bit 0: every format formats all; bit 1: every secure erase does.
    for (fna, options, wide) in [
        (0, "", false),
        (1, "ses=0", true),
        (2, "ses=0", false),
        (2, "", true),
        (0, "nsid=4294967295", true),
    ] {
        let plan = |method: &str| {
            let format = settings(options);
            let want = PurgeSettings {
                format,
                ..want(method)
            };
            let drive = drive_of_two(device.path(), fna);
            Purge::new(&machine.sys(), &drive, &want, device.path()).unwrap()
        };
        assert_eq!(
            !plan("nvme-format").touches.is_empty(),
            wide,
            "{fna} {options}"
        );
        let auto = plan("auto");
        let name = auto.method.to_string();
        assert_eq!(
            name,
            if wide { "overwrite" } else { "nvme-format" },
            "{options}"
        );
        if wide {
            let (_, reason) = &auto.passed_over[0];
            let wanted = format!("take away the data of {} as well", other.path().display());
            assert!(reason.contains(&wanted), "{reason}");
        }
    }
}

#[test]
fn other_namespaces_must_be_named_and_free() {
    let device = require!(LoopDevice::new(SIZE));
    let other = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), Some(other.path()));
    let drive = || drive_of_two(device.path(), 2);
    let wanted = want("nvme-format");
    let purge = Purge::new(&machine.sys(), &drive(), &wanted, device.path()).unwrap();
    let unnamed = purge
        .check(&words(&[device.path()]))
        .unwrap_err()
        .to_string();
    let name = other.path().display().to_string();
    assert!(unnamed.starts_with(&name), "{unnamed}");
    let both = words(&[device.path(), other.path()]);
    purge.check(&both).unwrap();
    // Named, and in use.
    let over = require!(LoopDevice::over(other.path()));
    let used = purge.check(&both).unwrap_err().to_string();
    assert!(
        used.contains(&format!("{name} is behind loop device")),
        "{used}"
    );
    let nothing = drive();
    let refused = purge.run(&nothing, &both, &|| false, &mut |_| panic!("it was begun"));
    assert!(
        matches!(refused, Err(PurgeError::Refused(_))),
        "{refused:?}"
    );
    assert_eq!(nothing.orders(), []);
    drop(over);
    let honest = drive();
    let done = purge.run(&honest, &both, &|| false, &mut |_| {});
    assert!(done.unwrap().verification.held());
    assert_eq!(honest.count(0x80), 1);
}

/// What stands in sysfs counts, never the name.
#[test]
fn the_namespace_is_the_one_of_sysfs() {
    let device = require!(LoopDevice::new(SIZE));
    let machine = machine(device.path(), None);
    let nsid: PathBuf = machine
        .path("sys/devices")
        .join(device.path().file_name().unwrap())
        .join("nsid");
    std::fs::write(nsid, "9\n").unwrap();
    let issue = Played::new([controller(0, 0), namespace(0), list(&[9])].map(good));
    let purge = Purge::new(&machine.sys(), &issue, &want("nvme-format"), device.path()).unwrap();
    assert!(
        purge.like().contains("--namespace-id=0x9 "),
        "{}",
        purge.like()
    );
    let asked: Vec<_> = issue.issued();
    let Command::Nvme { nsid, dwords, .. } = &asked[1].1 else {
        panic!()
    };
    assert_eq!((*nsid, dwords[0]), (9, 0));
}
