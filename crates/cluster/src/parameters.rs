//! What a benchmark in a cluster is asked for: as written in a file or as flags,
//! and resolved.

use std::fmt;
use std::path::{Path, PathBuf};

use fathom_engines::EngineName;
use fathom_model::units;
use serde::{Deserialize, Serialize};

use super::background_load::{BackgroundLoadSpec, GivenBackgroundLoad};
use super::input::InputError;
use super::inventory;
use super::node_label::parse as label;
use super::resources::Resources;
use super::size::{GIB, GibSize};

/// What was written in one place; what is absent was not said there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Servers, each with a volume of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ninstances: Option<u32>,
    /// Size of a job's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsz_gb: Option<GibSize>,
    /// Jobs of each server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub njobs: Option<u32>,
    /// Label of the nodes that servers may run on: `key=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_node_label: Option<String>,
    /// Size of a claim, when it is not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvcsz_req_gb: Option<GibSize>,
    /// Storage class of the claims; absent is the cluster's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storageclass: Option<String>,
    /// Namespace that everything is made in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What drops which caches between the phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropcaches: Option<Vec<DropCaches>>,
    /// Label of the nodes whose page cache is dropped: `key=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropcaches_node_label: Option<String>,
    /// Time between two readings of the nodes' statistics in s; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats_s: Option<u64>,
    /// Label of the nodes whose statistics are taken: `key=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats_node_label: Option<String>,
    /// Image of servers and client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What runs the jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// Block sizes as fio writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<Vec<String>>,
    /// Queue depths of the random tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iodepth: Option<Vec<u32>>,
    /// Rates of the random tests in IOPS of a job; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_iops: Option<Vec<u32>>,
    /// Directions of the random tests: `randread`, `randwrite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rw: Option<Vec<String>>,
    /// Time of a random test in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_s: Option<u64>,
    /// Longest wait for a phase, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxwait_s: Option<u64>,
    /// What every pod asks its node for: `cpu=2,memory=4Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// What every pod may take at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// A load in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calm: Option<GivenBackgroundLoad>,
    /// The benchmark that an inventory is of.
    #[serde(skip)]
    pub benchmark: Option<BenchWorkload>,
    /// Folder of the runs that an inventory names.
    #[serde(skip)]
    pub run_basedir: Option<PathBuf>,
    /// Runs one after the other; each says what is different from the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<Given>,
}

/// The benchmark that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchWorkload {
    /// Sequential write, then sequential read of what was written.
    Seq,
    /// Random reads and writes after a full prefill.
    Rand,
    /// A job file of the user's.
    Job,
}

impl BenchWorkload {
    /// The command that runs it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Seq => "cluster seq",
            Self::Rand => "cluster rand",
            Self::Job => "cluster job",
        }
    }
}

/// A way to drop caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DropCaches {
    /// The page cache of the selected nodes, by a privileged pod on each.
    PageCache,
    /// Ceph's OSD and MDS caches, through its tools pod.
    Ceph,
    /// A command, run on this machine.
    Command(String),
}

/// What a benchmark does, resolved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// Servers.
    pub ninstances: u32,
    /// Size of a job's file in bytes.
    pub file_bytes: u64,
    /// Jobs of each server.
    pub njobs: u32,
    /// Key and value of the label of the servers' nodes.
    pub server_node_label: Option<(String, String)>,
    /// Size of a claim in bytes.
    pub claim_bytes: u64,
    /// Storage class; `None` is the cluster's default.
    pub storageclass: Option<String>,
    /// Namespace.
    pub namespace: String,
    /// What drops which caches between the phases.
    pub dropcaches: Vec<DropCaches>,
    /// Key and value of the label of the nodes whose page cache is dropped.
    pub dropcaches_node_label: Option<(String, String)>,
    /// Time between two readings of the nodes' statistics in s; 0 is none.
    pub stats_s: u64,
    /// Key and value of the label of the nodes whose statistics are taken.
    pub stats_node_label: Option<(String, String)>,
    /// Image; `None` is the one that goes with the engine.
    pub image: Option<String>,
    /// What runs the jobs: fio servers, or Fathom in the pods with its own
    /// engine, or with fio where the image has one.
    pub engine: EngineName,
    /// Block sizes as fio writes them.
    pub bs: Vec<String>,
    /// Queue depths.
    pub iodepth: Vec<u32>,
    /// Rates in IOPS; 0 is no limit.
    pub rate_iops: Vec<u32>,
    /// Directions of the random tests.
    pub rw: Vec<String>,
    /// Time of a random test in s.
    pub runtime_s: u64,
    /// Longest wait for a phase in s.
    pub maxwait_s: u64,
    /// Requests and limits of the pods.
    pub resources: Resources,
    /// The load in the background.
    pub calm: Option<BackgroundLoadSpec>,
}

/// Runs one after the other.
pub type Runs = Vec<Parameters>;

impl TryFrom<String> for DropCaches {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("command:")) {
            ("pagecache", _) => Ok(Self::PageCache),
            ("ceph", _) => Ok(Self::Ceph),
            (_, Some(command)) if !command.trim().is_empty() => {
                Ok(Self::Command(command.trim().to_owned()))
            }
            _ => Err(format!(
                "'{text}' drops no caches; it is pagecache, ceph, or command:COMMAND"
            )),
        }
    }
}

impl From<DropCaches> for String {
    fn from(drop: DropCaches) -> Self {
        drop.to_string()
    }
}

impl fmt::Display for DropCaches {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::PageCache => f.write_str("pagecache"),
            Self::Ceph => f.write_str("ceph"),
            Self::Command(command) => write!(f, "command:{command}"),
        }
    }
}

impl Given {
    /// Reads a file of parameters: TOML, or an inventory when its first line that
    /// says anything is a section in brackets of an inventory.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn read(path: &Path, text: &str) -> Result<Self, InputError> {
        let file = path.display().to_string();
        if inventory::detect(text) {
            return inventory::read(&file, text);
        }
        toml::from_str(text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..before].matches('\n').count() + 1;
            let line = u32::try_from(line).unwrap_or(0);
            InputError::new(&file, line, error.message().to_owned())
        })
    }

    /// What is said here, above what `below` says.
    pub fn above(&self, below: &Self) -> Self {
        let calm = match (&self.calm, &below.calm) {
            (Some(here), Some(below)) => Some(here.above(below)),
            (here, below) => here.clone().or_else(|| below.clone()),
        };
        macro_rules! first {
            ($($field:ident),*) => {
                Self { $($field: self.$field.clone().or_else(|| below.$field.clone()),)* calm, run: Vec::new() }
            };
        }
        first!(
            ninstances,
            fsz_gb,
            njobs,
            server_node_label,
            pvcsz_req_gb,
            storageclass,
            namespace,
            dropcaches,
            dropcaches_node_label,
            stats_s,
            stats_node_label,
            image,
            engine,
            bs,
            iodepth,
            rate_iops,
            rw,
            runtime_s,
            maxwait_s,
            requests,
            limits,
            benchmark,
            run_basedir
        )
    }

    /// The runs that are asked for, flags above everything.
    ///
    /// # Errors
    /// What cannot be, in a sentence.
    pub fn runs(&self, workload: BenchWorkload, flags: &Self) -> Result<Runs, String> {
        let one = std::slice::from_ref(self);
        let runs = if self.run.is_empty() { one } else { &self.run };
        let resolved = runs
            .iter()
            .map(|run| flags.above(&run.above(self)).resolved(workload));
        resolved.collect()
    }

    /// That nothing was said which the benchmark does not use.
    fn all_is_used(&self, workload: BenchWorkload) -> Result<(), String> {
        if let Some(other) = self.benchmark.filter(|other| *other != workload)
            && workload != BenchWorkload::Job
        {
            return Err(format!(
                "the inventory is one for fathom {}, and this is fathom {}",
                other.command(),
                workload.command()
            ));
        }
        let of_rand = [
            (self.iodepth.is_some(), "iodepth"),
            (self.rate_iops.is_some(), "rate_iops"),
            (self.rw.is_some(), "rw"),
            (self.runtime_s.is_some(), "runtime"),
        ];
        let of_both = [
            (self.fsz_gb.is_some(), "fsz_gb"),
            (self.njobs.is_some(), "njobs"),
            (self.bs.is_some(), "bs"),
        ];
        let (not_of_rand, what) = match workload {
            BenchWorkload::Rand => (&[][..], ""),
            BenchWorkload::Seq => (&of_rand[..], "these are for fathom cluster rand"),
            BenchWorkload::Job => (&of_rand[..], "the job file says all of it"),
        };
        let both = match workload {
            BenchWorkload::Job => &of_both[..],
            _ => &[],
        };
        let said = not_of_rand
            .iter()
            .chain(both)
            .filter(|(is_said, _)| *is_said);
        let said: Vec<&str> = said.map(|(_, name)| *name).collect();
        if !said.is_empty() {
            return Err(format!(
                "fathom {} does not use {}: {what}",
                workload.command(),
                said.join(", ")
            ));
        }
        if self.stats_node_label.is_some() && self.stats_s.unwrap_or(0) == 0 {
            return Err(
                "stats_node_label is set, but no statistics are asked for (--stats)".to_owned(),
            );
        }
        let drops = self.dropcaches.as_ref();
        if self.dropcaches_node_label.is_some()
            && !drops.is_some_and(|drops| drops.contains(&DropCaches::PageCache))
        {
            return Err(
                "dropcaches_node_label is set, but the page cache is not dropped (--dropcaches pagecache)"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn resolved(self, workload: BenchWorkload) -> Result<Parameters, String> {
        self.all_is_used(workload)?;
        let njobs = self.njobs.unwrap_or(2);
        let file = self.fsz_gb.unwrap_or_else(|| GibSize::of_gib(2)).bytes();
        // As the tool does it that this benchmark is known from: room for the
        // files twice, and something to spare.
        let computed = || {
            file.checked_mul(u64::from(njobs))?
                .checked_mul(2)?
                .checked_add(32 * GIB)
        };
        let claim = self.pvcsz_req_gb.map(GibSize::bytes).or_else(computed);
        let claim = claim.filter(|claim| *claim < 1 << 53);
        let class = self.storageclass.as_ref();
        let has_fio = self.engine.is_none_or(|engine| engine == EngineName::Fio);
        let calm = self
            .calm
            .map_or(Ok(None), |calm| calm.resolved(class, has_fio))?;
        let parameters = Parameters {
            ninstances: self.ninstances.unwrap_or(1),
            file_bytes: file,
            njobs,
            server_node_label: self.server_node_label.as_deref().map(label).transpose()?,
            claim_bytes: claim.ok_or("the claim is too large")?,
            storageclass: self.storageclass,
            namespace: self.namespace.unwrap_or_else(|| "fathom".to_owned()),
            dropcaches: self.dropcaches.unwrap_or_default(),
            dropcaches_node_label: self
                .dropcaches_node_label
                .as_deref()
                .map(label)
                .transpose()?,
            stats_s: self.stats_s.unwrap_or(0),
            stats_node_label: self.stats_node_label.as_deref().map(label).transpose()?,
            image: self.image,
            engine: self.engine.unwrap_or(EngineName::Fio),
            bs: self.bs.unwrap_or_else(|| match workload {
                BenchWorkload::Seq => vec!["128k".to_owned()],
                BenchWorkload::Rand | BenchWorkload::Job => vec!["4k".to_owned()],
            }),
            iodepth: self.iodepth.unwrap_or_else(|| vec![16]),
            rate_iops: self.rate_iops.unwrap_or_else(|| vec![0]),
            rw: self
                .rw
                .unwrap_or_else(|| ["randread", "randwrite"].map(str::to_owned).to_vec()),
            runtime_s: self.runtime_s.unwrap_or(60),
            maxwait_s: self.maxwait_s.unwrap_or(36_000),
            resources: Resources::read(self.requests.as_deref(), self.limits.as_deref())?,
            calm,
        };
        parameters.checked(workload)
    }
}

impl Parameters {
    fn checked(self, workload: BenchWorkload) -> Result<Self, String> {
        if self.ninstances == 0 || self.njobs == 0 {
            return Err("ninstances and njobs are at least 1".to_owned());
        }
        let needed = self.file_bytes.saturating_mul(u64::from(self.njobs));
        // The files of a job of the user's are its own.
        if needed > self.claim_bytes && workload != BenchWorkload::Job {
            let [claim, file] = [self.claim_bytes, self.file_bytes].map(|b| units::bytes(b as f64));
            return Err(format!(
                "a claim of {claim} does not hold {} files of {file}",
                self.njobs
            ));
        }
        let lists = [
            (self.bs.is_empty(), "bs"),
            (self.iodepth.is_empty(), "iodepth"),
            (self.rate_iops.is_empty(), "rate_iops"),
            (self.rw.is_empty(), "rw"),
        ];
        if let Some((_, name)) = lists.iter().find(|(is_empty, _)| *is_empty) {
            return Err(format!("{name} is an empty list"));
        }
        if !is_dns_label(&self.namespace) {
            return Err(format!(
                "'{}' is no name for a namespace (lower case letters, digits and -)",
                self.namespace
            ));
        }
        Ok(self)
    }

    /// Time between two readings of the nodes' statistics; `None`: there are none.
    pub fn stats(&self) -> Option<std::time::Duration> {
        (self.stats_s > 0).then(|| std::time::Duration::from_secs(self.stats_s))
    }

    /// Whether the servers are pods of Fathom's own image.
    pub fn is_by_agent(&self) -> bool {
        self.engine != EngineName::Fio
    }

    /// Bytes that all servers together write in the sequential benchmark.
    pub fn written_bytes(&self) -> u64 {
        self.file_bytes * u64::from(self.njobs) * u64::from(self.ninstances)
    }
}

/// RFC 1123, as Kubernetes names namespaces.
fn is_dns_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_override_the_rest_and_flags_override_all() {
        let text = "njobs = 4\nnamespace = 'a'\n[[run]]\nstorageclass = 'x'\n[[run]]\nnjobs = 8\n";
        let given = Given::read(Path::new("p.toml"), text).unwrap();
        let flags = Given {
            namespace: Some("b".into()),
            ..Given::default()
        };
        let runs = given.runs(BenchWorkload::Seq, &flags).unwrap();
        assert_eq!(runs.iter().map(|run| run.njobs).collect::<Vec<_>>(), [4, 8]);
        assert_eq!(runs[0].storageclass.as_deref(), Some("x"));
        assert!(runs.iter().all(|run| run.namespace == "b"));
        // 2 GiB × 8 jobs × 2 and 32 to spare.
        assert_eq!(runs[1].claim_bytes, 64 * GIB);
    }

    #[test]
    fn mistakes_have_their_line() {
        let error = Given::read(Path::new("p.toml"), "njobs = 4\nfsz = 1\n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("p.toml:2: unknown field `fsz`"),
            "{error}"
        );
        let small = Given {
            pvcsz_req_gb: Some(GibSize::of_gib(1)),
            ..Given::default()
        };
        assert!(
            small
                .runs(BenchWorkload::Seq, &Given::default())
                .unwrap_err()
                .contains("does not hold")
        );
    }

    #[test]
    fn what_a_benchmark_does_not_use_is_refused() {
        let refused = |workload, text: &str| {
            let given = Given::read(Path::new("p.toml"), text).unwrap();
            given.runs(workload, &Given::default()).unwrap_err()
        };
        for (workload, text, named) in [
            (BenchWorkload::Seq, "iodepth = [4]\n", "iodepth"),
            (
                BenchWorkload::Seq,
                "[[run]]\nrw = ['randread']\nruntime_s = 5\n",
                "rw, runtime",
            ),
            (BenchWorkload::Job, "bs = ['4k']\n", "bs"),
            (
                BenchWorkload::Job,
                "fsz_gb = 0.3\nnjobs = 4\n",
                "fsz_gb, njobs",
            ),
            (BenchWorkload::Job, "rate_iops = [9]\n", "rate_iops"),
        ] {
            let told = format!("{} does not use {named}: ", workload.command());
            let said = refused(workload, text);
            assert!(said.contains(&told), "{said}");
        }
        assert!(refused(BenchWorkload::Rand, "stats_node_label = 'a=b'\n").contains("--stats"));
        assert!(
            refused(BenchWorkload::Rand, "dropcaches_node_label = 'a=b'\n").contains("pagecache")
        );
        assert!(refused(BenchWorkload::Rand, "bs = []\n").contains("empty"));
    }

    #[test]
    fn the_claim_of_a_job_is_not_checked_against_files_that_it_does_not_have() {
        let small = Given {
            pvcsz_req_gb: Some("512M".parse().unwrap()),
            ..Given::default()
        };
        let runs = small.runs(BenchWorkload::Job, &Given::default()).unwrap();
        assert_eq!(runs[0].claim_bytes, 512 << 20);
        assert!(small.runs(BenchWorkload::Seq, &Given::default()).is_err());
    }

    #[test]
    fn labels_may_have_no_value() {
        let worker = ("node-role.kubernetes.io/worker".to_owned(), String::new());
        assert_eq!(label("node-role.kubernetes.io/worker=''"), Ok(worker));
        assert!(label("a=b c").is_err());
    }
}
