//! Making a drive ready on an emulated NVMe drive, which has a serial number and
//! so a ledger: once, not again without need, and anew when somebody has written
//! to it.

use fathom_testkit::{Guest, long, require};
use serde_json::Value;

use crate::guests::{GUEST, MIB, disk_of};

const SERIAL: &str = "READY-NVME";

/// The stages of the last run that have ended, each with how.
fn stages(guest: &mut Guest) -> Vec<(String, String)> {
    let doc = guest.must("cd /tmp/c && fathom status --json");
    let doc: Value = serde_json::from_str(&doc).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = doc["stages"].as_array().unwrap().iter();
    all.map(|s| (text(&s["id"]), text(&s["end"]["end"])))
        .collect()
}

fn ids(stages: &[(String, String)]) -> Vec<&str> {
    stages.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_drive_is_made_ready_once_not_without_need_and_anew_when_it_was_written_to() {
    require!(long());
    let mut guest = require!(GUEST.take());
    let disk = disk_of(&mut guest, SERIAL, 64 * MIB);
    let run =
        format!("cd /tmp/c && DEV=/dev/{disk} fathom run -q --engine native --destroy {SERIAL}");
    let settings = "DUT_IOENGINE=psync DUT_TEST_MAX_IODEPTH=1 PURGING=y PROFILE_RANDREAD=n \
         PROFILE_SEQWRITE=n PROFILE_RANDWRITE=n PROFILE_RANDWRITE_70_30=n PROFILE_RANDWRITE_97_3=n";
    // An emulated drive on a busy machine is never steady: what is tested here is
    // what follows when it is.
    let limits = ["IOPS", "BW"]
        .map(|metric| format!("{metric}_WD_SS_MEAN_LIMIT=10000% {metric}_WD_SS_SLOPE=10000%"));
    let limits = limits.join(" ");
    guest.must(&format!(
        "fathom init -q --defconfig debug-quick /tmp/c && cd /tmp/c && \
         fathom config set {settings} {limits}"
    ));
    // Points that read leave the state as it is.
    guest.must(&run);
    let first = stages(&mut guest);
    assert_eq!(
        ids(&first),
        ["purge", "fill-seq-1", "settle-seq"],
        "{first:?}"
    );
    assert!(first.iter().all(|(_, end)| end == "done"), "{first:?}");
    let ledger = guest.must(&format!("fathom ledger /dev/{disk} --json"));
    let ledger: Value = serde_json::from_str(&ledger).unwrap();
    let entries = ledger["entries"].as_array().unwrap().iter();
    let deeds: Vec<&str> = entries
        .map(|entry| entry["deed"].as_str().unwrap())
        .collect();
    for deed in ["purged", "filled", "settled"] {
        assert_eq!(deeds.iter().filter(|d| **d == deed).count(), 1, "{deeds:?}");
    }

    guest.must(&format!("{run} --again"));
    let second = stages(&mut guest);
    assert_eq!(second, [("settle-seq".to_owned(), "skipped".to_owned())]);
    let log = guest.must(&format!("cat /tmp/c/logs/skip-precon/{disk}"));
    assert!(log.starts_with("Skipping preconditioning|/dev/"), "{log}");
    assert!(log.contains("became steady in sequential writes"), "{log}");

    guest.must(&format!(
        "dd if=/dev/zero of=/dev/{disk} bs=1M count=16 oflag=direct"
    ));
    // The record is there: only what is left is measured, on a drive made ready anew.
    guest.must("cd /tmp/c && fathom config set REPEAT=2");
    let refused = "fathom config set STATE_STALE_REFUSE=y";
    guest.must(&format!("cd /tmp/c && {refused}"));
    let answer = guest.run(&run);
    assert_eq!(answer.code, 4, "{answer:?}");
    guest.must("cd /tmp/c && fathom config set STATE_STALE_REDO=y");
    guest.must(&run);
    let third = stages(&mut guest);
    let expected = ["settle-seq", "purge.2", "fill-seq-1.2", "settle-seq.2"];
    assert_eq!(ids(&third), expected, "{third:?}");
    guest.must(&format!("test ! -e /tmp/c/logs/skip-precon/{disk}"));
}
