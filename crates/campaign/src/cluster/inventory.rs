//! Inventories as kubuculum reads them: INI with `[hosts]` and `[all:vars]`,
//! values in quotes, parameters under their names there.

use super::calm::GivenCalm;
use super::{DropCaches, Given};
use crate::error::{Fault, Place, meant};

/// Names of the parameters there.
const KNOWN: [&str; 22] = [
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
    "calm_enabled",
    "calm_role",
    "calm_fioiops_replicas",
    "calm_fioiops_rate",
    "calm_fioiops_readpct",
    "calm_fioiops_fsz_gb",
    "calm_fioiops_pvcsize_gb",
    "calm_fioiops_storageclass",
    "calm_fioiops_nodelabel",
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

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, String> {
    let number = value.parse().ok();
    number
        .map(Some)
        .ok_or_else(|| format!("{key}: '{value}' is no whole number"))
}

/// The load in the background, which there runs only when it is enabled.
fn set_calm(calm: &mut GivenCalm, key: &str, value: &str) -> Result<(), String> {
    calm.enabled.get_or_insert(false);
    let text = || Some(value.to_owned());
    match key {
        // Ansible's booleans.
        "calm_enabled" => {
            let value = value.to_ascii_lowercase();
            calm.enabled = Some(matches!(value.as_str(), "true" | "yes" | "on" | "1"));
        }
        "calm_role" if value == "calm_fioiops" => {}
        "calm_role" => {
            return Err(format!(
                "there is no background load {value} here, only calm_fioiops"
            ));
        }
        "calm_fioiops_replicas" => calm.ninstances = number(key, value)?,
        "calm_fioiops_rate" => calm.iops = number(key, value)?,
        "calm_fioiops_readpct" => calm.rwmixread = number(key, value)?,
        "calm_fioiops_fsz_gb" => calm.fsz_gb = number(key, value)?,
        "calm_fioiops_pvcsize_gb" => calm.pvcsz_req_gb = number(key, value)?,
        "calm_fioiops_storageclass" => calm.storageclass = text(),
        "calm_fioiops_nodelabel" => calm.node_label = text(),
        _ => return Err(format!("unknown parameter {key}{}", meant(key, KNOWN))),
    }
    Ok(())
}

fn set(given: &mut Given, key: &str, value: &str) -> Result<(), String> {
    let text = || Some(value.to_owned());
    if key.starts_with("calm_") {
        return set_calm(given.calm.get_or_insert_default(), key, value);
    }
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
    fn a_background_load_runs_when_it_is_enabled() {
        let text = "[all:vars]\ncalm_role=\"calm_fioiops\"\ncalm_fioiops_rate=512\n";
        let calm = |text: &str| read("i", text).unwrap().calm.unwrap();
        assert_eq!(calm(text).enabled, Some(false));
        let calm = calm(&format!("{text}calm_enabled=True\n"));
        assert_eq!((calm.enabled, calm.iops), (Some(true), Some(512)));
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
