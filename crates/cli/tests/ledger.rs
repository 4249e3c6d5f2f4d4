//! The ledgers of devices: on emulated drives in a guest, what runs write to
//! them, what others write, and what a killed run has written; and what has no
//! ledger.

use std::process::{Command, Output};

use fathom_testkit::{Guest, require};
use serde_json::Value;
use tempfile::TempDir;

use crate::guests::{GUEST, MIB, disk_of};

/// A drive in the guest.
struct Drive {
    serial: &'static str,
    /// Its kernel name there.
    disk: String,
}

impl Drive {
    fn new(guest: &mut Guest, serial: &'static str) -> Self {
        let disk = disk_of(guest, serial, 64 * MIB);
        Self { serial, disk }
    }

    /// Runs a job on it, whose options are those of its section.
    fn run(&self, guest: &mut Guest, options: &str, more: &str) {
        guest.must(&self.command(options, more));
    }

    fn command(&self, options: &str, more: &str) -> String {
        let Self { serial, disk } = self;
        format!(
            "cd /tmp && printf '[w]\\nrw=write\\nbs=64k\\ndirect=1\\nfilename=/dev/{disk}\\n{options}' \
             >{serial}.fio && fathom job run {serial}.fio -q --engine native --destroy {serial} {more}"
        )
    }

    fn ledger(&self, guest: &mut Guest) -> Value {
        let line = format!("fathom ledger /dev/{} --json", self.disk);
        serde_json::from_str(&guest.must(&line)).unwrap()
    }
}

fn number(doc: &Value, key: &str) -> u64 {
    doc[key].as_u64().unwrap_or_else(|| panic!("{key}: {doc}"))
}

/// The kinds of its entries, oldest first.
fn deeds(doc: &Value) -> Vec<&str> {
    let entries = doc["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["deed"].as_str().unwrap())
        .collect()
}

#[test]
fn drives_keep_their_history_and_tell_what_others_wrote() {
    let mut guest = require!(GUEST.take());
    for serial in ["LEDGER-NVME", "LEDGER-SCSI", "LEDGER-VIRTIO"] {
        let drive = Drive::new(&mut guest, serial);
        a_life(&mut guest, &drive);
    }
    let nvme = Drive::new(&mut guest, "LEDGER-NVME");
    what_nvme_says(&mut guest, &nvme);
    what_a_killed_run_wrote(&mut guest, &nvme);
    a_budget(&mut guest, &nvme);
    a_state(&mut guest, &nvme);
    let all: Value = serde_json::from_str(&guest.must("fathom ledger --json")).unwrap();
    assert_eq!(all["schema"], "fathom.ledger-list/1");
    assert_eq!(all["devices"].as_array().unwrap().len(), 3, "{all}");
    let table = guest.must("fathom ledger");
    for told in ["QEMU NVMe Ctrl", "LEDGER-NVME n3", "LEDGER-VIRTIO", "used"] {
        assert!(table.contains(told), "{told}: {table}");
    }
}

fn a_life(guest: &mut Guest, drive: &Drive) {
    let unknown = guest.run(&format!("fathom ledger {}", drive.serial));
    assert_eq!(unknown.code, 5, "{unknown:?}");
    drive.run(guest, "size=8m\\n", "");
    let doc = drive.ledger(guest);
    assert_eq!(doc["schema"], "fathom.ledger-device/1");
    assert_eq!(deeds(&doc), ["seen", "written", "seen"], "{doc}");
    assert_eq!(number(&doc, "fathom_written_bytes"), 8 * MIB);
    assert_eq!(doc["others_since_bytes"], 0, "{doc}");
    assert_eq!(doc["name"], drive.disk.as_str());
    assert_eq!(
        (&doc["state"], &doc["serial"]),
        (&"used".into(), &drive.serial.into())
    );
    let record = doc["entries"][1]["record"].as_str().unwrap();
    guest.must(&format!("test -f {record}/events.jsonl"));

    // A run that reads writes nothing, and does not count.
    drive.run(guest, "rw=read\\nsize=8m\\n", "");
    assert_eq!(drive.ledger(guest)["entries"], doc["entries"]);

    let disk = &drive.disk;
    guest.must(&format!(
        "dd if=/dev/zero of=/dev/{disk} bs=1M count=6 oflag=direct"
    ));
    let doc = drive.ledger(guest);
    let others = number(&doc, "others_since_bytes");
    // NVMe drives count in units of 512 000 bytes.
    assert!(others.abs_diff(6 * MIB) <= 512_000, "{disk}: {others}");
}

fn what_nvme_says(guest: &mut Guest, drive: &Drive) {
    let doc = drive.ledger(guest);
    assert_eq!(doc["nsid"], 3);
    let health = &doc["health"];
    assert_eq!(
        (&health["used_percent"], &doc["used_percent"]),
        (&0.0.into(), &0.0.into())
    );
    assert!(number(health, "host_written_bytes") >= 14 * MIB, "{health}");
    assert_eq!(
        number(&doc, "host_written_bytes"),
        number(health, "host_written_bytes")
    );
    assert_eq!(health["power_on_hours"], 0.0);
    // QEMU's drive is at 323 K.
    assert_eq!(health["temperature_celsius"], 50.0);
    assert_eq!(health["warnings"], serde_json::json!([]));
    let text = guest.must(&format!("fathom ledger {}", drive.serial));
    for told in [
        "QEMU NVMe Ctrl LEDGER-NVME n3",
        "8 MiB by Fathom",
        "0 % used",
        "50 °C",
        "other writes",
        "job run",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

fn what_a_killed_run_wrote(guest: &mut Guest, drive: &Drive) {
    let before = number(&drive.ledger(guest), "fathom_written_bytes");
    let long = "time_based\\nruntime=600\\nsize=32m\\nrate=2m\\n";
    let line = drive.command(long, "--name killed >/dev/null 2>&1 & echo $! >/tmp/killed");
    guest.must(&line);
    let waits = "n=0; until grep -qs '\"event\":\"sample\"' /tmp/fathom-runs/*-killed/events.jsonl; do \
                 n=$((n+1)); [ $n -lt 300 ] || exit 1; usleep 100000; done";
    guest.must(waits);
    // Nobody counts while it goes on.
    let going = drive.ledger(guest);
    assert_eq!(number(&going, "fathom_written_bytes"), before);
    guest.must(
        "kill -9 $(cat /tmp/killed); n=0; while pidof fathom; do n=$((n+1)); \
                [ $n -lt 300 ] || exit 1; usleep 100000; done",
    );
    let doc = drive.ledger(guest);
    let now = number(&doc, "fathom_written_bytes");
    assert!(now > before, "{doc}");
    assert_eq!(
        drive.ledger(guest)["entries"],
        doc["entries"],
        "entered once"
    );
}

/// What the drive tells of its wear becomes the share in the plan.
fn a_budget(guest: &mut Guest, drive: &Drive) {
    guest.must("cd /tmp && fathom init c && cd c && fathom config defconfig debug-quick");
    guest.must(
        "cd /tmp/c && fathom config set PROFILE_RANDWRITE=y ENGINE_NATIVE=y DUT_IOENGINE=psync",
    );
    let plan = format!(
        "cd /tmp/c && DEV=/dev/{} fathom plan --only randwrite --write-speed 8M",
        drive.disk
    );
    let doc: Value = serde_json::from_str(&guest.must(&format!("{plan} --json"))).unwrap();
    let totals = &doc["totals"];
    assert_eq!(totals["rated_endurance_share"], Value::Null);
    assert!(
        totals["rated_endurance_share_most"].as_f64().unwrap() > 0.0,
        "{totals}"
    );
    let text = guest.must(&plan);
    assert!(
        text.contains("of it at most: the drive counts 0 % used"),
        "{text}"
    );
    let said = guest.must(&format!("{plan} --endurance-tbw 1"));
    assert!(said.contains("of the 1 TB given"), "{said}");
}

/// A campaign leads the drive into steady state, which is needless the next time,
/// and stale once somebody else has written.
fn a_state(guest: &mut Guest, drive: &Drive) {
    // An emulated drive on a busy machine is never steady of itself.
    for metric in ["IOPS", "BW"] {
        let limits = format!("{metric}_WD_SS_MEAN_LIMIT=10000% {metric}_WD_SS_SLOPE=10000%");
        guest.must(&format!("cd /tmp/c && fathom config set {limits}"));
    }
    let set = format!(
        "cd /tmp/c && fathom config set PURGING=n PROFILE_SEQREAD=n PROFILE_SEQWRITE=n \
         PROFILE_RANDWRITE=n PROFILE_RANDWRITE_70_30=n PROFILE_RANDWRITE_97_3=n \
         SANTA_CLARA_ROUND_LIMIT=20 PRECONDITION_STRICT_ORDER=n \
         DUT_TEST_MAX_IODEPTH=1 DESTROY_CONFIRM={} \
         ENERGIZED_TIME=$(awk '{{print int($1) + 15}}' /proc/uptime)s",
        drive.serial
    );
    guest.must(&set);
    let run = format!("cd /tmp/c && DEV=/dev/{} fathom run --again", drive.disk);
    guest.must(&run);
    let doc = drive.ledger(guest);
    assert_eq!(doc["state"], "steady", "{doc}");
    let logs = guest.must("cat /tmp/c/logs/energized/*");
    let told: Vec<&str> = logs
        .lines()
        .map(|line| line.split('|').next().unwrap())
        .collect();
    assert_eq!(told, ["Energizing", "Energized"], "{logs}");
    let written = number(&doc, "fathom_written_bytes");

    guest.must(&run);
    let doc = drive.ledger(guest);
    assert_eq!(number(&doc, "fathom_written_bytes"), written, "{doc}");
    let skipped = guest.must("cat /tmp/c/logs/skip-precon/*");
    assert!(
        skipped.contains("nothing was written to it since"),
        "{skipped}"
    );

    let disk = &drive.disk;
    guest.must(&format!(
        "dd if=/dev/zero of=/dev/{disk} bs=1M count=6 oflag=direct"
    ));
    assert_eq!(drive.ledger(guest)["state"], "used");
    guest.must("cd /tmp/c && fathom config set STATE_STALE_REFUSE=y");
    let refused = guest.run(&run);
    assert_eq!(refused.code, 4, "{refused:?}");
    let told = "others have written";
    assert!(refused.stderr.contains(told), "{refused:?}");
    guest.must("cd /tmp/c && fathom config set STATE_STALE_REDO=y");
    let redone = guest.run(&run);
    assert_eq!(redone.code, 0, "{redone:?}");
    assert!(
        redone.stderr.contains("made ready for random work again") && redone.stderr.contains(told),
        "{redone:?}"
    );
    assert!(number(&drive.ledger(guest), "fathom_written_bytes") > written);
}

fn fathom(dir: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(args).current_dir(dir.path());
    command.env("XDG_STATE_HOME", dir.path().join("state"));
    command.output().unwrap()
}

#[test]
fn simulations_and_devices_without_a_serial_number_have_no_ledger() {
    let dir = TempDir::with_prefix("fathom-ledger-").unwrap();
    let job = ["--engine=sim", "--", "--name=a", "--rw=write", "--size=1m"];
    let ran = fathom(&dir, &[&["job", "run", "-q"], &job[..]].concat());
    assert!(ran.status.success(), "{ran:?}");
    assert!(!dir.path().join("state").exists());
    let listed = fathom(&dir, &["ledger"]);
    assert!(listed.status.success());
    let stderr = String::from_utf8_lossy(&listed.stderr);
    assert!(stderr.starts_with("There are no ledgers in "), "{stderr}");
    let listed = fathom(&dir, &["ledger", "--json"]);
    let doc: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(doc["devices"], serde_json::json!([]));
    assert_eq!(
        fathom(&dir, &["ledger", "/dev/loop99"]).status.code(),
        Some(5)
    );
}
