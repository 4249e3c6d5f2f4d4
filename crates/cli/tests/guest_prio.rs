//! `fathom prio` on disks that cannot be had on an ordinary machine: one in
//! software with Command Duration Limits, under a kernel and a fio that know them,
//! and emulated SATA and NVMe ones that have none.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use fathom_testkit::{Guest, GuestPlan, skip};
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn plan() -> GuestPlan {
    GuestPlan::newer().file(Path::new(env!("CARGO_BIN_EXE_fathom")), "fathom")
}

#[test]
fn limits_are_kept_counted_and_put_back() {
    let mut guest = match plan().boot() {
        Ok(guest) => guest,
        Err(reason) => return skip("limits_are_kept_counted_and_put_back", &reason),
    };
    let disk = guest.must("cdl-up 5000").trim().to_owned();
    eprintln!("{disk}");
    eprintln!(
        "{}",
        guest.must("fathom prio --help; cat /run/cdl-stats; fio --version")
    );
    eprintln!("{:?}", guest.run(&format!("fathom prio --dev /dev/{disk} --bs 4k --baseline --cdl-single --percentage 20 --dld 2 --ramptime 0 --runtime 3 --qds 16 --outdir /tmp/out")));
    eprintln!("{}", guest.must("cat /run/cdl-stats"));
}
