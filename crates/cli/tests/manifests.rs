//! What `fathom cluster` would make in a cluster, without one and without a
//! kubeconfig: as it is shown, as files, and with no more privileges than needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Everything that has objects of its own.
const WHOLE: [&str; 9] = [
    "--ninstances=3",
    "--fsz-gb=2",
    "--njobs=16",
    "--storageclass=fast",
    "--server-node-label=node-role.kubernetes.io/worker=''",
    "--dropcaches=pagecache,ceph",
    "--dropcaches-node-label=disk=fast",
    "--namespace=perf",
    "--bs=128k",
];

/// Runs without any way to a cluster; gives what is shown.
fn shown(args: &[&str]) -> String {
    let nowhere = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("cluster")
        .args(args)
        .current_dir(nowhere.path())
        .env("HOME", nowhere.path())
        .env("KUBECONFIG", nowhere.path().join("none"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0);
    String::from_utf8(output.stdout).unwrap()
}

fn dry_run(args: &[&str], more: &[&str]) -> String {
    shown(&[args, more, &["--dry-run"]].concat())
}

/// The documents of a dry run, by the names of their files.
fn documents(shown: &str) -> BTreeMap<String, String> {
    let all = shown.split("--- # ").skip(1);
    all.map(|document| {
        let (name, text) = document.split_once('\n').unwrap();
        (name.to_owned(), text.to_owned())
    })
    .collect()
}

#[test]
fn sequential_manifests() {
    insta::assert_snapshot!(dry_run(&["seq"], &WHOLE));
}

#[test]
fn random_manifests() {
    let lists = ["rand", "--bs=4k,16k", "--iodepth=1,16", "--rate-iops=0,500"];
    insta::assert_snapshot!(dry_run(&lists, &[]));
}

#[test]
fn native_manifests() {
    let native = ["seq", "--engine=native"];
    insta::assert_snapshot!(dry_run(&native, &["--dropcaches=pagecache"]));
}

#[test]
fn manifests_of_statistics_and_background_load() {
    insta::assert_snapshot!(dry_run(&["seq", "--stats", "--calm"], &[]));
}

#[test]
fn job_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("Mixed Load.fio");
    fs::write(&job, "[a]\nrw=randrw\nsize=1g\n").unwrap();
    insta::assert_snapshot!(dry_run(&["job", job.to_str().unwrap()], &[]));
}

#[test]
fn files_of_manifests_are_what_a_dry_run_shows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let told = shown(&[&["seq", "--manifests", out.to_str().unwrap()], &WHOLE[..]].concat());
    assert_eq!(told, "");
    let mut files = BTreeMap::new();
    for file in fs::read_dir(out.join("run-1")).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        files.insert(name, fs::read_to_string(file.path()).unwrap());
    }
    assert_eq!(files, documents(&dry_run(&["seq"], &WHOLE)));
}

#[test]
fn each_run_of_a_list_has_files_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.toml");
    let text = "[[run]]\nstorageclass = \"fast\"\n[[run]]\nstorageclass = \"replicated\"\n";
    fs::write(&list, text).unwrap();
    let out = folder.path().join("out");
    let paths = [&list, &out].map(|path: &std::path::PathBuf| path.to_str().unwrap());
    shown(&["seq", "-f", paths[0], "--manifests", paths[1]]);
    for (run, class) in [("run-1", "fast"), ("run-2", "replicated")] {
        let set = out.join(run).join("fioserver_statefulset.yaml");
        let set = fs::read_to_string(set).unwrap();
        assert!(
            set.contains(&format!("storageClassName: {class}\n")),
            "{set}"
        );
    }
}

/// Only what drops caches is privileged, and it is there only when it was asked
/// for; no pod takes part in anything of its node, or may speak to the cluster.
#[test]
fn pods_have_the_least_privileges() {
    let runs: [&[&str]; 6] = [
        &["seq", "--stats", "--calm"],
        &["rand", "--engine=native", "--stats"],
        &["seq"],
        &["rand"],
        &["seq", "--engine=native"],
        &["seq", "--engine=native", "--dropcaches=pagecache"],
    ];
    let mut seen = 0;
    for args in runs
        .into_iter()
        .chain([&[&["seq"], &WHOLE[..]].concat()[..]])
    {
        let asked = args.iter().any(|arg| arg.contains("pagecache"));
        for (name, text) in documents(&dry_run(args, &[])) {
            let drops = name == "drop_caches_daemonset.yaml";
            assert!(asked || !drops, "{args:?}");
            assert_eq!(text.contains("privileged:"), drops, "{name}: {text}");
            for part in [
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "hostPort",
                "runAsUser: 0",
            ] {
                assert!(!text.contains(part), "{name}: {part}: {text}");
            }
            check_host_paths(&name, &text);
            let pods = text.matches("containers:\n").count();
            assert_eq!(
                text.matches("automountServiceAccountToken: false").count(),
                pods
            );
            if pods > 0 && !drops {
                for least in ["allowPrivilegeEscalation: false", "drop:\n", "- ALL\n"] {
                    assert!(text.contains(least), "{name}: {least}: {text}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// Paths of a node may only be read, and only what its kernel says.
fn check_host_paths(name: &str, text: &str) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.contains("hostPath:") {
            continue;
        }
        let path = lines.next().unwrap_or_default();
        let path = path.trim().trim_start_matches("path: ");
        let is_kernels = ["/proc", "/sys"]
            .iter()
            .any(|root| Path::new(path).starts_with(root));
        assert!(is_kernels, "{name}: {path}: {text}");
        assert!(text.contains("readOnly: true"), "{name}: {text}");
    }
}

/// What is said against a command line, without any way to a cluster.
fn refused(args: &[&str]) -> String {
    let nowhere = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("cluster")
        .args(args)
        .current_dir(nowhere.path())
        .env("KUBECONFIG", nowhere.path().join("none"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{args:?}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The jobs of a benchmark are checked as those of a file are, with the load
/// beside them, whether they are only shown or run.
#[test]
fn jobs_that_cannot_be_are_refused_before_anything() {
    for (args, told) in [
        (&["rand", "--bs=4x"][..], "bs=4x"),
        (&["rand", "--rw=foo"], "rw=foo"),
        (&["rand", "--iodepth=0"], "iodepth=0"),
        (&["seq", "--bs=0"], "bs=0"),
        (&["seq", "--calm-bs=8q"], "bs=8q"),
        (&["rand", "--bs=4k,4k"], "randread-4k-16"),
    ] {
        for more in [&["--dry-run"][..], &["--image=x"]] {
            let said = refused(&[args, more].concat());
            assert!(said.contains(told), "{args:?}: {said}");
        }
    }
}

#[test]
fn flags_that_a_benchmark_does_not_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("a.fio");
    fs::write(&job, "[a]\nrw=read\nsize=1m\n").unwrap();
    let job = ["job", job.to_str().unwrap()];
    for (args, told) in [
        (
            &[&job[..], &["--bs=4k", "--rw=read", "--runtime=5"]].concat()[..],
            "rw, runtime, bs",
        ),
        (
            &[&job[..], &["--fsz-gb=1", "--njobs=2"]].concat(),
            "fsz_gb, njobs",
        ),
        (&["seq", "--iodepth=4"], "iodepth"),
    ] {
        let said = refused(&[args, &["--dry-run"]].concat());
        assert!(said.contains(&format!("does not use {told}")), "{said}");
    }
    // A small volume is enough for a job that needs little.
    let shown = dry_run(&job, &["--pvcsz-req-gb=0.3"]);
    assert!(
        shown.contains("storage: \"307Mi\"") || shown.contains("storage: 307Mi"),
        "{shown}"
    );
}

#[test]
fn parts_of_a_gib_and_units_are_taken() {
    let shown = dry_run(
        &[
            "rand",
            "--fsz-gb=0.3",
            "--pvcsz-req-gb=1T",
            "--calm-fsz-gb=300M",
        ],
        &[],
    );
    for told in ["filesize=307m", "filesize=300m", "1024Gi", "1324Mi"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[test]
fn jobs_that_the_native_engine_does_not_run_are_refused_before_anything() {
    let nowhere = tempfile::tempdir().unwrap();
    let job = nowhere.path().join("a.fio");
    fs::write(&job, "[a]\nioengine=rbd\nrw=read\nsize=1m\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["cluster", "job", job.to_str().unwrap(), "--engine=native"])
        .env("KUBECONFIG", nowhere.path().join("none"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("native engine does not run these jobs") && said.contains("rbd"),
        "{said}"
    );
}
