//! Curves, areas, error bars, markers, cells.

use crate::chart::frame::Framed;
use crate::chart::layout::{LegendEntry, key_width};
use crate::chart::palette::{Dash, Ink, Marker, Srgb, viridis};
use crate::chart::reduce::Pixel;
use crate::chart::svg::{Path, Set, Svg, TextAnchor, number};
use crate::chart::text::{CAPITAL, Weight, width};
use crate::chart::{HeatCell, Layer, Shape, Theme};

/// Curves with more points have no markers: they would hide the line.
const MARKERS_MAX: usize = 150;
/// How much of an area's colour is seen.
const AREA_OPACITY: f64 = 0.18;
/// More cells than this have no numbers, and are drawn together by their colour.
const MOSAIC: usize = 1500;
/// Colours of those: neighbours cannot be told apart any more.
const MOSAIC_COLORS: usize = 64;
/// Half the width of an error bar's caps.
const CAP: f64 = 4.0;

/// Draws a layer, but for what lies on the axis.
pub(crate) fn draw(svg: &mut Svg, panel: &Framed, layer: &Layer, theme: &Theme) {
    let ink = layer.ink;
    match &layer.shape {
        Shape::Curve(points) => {
            let pieces = panel.pieces(points);
            line(svg, &pieces, ink, theme);
            let count: usize = pieces.iter().map(Vec::len).sum();
            if count <= MARKERS_MAX {
                markers(svg, &pieces.concat(), ink, theme);
            }
        }
        Shape::Line(points) => line(svg, &panel.pieces(points), ink, theme),
        Shape::Points(points) => {
            let all: Vec<Pixel> = points.iter().filter_map(|&p| panel.pixel(p)).collect();
            markers(svg, &all, ink, theme);
        }
        Shape::Steps(points) => line(svg, &panel.stairs(points), ink, theme),
        Shape::Area(points) => {
            let pieces = panel.pieces(points);
            area(svg, panel, &pieces, ink);
            line(svg, &pieces, ink, theme);
        }
        Shape::Band(spans) => band(svg, &panel.spans(spans), ink),
        Shape::ErrorBars(spans) => bars(svg, &panel.spans(spans), ink),
        Shape::OnAxis(_) => {}
        Shape::Cells(all) => cells(svg, panel, all, theme),
    }
}

/// Draws the markers that lie on the x axis, in front of it.
pub(crate) fn on_axis(svg: &mut Svg, panel: &Framed, layer: &Layer, theme: &Theme) {
    let Shape::OnAxis(at) = &layer.shape else {
        return;
    };
    let places = at.iter().filter_map(|&x| panel.px(x));
    let places: Vec<Pixel> = places.map(|x| (x, panel.frame.bottom())).collect();
    markers(svg, &places, layer.ink, theme);
}

/// The attributes of a line.
fn stroke(ink: Ink, width: f64) -> String {
    let mut attributes = format!(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
        ink.color.hex(),
        number(width)
    );
    if let Some(array) = ink.dash.array() {
        attributes.push_str(&format!(" stroke-dasharray=\"{array}\""));
    }
    attributes
}

fn line(svg: &mut Svg, pieces: &[Vec<Pixel>], ink: Ink, theme: &Theme) {
    let mut path = Path::default();
    for piece in pieces.iter().filter(|piece| piece.len() > 1) {
        path.go(piece[0].0, piece[0].1);
        for &(x, y) in &piece[1..] {
            path.line(x, y);
        }
    }
    if !path.is_empty() {
        // Many points in a pixel: a thinner line shows more of them.
        let many = pieces.iter().map(Vec::len).sum::<usize>() > 2 * MARKERS_MAX;
        let width = if many { theme.line * 0.6 } else { theme.line };
        svg.path(path.d(), &stroke(ink, width));
    }
    // A piece of one point is no line, and must be seen all the same.
    let lone: Vec<Pixel> = pieces
        .iter()
        .filter(|piece| piece.len() == 1)
        .map(|piece| piece[0])
        .collect();
    markers(svg, &lone, ink, theme);
}

fn fill(color: Srgb) -> String {
    format!("fill=\"{}\" fill-opacity=\"{AREA_OPACITY}\"", color.hex())
}

fn area(svg: &mut Svg, panel: &Framed, pieces: &[Vec<Pixel>], ink: Ink) {
    let mut path = Path::default();
    // The axis is at 0 where there are values on both sides of it.
    let base = panel.py(0.0).unwrap_or(panel.frame.bottom());
    for piece in pieces.iter().filter(|piece| piece.len() > 1) {
        path.go(piece[0].0, base);
        for &(x, y) in piece {
            path.line(x, y);
        }
        path.line(piece[piece.len() - 1].0, base).close();
    }
    if !path.is_empty() {
        svg.path(path.d(), &fill(ink.color));
    }
}

fn band(svg: &mut Svg, spans: &[(f64, f64, f64)], ink: Ink) {
    let Some(&(x, _, high)) = spans.first() else {
        return;
    };
    let mut path = Path::default();
    path.go(x, high);
    for &(x, _, high) in &spans[1..] {
        path.line(x, high);
    }
    for &(x, low, _) in spans.iter().rev() {
        path.line(x, low);
    }
    path.close();
    svg.path(path.d(), &fill(ink.color));
}

fn bars(svg: &mut Svg, spans: &[(f64, f64, f64)], ink: Ink) {
    let mut path = Path::default();
    for &(x, low, high) in spans {
        path.go(x, low).line(x, high);
        for y in [low, high] {
            path.go(x - CAP, y).line(x + CAP, y);
        }
    }
    if !path.is_empty() {
        let solid = Ink {
            dash: Dash::Solid,
            ..ink
        };
        svg.path(path.d(), &stroke(solid, 1.2));
    }
}

/// One marker as a path around a place.
fn marker(path: &mut Path, (x, y): Pixel, kind: Marker, radius: f64) {
    let mut outline = |corners: &[(f64, f64)]| {
        path.go(x + corners[0].0 * radius, y + corners[0].1 * radius);
        for corner in &corners[1..] {
            path.line(x + corner.0 * radius, y + corner.1 * radius);
        }
        path.close();
    };
    match kind {
        Marker::Square => outline(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Marker::Triangle => outline(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        Marker::TriangleDown => outline(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        Marker::Diamond => outline(&[(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)]),
        Marker::Cross => {
            path.go(x - radius, y - radius).line(x + radius, y + radius);
            path.go(x - radius, y + radius).line(x + radius, y - radius);
        }
        Marker::Circle | Marker::Ring => {}
    }
}

fn markers(svg: &mut Svg, places: &[Pixel], ink: Ink, theme: &Theme) {
    if places.is_empty() {
        return;
    }
    let (color, ground) = (ink.color.hex(), theme.ground.hex());
    match ink.marker {
        Marker::Circle | Marker::Ring => {
            let (radius, look) = if ink.marker == Marker::Circle {
                (
                    theme.marker,
                    format!("fill=\"{color}\" stroke=\"{ground}\""),
                )
            } else {
                (
                    theme.marker + 0.8,
                    format!("fill=\"{ground}\" stroke=\"{color}\" stroke-width=\"1.6\""),
                )
            };
            svg.group(&look);
            for &(x, y) in places {
                svg.element(
                    "circle",
                    &format!(
                        "cx=\"{}\" cy=\"{}\" r=\"{}\"",
                        number(x),
                        number(y),
                        number(radius)
                    ),
                );
            }
            svg.end();
        }
        kind => {
            let mut path = Path::default();
            for &place in places {
                marker(&mut path, place, kind, theme.marker + 0.4);
            }
            let look = if kind == Marker::Cross {
                format!("fill=\"none\" stroke=\"{color}\" stroke-width=\"2.2\"")
            } else {
                format!("fill=\"{color}\" stroke=\"{ground}\"")
            };
            svg.path(path.d(), &look);
        }
    }
}

/// The sign of an entry in the legend.
pub(crate) fn key(svg: &mut Svg, entry: &LegendEntry, middle: f64, theme: &Theme) {
    let wide = key_width(entry.shape);
    let (left, right) = (entry.x, entry.x + wide);
    let across = [vec![(left, middle), (right, middle)]];
    let centre = [(left + wide / 2.0, middle)];
    match entry.shape {
        Shape::Curve(_) => {
            line(svg, &across, entry.ink, theme);
            markers(svg, &centre, entry.ink, theme);
        }
        Shape::Line(_) | Shape::Steps(_) => line(svg, &across, entry.ink, theme),
        Shape::Points(_) | Shape::OnAxis(_) => {
            markers(svg, &centre, entry.ink, theme);
        }
        Shape::Area(_) | Shape::Band(_) => {
            band(
                svg,
                &[
                    (left, middle + 5.0, middle - 5.0),
                    (right, middle + 5.0, middle - 5.0),
                ],
                entry.ink,
            );
            if matches!(entry.shape, Shape::Area(_)) {
                line(svg, &across, entry.ink, theme);
            }
        }
        Shape::ErrorBars(_) => {
            let bar = (left + wide / 2.0, middle + 6.0, middle - 6.0);
            bars(svg, &[bar], entry.ink);
        }
        Shape::Cells(_) => {}
    }
}

/// Many cells: a path for each colour, in which cells that stand on each other are
/// one, so that a heat map takes bytes by what is seen of it. What has no value
/// is not drawn.
fn mosaic<'c>(
    svg: &mut Svg,
    panel: &Framed,
    cells: impl Iterator<Item = (&'c HeatCell, Option<f64>)>,
) {
    let mut paths: Vec<Path> = Vec::new();
    paths.resize_with(MOSAIC_COLORS, Path::default);
    let mut run: Option<(HeatCell, usize)> = None;
    let mut draw = |(cell, step): (HeatCell, usize)| {
        let low = panel.pixel((cell.x.0, cell.y.0));
        let high = panel.pixel((cell.x.1, cell.y.1));
        if let (Some((left, bottom)), Some((right, top))) = (low, high) {
            paths[step].rect((left, top), (right, bottom));
        }
    };
    for (cell, share) in cells {
        let Some(share) = share else { continue };
        let step = (share * (MOSAIC_COLORS - 1) as f64).round() as usize;
        match &mut run {
            Some((below, same)) if *same == step && below.x == cell.x && below.y.1 == cell.y.0 => {
                below.y.1 = cell.y.1;
            }
            _ => {
                if let Some(done) = run.replace((*cell, step)) {
                    draw(done);
                }
            }
        }
    }
    if let Some(done) = run {
        draw(done);
    }
    svg.group("shape-rendering=\"crispEdges\"");
    for (step, path) in paths
        .iter()
        .enumerate()
        .filter(|(_, path)| !path.is_empty())
    {
        let color = viridis(step as f64 / (MOSAIC_COLORS - 1) as f64);
        svg.path(path.d(), &format!("fill=\"{}\"", color.hex()));
    }
    svg.end();
}

fn cells(svg: &mut Svg, panel: &Framed, all: &[HeatCell], theme: &Theme) {
    let (Some(axis), Some(fitted)) = (&panel.panel.colors, &panel.colors) else {
        return;
    };
    if all.len() > MOSAIC {
        let shares = all
            .iter()
            .map(|cell| (cell, cell.value.and_then(|v| fitted.place(v))));
        return mosaic(svg, panel, shares);
    }
    let mut words = Vec::new();
    svg.group("shape-rendering=\"crispEdges\"");
    for cell in all {
        let corners = (
            panel.pixel((cell.x.0, cell.y.1)),
            panel.pixel((cell.x.1, cell.y.0)),
        );
        let (Some((left, top)), Some((right, bottom))) = corners else {
            continue;
        };
        let share = cell.value.and_then(|value| fitted.place(value));
        let color = share.map_or(theme.grid, viridis);
        svg.element(
            "rect",
            &format!(
                "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"",
                number(left),
                number(top),
                number(right - left),
                number(bottom - top),
                color.hex()
            ),
        );
        let text = cell
            .value
            .map_or_else(|| "–".to_owned(), |value| axis.quantity.text(value));
        let fits = width(&text, theme.small, Weight::Regular) + 6.0 <= right - left
            && theme.small + 4.0 <= bottom - top;
        if fits {
            let (black, white) = (Srgb(0, 0, 0), Srgb(255, 255, 255));
            let lighter = color.contrast(black) > color.contrast(white);
            let place = (
                (left + right) / 2.0,
                (top + bottom) / 2.0 + theme.small * CAPITAL / 2.0,
            );
            words.push((place, text, if lighter { black } else { white }));
        }
    }
    svg.end();
    if words.is_empty() {
        return;
    }
    svg.group(&format!(
        "font-size=\"{}\" text-anchor=\"middle\"",
        number(theme.small)
    ));
    for ((x, y), text, color) in words {
        let set = Set {
            color: Some(color),
            anchor: TextAnchor::Start,
            ..Set::default()
        };
        svg.text(x, y, &text, set);
    }
    svg.end();
}
