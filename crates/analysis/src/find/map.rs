//! The latency of reads over what is read and written at the same time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_behind;

/// What a device that is only led through does, in I/Os per second.
const LED_IOPS: f64 = 1000.0;

/// One load of a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MapLoad {
    /// Reads alone, without a rate.
    MostReads,
    /// Writes alone, without a rate.
    MostWrites,
    /// Both at rates of their own.
    Offered {
        /// Its place: so many steps of the most reads.
        read: u32,
        /// So many steps of the most writes; 0: reads alone.
        write: u32,
        /// Reads per second.
        read_iops: f64,
        /// Writes per second.
        write_iops: f64,
    },
}

/// What came of a load; 0 I/Os: it was only led through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapResult {
    /// The load.
    pub load: MapLoad,
    /// Reads per second that were done.
    pub read_iops: f64,
    /// Writes per second that were done.
    pub write_iops: f64,
    /// The latency of reads, in ns.
    pub latency_ns: Option<f64>,
    /// How long it measured.
    pub seconds: f64,
}

impl MapResult {
    /// Whether less than what was offered was done.
    fn is_behind(&self) -> bool {
        let MapLoad::Offered {
            read_iops,
            write_iops,
            ..
        } = self.load
        else {
            return false;
        };
        let is_led = self.read_iops + self.write_iops <= 0.0;
        let is = |rate, done| rate > 0.0 && is_behind(rate, done, self.seconds);
        !is_led && (is(read_iops, self.read_iops) || is(write_iops, self.write_iops))
    }
}

/// A map, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadMap {
    /// Steps of either load.
    pub steps: u32,
    /// Percentile of the latencies of reads.
    pub percent: f64,
    /// Reads per second without a rate and without writes; absent where they were not
    /// measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_reads: Option<f64>,
    /// Writes per second without a rate and without reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_writes: Option<f64>,
    /// By writes, then by reads.
    pub cells: Vec<MapCell>,
}

/// One place of a map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapCell {
    /// Steps of the most reads.
    pub read: u32,
    /// Steps of the most writes.
    pub write: u32,
    /// Reads per second that were offered.
    pub read_iops: f64,
    /// Writes per second that were offered.
    pub write_iops: f64,
    /// The latency of reads, in ns.
    pub latency_ns: Option<f64>,
    /// What came of it.
    pub outcome: MapOutcome,
}

/// What came of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapOutcome {
    /// All of it was done.
    Done,
    /// Less was done than was offered: the latency grows as long as that goes on.
    Behind,
    /// Not measured: of less the device was behind already.
    LeftOut,
    /// Not yet measured.
    Open,
}

impl LoadMap {
    /// What the results show so far.
    pub fn of(steps: u32, percent: f64, results: &[MapResult]) -> Self {
        let most = |wanted: MapLoad, of: fn(&MapResult) -> f64| {
            let found = results.iter().find(|it| it.load == wanted)?;
            Some(of(found)).map(|iops| if iops > 0.0 { iops } else { LED_IOPS })
        };
        let most_reads = most(MapLoad::MostReads, |it| it.read_iops);
        let most_writes = most(MapLoad::MostWrites, |it| it.write_iops);
        let mut map = Self {
            steps,
            percent,
            most_reads,
            most_writes,
            cells: Vec::new(),
        };
        let (Some(reads), Some(writes)) = (most_reads, most_writes) else {
            return map;
        };
        let step = |most: f64, place: u32| (most * f64::from(place) / f64::from(steps)).round();
        for write in 0..=steps {
            for read in 1..=steps {
                let found = results.iter().find(|it| {
                    matches!(it.load, MapLoad::Offered { read: r, write: w, .. } if (r, w) == (read, write))
                });
                let is_more = |it: &MapCell| {
                    it.outcome == MapOutcome::Behind && it.read <= read && it.write <= write
                };
                let outcome = match found {
                    Some(result) if result.is_behind() => MapOutcome::Behind,
                    Some(_) => MapOutcome::Done,
                    None if map.cells.iter().any(is_more) => MapOutcome::LeftOut,
                    None => MapOutcome::Open,
                };
                map.cells.push(MapCell {
                    read,
                    write,
                    read_iops: step(reads, read),
                    write_iops: step(writes, write),
                    latency_ns: found.and_then(|result| result.latency_ns),
                    outcome,
                });
            }
        }
        map
    }

    /// What comes next; `None`: it is complete.
    pub fn next(&self) -> Option<MapLoad> {
        if self.most_reads.is_none() {
            return Some(MapLoad::MostReads);
        }
        if self.most_writes.is_none() {
            return Some(MapLoad::MostWrites);
        }
        let open = self
            .cells
            .iter()
            .find(|cell| cell.outcome == MapOutcome::Open)?;
        Some(MapLoad::Offered {
            read: open.read,
            write: open.write,
            read_iops: open.read_iops,
            write_iops: open.write_iops,
        })
    }
}
