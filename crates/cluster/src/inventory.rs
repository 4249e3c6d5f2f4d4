//! Inventories as kubuculum reads them: INI with `[hosts]` and `[all:vars]`,
//! values in quotes, parameters under their names there.

use std::path::PathBuf;

use fathom_jobfile::table::nearest;

use super::background_load::GivenBackgroundLoad;
use super::input::InputError;
use super::{BenchWorkload, DropCaches, GibSize, Given};

/// The benchmarks, by their roles there.
const ROLES: [(&str, BenchWorkload); 2] = [
    ("bench_fioseq", BenchWorkload::Seq),
    ("bench_fiorand", BenchWorkload::Rand),
];

/// Names of the parameters there.
const KNOWN: [&str; 41] = [
    "run_basedir",
    "run_storageclass",
    "run_namespace",
    "benchmark_role",
    "bench_fioseq_ninstances",
    "bench_fioseq_fsz_gb",
    "bench_fioseq_njobs",
    "bench_fioseq_bs_kb",
    "bench_fioseq_servernodelabel",
    "bench_fioseq_pvcsz_req_gb",
    "bench_fioseq_maxtime_sec",
    "bench_fiorand_ninstances",
    "bench_fiorand_fsz_gb",
    "bench_fiorand_njobs",
    "bench_fiorand_bs_kb",
    "bench_fiorand_iodepth",
    "bench_fiorand_run_sec",
    "bench_fiorand_testread",
    "bench_fiorand_testwrite",
    "bench_fiorand_servernodelabel",
    "bench_fiorand_pvcsz_req_gb",
    "bench_fiorand_maxtime_sec",
    "util_dropcaches",
    "util_dropcaches_nodelabel",
    "util_stats_interval",
    "util_stats_nodelabel",
    "dropcaches_postprepare",
    "allow_osrootpods",
    "os_rootpods_nodelabel",
    "stats_enabled",
    "stats_role",
    "stats_sysstat_nodelabel",
    "calm_enabled",
    "calm_role",
    "calm_fioiops_replicas",
    "calm_fioiops_rate",
    "calm_fioiops_readpct",
    "calm_fioiops_fsz_gb",
    "calm_fioiops_pvcsize_gb",
    "calm_fioiops_storageclass",
    "calm_fioiops_nodelabel",
];

/// Seconds between two statistics there.
const STATS_S: u64 = 10;

/// An inventory while it is read: which of its parameters count is known at its
/// end.
#[derive(Debug, Default)]
struct Inventory {
    given: Given,
    role: Option<BenchWorkload>,
    /// Parameters of the benchmarks, as in [`ROLES`].
    of_role: [Given; 2],
    /// Tests that a random benchmark leaves out.
    no_reads: bool,
    no_writes: bool,
    drops_after_prepare: bool,
    stats: Option<bool>,
    /// Where what needs root runs.
    root_nodes: Option<String>,
    no_root: bool,
    stats_nodes: Option<String>,
}

/// Lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let told = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let numbered = (1..).zip(text.lines().map(str::trim));
    numbered.filter(move |(_, line)| told(line))
}

/// Whether a text is an inventory: it begins with one of its sections.
pub(super) fn detect(text: &str) -> bool {
    lines(text)
        .next()
        .is_some_and(|(_, line)| matches!(line, "[hosts]" | "[all:vars]"))
}

/// Reads an inventory.
///
/// # Errors
/// What is wrong, with its line.
pub fn read(file: &str, text: &str) -> Result<Given, InputError> {
    let mut inventory = Inventory::default();
    let mut section = "";
    let mut last = 0;
    let wrong = |line: u32, what: String| InputError::new(file, line, what);
    for (line, told) in lines(text) {
        last = line;
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
        let said = told.split_once('=').and_then(|(key, value)| {
            let value = unquoted(value.trim())?;
            Some((key.trim(), value))
        });
        let (key, value) =
            said.ok_or_else(|| wrong(line, format!("'{told}' is no name=\"value\"")))?;
        inventory
            .set(key, value)
            .map_err(|what| wrong(line, what))?;
    }
    inventory.given().map_err(|what| wrong(last, what))
}

/// Without the double quotes around it, single ones inside stay, and without the
/// comment behind it, as Ansible reads it; `None` where a quote is not closed.
fn unquoted(value: &str) -> Option<&str> {
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find(" #").unwrap_or(value.len());
        return Some(value[..end].trim_end());
    };
    let (inside, behind) = quoted.split_once('"')?;
    let behind = behind.trim();
    (behind.is_empty() || behind.starts_with('#')).then_some(inside)
}

/// Ansible's booleans.
fn is_true(key: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{key}: '{value}' is neither True nor False")),
    }
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, String> {
    let number = value.parse().ok();
    number
        .map(Some)
        .ok_or_else(|| format!("{key}: '{value}' is no whole number"))
}

fn size(key: &str, value: &str) -> Result<Option<GibSize>, String> {
    let size = value.parse().map(Some);
    size.map_err(|what: String| format!("{key}: {what}"))
}

fn unknown(key: &str) -> String {
    let near = nearest(key, KNOWN.into_iter());
    let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("unknown parameter {key}{meant}")
}

/// The load in the background, which there runs only when it is enabled.
fn set_background_load(
    calm: &mut GivenBackgroundLoad,
    key: &str,
    value: &str,
) -> Result<(), String> {
    calm.enabled.get_or_insert(false);
    let text = || Some(value.to_owned());
    match key {
        "calm_enabled" => calm.enabled = Some(is_true(key, value)?),
        "calm_role" if value == "calm_fioiops" => {}
        "calm_role" => {
            return Err(format!(
                "there is no background load {value} here, only calm_fioiops"
            ));
        }
        "calm_fioiops_replicas" => calm.ninstances = number(key, value)?,
        "calm_fioiops_rate" => calm.iops = number(key, value)?,
        "calm_fioiops_readpct" => calm.rwmixread = number(key, value)?,
        "calm_fioiops_fsz_gb" => calm.fsz_gb = size(key, value)?,
        "calm_fioiops_pvcsize_gb" => calm.pvcsz_req_gb = size(key, value)?,
        "calm_fioiops_storageclass" => calm.storageclass = text(),
        "calm_fioiops_nodelabel" => calm.node_label = text(),
        _ => return Err(unknown(key)),
    }
    Ok(())
}

impl Inventory {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        for (place, (role, _)) in ROLES.iter().enumerate() {
            let name = key
                .strip_prefix(role)
                .and_then(|rest| rest.strip_prefix('_'));
            if let Some(name) = name {
                return self.set_of_role(place, name, key, value);
            }
        }
        let given = &mut self.given;
        let text = || Some(value.to_owned());
        if key.starts_with("calm_") {
            return set_background_load(given.calm.get_or_insert_default(), key, value);
        }
        match key {
            "run_basedir" => given.run_basedir = Some(PathBuf::from(value)),
            "run_storageclass" => given.storageclass = text(),
            "run_namespace" => given.namespace = text(),
            "benchmark_role" => {
                let role = ROLES.iter().find(|(role, _)| *role == value);
                let role = role.map(|(_, workload)| *workload);
                self.role = Some(role.ok_or_else(|| {
                    format!(
                        "there is no benchmark {value} here, only bench_fioseq and bench_fiorand"
                    )
                })?);
            }
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
            "util_dropcaches_nodelabel" => given.dropcaches_node_label = text(),
            "util_stats_interval" => given.stats_s = number(key, value)?,
            "util_stats_nodelabel" => given.stats_node_label = text(),
            "dropcaches_postprepare" => self.drops_after_prepare = is_true(key, value)?,
            "allow_osrootpods" => self.no_root = !is_true(key, value)?,
            "os_rootpods_nodelabel" => self.root_nodes = text(),
            "stats_enabled" => self.stats = Some(is_true(key, value)?),
            "stats_role" if value == "stats_sysstat" => {}
            "stats_sysstat_nodelabel" => self.stats_nodes = text(),
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// A parameter of a benchmark; which one the inventory is of may come later.
    fn set_of_role(
        &mut self,
        place: usize,
        name: &str,
        key: &str,
        value: &str,
    ) -> Result<(), String> {
        let given = &mut self.of_role[place];
        let is_random = ROLES[place].1 == BenchWorkload::Rand;
        match name {
            "ninstances" => given.ninstances = number(key, value)?,
            "fsz_gb" => given.fsz_gb = size(key, value)?,
            "njobs" => given.njobs = number(key, value)?,
            "pvcsz_req_gb" => given.pvcsz_req_gb = size(key, value)?,
            "servernodelabel" => given.server_node_label = Some(value.to_owned()),
            "maxtime_sec" => given.maxwait_s = number(key, value)?,
            "bs_kb" => {
                let kib: Option<u32> = number(key, value)?;
                given.bs = kib.map(|kib| vec![format!("{kib}k")]);
            }
            "iodepth" if is_random => given.iodepth = number(key, value)?.map(|depth| vec![depth]),
            "run_sec" if is_random => given.runtime_s = number(key, value)?,
            "testread" if is_random => self.no_reads = !is_true(key, value)?,
            "testwrite" if is_random => self.no_writes = !is_true(key, value)?,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// What counts of it. What it says of another benchmark than its own means
    /// nothing there either.
    fn given(self) -> Result<Given, String> {
        let [seq, rand] = self.of_role;
        let has = [&seq, &rand].map(|given| *given != Given::default());
        let role = match (self.role, has) {
            (Some(role), _) => role,
            (None, [true, true]) => {
                return Err(
                    "benchmark_role does not say which of its benchmarks it is of".to_owned(),
                );
            }
            (None, [false, true]) => BenchWorkload::Rand,
            (None, _) => BenchWorkload::Seq,
        };
        let mut given = match role {
            BenchWorkload::Rand => random(rand, self.no_reads, self.no_writes)?.above(&self.given),
            _ => seq.above(&self.given),
        };
        given.benchmark = (self.role.is_some() || has != [false, false]).then_some(role);
        if self.drops_after_prepare && !self.no_root && given.dropcaches.is_none() {
            given.dropcaches = Some(vec![DropCaches::PageCache]);
            given.dropcaches_node_label = given.dropcaches_node_label.or(self.root_nodes);
        }
        if self.stats == Some(true) {
            given.stats_s.get_or_insert(STATS_S);
            given.stats_node_label = given.stats_node_label.or(self.stats_nodes);
        }
        Ok(given)
    }
}

/// A random benchmark with what that one begins with there.
fn random(given: Given, no_reads: bool, no_writes: bool) -> Result<Given, String> {
    let tests = [(no_reads, "randread"), (no_writes, "randwrite")];
    let tests = tests.iter().filter(|(is_left_out, _)| !is_left_out);
    let rw: Vec<String> = tests.map(|(_, rw)| (*rw).to_owned()).collect();
    if rw.is_empty() {
        return Err(
            "neither bench_fiorand_testread nor bench_fiorand_testwrite is True".to_owned(),
        );
    }
    let there = Given {
        bs: Some(vec!["8k".to_owned()]),
        iodepth: Some(vec![32]),
        rw: Some(rw),
        ..Given::default()
    };
    Ok(given.above(&there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_is_read_as_it_stands() {
        let text = "\n[hosts]\nlocalhost\n\n[all:vars]\nrun_basedir=\"/data/runs\"\n\
            run_storageclass=\"ocs-storagecluster-ceph-rbd\"\nbenchmark_role=\"bench_fioseq\"\n\
            bench_fioseq_ninstances=3\nbench_fioseq_servernodelabel=\"node-role.kubernetes.io/worker=''\"\n";
        assert!(detect(text));
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

    /// As its README has it.
    #[test]
    fn an_inventory_of_the_random_benchmark_is_read() {
        let text = "[hosts]\nlocalhost\n\n[all:vars]\n\nrun_basedir=\"/data/runs\" # here\n\
            run_storageclass=\"gp2\"\nrun_namespace=\"nm-kubuculum\"\n\nstats_enabled=True\n\
            stats_role=\"stats_sysstat\"\ndropcaches_postprepare=True\nallow_osrootpods=True\n\n\
            os_rootpods_nodelabel=\"node-role.kubernetes.io/worker=''\"\n\
            stats_sysstat_nodelabel=\"node-role.kubernetes.io/worker=''\"\n\n\
            benchmark_role=\"bench_fiorand\"\nbench_fiorand_ninstances=1\nbench_fiorand_fsz_gb=16\n\
            bench_fiorand_njobs=4\nbench_fiorand_bs_kb=16\nbench_fiorand_run_sec=120\n\
            bench_fiorand_servernodelabel=\"node-role.kubernetes.io/worker=''\"\n\
            # of another one\nbench_fioseq_njobs=64\n";
        let given = read("inventory", text).unwrap();
        assert_eq!(given.run_basedir, Some("/data/runs".into()));
        let runs = given.runs(BenchWorkload::Rand, &Given::default()).unwrap();
        let run = &runs[0];
        assert_eq!(
            (run.file_bytes, run.njobs, run.runtime_s),
            (16 << 30, 4, 120)
        );
        assert_eq!(
            (run.bs.as_slice(), run.iodepth.as_slice()),
            (&["16k".to_owned()][..], &[32][..])
        );
        assert_eq!(run.rw, ["randread", "randwrite"]);
        assert_eq!(
            (run.stats_s, &run.dropcaches[..]),
            (10, &[DropCaches::PageCache][..])
        );
        let worker = Some(("node-role.kubernetes.io/worker".to_owned(), String::new()));
        assert_eq!(
            [&run.dropcaches_node_label, &run.stats_node_label],
            [&worker, &worker]
        );
        // It is no sequential one.
        let refused = given
            .runs(BenchWorkload::Seq, &Given::default())
            .unwrap_err();
        assert!(refused.contains("fathom cluster rand"), "{refused}");
        // What flags say stands above it.
        let flags = Given {
            bs: Some(vec!["4k".into()]),
            ..Given::default()
        };
        assert_eq!(
            given.runs(BenchWorkload::Rand, &flags).unwrap()[0].bs,
            ["4k"]
        );
        let reads = format!("{text}bench_fiorand_testwrite=False\n");
        assert_eq!(read("i", &reads).unwrap().rw.unwrap(), ["randread"]);
        let nothing = format!("{reads}bench_fiorand_testread=False\n");
        assert!(read("i", &nothing).is_err());
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
