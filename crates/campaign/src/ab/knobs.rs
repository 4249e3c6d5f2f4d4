//! Which settings can matter for a load, and which of their values are tried.

use fathom_device::settings::{SettingError, Settings, is_by_scheduler};
use serde::{Deserialize, Serialize};

use super::race::AbFigure;
use super::tune::{TuneKnob, TuneValue};

/// I/Os from this size on may be split by `max_sectors_kb`.
const LARGE: u64 = 128 << 10;
/// Depth of a load that names none: what a busy server has under way.
const DEPTH: u32 = 32;

/// What a device is tuned for: `randread 4k at p99`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneLoad {
    /// fio's `rw`.
    pub rw: String,
    /// Size of an I/O, as fio reads it.
    pub bs: String,
    /// I/Os under way.
    pub iodepth: u32,
    /// What decides.
    pub figure: AbFigure,
}

impl std::str::FromStr for TuneLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HOW: &str = "write RW BS [iodepth N] at FIGURE, as in 'randread 4k at p99'";
        let words: Vec<&str> = text.split_whitespace().collect();
        let (rw, bs, iodepth, figure) = match words[..] {
            [rw, bs, "at", figure] => (rw, bs, DEPTH, figure),
            [rw, bs, "iodepth", depth, "at", figure] => {
                (rw, bs, depth.parse().map_err(|_| HOW)?, figure)
            }
            _ => return Err(HOW.to_owned()),
        };
        let known = ["read", "write", "randread", "randwrite", "rw", "randrw"];
        if !known.contains(&rw) {
            return Err(format!("'{rw}' is none of {}", known.join(", ")));
        }
        let size = fathom_model::units::parse_size(bs);
        if size.is_none_or(|size| size == 0 || size % 512 != 0) || iodepth == 0 {
            return Err(HOW.to_owned());
        }
        Ok(Self {
            rw: rw.to_owned(),
            bs: bs.to_owned(),
            iodepth,
            figure: figure.parse()?,
        })
    }
}

impl TuneLoad {
    /// The job file that makes it: past the page cache, whose settings it leaves alone.
    #[must_use]
    pub fn job(&self, device: &str, runtime_ms: u128) -> String {
        let Self {
            rw, bs, iodepth, ..
        } = self;
        format!(
            "[tune]\nfilename={device}\nrw={rw}\nbs={bs}\niodepth={iodepth}\nioengine=libaio\ndirect=1\ntime_based=1\nruntime={runtime_ms}ms\n"
        )
    }

    /// The settings of a device that can matter for it, in the order in which they are
    /// tried. A device that lacks one is not asked for it.
    ///
    /// # Errors
    /// How a setting that is there stands is not known.
    pub fn knobs(&self, settings: &Settings) -> Result<Vec<TuneKnob>, SettingError> {
        let mut names = vec!["scheduler"];
        // Only writes that nobody waits for are held back.
        if !self.rw.ends_with("read") {
            names.push("wbt_lat_usec");
        }
        names.push("nr_requests");
        if fathom_model::units::parse_size(&self.bs).is_some_and(|size| size >= LARGE) {
            names.push("max_sectors_kb");
        }
        names.extend(["rq_affinity", "nomerges"]);
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
        for bad in [
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
}
