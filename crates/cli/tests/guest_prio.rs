//! `fathom prio` on disks that cannot be had on an ordinary machine: one in
//! software with Command Duration Limits, under a kernel and a fio that know them,
//! and emulated SATA and NVMe ones that have none.

use fathom_testkit::{Guest, require};
use serde_json::Value;

use crate::guests::NEWER_GUEST;

/// Limit 1: 40 ms at best effort. Limit 2: 20 ms, aborted beyond. Limit 3: 300 ms.
/// The disk needs 5 ms for an I/O.
const PAGE: &str = "40 0x0 20 0xf 300 0x0 0 0x0 0 0x0 0 0x0 0 0x0";
/// Limit 1 of the disk before anything is uploaded (tools/guest/cdl-disk.c).
const OWN_LIMIT_MS: f64 = 770.0;

#[test]
fn limits_are_kept_counted_and_put_back() {
    let mut guest = require!(NEWER_GUEST.take());
    let disk = guest.must("cdl-up 5000").trim().to_owned();
    write_page(&mut guest);
    what_cannot_be_done_is_refused(&mut guest, &disk);
    hinted_reads_are_faster_and_misses_are_those_of_the_disk(&mut guest, &disk);
    for engine in ["fio", "native"] {
        aborted_ios_are_counted(&mut guest, &disk, engine);
    }
    a_killed_run_is_put_right(&mut guest, &disk);
}

/// A page for reads from [`PAGE`]: times in ms with policies.
fn write_page(guest: &mut Guest) {
    let words: Vec<&str> = PAGE.split(' ').collect();
    let mut text = "cdlp: T2A\\nperf-vs-duration-guideline: 0xc\\n".to_owned();
    for (number, pair) in (1..).zip(words.chunks(2)) {
        let tens = pair[0].parse::<u32>().unwrap() / 10;
        text += &format!(
            "== descriptor: {number}\\nt2cdlunits: 0xa\\nmax-inactive-time: 0\\n\
             max-inactive-time-policy: 0x0\\nmax-active-time: 0\\nmax-active-time-policy: 0x0\\n\
             duration-guideline: {tens}\\nduration-guideline-policy: {}\\n",
            pair[1]
        );
    }
    guest.must(&format!(
        "printf '{text}' >/tmp/T2A.cdl && fathom prio pages /tmp/T2A.cdl"
    ));
}

/// A command line of `fathom prio` on a disk; the fio of Debian 13 is its fio.
fn prio(disk: &str, outdir: &str, more: &str) -> String {
    format!(
        "cd /tmp && rm -rf /tmp/{outdir} && FATHOM_FIO=/usr/bin/fio fathom prio --dev /dev/{disk} \
         --bs 4k --ramptime 0 --runtime 2 --qds 16 --outdir /tmp/{outdir} {more}"
    )
}

fn run(guest: &mut Guest, disk: &str, outdir: &str, more: &str) -> Value {
    let told = guest.must(&format!("{} --json 2>/dev/null", prio(disk, outdir, more)));
    serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {told}"))
}

/// How the switches stand, and limit 1 of the page for reads in ms.
fn state(guest: &mut Guest, disk: &str) -> (String, String, f64) {
    let cdl = guest.must(&format!("cat /sys/block/{disk}/device/cdl_enable"));
    let scheduler = guest.must(&format!("cat /sys/block/{disk}/queue/scheduler"));
    let pages = guest.must(&format!("fathom prio pages /dev/{disk} --json"));
    let pages: Value = serde_json::from_str(&pages).unwrap();
    let limit = &pages["pages"][0]["descriptors"][0]["duration_guideline"]["ms"];
    let scheduler = scheduler.trim().to_owned();
    (cdl.trim().to_owned(), scheduler, limit.as_f64().unwrap())
}

/// What the disk has counted of reads: by limit, I/Os that named it, were late,
/// were given up.
fn counts(guest: &mut Guest) -> [Vec<u64>; 3] {
    // The disk writes them down every second.
    guest.must("touch /run/asked; until [ /run/cdl-stats -nt /run/asked ]; do usleep 20000; done");
    let text = guest.must("grep ^reads /run/cdl-stats");
    let words: Vec<&str> = text.split_whitespace().collect();
    ["named", "late", "given-up"].map(|what| {
        let at = words.iter().position(|word| *word == what).unwrap();
        let numbers = words[at + 1..at + 9].iter();
        numbers.map(|number| number.parse().unwrap()).collect()
    })
}

fn what_cannot_be_done_is_refused(guest: &mut Guest, disk: &str) {
    let sata = guest.must("lsblk -dnbo NAME,SERIAL | awk '$2 == \"SATA\" {print $1}'");
    let sata = sata.trim().to_owned();
    let nvme = guest.must("lsblk -dnbo NAME,SERIAL | awk '$2 == \"GUESTROOT\" {print $1}'");
    let nvme = nvme.trim().to_owned();
    let before = state(guest, disk);
    let single = "--cdl-single --percentage 20 --dld 1";
    let old_fio = "--fio /guest/fio --engine fio --cdl-single --percentage 20 --dld 1";
    for (disk, more, code, said) in [
        (
            &*sata,
            "--ncq-prio --percentage 20",
            5,
            "has no NCQ priority",
        ),
        (&sata, single, 5, "has no Command Duration Limits"),
        (&nvme, single, 5, "has no Command Duration Limits"),
        (&nvme, "--ncqprio --percentage 20", 5, "has no NCQ priority"),
        (disk, "--ncq-prio --percentage 20", 5, "has no NCQ priority"),
        (
            disk,
            old_fio,
            5,
            "cmdprio_hint: this fio does not have this option",
        ),
        (
            disk,
            "--cdl-single --percentage 20 --dld 1 --t2b /tmp/T2A.cdl",
            3,
            "it is page T2A",
        ),
        (disk, "--baseline --rw randwrite", 4, "--destroy"),
    ] {
        let answer = guest.run(&prio(disk, "refused", more));
        assert_eq!(answer.code, code, "{more}: {answer:?}");
        assert!(answer.stderr.contains(said), "{said}: {answer:?}");
    }
    let gone = guest.run("ls -d /tmp/refused ~/.local/state/fathom");
    assert_eq!(gone.stdout, "", "nothing was touched");
    assert_eq!(state(guest, disk), before);
}

fn class(doc: &Value, workload: usize, hint: u64) -> &Value {
    let classes = doc["workloads"][workload]["points"][0]["classes"].as_array();
    let found = classes.unwrap().iter().find(|class| class["hint"] == hint);
    found.unwrap_or_else(|| panic!("no class with hint {hint}: {doc}"))
}

fn hinted_reads_are_faster_and_misses_are_those_of_the_disk(guest: &mut Guest, disk: &str) {
    let before = counts(guest);
    let found = state(guest, disk);
    assert_eq!(found.2, OWN_LIMIT_MS);
    let more = "--t2a /tmp/T2A.cdl --baseline --cdl-multi --dldsplit 1/40,3/20";
    let doc = run(guest, disk, "out", more);
    assert_eq!(
        (&doc["schema"], &doc["status"]),
        (&"fathom.prio/1".into(), &"complete".into())
    );
    let after = counts(guest);
    let (none, tight, wide) = (class(&doc, 1, 0), class(&doc, 1, 1), class(&doc, 1, 3));
    let n = |class: &Value| class["n"].as_u64().unwrap();
    assert_eq!(n(tight), after[0][1] - before[0][1], "{doc}");
    assert_eq!(n(wide), after[0][3] - before[0][3], "{doc}");
    // The host sees an I/O longer than the disk does.
    let over = tight["over"].as_u64().unwrap();
    let late = after[1][1] - before[1][1];
    assert!(over >= late, "{over} over, the disk counts {late} late");
    let log = guest.must("cat /tmp/out/cdlmulti/16/randread.log_lat.log");
    let is_over = |ns: &&u64| **ns > 40_000_000;
    let logged_over = logged(&log, 1).iter().filter(is_over).count();
    assert_eq!(over, logged_over as u64, "{doc}");
    // And its log tells the same, which stands beside the host's count.
    assert_eq!(tight["disk_over"], late, "{doc}");
    assert_eq!(wide["disk_over"], after[1][3] - before[1][3], "{doc}");
    assert!(none["disk_over"].is_null(), "{doc}");
    let of_log = guest.must("fathom lat /tmp/out/cdlmulti/16/randread.log_lat.log");
    let beside = format!("limit 1 of reads (40 ms): {over} of {}", n(tight));
    assert!(of_log.contains(&beside), "{of_log}");
    assert!(
        of_log.contains(&format!(", {late} by the disk's count")),
        "{of_log}"
    );
    let shown = guest.must("cd /tmp && fathom prio show");
    assert!(shown.contains("host/disk"), "{shown}");
    assert!(shown.contains(&format!(" {over}/{late} ")), "{shown}");
    // A guest that stands still for a second moves a mean, not a median.
    let [tight, wide, none] = [1, 3, 0].map(|hint| {
        let all = logged(&log, hint);
        all[all.len() / 2]
    });
    assert!(
        tight < none && wide < none,
        "{tight}, {wide}, {none}: {doc}"
    );
    assert_eq!(state(guest, disk), found);
    let files = guest.must("cd /tmp/out && find . -type f | sort");
    let wanted = "./baseline/16/cdl_statistics ./baseline/16/fio.log \
                  ./baseline/16/randread.log_lat.log ./cdlmulti/16/cdl_statistics \
                  ./cdlmulti/16/fio.log ./cdlmulti/16/randread.log_lat.log \
                  ./cdlmulti/cdl_descriptors";
    assert_eq!(
        files.split_whitespace().collect::<Vec<_>>().join(" "),
        wanted
    );
    let shown = guest.must("cat /tmp/out/cdlmulti/cdl_descriptors");
    assert!(
        shown.contains("    duration guideline      : 40 ms"),
        "{shown}"
    );
}

/// Latencies in fio's log, in ns, of the reads that name a limit, or none (0); the shortest
/// first.
fn logged(log: &str, hint: u16) -> Vec<u64> {
    let named = |line: &str| {
        let words: Vec<&str> = line.split(", ").collect();
        let ns: u64 = words[1].parse().unwrap();
        let priority = words.last().unwrap().trim_start_matches("0x");
        // Bits 3 to 12 of a priority are its hint (include/uapi/linux/ioprio.h).
        let named = u16::from_str_radix(priority, 16).unwrap() >> 3 & 0x3ff;
        (named == hint).then_some(ns)
    };
    let mut all: Vec<u64> = log.lines().filter_map(named).collect();
    all.sort_unstable();
    all
}

fn aborted_ios_are_counted(guest: &mut Guest, disk: &str, engine: &str) {
    let before = counts(guest);
    let found = state(guest, disk);
    let more = "--t2a /tmp/T2A.cdl --cdl-single --percentage 95 --dld 2";
    let doc = run(guest, disk, "aborted", &format!("{more} --engine {engine}"));
    let after = counts(guest);
    let given_up = after[2][2] - before[2][2];
    assert!(given_up > 0, "{engine}: {doc}");
    let point = &doc["workloads"][0]["points"][0];
    assert_eq!(point["aborted"], given_up, "{engine}: {doc}");
    let hinted = class(&doc, 0, 2);
    assert_eq!(hinted["aborted"], given_up, "{engine}");
    let named = hinted["n"].as_u64().unwrap() + given_up;
    assert_eq!(named, after[0][2] - before[0][2], "{engine}: {doc}");
    assert_eq!(class(&doc, 0, 0)["aborted"], 0, "{engine}");
    assert_eq!(state(guest, disk), found, "{engine}");
}

fn a_killed_run_is_put_right(guest: &mut Guest, disk: &str) {
    let found = state(guest, disk);
    let start = |outdir: &str| {
        let more = "--t2a /tmp/T2A.cdl --cdl-single --percentage 50 --dld 1 --runtime 600";
        let line = prio(disk, outdir, more).replace("--runtime 2 ", "");
        let enabled = format!("/sys/block/{disk}/device/cdl_enable");
        format!(
            "({line} >/tmp/killed 2>&1 & echo $! >/tmp/sh); until grep -q 1 {enabled}; do usleep \
             100000; done; pidof fathom >/tmp/pids; true"
        )
    };
    let kill = "kill -9 $(cat /tmp/pids) && while pidof fathom >/dev/null; do usleep 100000; done";
    guest.must(&start("killed-1"));
    guest.must(kill);
    let left = state(guest, disk);
    assert_eq!((&*left.0, left.2), ("1", 40.0));
    let said = guest.run("fathom prio restore");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("as it was"), "{said:?}");
    assert_eq!(state(guest, disk), found);
    assert_eq!(
        guest.must("fathom prio restore 2>&1").trim(),
        "there is nothing to put back"
    );

    guest.must(&start("killed-2"));
    guest.must(kill);
    let next = guest.run(
        &prio(disk, "next", "--baseline --qds 1 --runtime 1")
            .replace("--qds 16 ", "")
            .replace("--runtime 2 ", ""),
    );
    assert_eq!(next.code, 0, "{next:?}");
    assert!(next.stderr.contains("a killed run had left"), "{next:?}");
    assert_eq!(state(guest, disk), found);

    guest.must(&start("interrupted"));
    guest.must("kill -INT $(tr ' ' '\\n' </tmp/pids | sort -n | head -n 1)");
    guest.must("while pidof fathom >/dev/null; do usleep 100000; done");
    assert_eq!(
        state(guest, disk),
        found,
        "{}",
        guest.must("cat /tmp/killed")
    );
}
