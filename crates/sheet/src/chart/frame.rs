//! A panel that knows its place: its frame, its fitted axes, and everything in
//! it in pixels.

use super::label::Rect;
use super::reduce::{Pixel, reduce};
use super::scale::Fitted;
use super::{Panel, Scale, Shape};

/// A panel and its place.
#[derive(Debug)]
pub(crate) struct Framed<'a> {
    pub panel: &'a Panel,
    /// The rectangle between the axes.
    pub frame: Rect,
    pub x: Fitted,
    pub y: Fitted,
    pub colors: Option<Fitted>,
    /// Whether its x axis has numbers and a title.
    pub x_labels: bool,
}

/// Smallest and largest of what has a place on a scale.
pub(crate) fn extent(values: impl IntoIterator<Item = f64>, scale: &Scale) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|&value| scale.even(value).is_some())
        .fold(None, |extent: Option<(f64, f64)>, value| {
            let (min, max) = extent.unwrap_or((value, value));
            Some((min.min(value), max.max(value)))
        })
}

/// Smallest and largest x and y of a panel, and smallest and largest value of its cells.
pub(crate) struct Extents {
    pub x: Option<(f64, f64)>,
    pub y: Option<(f64, f64)>,
    pub colors: Option<(f64, f64)>,
}

impl Extents {
    pub fn of(panel: &Panel) -> Self {
        let (mut xs, mut ys, mut colors) = (Vec::new(), Vec::new(), Vec::new());
        for layer in &panel.layers {
            match &layer.shape {
                Shape::Curve(points)
                | Shape::Line(points)
                | Shape::Points(points)
                | Shape::Steps(points)
                | Shape::Area(points) => {
                    for &(x, y) in points {
                        xs.push(x);
                        // What has no place in one direction does not stretch the other.
                        ys.extend(panel.x.scale.even(x).map(|_| y));
                    }
                }
                Shape::Band(spans) | Shape::ErrorBars(spans) => {
                    for &(x, low, high) in spans {
                        xs.push(x);
                        ys.extend([low, high]);
                    }
                }
                Shape::OnAxis(at) => xs.extend(at),
                Shape::Cells(cells) => {
                    for cell in cells {
                        xs.extend([cell.x.0, cell.x.1]);
                        ys.extend([cell.y.0, cell.y.1]);
                        colors.extend(cell.value);
                    }
                }
            }
        }
        let linear = Scale::Linear;
        let color_scale = panel.colors.as_ref().map_or(&linear, |axis| &axis.scale);
        Self {
            x: extent(xs, &panel.x.scale),
            y: extent(ys, &panel.y.scale),
            colors: extent(colors, color_scale),
        }
    }
}

/// A line of so few points keeps them all: they are measurements of a campaign,
/// each with a marker, and may stand one above the other.
const WHOLE: usize = 500;

impl Framed<'_> {
    pub fn px(&self, x: f64) -> Option<f64> {
        Some(self.frame.left + self.x.place(x)? * self.frame.width)
    }

    pub fn py(&self, y: f64) -> Option<f64> {
        Some(self.frame.bottom() - self.y.place(y)? * self.frame.height)
    }

    pub fn pixel(&self, (x, y): (f64, f64)) -> Option<Pixel> {
        Some((self.px(x)?, self.py(y)?))
    }

    /// A line in pixels, no longer than can be seen, in pieces: a point that
    /// has no place breaks it.
    pub fn pieces(&self, points: &[(f64, f64)]) -> Vec<Vec<Pixel>> {
        points
            .split(|&point| self.pixel(point).is_none())
            .map(|piece| {
                let pixels = piece.iter().filter_map(|&point| self.pixel(point));
                match piece.len() > WHOLE {
                    true => reduce(pixels),
                    false => pixels.collect(),
                }
            })
            .filter(|piece| !piece.is_empty())
            .collect()
    }

    /// As [`Framed::pieces`], of a line that keeps its value until the next point.
    pub fn stairs(&self, points: &[(f64, f64)]) -> Vec<Vec<Pixel>> {
        let mut pieces = self.pieces(points);
        for piece in &mut pieces {
            let corners = piece
                .windows(2)
                .flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)])
                .chain(piece.last().copied());
            *piece = corners.collect();
        }
        pieces
    }

    /// Low and high ends in pixels; ends that have no place lie on the axis's ends.
    pub fn spans(&self, spans: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
        spans
            .iter()
            .filter_map(|&(x, low, high)| {
                let high = self.py(high)?;
                let low = self.py(low).unwrap_or(self.frame.bottom());
                Some((self.px(x)?, low.min(self.frame.bottom()), high))
            })
            .collect()
    }
}
