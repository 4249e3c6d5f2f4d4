//! What is measured of a point and drawn.

use fathom_analysis::{Estimate, RepeatedFigures};

use crate::chart::{ChartAxis, Ends, Quantity, Scale};

/// One of the figures that every point has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointMetric {
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Mean completion latency.
    Latency,
}

impl PointMetric {
    /// In the order of fio-tests' files.
    pub const ALL: [Self; 3] = [Self::Bandwidth, Self::Iops, Self::Latency];

    /// The figure of a point.
    #[must_use]
    pub fn of(self, figures: &RepeatedFigures) -> Option<Estimate> {
        match self {
            Self::Bandwidth => Some(figures.bw_bytes),
            Self::Iops => Some(figures.iops),
            Self::Latency => figures.clat_mean_ns,
        }
    }

    /// How files are named after it, before the letter of the direction.
    #[must_use]
    pub fn stem(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Latency => "clat",
        }
    }

    /// What its numbers are.
    #[must_use]
    pub fn quantity(self) -> Quantity {
        match self {
            Self::Bandwidth => Quantity::BytesPerSecond,
            Self::Iops => Quantity::Rate,
            Self::Latency => Quantity::Latency,
        }
    }

    /// Title of its axis.
    #[must_use]
    pub fn axis_title(self) -> &'static str {
        match self {
            Self::Bandwidth => "Bandwidth",
            Self::Iops => "IOPS",
            Self::Latency => "Mean latency",
        }
    }

    /// Behind "Read" or "Write" in a title.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Iops => "IOPS",
            Self::Latency => "completion latency",
        }
    }

    /// Its axis beside an x axis of this scale. Rates begin at 0. Latencies over
    /// powers of two are spread by powers of ten: they grow with the depth (by
    /// Little's law in proportion to it once the device is saturated), and on an
    /// even axis all but the last few would lie on the bottom.
    #[must_use]
    pub fn axis(self, x: &Scale) -> ChartAxis {
        let logarithmic = self == Self::Latency && x.is_logarithmic();
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
