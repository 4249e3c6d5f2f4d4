//! How charts look: sizes in pixels, colours of everything that is no curve.

use super::palette::Srgb;

/// The look of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theme {
    /// Behind everything.
    pub ground: Srgb,
    /// Titles, axes, the best points.
    pub ink: Srgb,
    /// Subtitles, the numbers at ticks.
    pub soft: Srgb,
    /// Lines of the grid.
    pub grid: Srgb,
    /// Failed points.
    pub bad: Srgb,
    /// Font size of the title.
    pub title: f64,
    /// Font size of the titles of axes.
    pub axis: f64,
    /// Font size of ticks, labels, legend, subtitle.
    pub small: f64,
    /// Width of curves.
    pub line: f64,
    /// Radius of markers.
    pub marker: f64,
}

impl Theme {
    /// Dark on white, for paper and for most screens.
    pub const LIGHT: Self = Self {
        ground: Srgb(0xff, 0xff, 0xff),
        ink: Srgb(0x1f, 0x23, 0x28),
        soft: Srgb(0x57, 0x5e, 0x68),
        grid: Srgb(0xe4, 0xe7, 0xeb),
        bad: Srgb(0xb3, 0x26, 0x1e),
        title: 16.0,
        axis: 12.0,
        small: 11.0,
        line: 2.0,
        marker: 3.6,
    };

    /// Light on dark.
    pub const DARK: Self = Self {
        ground: Srgb(0x16, 0x1a, 0x20),
        ink: Srgb(0xf0, 0xf2, 0xf5),
        soft: Srgb(0xa9, 0xb1, 0xbc),
        grid: Srgb(0x31, 0x38, 0x42),
        bad: Srgb(0xff, 0x8a, 0x80),
        ..Self::LIGHT
    };
}

impl Default for Theme {
    fn default() -> Self {
        Self::LIGHT
    }
}
