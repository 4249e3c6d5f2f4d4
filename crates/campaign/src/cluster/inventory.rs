//! Inventories as kubuculum reads them: INI with `[hosts]` and `[all:vars]`,
//! values in quotes, parameters under their names there.

use super::{DropCaches, Given};
use crate::error::{Fault, Place, meant};

/// Names of the parameters there.
const KNOWN: [&str; 13] = [
    "run_basedir",
    "run_storageclass",
    "run_namespace",
    "benchmark_role",
    "bench_fioseq_ninstances",
    "bench_fioseq_fsz_gb",
    "bench_fioseq_njobs",
    "bench_fioseq_servernodelabel",
    "bench_fioseq_pvcsz_req_gb",
    "util_dropcaches",
    "util_dropcaches_nodelabel",
    "util_stats_interval",
    "util_stats_nodelabel",
];

/// Lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let told = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let numbered = (1..).zip(text.lines().map(str::trim));
    numbered.filter(move |(_, line)| told(line))
}

/// Whether a text is an inventory: it begins with one of its sections.
pub(super) fn is_one(text: &str) -> bool {
    lines(text)
        .next()
        .is_some_and(|(_, line)| matches!(line, "[hosts]" | "[all:vars]"))
}

/// Reads an inventory. `run_basedir` is left to whoever reads `--runs`.
///
/// # Errors
/// What is wrong, with its line.
pub fn read(file: &str, text: &str) -> Result<Given, Fault> {
    let mut given = Given::default();
    let mut section = "";
    for (line, told) in lines(text) {
        let wrong = |what: String| {
            let file = file.into();
            Fault::new(&Place { file, line }, what)
        };
        if let Some(name) = told
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name;
            continue;
        }
        if section != "all:vars" {
            // Hosts: where the playbook ran, which is here.
            continue;
        }
        let (key, value) = told
            .split_once('=')
            .ok_or_else(|| wrong(format!("'{told}' is no name=\"value\"")))?;
        set(&mut given, key.trim(), unquoted(value.trim())).map_err(wrong)?;
    }
    Ok(given)
}

/// Without the double quotes around it; single ones inside stay.
fn unquoted(value: &str) -> &str {
    let inside = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(value)
}

fn set(given: &mut Given, key: &str, value: &str) -> Result<(), String> {
    fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, String> {
        let number = value.parse().ok();
        number
            .map(Some)
            .ok_or_else(|| format!("{key}: '{value}' is no whole number"))
    }
    let text = || Some(value.to_owned());
    match key {
        "run_storageclass" => given.storageclass = text(),
        "run_namespace" => given.namespace = text(),
        "bench_fioseq_ninstances" => given.ninstances = number(key, value)?,
        "bench_fioseq_fsz_gb" => given.fsz_gb = number(key, value)?,
        "bench_fioseq_njobs" => given.njobs = number(key, value)?,
        "bench_fioseq_pvcsz_req_gb" => given.pvcsz_req_gb = number(key, value)?,
        "bench_fioseq_servernodelabel" => given.server_node_label = text(),
        "util_dropcaches_nodelabel" => given.dropcaches_node_label = text(),
        "util_stats_interval" => given.stats_s = number(key, value)?,
        "util_stats_nodelabel" => given.stats_node_label = text(),
        "util_dropcaches" => {
            let ways = value
                .split(',')
                .map(str::trim)
                .filter(|way| !matches!(*way, "" | "none"));
            let ways: Result<_, _> = ways
                .map(|way| DropCaches::try_from(way.to_owned()))
                .collect();
            given.dropcaches = Some(ways?);
        }
        "run_basedir" => {}
        "benchmark_role" if value == "bench_fioseq" => {}
        "benchmark_role" => {
            return Err(format!(
                "there is no benchmark {value} here, only bench_fioseq"
            ));
        }
        _ => return Err(format!("unknown parameter {key}{}", meant(key, KNOWN))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_is_read_as_it_stands() {
        let text = "\n[hosts]\nlocalhost\n\n[all:vars]\nrun_basedir=\"/data/runs\"\n\
            run_storageclass=\"ocs-storagecluster-ceph-rbd\"\nbenchmark_role=\"bench_fioseq\"\n\
            bench_fioseq_ninstances=3\nbench_fioseq_servernodelabel=\"node-role.kubernetes.io/worker=''\"\n";
        assert!(is_one(text));
        let given = read("inventory", text).unwrap();
        assert_eq!(given.ninstances, Some(3));
        assert_eq!(
            given.storageclass.as_deref(),
            Some("ocs-storagecluster-ceph-rbd")
        );
        assert_eq!(
            given.server_node_label.as_deref(),
            Some("node-role.kubernetes.io/worker=''")
        );
    }

    #[test]
    fn mistakes_have_their_line_and_what_was_meant() {
        let error = read("i", "[all:vars]\nbench_fioseq_njob=3\n")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "i:2: unknown parameter bench_fioseq_njob; did you mean bench_fioseq_njobs?"
        );
        let error = read("i", "[all:vars]\nbench_fioseq_njobs=three\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("i:2: bench_fioseq_njobs: 'three'"),
            "{error}"
        );
    }
}
