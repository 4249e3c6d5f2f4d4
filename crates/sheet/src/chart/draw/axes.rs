//! Axes: lines, ticks, numbers, titles, the grid, the bar of colours.

use crate::chart::frame::Framed;
use crate::chart::layout::{BAR, GAP, TICK, widest};
use crate::chart::palette::viridis;
use crate::chart::svg::{Path, Set, Svg, TextAnchor, number};
use crate::chart::text::{CAPITAL, LINE, Weight, cut};
use crate::chart::{Scale, Shape, Theme};

/// From a frame to the bar of its colours.
const BAR_GAP: f64 = 16.0;

fn is_heat_map(panel: &Framed) -> bool {
    let layers = &panel.panel.layers;
    layers
        .iter()
        .any(|layer| matches!(layer.shape, Shape::Cells(_)))
}

/// The lines behind everything; cells would hide them.
pub(crate) fn grid(svg: &mut Svg, panel: &Framed, theme: &Theme) {
    if is_heat_map(panel) {
        return;
    }
    let frame = panel.frame;
    let mut path = Path::default();
    for tick in &panel.y.ticks {
        if let Some(y) = panel.py(tick.at) {
            path.go(frame.left, y).line(frame.right(), y);
        }
    }
    for tick in &panel.x.ticks {
        if let Some(x) = panel.px(tick.at) {
            path.go(x, frame.top).line(x, frame.bottom());
        }
    }
    if !path.is_empty() {
        let color = theme.grid.hex();
        svg.path(path.d(), &format!("stroke=\"{color}\" fill=\"none\""));
    }
}

/// Lines, ticks, numbers and titles of both axes.
pub(crate) fn draw(svg: &mut Svg, panel: &Framed, theme: &Theme) {
    let frame = panel.frame;
    let mut path = Path::default();
    path.go(frame.left, frame.top)
        .line(frame.left, frame.bottom())
        .line(frame.right(), frame.bottom());
    ticks(&mut path, panel);
    svg.path(
        path.d(),
        &format!("stroke=\"{}\" fill=\"none\"", theme.soft.hex()),
    );
    svg.group(&format!(
        "fill=\"{}\" font-size=\"{}\"",
        theme.soft.hex(),
        number(theme.small)
    ));
    numbers(svg, panel, theme);
    svg.end();
    titles(svg, panel, theme);
    if panel.colors.is_some() {
        bar(svg, panel, theme);
    }
    if panel
        .panel
        .layers
        .iter()
        .all(|layer| is_empty(&layer.shape))
    {
        let set = Set {
            anchor: TextAnchor::Middle,
            size: Some(theme.axis),
            color: Some(theme.soft),
            ..Set::default()
        };
        let (x, y) = (
            frame.left + frame.width / 2.0,
            frame.top + frame.height / 2.0,
        );
        svg.text(x, y, "no data", set);
    }
}

fn is_empty(shape: &Shape) -> bool {
    match shape {
        Shape::Curve(points)
        | Shape::Line(points)
        | Shape::Points(points)
        | Shape::Steps(points)
        | Shape::Area(points) => points.is_empty(),
        Shape::Band(spans) | Shape::ErrorBars(spans) => spans.is_empty(),
        Shape::OnAxis(at) => at.is_empty(),
        Shape::Cells(cells) => cells.is_empty(),
    }
}

fn ticks(path: &mut Path, panel: &Framed) {
    let frame = panel.frame;
    let heat = is_heat_map(panel);
    let all = |fitted: &crate::chart::scale::Fitted| -> Vec<(f64, f64)> {
        let major = fitted.ticks.iter().map(|tick| (tick.at, TICK));
        let minor = fitted.minor.iter().map(|&at| (at, TICK * 0.6));
        major.chain(minor).collect()
    };
    // A row or column of cells is named in its middle: a tick would say no more.
    if !(heat && matches!(panel.panel.x.scale, Scale::Ordinal(_))) {
        for (at, length) in all(&panel.x) {
            if let Some(x) = panel.px(at) {
                path.go(x, frame.bottom()).line(x, frame.bottom() + length);
            }
        }
    }
    if !(heat && matches!(panel.panel.y.scale, Scale::Ordinal(_))) {
        for (at, length) in all(&panel.y) {
            if let Some(y) = panel.py(at) {
                path.go(frame.left - length, y).line(frame.left, y);
            }
        }
    }
}

fn numbers(svg: &mut Svg, panel: &Framed, theme: &Theme) {
    let frame = panel.frame;
    if panel.x_labels {
        let y = frame.bottom() + TICK + GAP + theme.small * CAPITAL + 2.0;
        for tick in &panel.x.ticks {
            if let Some(x) = panel.px(tick.at) {
                let set = Set {
                    anchor: TextAnchor::Middle,
                    ..Set::default()
                };
                svg.text(x, y, &tick.label, set);
            }
        }
    }
    for tick in &panel.y.ticks {
        if let Some(y) = panel.py(tick.at) {
            let set = Set {
                anchor: TextAnchor::End,
                ..Set::default()
            };
            let x = frame.left - TICK - GAP;
            svg.text(x, y + theme.small * CAPITAL / 2.0, &tick.label, set);
        }
    }
}

fn titles(svg: &mut Svg, panel: &Framed, theme: &Theme) {
    let frame = panel.frame;
    let set = Set {
        anchor: TextAnchor::Middle,
        size: Some(theme.axis),
        color: Some(theme.ink),
        ..Set::default()
    };
    let fitting = |title: String, room: f64| cut(&title, room, theme.axis, Weight::Regular);
    if panel.x_labels {
        let title = fitting(panel.x.title(&panel.panel.x), frame.width);
        let below = TICK + GAP + theme.small * LINE + GAP + theme.axis * CAPITAL + 2.0;
        let x = frame.left + frame.width / 2.0;
        svg.text(x, frame.bottom() + below, &title, set);
    }
    let title = fitting(panel.y.title(&panel.panel.y), frame.height);
    let x = frame.left - TICK - GAP - widest(&panel.y, theme) - GAP - 3.0;
    let upright = Set {
        upright: true,
        ..set
    };
    svg.text(x, frame.top + frame.height / 2.0, &title, upright);
}

/// Colours and what they mean, to the right of the frame.
fn bar(svg: &mut Svg, panel: &Framed, theme: &Theme) {
    let (Some(axis), Some(fitted)) = (&panel.panel.colors, &panel.colors) else {
        return;
    };
    let frame = panel.frame;
    let left = frame.right() + BAR_GAP;
    let colors: String = (0..=10)
        .map(|tenth| {
            let color = viridis(f64::from(tenth) / 10.0).hex();
            format!("<stop offset=\".{tenth}\" stop-color=\"{color}\"/>")
        })
        .collect();
    svg.gradient("v", &colors.replace("\".10\"", "\"1\""));
    svg.element(
        "rect",
        &format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#v)\"",
            number(left),
            number(frame.top),
            number(BAR),
            number(frame.height),
        ),
    );
    svg.group(&format!(
        "fill=\"{}\" font-size=\"{}\"",
        theme.soft.hex(),
        number(theme.small)
    ));
    for tick in &fitted.ticks {
        if let Some(place) = fitted.place(tick.at) {
            let y = frame.bottom() - place * frame.height + theme.small * CAPITAL / 2.0;
            svg.text(left + BAR + GAP, y, &tick.label, Set::default());
        }
    }
    svg.end();
    let title = cut(
        &fitted.title(axis),
        frame.height,
        theme.axis,
        Weight::Regular,
    );
    let x = left + BAR + GAP + widest(fitted, theme) + GAP + theme.axis * CAPITAL + 2.0;
    let set = Set {
        anchor: TextAnchor::Middle,
        size: Some(theme.axis),
        color: Some(theme.ink),
        upright: true,
        ..Set::default()
    };
    svg.text(x, frame.top + frame.height / 2.0, &title, set);
}
