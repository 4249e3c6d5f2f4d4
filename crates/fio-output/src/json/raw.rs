//! fio's JSON as it stands in the file: every name of every age, nothing judged.

use std::collections::BTreeMap;
use std::fmt;

use fathom_model::Histogram;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The root of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Document {
    #[serde(rename = "fio version")]
    pub version: Option<String>,
    pub timestamp: Number,
    pub timestamp_ms: Number,
    #[serde(rename = "global options")]
    pub global_options: GlobalOptions,
    pub jobs: Option<RawJobs>,
    /// Client mode, instead of `jobs`.
    pub client_stats: Option<RawJobs>,
    pub disk_util: Vec<Disk>,
}

/// Most jobs of one document: fio runs at most 4096 (`REAL_MAX_JOBS`, init.c) on
/// each of its hosts. A bound, because a job is larger in memory than `{}`.
const MOST_JOBS: usize = 1 << 16;

/// `jobs`, `client_stats`.
#[derive(Debug, Default)]
pub struct RawJobs(pub Vec<RawJob>);

impl<'de> Deserialize<'de> for RawJobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawList;
        impl<'de> Visitor<'de> for RawList {
            type Value = RawJobs;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list of jobs")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawJobs, A::Error> {
                let mut jobs = Vec::new();
                while let Some(job) = seq.next_element()? {
                    if jobs.len() == MOST_JOBS {
                        let text = format!("more than {MOST_JOBS} jobs");
                        return Err(serde::de::Error::custom(text));
                    }
                    jobs.push(job);
                }
                Ok(RawJobs(jobs))
            }
        }
        deserializer.deserialize_seq(RawList)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawJob {
    pub jobname: Option<String>,
    pub groupid: Number,
    pub error: Number,
    pub total_err: Number,
    pub first_error: Number,
    pub desc: Option<String>,
    pub hostname: Option<String>,
    pub port: Number,
    #[serde(rename = "job options")]
    pub options: RawJobOptions,
    pub read: Option<Box<RawDirection>>,
    pub write: Option<Box<RawDirection>>,
    pub trim: Option<Box<RawDirection>>,
    pub mixed: Option<Box<RawDirection>>,
    pub sync: Option<Box<RawDirection>>,
    pub job_runtime: Number,
    pub elapsed: Number,
    pub usr_cpu: Number,
    pub sys_cpu: Number,
    pub ctx: Number,
    pub majf: Number,
    pub minf: Number,
    pub iodepth_level: Levels,
    pub steadystate: Option<serde_json::Value>,
    pub latency_depth: Number,
    pub latency_target: Number,
    pub latency_percentile: Number,
    pub latency_window: Number,
    /// Client mode of fio ≤ 3.x repeats the disks in each client's entry.
    pub disk_util: Vec<Disk>,
}

/// One direction; names without `_ns` and without `io_kbytes` are fio 2.x's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawDirection {
    pub io_bytes: Number,
    pub io_kbytes: Number,
    pub bw_bytes: Number,
    pub bw: Number,
    pub iops: Number,
    pub runtime: Number,
    pub total_ios: Number,
    pub short_ios: Number,
    pub drop_ios: Number,
    /// Of the native engine only.
    pub lag_ns: Option<RawLatency>,
    pub slat_ns: Option<RawLatency>,
    pub clat_ns: Option<RawLatency>,
    pub lat_ns: Option<RawLatency>,
    pub slat: Option<RawLatency>,
    pub clat: Option<RawLatency>,
    pub lat: Option<RawLatency>,
    pub prios: Vec<Priority>,
    /// fio 3.18 to 3.28 knew two priorities only.
    #[serde(alias = "lat_high_prio")]
    pub clat_high_prio: Option<RawLatency>,
    #[serde(alias = "lat_low_prio")]
    pub clat_low_prio: Option<RawLatency>,
    pub bw_min: Number,
    pub bw_max: Number,
    pub bw_mean: Number,
    pub bw_dev: Number,
    pub bw_samples: Number,
    pub iops_min: Number,
    pub iops_max: Number,
    pub iops_mean: Number,
    pub iops_stddev: Number,
    pub iops_samples: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawLatency {
    pub min: Number,
    pub max: Number,
    pub mean: Number,
    pub stddev: Number,
    #[serde(rename = "N")]
    pub n: Number,
    pub percentile: Percentiles,
    pub bins: Option<RawBins>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Priority {
    pub prioclass: Number,
    pub prio: Number,
    pub priohint: Number,
    #[serde(alias = "lat_ns")]
    pub clat_ns: Option<RawLatency>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Client mode: whose disk it is.
    pub hostname: Option<String>,
    pub name: Option<String>,
    pub read_ios: Number,
    pub write_ios: Number,
    pub read_merges: Number,
    pub write_merges: Number,
    pub read_ticks: Number,
    pub write_ticks: Number,
    pub in_queue: Number,
    pub util: Number,
}

/// A number as fio prints it: an integer, a decimal, or nothing usable.
///
/// Integers keep their 64 bits. `null` (what `nan` was made into), negative
/// counters and texts that are no number are [`Number::None`].
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum Number {
    #[default]
    None,
    Int(u64),
    Float(f64),
}

impl Number {
    /// As a count; decimals are rounded.
    pub fn count(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Int(value) => Some(value),
            Self::Float(value) => (0.0..1.8e19).contains(&value).then(|| value.round() as u64),
        }
    }

    /// As a decimal.
    pub fn decimal(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => value.is_finite().then_some(value),
        }
    }

    /// From text: `12`, `12.5`; `-nan` and the like are none.
    fn parse(text: &str) -> Self {
        let text = text.trim().trim_end_matches('%');
        if let Ok(value) = text.parse::<u64>() {
            return Self::Int(value);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Self::Float(value),
            _ => Self::None,
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Int(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Float(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Float(value))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Number, E> {
                Ok(Number::Int(u64::from(value)))
            }
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number::None)
            }
            fn visit_str<E>(self, value: &str) -> Result<Number, E> {
                Ok(Number::parse(value))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A map key that is a number: a percentile's percent, a bin's value.
struct NumberKey(Number);

impl<'de> Deserialize<'de> for NumberKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Key;
        impl Visitor<'_> for Key {
            type Value = NumberKey;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_str<E>(self, value: &str) -> Result<NumberKey, E> {
                Ok(NumberKey(Number::parse(value)))
            }
        }
        deserializer.deserialize_str(Key)
    }
}

/// Defines a type that is filled entry by entry from a JSON object; anything
/// that is not an object leaves it empty.
macro_rules! from_entries {
    ($type:ident, $key:ty, $value:ty, $add:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Entries;
                impl<'de> Visitor<'de> for Entries {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_unit<E>(self) -> Result<$type, E> {
                        Ok($type::default())
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        let mut all = $type::default();
                        while let Some((key, value)) = map.next_entry::<$key, $value>()? {
                            let add: fn(&mut $type, $key, $value) = $add;
                            add(&mut all, key, value);
                        }
                        Ok(all)
                    }
                }
                deserializer.deserialize_any(Entries)
            }
        }
    };
}

/// `percentile`: (percent, value) in the order of the file. fio 2.x fills its
/// list of twenty up with `"0.00" : 0`, which is left out.
#[derive(Debug, Default)]
pub struct Percentiles(pub Vec<(f64, u64)>);

from_entries!(Percentiles, NumberKey, Number, |all, key, value| {
    if let (Some(percent), Some(value)) = (key.0.decimal(), value.count())
        && percent > 0.0
        && percent <= 100.0
    {
        all.0.push((percent, value));
    }
});

/// `bins` of json+: the value that stands for a bucket, and its count. Keys
/// that are no number (fio 2.x wrote the histogram's dimensions too) are left out.
#[derive(Debug, Default)]
pub struct RawBins(pub Vec<(u64, u64)>);

from_entries!(RawBins, NumberKey, Number, |all, key, value| {
    if let (Number::Int(middle), Some(count)) = (key.0, value.count())
        && count > 0
    {
        all.0.push((middle, count));
    }
});

impl RawBins {
    /// The histogram, each value multiplied by `scale` to make it ns.
    pub fn histogram(&self, scale: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for &(value, count) in &self.0 {
            histogram.add(value.saturating_mul(scale), count);
        }
        histogram
    }
}

/// A distribution in percent, by class name, in the order of the file.
#[derive(Debug, Default)]
pub struct Levels(pub Vec<(String, f64)>);

from_entries!(Levels, String, Number, |all, key, value| {
    if let Some(percent) = value.decimal() {
        all.0.push((key, percent));
    }
});

/// `job options`: names and values.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct RawJobOptions(pub BTreeMap<String, String>);

from_entries!(RawJobOptions, String, RawText, |all, key, value| {
    all.0.insert(key, value.0);
});

/// Any scalar as text; fio writes all option values as strings.
struct RawText(String);

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        }))
    }
}

/// `global options`: an object, or in client mode with several clients an array of them.
#[derive(Debug, Default)]
pub struct GlobalOptions(pub Vec<RawJobOptions>);

impl<'de> Deserialize<'de> for GlobalOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = GlobalOptions;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object or a list of objects")
            }
            fn visit_unit<E>(self) -> Result<GlobalOptions, E> {
                Ok(GlobalOptions::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GlobalOptions, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                Ok(GlobalOptions(vec![RawJobOptions::deserialize(map)?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<GlobalOptions, A::Error> {
                let mut all = Vec::new();
                while let Some(mut options) = seq.next_element::<RawJobOptions>()? {
                    // Whose options they are (client.c), not options themselves.
                    options.0.remove("hostname");
                    options.0.remove("port");
                    // Clients of one job file repeat the same options.
                    if all.last() != Some(&options) {
                        all.push(options);
                    }
                }
                Ok(GlobalOptions(all))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
