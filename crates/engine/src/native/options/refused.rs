//! Options of fio that this engine will not take, and why. Others it only does not have yet.

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
        &["exec_prerun", "exec_postrun"],
        "what a command of somebody else's does to devices cannot be judged beforehand; run it before or after Fathom",
    ),
    (
        &["profile"],
        "fio takes it from its command line alone and passes over it in job files; write the jobs that it stands for (tiobench: write, randwrite, read and randread of four files, one after the other)",
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
    (
        &["log_entries", "log_compression_cpus"],
        "logs do not wait in memory",
    ),
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
    let why = REFUSED.iter().find(|(names, _)| names.contains(&name));
    let why = why.map_or_else(String::new, |(_, why)| format!(": {why}"));
    format!("the native engine does not have this option{why}")
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
    use crate::jobfile::table::table;

    #[test]
    fn what_is_refused_is_an_option_of_fio_and_none_of_this_engine() {
        for name in REFUSED.iter().flat_map(|(names, _)| *names) {
            assert!(table().find(name).next().is_some(), "{name}");
            assert!(super::super::find(name).is_none(), "{name}");
        }
    }
}
