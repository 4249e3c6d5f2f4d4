//! Charts: a small grammar, drawn as SVG whose text is text, and as PNG.
//!
//! A [`Chart`] is a head and [`Panel`]s below each other. A panel has two axes
//! and layers: a [`Shape`] of values in an [`Ink`]. [`Note`]s name single
//! points; their labels stay clear of curves, of each other and of the frame.
//! Nothing here knows what storage is but [`Quantity`], which knows how its
//! numbers are written, and [`palette::of_direction`].
//!
//! The same chart gives the same bytes. Values that are not finite have no
//! place; in a curve they break the line.
//!
//! ```
//! use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size, Theme};
//! use fathom_sheet::chart::palette::Ink;
//!
//! let axis = |title: &str, quantity, scale, ends| ChartAxis { title: title.into(), quantity, scale, ends };
//! let mut panel = Panel::new(
//!     axis("I/O depth", Quantity::Binary, Scale::Log2, Ends::Values),
//!     axis("Bandwidth", Quantity::BytesPerSecond, Scale::Linear, Ends::Ticks),
//! );
//! panel.layers.push(Layer {
//!     name: None,
//!     shape: Shape::Curve(vec![(1.0, 5e7), (2.0, 9e7), (4.0, 1.5e8)]),
//!     ink: Ink::of_place(0),
//! });
//! let chart = Chart { title: "Write bandwidth".into(), panels: vec![panel], ..Chart::default() };
//! assert!(chart.svg(&Theme::LIGHT, Size::default()).contains("MiB/s"));
//! ```

mod draw;
mod frame;
pub mod label;
mod layout;
pub mod palette;
pub mod png;
pub mod quantity;
pub mod reduce;
pub mod scale;
mod svg;
pub mod text;
pub mod theme;

#[cfg(any(test, feature = "testing"))]
pub mod drawn;
#[cfg(test)]
mod tests;

pub use quantity::Quantity;
pub use scale::{ChartAxis, Ends, Scale};
pub use theme::Theme;

use palette::Ink;

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// What else is to know of all of it, a paragraph each.
    pub subtitle: Vec<String>,
    /// What a person sees who cannot see it: one or two sentences. When it is
    /// empty it is made of the axes.
    pub description: String,
    /// The panels from top to bottom. Where all have the same x axis only the
    /// last one has its numbers.
    pub panels: Vec<Panel>,
    /// Remarks below, a paragraph each.
    pub footer: Vec<String>,
}

/// Two axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// From left to right.
    pub x: ChartAxis,
    /// From bottom to top.
    pub y: ChartAxis,
    /// What is drawn, from the back to the front.
    pub layers: Vec<Layer>,
    /// Points that have a name.
    pub notes: Vec<Note>,
    /// What the colours of [`Shape::Cells`] mean; drawn as a bar beside them.
    pub colors: Option<ChartAxis>,
}

impl Panel {
    /// An empty panel.
    pub fn new(x: ChartAxis, y: ChartAxis) -> Self {
        Self {
            x,
            y,
            layers: Vec::new(),
            notes: Vec::new(),
            colors: None,
        }
    }
}

/// Values and how they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its name in the legend; `None`: it is not in the legend.
    pub name: Option<String>,
    /// What is drawn.
    pub shape: Shape,
    /// How.
    pub ink: Ink,
}

/// What is drawn of values. Points are (x, y), in the order of the line.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A line with a marker at every point.
    Curve(Vec<(f64, f64)>),
    /// A line without markers.
    Line(Vec<(f64, f64)>),
    /// Markers without a line.
    Points(Vec<(f64, f64)>),
    /// A line that keeps a value until the next point.
    Steps(Vec<(f64, f64)>),
    /// A line, and the area between it and the x axis.
    Area(Vec<(f64, f64)>),
    /// The area between a low and a high value at each x.
    Band(Vec<(f64, f64, f64)>),
    /// Error bars: x, low, high.
    ErrorBars(Vec<(f64, f64, f64)>),
    /// Markers on the x axis: something happened there that has no value.
    OnAxis(Vec<f64>),
    /// Rectangles in colours: a heat map.
    Cells(Vec<HeatCell>),
}

/// A rectangle of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatCell {
    /// From … to on the x axis.
    pub x: (f64, f64),
    /// From … to on the y axis.
    pub y: (f64, f64),
    /// What its colour says; `None`: there was something, and it has no value.
    pub value: Option<f64>,
}

/// The name of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The point.
    pub at: (f64, f64),
    /// What is said of it, line by line; the first one is set bold when there
    /// are several. Notes of the same point become one.
    pub lines: Vec<String>,
    /// How it is tied to the point.
    pub kind: NoteKind,
    /// The point's mark is hollow: its figures are to be doubted.
    pub hollow: bool,
    /// The colour of a word beside its point, where there are several curves.
    pub color: Option<palette::Srgb>,
}

/// How a note is tied to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// The point is marked, a line leads to the label. Where no place is free
    /// for it the point gets a letter that is explained in the footer.
    Leader,
    /// A small word right beside the point; left out where there is no room.
    Beside,
}

/// Size of a chart in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Width.
    pub width: f64,
    /// Height; a chart grows beyond it rather than press its panels flat.
    pub height: f64,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            width: 760.0,
            height: 460.0,
        }
    }
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self, theme: &Theme, size: Size) -> String {
        draw::draw(self, theme, size)
    }
}
