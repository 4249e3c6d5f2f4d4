//! Options of fio that this engine does not take, and why.

use fathom_jobfile::table::table;

use crate::native::job::IoEngine;

/// Names, and the reason.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["cgroup", "cgroup_nodelete"],
        "with cgroup v2 a group holds whole processes, and jobs are threads of one; start Fathom in one, as with systemd-run --scope -p IOWeight=100",
    ),
    (
        &["cgroup_weight"],
        "fio 3.33 writes blkio.weight, which Linux has no longer since 5.0, and fails with cgroup v2; start Fathom in a group, as with systemd-run --scope -p IOWeight=100",
    ),
    (
        &["uid", "gid"],
        "jobs are threads of one process; start Fathom as that user",
    ),
    (
        &["profile"],
        "fio takes it from its command line alone and passes over it in job files; write the jobs that it stands for (tiobench: write, randwrite, read and randread of four files, one after the other)",
    ),
    (
        &["atomic"],
        "no kernel has the flag that fio opens files with for it (O_ATOMIC)",
    ),
    (
        &["lockfile"],
        "the I/O loop takes no lock; jobs that are not to use a file at once go one behind the other with stonewall or wait_for",
    ),
    (
        &["unlink_each_loop"],
        "the files of a job stay open from its start to its end; unlink removes them there",
    ),
    (
        &[
            "trim_percentage",
            "trim_verify_zero",
            "trim_backlog",
            "trim_backlog_batch",
        ],
        "of what verify is yet to read back nothing is trimmed; rw=trimwrite and rw=randtrimwrite trim each block and write it",
    ),
    (
        &["thp"],
        "huge pages of a mapped file are for few file systems, and nobody tells whether the kernel took them",
    ),
    (
        &["stream_id"],
        "of sg_write_mode=write_stream, which it does not have",
    ),
    (
        &["allow_mounted_write"],
        "whether a device in use may be written is Fathom's own question",
    ),
    (
        &["flow_watermark", "rwmixcycle"],
        "fio itself no longer has it",
    ),
    (
        &[
            "disk_util",
            "stats",
            "significant_figures",
            "block_error_percentiles",
        ],
        "results are whole, and Fathom shows them",
    ),
    (&["log_compression_cpus"], "logs do not wait in memory"),
    (
        &["gtod_cpu", "job_start_clock_id"],
        "the engine has one clock (clocksource)",
    ),
    (&["recover_zbd_write_error"], "of fio 3.38 on"),
    (
        &[
            "fdp",
            "fdp_pli",
            "fdp_pli_select",
            "dataplacement",
            "plids",
            "plid_select",
            "dp_scheme",
        ],
        "of io_uring_cmd, which is fio's",
    ),
];

/// Why an option is not taken.
pub(super) fn reason(name: &str) -> String {
    let why = why(name).map_or_else(String::new, |why| format!(": {why}"));
    format!("the native engine does not have this option{why}")
}

/// The reason alone; `None`: fio knows no such option.
fn why(name: &str) -> Option<String> {
    if let Some((_, why)) = REFUSED.iter().find(|(names, _)| names.contains(&name)) {
        return Some((*why).to_owned());
    }
    // Several engines may have an option of one name, and fio may have it for all.
    let specs: Vec<_> = table().find(name).collect();
    let engines = specs.iter().flat_map(|spec| &spec.engines);
    let of_others: Vec<_> = engines.filter(|engine| !is_known(engine)).collect();
    match (specs.first()?.since, of_others.first()) {
        (Some("?"), _) => Some("of a fio later than 3.33".to_owned()),
        (Some(version), _) => Some(format!("of fio {version} on")),
        (None, Some(engine)) => Some(match engine.strip_prefix("profile:") {
            Some(profile) => format!("of profile={profile}"),
            None => format!("of ioengine={engine}, which it does not have"),
        }),
        (None, None) => None,
    }
}

fn is_known(engine: &str) -> bool {
    IoEngine::NAMES.iter().any(|(name, _)| *name == engine)
}

/// The table for the docs.
pub(super) fn markdown() -> String {
    let mut text = String::from("\n## Not taken\n\n| option | why |\n|---|---|\n");
    for (names, why) in REFUSED {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| {} | {why} |\n", names.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_an_option_of_fio_and_none_of_this_engine() {
        for name in REFUSED.iter().flat_map(|(names, _)| *names) {
            assert!(table().find(name).next().is_some(), "{name}");
            assert!(super::super::find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_option_of_fio_is_had_or_refused_with_a_reason() {
        let neither: Vec<_> = table()
            .names()
            .filter(|name| super::super::find(name).is_none() && why(name).is_none())
            .collect();
        assert!(neither.is_empty(), "{neither:?}");
        assert_eq!(
            why("ttl").unwrap(),
            "of ioengine=net, which it does not have"
        );
        assert_eq!(why("log_issue_time").unwrap(), "of fio 3.38 on");
        assert!(why("no_such_option").is_none());
    }
}
