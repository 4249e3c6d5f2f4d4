//! What a configuration wants of a purge, and the log of fio-tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fathom_device::Sys;
use fathom_device::command::{Command, Issue, KernelDevices, Reply};
use fathom_device::purge::{FormatNvm, Purge, PurgeError, PurgeSettings};
use fathom_device::safety::Confirmations;
use fathom_engine::Control;
use fathom_kconfig::{Config, DiskFiles, Loader};
use fathom_model::{Event, LedgerEvent, StageEnd};
use fathom_prepare::purge::{RecordedPurge, end, event, wanted};
use fathom_testkit::{LoopDevice, require};

/// The shipped configuration with these lines.
fn config(lines: &str) -> Config {
    let campaigns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let tree = Loader::new(&DiskFiles::new(campaigns))
        .load("Kconfig")
        .unwrap();
    let mut config = Config::new(Arc::new(tree));
    let warnings = config.read(lines, "test");
    assert!(warnings.is_empty(), "{warnings:?}");
    config
}

fn want(lines: &str) -> PurgeSettings {
    wanted(&config(lines)).unwrap().unwrap()
}

fn names(want: &PurgeSettings) -> Vec<String> {
    want.choice
        .methods()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_symbols_of_fio_tests_mean_what_they_mean_there() {
    let plain = want("");
    assert_eq!(names(&plain), ["nvme-format", "blkdiscard", "overwrite"]);
    let format = FormatNvm {
        ses: Some(1),
        ..FormatNvm::default()
    };
    assert_eq!(
        (&plain.format, plain.check, plain.samples),
        (&format, true, 1024)
    );
    // SES 0 is the default of the quick debugging settings.
    let quick = want("CONFIG_DEBUG=y\nCONFIG_DEBUG_QUICK_DEFAULTS=y\n");
    assert_eq!(quick.format.ses, Some(0));
    let all = want(
        "CONFIG_PURGE_NSID_SPECIFIC=y\nCONFIG_PURGE_NSID=\"0x7\"\nCONFIG_PURGE_LBAF_SPECIFIC=y\n\
         CONFIG_PURGE_LBAF=\"2\"\nCONFIG_PURGE_MS_SPECIFIC=y\nCONFIG_PURGE_MS=\"1\"\n\
         CONFIG_PURGE_RESET=y\nCONFIG_PURGE_TIMEOUT_SET=y\nCONFIG_PURGE_TIMEOUT_MS=\"5000\"\n\
         CONFIG_PURGE_SES_2=y\nCONFIG_PURGE_PI=y\nCONFIG_PURGE_PIL_1=y\n\
         # CONFIG_PURGE_NVME_PURGE_VERIFY is not set\nCONFIG_PURGE_SAMPLES=\"77\"\n",
    );
    let format = FormatNvm {
        nsid: Some(7),
        lbaf: Some(2),
        ms: Some(1),
        pi: Some(1),
        pil: Some(1),
        ses: Some(2),
        timeout: Some(Duration::from_secs(5)),
        reset: true,
    };
    assert_eq!((all.format, all.check, all.samples), (format, false, 77));
}

#[test]
fn a_configuration_says_which_commands_are_used() {
    for (lines, methods) in [
        (
            "# CONFIG_PURGING_NVME is not set\n",
            vec!["blkdiscard", "overwrite"],
        ),
        (
            "# CONFIG_PURGING_NVME is not set\nCONFIG_PURGING_ATA=y\n",
            vec![
                "ata-sanitize-block",
                "ata-sanitize-crypto",
                "ata-security-erase-enhanced",
                "ata-security-erase",
                "blkdiscard",
                "overwrite",
            ],
        ),
        (
            "CONFIG_PURGING_SCSI=y\n",
            vec![
                "nvme-format",
                "scsi-sanitize-block",
                "scsi-sanitize-crypto",
                "blkdiscard",
                "scsi-format",
                "overwrite",
            ],
        ),
        (
            "CONFIG_PURGE_METHOD_OVERWRITE_RANDOM=y\n",
            vec!["overwrite-random"],
        ),
        (
            "CONFIG_PURGE_METHOD_ATA_SECURITY_ERASE_ENHANCED=y\n",
            vec!["ata-security-erase-enhanced"],
        ),
        (
            "CONFIG_PURGE_METHOD_NVME_SANITIZE=y\n",
            vec![
                "nvme-sanitize-block",
                "nvme-sanitize-crypto",
                "nvme-sanitize-overwrite",
            ],
        ),
        ("CONFIG_PURGE_METHOD_SCSI_FORMAT=y\n", vec!["scsi-format"]),
        ("CONFIG_PURGE_METHOD_BLKDISCARD=y\n", vec!["blkdiscard"]),
    ] {
        assert_eq!(names(&want(lines)), methods, "{lines}");
    }
    for none in [
        "# CONFIG_PURGING is not set\n",
        "# CONFIG_STEADY_STATE_PROVISIONING is not set\n",
    ] {
        assert_eq!(wanted(&config(none)).unwrap(), None);
    }
    for (lines, symbol) in [
        (
            "CONFIG_PURGE_LBAF_SPECIFIC=y\nCONFIG_PURGE_LBAF=\"64\"\n",
            "PURGE_LBAF",
        ),
        (
            "CONFIG_PURGE_NSID_SPECIFIC=y\nCONFIG_PURGE_NSID=\"one\"\n",
            "PURGE_NSID",
        ),
        ("CONFIG_PURGE_SAMPLES=\"-1\"\n", "PURGE_SAMPLES"),
    ] {
        let said = wanted(&config(lines)).unwrap_err().to_string();
        assert!(said.starts_with(&format!("CONFIG_{symbol}=")), "{said}");
    }
}

/// Says that everything was done.
struct Liar;

impl Issue for Liar {
    fn issue(&self, _: &Path, _: &Command) -> std::io::Result<Reply> {
        Ok(Reply::default())
    }
}

#[test]
fn a_purge_is_logged_as_fio_tests_does_and_told_to_record_and_ledger() {
    let device = require!(LoopDevice::new(8 << 20));
    let folder = tempfile::tempdir().unwrap();
    let want = PurgeSettings {
        samples: 16,
        ..want("CONFIG_PURGE_METHOD_BLKDISCARD=y\n")
    };
    let purge = Purge::new(&Sys::live(), &KernelDevices, &want, device.path()).unwrap();
    let name = device.path().display();
    let confirmed = Confirmations(vec![format!("{name}=8MiB")]);
    let run = RecordedPurge {
        purge: &purge,
        confirmed: &confirmed,
        reason: "before the | rounds",
        folder: Some(folder.path()),
    };
    let mut events = Vec::new();
    let done = run.go(&KernelDevices, &Control::default(), &mut |progress| {
        events.extend(event(&progress))
    });
    assert_eq!(end(&done), Some(StageEnd::Done));
    let deed = |verified| LedgerEvent::Purged {
        method: "blkdiscard".into(),
        verified,
        reason: "before the | rounds".into(),
    };
    assert_eq!(run.deed(&done), Some(deed(true)));
    let notes = events
        .iter()
        .filter(|event| matches!(event, Event::Note { .. }))
        .count();
    assert_eq!((events.len(), notes), (6, 3), "{events:?}");

    let lied = run.go(&Liar, &Control::default(), &mut |_| {});
    assert!(
        matches!(lied, Err(PurgeError::DataRemains { .. })),
        "{lied:?}"
    );
    assert!(matches!(end(&lied), Some(StageEnd::Failed { .. })));
    assert_eq!(run.deed(&lied), Some(deed(false)));

    let control = Control::default();
    control.stop();
    let stopped = run.go(&KernelDevices, &control, &mut |_| {});
    assert_eq!(end(&stopped), None, "{stopped:?}");

    let device_name = device.path().file_name().unwrap();
    let log = std::fs::read_to_string(folder.path().join("logs/purge").join(device_name)).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split('|').collect()).collect();
    let codes: Vec<&str> = lines
        .iter()
        .filter(|line| line[0] == "Finished purge")
        .map(|line| line[3])
        .collect();
    assert_eq!(codes, ["0", "1", "130"]);
    let begun = &lines[0];
    assert_eq!((begun[0], begun[1]), ("Start purge", &*name.to_string()));
    assert_eq!(
        begun[3..],
        [
            &*format!("blkdiscard --step 1073741824 {name}"),
            "before the   rounds"
        ]
    );
}
