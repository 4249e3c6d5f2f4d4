//! fio's own tests of zoned block devices (t/zbd) against the native engine, on a machine
//! of its own: on a SCSI disk in software with zones of both kinds.

use std::fs;

use fathom_testkit::{GuestPlan, SharedGuest, long, require};

use crate::guests::with_fathom;

/// Those that an ordinary block device has to be, and those that want a refusal in fio's
/// own words.
const ORDINARY: [u32; 4] = [42, 43, 49, 56];
const WORDED: [u32; 8] = [1, 2, 20, 23, 40, 41, 44, 45];
const ALL: u32 = 58;
/// Tests of one call: the guest answers when all are over.
const AT_ONCE: usize = 4;

/// Its command line, without what is of fio's memory and screen, as tools/conformance/fio.
const AS_FIO: &str = r#"#!/guest/bash
words=()
for word; do
    case $word in
        --max-jobs=* | --alloc-size=* | --aux-path=* | --debug=* | --significant_figures=*) ;;
        *) words+=("$word") ;;
    esac
done
exec fathom -q --runs /tmp/runs job run --engine native --destroy "$DISK" \
    --output-format=normal -- "${words[@]}"
"#;

/// Zones of 1 MiB: 16 without an order, 136 that are written from their start on, and 8 of
/// those may be open.
const DISK: &str = "modprobe scsi_debug dev_size_mb=152 zbc=managed zone_size_mb=1 \
    zone_nr_conv=16 zone_max_open=8 delay=0 && udevadm settle && \
    cd /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block && echo *";

fn passing() -> Vec<u32> {
    let others = |number: &u32| !ORDINARY.contains(number) && !WORDED.contains(number);
    (1..=ALL).filter(others).collect()
}

fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

/// A machine with fio's tests, which run for 2 s where fio has them run for 30.
static ZONED_GUEST: SharedGuest = SharedGuest::new(|| {
    let tests = fathom_testkit::fio_sources()?.join("t/zbd");
    let text = fs::read_to_string(tests.join("test-zbd-support")).map_err(|e| e.to_string())?;
    let plan = with_fathom(GuestPlan::newer())
        .program("bash")?
        .program("grep")?
        .program("sed")?
        .file(&tests.join("functions"), "zbd/functions")
        .script(
            "zbd/test-zbd-support",
            &text.replace("runtime=30", "runtime=2"),
        )
        .script("as-fio", AS_FIO);
    Ok(plan)
});

#[test]
fn fios_tests_of_zones_pass() {
    require!(long());
    let mut guest = require!(ZONED_GUEST.take());
    guest.must("ln -sf /proc/self/fd /dev/fd; mkdir /tmp/t && cp -r /guest/zbd /tmp/t/ && cp /guest/as-fio /tmp/fio");
    let disk = guest.must(DISK);
    let disk = disk.trim();
    let word = guest.must(&format!("cat /sys/block/{disk}/device/wwid"));
    let word = word.trim();
    let random = guest.run(&format!(
        "fathom --runs /tmp/runs job run --engine native --destroy {word} -- --name=a --rw=randwrite --filename=/dev/{disk} --size=32m --direct=1"
    ));
    assert_eq!(random.code, 4, "{random:?}");
    assert!(
        random.stderr.contains("zonemode=zbd in the job"),
        "{random:?}"
    );
    for numbers in passing().chunks(AT_ONCE) {
        let tests: String = numbers
            .iter()
            .map(|number| format!("-t {number} "))
            .collect();
        let answer = guest.run(&format!(
            "DISK={word} bash /tmp/t/zbd/test-zbd-support {tests} /dev/{disk}"
        ));
        for number in numbers {
            let passed = answer
                .stdout
                .contains(&format!("Running test {number:02} ... PASS"));
            let log = format!("tail -n 20 /tmp/t/zbd/test-zbd-support.log.{number}");
            assert!(passed, "{number}: {answer:?}\n{}", guest.run(&log).stdout);
        }
    }
}

#[test]
fn the_docs_say_which_tests_of_zones_pass() {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFORMANCE.md");
    const BEGIN: &str = "<!-- zones: made by crates/cli/tests/guest_zoned.rs -->\n";
    let passing = passing();
    let made = format!(
        "Of {ALL} tests {} pass: {}. {} look for refusals in fio's words: {}. {} are about \
         ordinary devices: {}.\n",
        passing.len(),
        listed(&passing),
        WORDED.len(),
        listed(&WORDED),
        ORDINARY.len(),
        listed(&ORDINARY)
    );
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let end = rest.find("<!-- zones: end -->").unwrap();
    if std::env::var_os("FATHOM_BLESS").is_some() {
        let whole = format!("{before}{BEGIN}{made}{}", &rest[end..]);
        return fs::write(PAGE, whole).unwrap();
    }
    assert!(
        rest[..end] == made,
        "FATHOM_BLESS=1 writes docs/CONFORMANCE.md"
    );
}
