//! Where no thread is to be had: an error that names the limit, and no panic.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use fathom_testkit::{program, root, skip};
use tempfile::TempDir;

/// A user that has no processes: the limit counts all of one user's.
const NOBODYS_UID: &str = "54321";

#[test]
fn where_no_thread_can_be_had_the_limit_is_named() {
    let name = "where_no_thread_can_be_had";
    let tools = [
        root().map(drop),
        program("setpriv").map(drop),
        program("prlimit").map(drop),
    ];
    if let Some(reason) = tools.into_iter().find_map(Result::err) {
        return skip(name, &reason);
    }
    let dir = TempDir::with_prefix("fathom-threads-").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let fathom = dir.path().join("fathom");
    // The program may stand where that user may not go.
    let built = Path::new(env!("CARGO_BIN_EXE_fathom"));
    if fs::hard_link(built, &fathom).is_err() {
        fs::copy(built, &fathom).unwrap();
    }
    let job = ["--name=a", "--ioengine=null", "--rw=read", "--size=1m"];
    for args in [
        &["job", "run", "--engine", "native", "--"][..],
        &["job", "run", "--engine", "fio", "--"],
        &["status", "--host", "nosuch.invalid"],
        &["quick", "here", "."],
    ] {
        let mut command = Command::new("setpriv");
        command
            .args([
                "--reuid",
                NOBODYS_UID,
                "--regid",
                NOBODYS_UID,
                "--clear-groups",
            ])
            .args(["prlimit", "--nproc=1"])
            .arg(&fathom)
            .args(args)
            .current_dir(dir.path());
        if args.contains(&"--") {
            command.args(job);
        }
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{args:?}: {said}");
        assert!(
            said.contains("no thread can be started"),
            "{args:?}: {said}"
        );
        assert!(said.contains("ulimit -u"), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
}
