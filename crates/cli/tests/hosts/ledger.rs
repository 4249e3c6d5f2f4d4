//! Whose ledger is told of what: that of the machine whose device is written.

use super::*;

/// Bytes that the ledgers in a state folder know of, by Fathom.
fn entered(state: &Path) -> u64 {
    let listed = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["ledger", "--json"])
        .env("XDG_STATE_HOME", state)
        .output()
        .unwrap();
    let doc: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let devices = doc["devices"].as_array().unwrap().iter();
    devices
        .flat_map(|device| device["fathom_written_bytes"].as_u64())
        .sum()
}

#[test]
fn every_machine_keeps_the_ledger_of_its_own_devices() {
    let name = "every_machine_keeps_the_ledger_of_its_own_devices";
    let lab = fathom_testkit::require!(Lab::new(2, &[]));
    let bench = Bench::new();
    let text = format!(
        "[a]\ndirectory={}\nrw=write\nbs=64k\nsize=2m\nfilename_format=f.$jobnum\n",
        bench.0.path().display()
    );
    let job = bench.job(&text);
    // Here first: whether the file's disk has a serial number, and so a ledger.
    let here = bench.0.path().join("first");
    let mut first = bench.command(&lab, &["job", "run", &job, "-q", "--json"]);
    assert!(
        first
            .env("XDG_STATE_HOME", &here)
            .status()
            .unwrap()
            .success()
    );
    if entered(&here) == 0 {
        return skip(name, "temporary files lie on no disk with a serial number");
    }
    assert_eq!(entered(&here), 2 << 20);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2"]);
    assert_eq!(code, Some(0), "{doc}");
    assert_eq!(entered(&lab.state(0)), 2 << 20);
    assert_eq!(entered(&lab.state(1)), 2 << 20);
    assert!(!bench.state().join("fathom").exists());
}
