//! CALM, controlled ambient load mixing: servers of their own that read and write
//! at random, at a fixed rate, beside a benchmark, as neighbours on the same
//! storage would.

#[cfg(feature = "kube")]
mod drive;
#[cfg(feature = "kube")]
mod record;

use fathom_model::units;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::manifests::{Objects, unprivileged};
use super::node_label;
use super::size::{GIB, GibSize, in_job};

#[cfg(feature = "kube")]
pub(super) use record::BackgroundLoad;

/// Part that its pods are labelled with.
pub(super) const PART: &str = "calm";
/// Name of its StatefulSet.
pub(super) const NAME: &str = "server-calm";
/// Where its jobs and what fio says stand in its pods.
const WORK: &str = "/calm";

/// What was written of a background load; what is absent was not said there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenBackgroundLoad {
    /// Whether there is one; absent: there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Servers, each with a volume of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ninstances: Option<u32>,
    /// Reads and writes of a server together, per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
    /// Block size as fio writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bs: Option<String>,
    /// Share of reads, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwmixread: Option<u32>,
    /// Queue depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iodepth: Option<u32>,
    /// Size of a server's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsz_gb: Option<GibSize>,
    /// Size of a claim, when it is not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvcsz_req_gb: Option<GibSize>,
    /// Storage class; absent is that of the benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storageclass: Option<String>,
    /// Label of the nodes that the servers may run on: `key=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_label: Option<String>,
    /// Image with fio; absent is that of the benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A background load, resolved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackgroundLoadSpec {
    /// Servers.
    pub ninstances: u32,
    /// Reads of a server per second.
    pub read_iops: u32,
    /// Writes of a server per second.
    pub write_iops: u32,
    /// Block size as fio writes it.
    pub bs: String,
    /// Queue depth.
    pub iodepth: u32,
    /// Size of a server's file in bytes.
    pub file_bytes: u64,
    /// Size of a claim in bytes.
    pub claim_bytes: u64,
    /// Storage class; `None` is the cluster's default.
    pub storageclass: Option<String>,
    /// Key and value of the label of the servers' nodes.
    pub node_label: Option<(String, String)>,
    /// Image with fio; `None` is that of the benchmark.
    pub image: Option<String>,
}

impl GivenBackgroundLoad {
    /// What is said here, above what `below` says.
    pub fn above(&self, below: &Self) -> Self {
        macro_rules! first {
            ($($field:ident),*) => {
                Self { $($field: self.$field.clone().or_else(|| below.$field.clone()),)* }
            };
        }
        first!(
            enabled,
            ninstances,
            iops,
            bs,
            rwmixread,
            iodepth,
            fsz_gb,
            pvcsz_req_gb,
            storageclass,
            node_label,
            image
        )
    }

    /// The load that is asked for, beside a benchmark with this storage class,
    /// whose own image has fio or has not; `None` when none is.
    ///
    /// # Errors
    /// What cannot be, in a sentence.
    pub(super) fn resolved(
        self,
        storageclass: Option<&String>,
        has_fio: bool,
    ) -> Result<Option<BackgroundLoadSpec>, String> {
        if self.enabled == Some(false) {
            return Ok(None);
        }
        if self.image.is_none() && !has_fio {
            return Err(
                "calm: the load is fio's, which the image of the native engine does not hold; name one with --calm-image"
                    .to_owned(),
            );
        }
        // The figures that kubuculum's load of this kind begins with.
        let (iops, percent) = (self.iops.unwrap_or(256), self.rwmixread.unwrap_or(50));
        let file_bytes = self.fsz_gb.map_or(GIB, GibSize::bytes);
        // Nothing is written but the file: room for it, and for the file system.
        let claim_bytes = self.pvcsz_req_gb.map_or(file_bytes + GIB, GibSize::bytes);
        let ninstances = self.ninstances.unwrap_or(1);
        if percent > 100 {
            return Err(format!("calm: {percent} is no share of reads in percent"));
        }
        if ninstances == 0 || iops == 0 {
            return Err("calm: ninstances and iops are at least 1".to_owned());
        }
        if claim_bytes < file_bytes {
            let [claim, file] = [claim_bytes, file_bytes].map(|bytes| units::bytes(bytes as f64));
            return Err(format!(
                "calm: a claim of {claim} does not hold a file of {file}"
            ));
        }
        let (read_iops, write_iops) = parts(iops, percent);
        Ok(Some(BackgroundLoadSpec {
            ninstances,
            read_iops,
            write_iops,
            bs: self.bs.unwrap_or_else(|| "8k".to_owned()),
            iodepth: self.iodepth.unwrap_or(32),
            file_bytes,
            claim_bytes,
            storageclass: self.storageclass.or_else(|| storageclass.cloned()),
            node_label: self
                .node_label
                .as_deref()
                .map(node_label::parse)
                .transpose()?,
            image: self.image,
        }))
    }
}

/// Reads and writes of so many I/Os. fio takes 0 for no limit, so that a share
/// that is not nothing is at least one.
fn parts(iops: u32, percent: u32) -> (u32, u32) {
    match percent {
        0 => (0, iops),
        100 => (iops, 0),
        _ => {
            let reads = (f64::from(iops) * f64::from(percent) / 100.0).round() as u32;
            let reads = reads.clamp(1, iops.saturating_sub(1).max(1));
            (reads, iops.saturating_sub(reads).max(1))
        }
    }
}

impl BackgroundLoadSpec {
    /// I/Os of a server per second.
    pub fn iops(&self) -> u32 {
        self.read_iops + self.write_iops
    }

    /// In a few words: `2 servers with 256 IOPS each (8k, 50 % reads)`.
    pub fn told(&self) -> String {
        let percent = f64::from(self.read_iops) * 100.0 / f64::from(self.iops());
        let (servers, each) = match self.ninstances {
            1 => ("1 server".to_owned(), ""),
            n => (format!("{n} servers"), " each"),
        };
        let (iops, bs) = (self.iops(), &self.bs);
        format!("{servers} with {iops} IOPS{each} ({bs}, {percent:.0} % reads)")
    }

    /// The job file that writes the file once: what was never written is read
    /// without asking the storage.
    pub fn prefill(&self) -> String {
        format!(
            "[calm-prefill]\nrw=write\ncreate_on_open=1\nend_fsync=1\nioengine=libaio\ndirect=1\nbs=1m\niodepth=8\n{}",
            self.file()
        )
    }

    /// The job file of the load. It goes on until it is ended; a month is longer
    /// than any benchmark.
    pub fn job(&self) -> String {
        let rates = match (self.read_iops, self.write_iops) {
            (reads, 0) => format!("rw=randread\nrate_iops={reads}\n"),
            (0, writes) => format!("rw=randwrite\nrate_iops=0,{writes}\n"),
            // fio's rate is that of each direction.
            (reads, writes) => format!(
                "rw=randrw\nrwmixread={}\nrate_iops={reads},{writes}\n",
                (reads * 100 + self.iops() / 2) / self.iops()
            ),
        };
        format!(
            "[calm]\n{rates}ioengine=libaio\ndirect=1\nbs={}\niodepth={}\nallow_file_create=0\ntime_based=1\nruntime=30d\n{}",
            self.bs,
            self.iodepth,
            self.file()
        )
    }

    fn file(&self) -> String {
        format!(
            "directory=/dataset\nfilename_format=calm.$jobnum.$filenum\nfilesize={}\n",
            in_job(self.file_bytes)
        )
    }
}

impl Objects<'_> {
    /// The servers of the background load, each with a claim of its own.
    pub fn background_servers(&self, calm: &BackgroundLoadSpec) -> Value {
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 2,
            "containers": [{
                "name": "fio",
                "image": calm.image.as_deref().unwrap_or(self.image),
                "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "infinity"],
                "workingDir": WORK,
                "securityContext": unprivileged(),
                "volumeMounts": [
                    {"name": "dataset", "mountPath": "/dataset"},
                    {"name": "work", "mountPath": WORK},
                ],
            }],
            "volumes": [{"name": "work", "emptyDir": {}}],
        });
        if let Some((key, value)) = &calm.node_label {
            pod["nodeSelector"] = json!({key.as_str(): value});
        }
        let claim = (calm.claim_bytes, calm.storageclass.as_deref());
        self.stateful_set((NAME, PART), calm.ninstances, &pod, claim)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BenchWorkload, Given};
    use super::*;

    fn calm(text: &str) -> Result<Option<BackgroundLoadSpec>, String> {
        let given: Given = toml::from_str(text).unwrap();
        let runs = given.runs(BenchWorkload::Seq, &Given::default())?;
        Ok(runs.last().unwrap().calm.clone())
    }

    #[test]
    fn there_is_a_load_where_anything_is_said_of_it() {
        assert_eq!(calm("njobs = 1\n").unwrap(), None);
        let one = calm("storageclass = 'fast'\n[calm]\niops = 100\nrwmixread = 30\n");
        let one = one.unwrap().unwrap();
        assert_eq!((one.read_iops, one.write_iops), (30, 70));
        assert_eq!(one.storageclass.as_deref(), Some("fast"));
        let text = "[calm]\niops = 100\n[[run]]\n[[run]]\ncalm = { enabled = false }\n";
        assert_eq!(calm(text).unwrap(), None);
        let slower = calm("[calm]\niops = 100\nbs = '4k'\n[[run]]\ncalm = { iops = 10 }\n");
        let slower = slower.unwrap().unwrap();
        assert_eq!((slower.iops(), slower.bs.as_str()), (10, "4k"));
        assert!(calm("[calm]\nrwmixread = 101\n").is_err());
        assert!(calm("[calm]\nfsz_gb = 4\npvcsz_req_gb = 2\n").is_err());
    }

    #[test]
    fn a_direction_without_a_share_has_no_rate() {
        let job = |text: &str| calm(text).unwrap().unwrap().job();
        assert!(job("[calm]\n").contains("rwmixread=50\nrate_iops=128,128\n"));
        assert!(job("[calm]\nrwmixread = 100\n").contains("rw=randread\nrate_iops=256\n"));
        assert!(job("[calm]\nrwmixread = 0\n").contains("rw=randwrite\nrate_iops=0,256\n"));
        // A share of less than one I/O is not "no limit".
        assert!(job("[calm]\niops = 3\nrwmixread = 1\n").contains("rate_iops=1,2\n"));
    }
}
