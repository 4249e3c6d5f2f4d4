//! What is measured of a point and drawn.

use fathom_analysis::{Estimate, RepeatedFigures};

use fathom_sheet::chart::{ChartAxis, Ends, Quantity, Scale};

/// One of the figures that every point has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointMetric {
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Mean completion latency.
    Latency,
    /// The completion latency that half of the I/Os keep.
    P50,
    /// That 99 % keep.
    P99,
    /// That 99.9 % keep.
    P999,
    /// The longest completion latency.
    Max,
}

impl PointMetric {
    /// In the order of fio-tests' files.
    pub const ALL: [Self; 3] = [Self::Bandwidth, Self::Iops, Self::Latency];

    /// All, with the names that people give them.
    pub const NAMED: [(&'static str, Self); 7] = [
        ("bw", Self::Bandwidth),
        ("iops", Self::Iops),
        ("clat", Self::Latency),
        ("p50", Self::P50),
        ("p99", Self::P99),
        ("p99.9", Self::P999),
        ("max", Self::Max),
    ];

    /// The share of I/Os in percent that a latency is about; the mean has none.
    fn percent(self) -> Option<f64> {
        match self {
            Self::Bandwidth | Self::Iops | Self::Latency => None,
            Self::P50 => Some(50.0),
            Self::P99 => Some(99.0),
            Self::P999 => Some(99.9),
            Self::Max => Some(100.0),
        }
    }

    /// The figure of a point.
    pub fn of(self, figures: &RepeatedFigures) -> Option<Estimate> {
        match self {
            Self::Bandwidth => Some(figures.bw_bytes),
            Self::Iops => Some(figures.iops),
            Self::Latency => figures.clat_mean_ns,
            Self::P50 | Self::P99 | Self::P999 | Self::Max => {
                // Of a histogram over all repetitions: one figure, without an interval.
                Estimate::of(&[figures.percentile_ns(self.percent()?)? as f64])
            }
        }
    }

    /// How files are named after it, before the letter of the direction.
    pub fn stem(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Latency => "clat",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    /// What its numbers are.
    pub fn quantity(self) -> Quantity {
        match self {
            Self::Bandwidth => Quantity::BytesPerSecond,
            Self::Iops => Quantity::Rate,
            Self::Latency | Self::P50 | Self::P99 | Self::P999 | Self::Max => Quantity::Latency,
        }
    }

    /// Title of its axis.
    pub fn axis_title(self) -> &'static str {
        match self {
            Self::Bandwidth => "Bandwidth",
            Self::Iops => "IOPS",
            Self::Latency => "Mean latency",
            Self::P50 => "p50 latency",
            Self::P99 => "p99 latency",
            Self::P999 => "p99.9 latency",
            Self::Max => "Longest latency",
        }
    }

    /// Behind "Read" or "Write" in a title.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Iops => "IOPS",
            Self::Latency => "completion latency",
            Self::P50 => "p50 completion latency",
            Self::P99 => "p99 completion latency",
            Self::P999 => "p99.9 completion latency",
            Self::Max => "longest completion latency",
        }
    }

    /// Its axis beside an x axis of this scale. Rates begin at 0. Latencies over
    /// powers of two are spread by powers of ten: they grow with the depth (by
    /// Little's law in proportion to it once the device is saturated), and on an
    /// even axis all but the last few would lie on the bottom.
    pub fn axis(self, x: &Scale) -> ChartAxis {
        let logarithmic = self.quantity() == Quantity::Latency && x.is_logarithmic();
        ChartAxis {
            title: self.axis_title().to_owned(),
            quantity: self.quantity(),
            scale: if logarithmic {
                Scale::Log10
            } else {
                Scale::Linear
            },
            ends: Ends::Ticks,
        }
    }
}
