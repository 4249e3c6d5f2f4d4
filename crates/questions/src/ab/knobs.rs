//! Which settings can matter for a load, and which of their values are tried.

use fathom_device::SysBlock;
use fathom_device::command::KernelDevices;
use fathom_device::settings::{SettingError, Settings, is_by_scheduler};
use fathom_flow::Undo;
use serde::{Deserialize, Serialize};

use super::race::AbFigure;
use super::tune::{TuneKnob, TuneValue};

/// I/Os from this size on may be split by `max_sectors_kb`.
const LARGE: u64 = 128 << 10;
/// Depth of a load that names none: what a busy server has under way.
const DEPTH: u32 = 32;

/// What a device is tuned for: `randread 4k at p99`, `read 1m buffered at bw`, `write 4k
/// fsync 1 at p99`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneLoad {
    /// fio's `rw`.
    pub rw: String,
    /// Size of an I/O, as fio reads it.
    pub bs: String,
    /// I/Os under way.
    pub iodepth: u32,
    /// Whether it goes through the page cache, which reads ahead.
    #[serde(default)]
    pub buffered: bool,
    /// So many writes are followed by fsync(2); absent: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync: Option<u32>,
    /// What decides.
    pub figure: AbFigure,
}

impl std::str::FromStr for TuneLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HOW: &str =
            "write RW BS [iodepth N] [buffered] [fsync N] at FIGURE, as in 'randread 4k at p99'";
        let Some((what, figure)) = text.split_once(" at ") else {
            return Err(HOW.to_owned());
        };
        let mut words = what.split_whitespace();
        let (Some(rw), Some(bs)) = (words.next(), words.next()) else {
            return Err(HOW.to_owned());
        };
        let (mut iodepth, mut fsync, mut buffered) = (None, None, false);
        while let Some(word) = words.next() {
            let number = match word {
                "iodepth" => &mut iodepth,
                "fsync" => &mut fsync,
                "buffered" => {
                    buffered = true;
                    continue;
                }
                _ => return Err(HOW.to_owned()),
            };
            let value: Option<u32> = words.next().and_then(|value| value.parse().ok());
            *number = Some(value.filter(|value| *value > 0).ok_or(HOW)?);
        }
        let known = ["read", "write", "randread", "randwrite", "rw", "randrw"];
        if !known.contains(&rw) {
            return Err(format!("'{rw}' is none of {}", known.join(", ")));
        }
        let size = fathom_model::units::parse_size(bs);
        if size.is_none_or(|size| size == 0 || size % 512 != 0) {
            return Err(HOW.to_owned());
        }
        if buffered && (rw != "read" || iodepth.is_some()) {
            return Err("what is buffered is 'read', one I/O after the other: of other loads the page cache is measured".to_owned());
        }
        if fsync.is_some() && rw.ends_with("read") {
            return Err(format!("'{rw}' writes nothing that fsync could wait for"));
        }
        Ok(Self {
            rw: rw.to_owned(),
            bs: bs.to_owned(),
            iodepth: iodepth.unwrap_or(if buffered { 1 } else { DEPTH }),
            buffered,
            fsync,
            figure: figure.trim().parse()?,
        })
    }
}

impl TuneLoad {
    /// The job file that makes it: past the page cache, unless it is to read ahead.
    pub fn job(&self, device: &str, runtime_ms: u128) -> String {
        let Self {
            rw, bs, iodepth, ..
        } = self;
        let how = match self.buffered {
            true => "ioengine=psync\ndirect=0",
            false => "ioengine=libaio\ndirect=1",
        };
        let fsync = self.fsync.map(|every| format!("fsync={every}\n"));
        let fsync = fsync.unwrap_or_default();
        format!(
            "[tune]\nfilename={device}\nrw={rw}\nbs={bs}\niodepth={iodepth}\n{how}\n{fsync}time_based=1\nruntime={runtime_ms}ms\n"
        )
    }

    /// The settings of a device that can matter for it, in the order in which they are
    /// tried. A device that lacks one is not asked for it. `with_cache`: `write_cache` as
    /// well, which nobody gets without asking for it, because data can be lost by it.
    ///
    /// # Errors
    /// How a setting that is there stands is not known.
    pub fn knobs(
        &self,
        settings: &Settings,
        with_cache: bool,
    ) -> Result<Vec<TuneKnob>, SettingError> {
        let mut names = vec!["scheduler"];
        if self.buffered {
            names.push("read_ahead_kb");
        }
        // Only writes that nobody waits for are held back.
        if !self.rw.ends_with("read") {
            names.push("wbt_lat_usec");
        }
        names.push("nr_requests");
        if fathom_model::units::parse_size(&self.bs).is_some_and(|size| size >= LARGE) {
            names.push("max_sectors_kb");
        }
        names.extend(["rq_affinity", "nomerges"]);
        if with_cache {
            names.push("write_cache");
        }
        let knobs = names.into_iter().map(|name| knob(settings, name));
        knobs.filter_map(Result::transpose).collect()
    }
}

/// A setting with the values that are tried; `None`: there is no other than it has.
fn knob(settings: &Settings, name: &str) -> Result<Option<TuneKnob>, SettingError> {
    let found = match settings.found(name) {
        Err(SettingError::Missing(..)) => return Ok(None),
        found => found?,
    };
    let Some(now) = found.first().map(|it| it.value.clone()) else {
        return Ok(None);
    };
    let number: i64 = now.parse().unwrap_or(0);
    // Numbers in steps of four: neighbours differ by less than can be told.
    let others = match name {
        "wbt_lat_usec" => vec!["0".to_owned()],
        "nr_requests" => vec![(number / 4).to_string(), (number / 16).to_string()],
        // Without any the next steps are those from what the kernel begins with.
        "read_ahead_kb" if number == 0 => vec!["128".to_owned(), "512".to_owned()],
        "read_ahead_kb" => vec![
            (number / 4).to_string(),
            (number * 4).to_string(),
            (number * 16).to_string(),
        ],
        "max_sectors_kb" => vec![(number / 4).to_string(), (number * 4).to_string()],
        _ => settings.choices(name)?,
    };
    let mut values = vec![TuneValue {
        value: now.clone(),
        values: found,
    }];
    for value in others.into_iter().filter(|value| *value != now) {
        // What it does not take is not tried.
        if let Ok(written) = settings.values(name, &value) {
            values.push(TuneValue {
                value,
                values: written,
            });
        }
    }
    Ok((values.len() > 1).then(|| TuneKnob {
        name: name.to_owned(),
        values,
        is_by_scheduler: is_by_scheduler(name),
    }))
}

/// Leaves out values that the kernel does not take as they are written: it rounds some, and
/// some devices have an attribute that takes nothing. Each value is written, read back, and
/// taken back at once; how everything stood is noted on the disk before. Gives the settings
/// that are left, and a sentence for each value that was left out.
///
/// # Errors
/// Why it cannot be noted or put back.
pub fn keep_taken(
    knobs: Vec<TuneKnob>,
    device: &SysBlock,
    settings: &Settings,
) -> Result<(Vec<TuneKnob>, Vec<String>), String> {
    let names: Vec<String> = knobs.iter().map(|knob| knob.name.clone()).collect();
    let undo = Undo::of_settings(Some(device), settings, &names)?;
    undo.keep()?;
    let mut left_out = Vec::new();
    let mut taken = Vec::new();
    for mut knob in knobs {
        let Some((stands, others)) = knob.values.split_first() else {
            continue;
        };
        let mut values = vec![stands.clone()];
        for other in others {
            match settings.set(&KernelDevices, &other.values) {
                Ok(()) => values.push(other.clone()),
                Err(why) => {
                    left_out.push(format!("{}={} is not tried: {why}", knob.name, other.value))
                }
            }
            settings
                .set(&KernelDevices, &stands.values)
                .map_err(|error| error.to_string())?;
        }
        knob.values = values;
        taken.push(knob);
    }
    taken.retain(|knob| knob.values.len() > 1);
    let back = undo.put_back(&KernelDevices);
    back.map_err(|error| error.to_string())?;
    Ok((taken, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        let load: TuneLoad = "randread 4k at p99".parse().unwrap();
        assert_eq!((load.iodepth, load.figure), (32, AbFigure::P99Ns));
        let job = load.job("/dev/sdx", 10_000);
        assert!(job.contains("rw=randread\nbs=4k\niodepth=32\n"), "{job}");
        let load: TuneLoad = "write 1m iodepth 4 at bw".parse().unwrap();
        assert_eq!((load.iodepth, load.figure), (4, AbFigure::BwBytes));
        let load: TuneLoad = "read 1m buffered at bw".parse().unwrap();
        let job = load.job("/dev/sdx", 10_000);
        assert!(
            job.contains("iodepth=1\nioengine=psync\ndirect=0\n"),
            "{job}"
        );
        let load: TuneLoad = "randwrite 4k fsync 8 iodepth 2 at p99".parse().unwrap();
        let job = load.job("/dev/sdx", 10_000);
        assert!(job.contains("direct=1\nfsync=8\n"), "{job}");
        for bad in [
            "randread 4k buffered at p99",
            "read 4k buffered iodepth 4 at p99",
            "read 4k fsync 1 at p99",
            "write 4k fsync at p99",
            "write 4k fsync 0 at p99",
            "",
            "randread 4k",
            "randread 4k at speed",
            "trim 4k at p99",
            "randread x at p99",
            "randread 1 at p99",
            "randread 4k iodepth 0 at p99",
        ] {
            assert!(bad.parse::<TuneLoad>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_what_can_matter_is_tried_and_a_cache_without_flushes_for_who_asks() {
        let folder = tempfile::tempdir().unwrap();
        let queue = folder.path().join("sys/class/block/sda/queue");
        std::fs::create_dir_all(&queue).unwrap();
        for (name, value) in [
            ("scheduler", "none [mq-deadline]"),
            ("nr_requests", "64"),
            ("wbt_lat_usec", "75000"),
            ("read_ahead_kb", "128"),
            ("max_sectors_kb", "128"),
            ("max_hw_sectors_kb", "256"),
            ("nomerges", "0"),
            ("rq_affinity", "1"),
            ("write_cache", "write back"),
        ] {
            std::fs::write(queue.join(name), format!("{value}\n")).unwrap();
        }
        let sys = fathom_device::Sys::recorded(folder.path());
        let disk = sys.by_name("sda").unwrap();
        let settings = Settings::new(sys, Some(&disk));
        let tried = |load: &str, with_cache: bool| -> Vec<String> {
            let load: TuneLoad = load.parse().unwrap();
            let knobs = load.knobs(&settings, with_cache).unwrap();
            let each = knobs.iter().map(|knob| {
                let values = knob.values.iter().map(|it| it.value.as_str());
                format!("{} {}", knob.name, values.collect::<Vec<_>>().join(","))
            });
            each.collect()
        };
        let others = ["rq_affinity 1,0,2", "nomerges 0,1,2"];
        let queue = ["scheduler mq-deadline,none", "nr_requests 64,16,4"];
        let reads = [&queue[..], &others].concat();
        assert_eq!(tried("randread 4k at p99", false), reads);
        let ahead = ["read_ahead_kb 128,32,512,2048"];
        let buffered = [&queue[..1], &ahead, &queue[1..], &others].concat();
        assert_eq!(tried("read 4k buffered at bw", false), buffered);
        let synced = "randwrite 4k fsync 1 at p99";
        let held_back = ["wbt_lat_usec 75000,0"];
        let writes = [&queue[..1], &held_back, &queue[1..], &others].concat();
        assert_eq!(tried(synced, false), writes);
        let cache = ["write_cache write back,write through"];
        assert_eq!(tried(synced, true), [&writes[..], &cache].concat());
    }
}
