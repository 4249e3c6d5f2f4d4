//! What commands print with `--json` is what `fathom schema` says of it, judged by a
//! validator that is not ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fathom_testkit::{LoopDevice, require};
use serde_json::Value;

fn fathom(dir: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(args.split(' '))
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_STATE_HOME", dir.join("state"))
        .output()
        .unwrap()
}

fn document(dir: &Path, args: &str) -> Value {
    let output = fathom(dir, args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args}: {e}: {told}"))
}

/// Everything that is wrong with a document.
fn wrong(dir: &Path, document: &Value) -> Vec<String> {
    let name = document["schema"].as_str().unwrap();
    let schema = self::document(dir, &format!("schema {name}"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|error| format!("{name}{}: {error}", error.instance_path()))
        .collect()
}

/// Each makes one document; they build on each other.
const COMMANDS: &str = "\
schema --json
doctor --json
init campaign --defconfig survey-10min --json
config show -C campaign --json
config set -C campaign DUT_FILENAME=/dev/null --json
gen -C campaign --json
check -C campaign --json
plan -C campaign --json
ab a.fio --b a.bs=8k --engine sim --each 1s --json
job check a.fio --json
job show a.fio --json
job run a.fio --engine native --json
job run a.fio --engine sim --json
show --json
runs --json
runs tag RUN a=b --note x --json
runs archive RUN --out x.tar.zst --json
runs x.tar.zst --json
runs rm RUN --dry-run --json
query VALUES(1) --json
query --tables --json
find a.fio --knee --to 4 --engine sim --json
find a.fio --p99 1s --of read --over iodepth,rwmixread --to 2 --engine sim --json
steady --json
plot log --json
graph --json
report --json
demo demo --json
export json --runs demo/fathom-runs --json
status --runs demo/fathom-runs --json
ledger --json
snia iops /dev/simulated --engine sim --json
show --json
snia show --json
explain --json
show --samples --json
job run a.fio --dry-run --json
job run a.fio --engine native --dry-run --json
job from-cmdline --json -- --name=a --rw=read --size=1m
lat log_lat.1.log --json
repeat a.fio --times 3 --engine sim --json
soak a.fio --hours 0.01 --period 10s --engine sim --json
config explain -C campaign DUT_IOSIZE --json
config defconfig -C campaign --json
engines --json
engines libaio --json
engines native --json
engines libaio,userspace_reap --json
engines native,rate --json
baseline list --json
baseline show HDD --json
baseline save mine RUN --json
baseline remove mine --json
quick list --json
quick here . cleanup --json
prio pages --json
restore --list --json";

/// The folder of any record.
fn a_run(dir: &Path) -> String {
    let entry = fs::read_dir(dir.join("fathom-runs")).unwrap().next();
    entry.unwrap().unwrap().path().display().to_string()
}

#[test]
fn documents_are_what_their_schemas_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let job = "[a]\nrw=randrw\nsize=1m\nioengine=psync\nfilename=f\nwrite_lat_log=log\n";
    fs::write(dir.join("a.fio"), job).unwrap();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for args in COMMANDS.lines() {
        let args = match args.contains("RUN") {
            true => args.replace("RUN", &a_run(dir)),
            false => args.to_owned(),
        };
        let document = document(dir, &args);
        all.extend(
            wrong(dir, &document)
                .iter()
                .map(|it| format!("{args}: {it}")),
        );
        seen.insert(document["schema"].as_str().unwrap().to_owned());
    }
    assert!(all.is_empty(), "{all:#?}");
    assert!(seen.len() > 15, "{seen:?}");
}

#[test]
fn documents_of_a_purge_are_what_their_schemas_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let image = dir.join("image");
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    let device = require!(LoopDevice::over(&image));
    let device = device.path().display();
    for what in ["--list", "--dry-run"] {
        let document = document(dir, &format!("purge {device} {what} --json"));
        assert_eq!(wrong(dir, &document), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let mut document = document(dir.path(), "runs --json");
    assert!(wrong(dir.path(), &document).is_empty());
    document["runs"] = serde_json::json!([{ "id": 7 }]);
    assert!(!wrong(dir.path(), &document).is_empty());
}
