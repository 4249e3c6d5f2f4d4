//! Where the parts of a chart go.

use super::frame::{Extents, Framed};
use super::label::Rect;
use super::palette::Ink;
use super::scale::{ChartAxis, Fitted, fit};
use super::text::{LINE, Weight, cut, width, wrap};
use super::{Chart, Panel, Scale, Shape, Size, Theme};

/// Left and right of everything.
pub(crate) const EDGE: f64 = 16.0;
/// Length of a tick.
pub(crate) const TICK: f64 = 5.0;
/// From a tick to its number.
pub(crate) const GAP: f64 = 4.0;
/// Width of the bar that explains colours.
pub(crate) const BAR: f64 = 12.0;
/// A panel is never lower.
const FRAME_HEIGHT_MIN: f64 = 90.0;
/// Nor narrower.
const FRAME_WIDTH_MIN: f64 = 80.0;
/// Between two panels that share an x axis.
const BETWEEN: f64 = 18.0;
/// Numbers at an upright axis are never wider.
const NUMBER_MAX: f64 = 170.0;
/// The sign of a legend's entry.
pub(crate) const KEY: f64 = 26.0;
/// Between two entries of a legend.
const KEY_GAP: f64 = 18.0;

/// An entry of the legend.
#[derive(Debug)]
pub(crate) struct LegendEntry<'a> {
    pub name: String,
    pub shape: &'a Shape,
    pub ink: Ink,
    pub x: f64,
    pub row: usize,
}

/// All places.
#[derive(Debug)]
pub(crate) struct ChartLayout<'a> {
    pub width: f64,
    pub height: f64,
    pub title: Vec<String>,
    pub subtitle: Vec<String>,
    pub legend: Vec<LegendEntry<'a>>,
    /// Upper edge of the legend.
    pub legend_top: f64,
    pub panels: Vec<Framed<'a>>,
    /// Upper edge of what stands below the panels.
    pub footer_top: f64,
}

/// Lays out a chart. `footer` is the number of lines to leave below.
pub(crate) fn lay_out<'a>(
    chart: &'a Chart,
    theme: &Theme,
    size: Size,
    footer: usize,
) -> ChartLayout<'a> {
    let total = size.width.max(160.0);
    let room = total - 2.0 * EDGE;
    let title = wrap(&chart.title, room, 2, theme.title, Weight::Bold);
    let subtitle: Vec<String> = chart
        .subtitle
        .iter()
        .flat_map(|paragraph| wrap(paragraph, room, 2, theme.small, Weight::Regular))
        .collect();
    let (legend, rows) = legend(chart, theme, room);
    let line = theme.small * LINE;
    let legend_top = EDGE * 0.75
        + title.len() as f64 * theme.title * LINE
        + subtitle.len() as f64 * line
        + if title.is_empty() { 0.0 } else { 6.0 };
    let top = legend_top + rows as f64 * (line + 4.0) + if rows > 0 { 6.0 } else { 4.0 };

    let shared = chart.panels.windows(2).all(|pair| pair[0].x == pair[1].x);
    let below = TICK + GAP + line + GAP + theme.axis * LINE;
    let count = chart.panels.len().max(1) as f64;
    let between = if shared { BETWEEN } else { below + BETWEEN };
    let footer_height = if footer > 0 {
        footer as f64 * line + 6.0
    } else {
        0.0
    };
    let free = size.height - top - below - footer_height - EDGE * 0.6 - between * (count - 1.0);
    let height = (free / count).max(FRAME_HEIGHT_MIN);
    let mut panels: Vec<Framed> = Vec::new();
    for (n, panel) in chart.panels.iter().enumerate() {
        panels.push(Framed {
            panel,
            frame: Rect {
                left: 0.0,
                top: top + n as f64 * (height + between),
                width: 0.0,
                height,
            },
            x_labels: !shared || n + 1 == chart.panels.len(),
            x: fit(&panel.x, None, 1, &|_| true),
            y: fit_upright(&panel.y, Extents::of(panel).y, height, theme),
            colors: panel
                .colors
                .as_ref()
                .map(|axis| fit_upright(axis, Extents::of(panel).colors, height, theme)),
        });
    }
    let total = give_widths(&mut panels, theme, total, shared);
    let footer_top = panels
        .last()
        .map_or(top, |last| last.frame.bottom() + below)
        + 6.0;
    ChartLayout {
        width: total,
        height: size
            .height
            .max(footer_top + footer_height + EDGE * 0.6 - 6.0),
        title,
        subtitle,
        legend,
        legend_top,
        panels,
        footer_top,
    }
}

/// Fits an axis that stands upright.
fn fit_upright(axis: &ChartAxis, extent: Option<(f64, f64)>, height: f64, theme: &Theme) -> Fitted {
    let wanted = match axis.scale {
        Scale::Ordinal(_) => height / (theme.small * LINE),
        Scale::Log10 => height / 26.0,
        _ => height / 36.0,
    };
    let mut fitted = fit(axis, extent, (wanted as usize).max(2), &|_| true);
    for tick in &mut fitted.ticks {
        tick.label = cut(&tick.label, NUMBER_MAX, theme.small, Weight::Regular);
    }
    fitted
}

/// The widest number at an axis.
pub(crate) fn widest(fitted: &Fitted, theme: &Theme) -> f64 {
    let widths = fitted
        .ticks
        .iter()
        .map(|tick| width(&tick.label, theme.small, Weight::Regular));
    widths.fold(0.0, f64::max)
}

/// Room that a bar of colours takes to the right of a frame.
fn bar_room(panel: &Framed, theme: &Theme) -> f64 {
    panel.colors.as_ref().map_or(0.0, |fitted| {
        16.0 + BAR + TICK + GAP + widest(fitted, theme) + GAP + theme.axis * LINE
    })
}

/// Gives all panels the same left and right edges, and fits their x axes.
/// Returns the width of the whole, which is larger than `total` when the frames
/// would become too narrow.
fn give_widths(panels: &mut [Framed], theme: &Theme, total: f64, shared: bool) -> f64 {
    let numbers = panels
        .iter()
        .map(|panel| widest(&panel.y, theme))
        .fold(0.0, f64::max);
    let left = EDGE * 0.7 + theme.axis * LINE + GAP + numbers + GAP + TICK;
    let bars = panels
        .iter()
        .map(|panel| bar_room(panel, theme))
        .fold(0.0, f64::max);
    let mut extents: Vec<Option<(f64, f64)>> = panels
        .iter()
        .map(|panel| Extents::of(panel.panel).x)
        .collect();
    if shared {
        let all = extents.iter().flatten().copied();
        let all = all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        extents.fill(all);
    }
    let mut right = EDGE + bars;
    // The last number may reach beyond the frame: a second fit knows it.
    for _ in 0..2 {
        let mut over = 0f64;
        for (panel, &extent) in panels.iter_mut().zip(&extents) {
            panel.frame.left = left;
            panel.frame.width = (total - left - right).max(FRAME_WIDTH_MIN);
            panel.x = fit_level(&panel.panel.x, extent, panel.frame.width, theme);
            over = over.max(last_number(panel, theme) + bars + 4.0 - total);
        }
        if over <= 0.0 {
            break;
        }
        right += over;
    }
    let ends = panels
        .iter()
        .map(|panel| last_number(panel, theme).max(panel.frame.right()) + bars + 4.0);
    ends.fold(total, f64::max)
}

/// Right end of the last number at the x axis.
fn last_number(panel: &Framed, theme: &Theme) -> f64 {
    let end = panel.x.ticks.last().and_then(|tick| {
        let half = width(&tick.label, theme.small, Weight::Regular) / 2.0;
        Some(panel.frame.left + panel.x.place(tick.at)? * panel.frame.width + half)
    });
    end.unwrap_or(0.0)
}

/// Fits an axis that lies level: its numbers stand beside each other.
fn fit_level(axis: &ChartAxis, extent: Option<(f64, f64)>, length: f64, theme: &Theme) -> Fitted {
    let wanted = match axis.scale {
        Scale::Log2 | Scale::Ordinal(_) => length / 14.0,
        _ => length / 56.0,
    };
    let clear = |labels: &[(f64, String)]| {
        let ends = labels.iter().map(|(place, label)| {
            let half = width(label, theme.small, Weight::Regular) / 2.0;
            (place * length - half, place * length + half)
        });
        let mut before = f64::NEG_INFINITY;
        ends.into_iter().all(|(begin, end)| {
            let clear = begin >= before + 8.0;
            before = end;
            clear
        })
    };
    fit(axis, extent, (wanted as usize).max(2), &clear)
}

/// Width of the sign of an entry: a lone marker needs less than a line.
pub(crate) fn key_width(shape: &Shape) -> f64 {
    match shape {
        Shape::Points(_) | Shape::OnAxis(_) | Shape::ErrorBars(_) => 12.0,
        _ => KEY,
    }
}

/// The entries of the legend, and the number of rows they take.
fn legend<'a>(chart: &'a Chart, theme: &Theme, room: f64) -> (Vec<LegendEntry<'a>>, usize) {
    let mut entries: Vec<LegendEntry> = Vec::new();
    let (mut x, mut row) = (0.0, 0);
    let layers = chart.panels.iter().flat_map(|panel: &Panel| &panel.layers);
    for layer in layers {
        let Some(name) = &layer.name else { continue };
        let name = cut(name, room - KEY - 6.0, theme.small, Weight::Regular);
        if entries
            .iter()
            .any(|entry| entry.name == name && entry.ink == layer.ink)
        {
            continue;
        }
        let wide = key_width(&layer.shape) + 6.0 + width(&name, theme.small, Weight::Regular);
        if x > 0.0 && x + wide > room {
            (x, row) = (0.0, row + 1);
        }
        entries.push(LegendEntry {
            name,
            shape: &layer.shape,
            ink: layer.ink,
            x: EDGE + x,
            row,
        });
        x += wide + KEY_GAP;
    }
    let rows = if entries.is_empty() { 0 } else { row + 1 };
    (entries, rows)
}
