//! Drawing what has been laid out.

mod axes;
mod notes;
mod shapes;

use super::layout::{ChartLayout, EDGE, key_width, lay_out};
use super::svg::{Set, Svg, number};
use super::text::{CAPITAL, LINE, Weight, wrap};
use super::{Chart, Size, Theme};

/// A chart is laid out again at most so often, each time with more lines below.
const LAYOUTS_MAX: usize = 4;

/// Draws a chart. Labels that find no place turn into lines of the footer, for
/// which it is laid out again: its frames are lower then, and one more label may
/// find none.
pub(crate) fn draw(chart: &Chart, theme: &Theme, size: Size) -> String {
    let mut lines = footer_lines(&chart.footer, theme, size);
    for _ in 1..LAYOUTS_MAX {
        let layout = lay_out(chart, theme, size, lines.len());
        let noted = notes::place(&layout, theme);
        let mut needed = footer_lines(&noted.keys, theme, size);
        needed.extend(footer_lines(&chart.footer, theme, size));
        if needed.len() <= lines.len() {
            return draw_at(chart, &layout, &noted, &needed, theme);
        }
        lines = needed;
    }
    // No frame is pressed for the last lines: they go below the others.
    let layout = lay_out(chart, theme, size, lines.len());
    let noted = notes::place(&layout, theme);
    let mut needed = footer_lines(&noted.keys, theme, size);
    needed.extend(footer_lines(&chart.footer, theme, size));
    let more = needed.len().saturating_sub(lines.len()) as f64 * theme.small * LINE;
    let layout = ChartLayout {
        height: layout.height + more,
        ..layout
    };
    draw_at(chart, &layout, &noted, &needed, theme)
}

fn footer_lines(paragraphs: &[String], theme: &Theme, size: Size) -> Vec<String> {
    let room = size.width - 2.0 * EDGE;
    paragraphs
        .iter()
        .flat_map(|text| wrap(text, room, 4, theme.small, Weight::Regular))
        .collect()
}

fn draw_at(
    chart: &Chart,
    layout: &ChartLayout,
    noted: &notes::Noted,
    footer: &[String],
    theme: &Theme,
) -> String {
    let description = if chart.description.is_empty() {
        describe(chart)
    } else {
        chart.description.clone()
    };
    let mut svg = Svg::new(layout.width, layout.height, &chart.title, &description);
    let (width, height) = (number(layout.width), number(layout.height));
    let ground = theme.ground.hex();
    svg.element(
        "rect",
        &format!("width=\"{width}\" height=\"{height}\" fill=\"{ground}\""),
    );
    head(&mut svg, layout, theme);
    legend(&mut svg, layout, theme);
    for (n, panel) in layout.panels.iter().enumerate() {
        axes::grid(&mut svg, panel, theme);
        for layer in &panel.panel.layers {
            shapes::draw(&mut svg, panel, layer, theme);
        }
        axes::draw(&mut svg, panel, theme);
        notes::draw(&mut svg, &noted.panels[n], theme);
        for layer in &panel.panel.layers {
            shapes::on_axis(&mut svg, panel, layer, theme);
        }
    }
    svg.group(&format!(
        "fill=\"{}\" font-size=\"{}\"",
        theme.soft.hex(),
        number(theme.small)
    ));
    for (n, line) in footer.iter().enumerate() {
        let y = layout.footer_top + (n as f64 * LINE + CAPITAL) * theme.small;
        svg.text(EDGE, y, line, Set::default());
    }
    svg.end();
    svg.finish()
}

/// A description made of the axes.
fn describe(chart: &Chart) -> String {
    let panels = chart.panels.iter().map(|panel| {
        let names: Vec<&str> = panel
            .layers
            .iter()
            .filter_map(|layer| layer.name.as_deref())
            .collect();
        let of = if names.is_empty() {
            String::new()
        } else {
            format!(": {}", names.join(", "))
        };
        format!("{} against {}{of}.", panel.y.title, panel.x.title)
    });
    panels.collect::<Vec<_>>().join(" ")
}

fn head(svg: &mut Svg, layout: &ChartLayout, theme: &Theme) {
    let mut y = EDGE * 0.75;
    for line in &layout.title {
        let set = Set {
            weight: Weight::Bold,
            size: Some(theme.title),
            color: Some(theme.ink),
            ..Set::default()
        };
        svg.text(EDGE, y + theme.title * CAPITAL + 2.0, line, set);
        y += theme.title * LINE;
    }
    y += 2.0;
    for line in &layout.subtitle {
        let set = Set {
            size: Some(theme.small),
            color: Some(theme.soft),
            ..Set::default()
        };
        svg.text(EDGE, y + theme.small * CAPITAL + 2.0, line, set);
        y += theme.small * LINE;
    }
}

fn legend(svg: &mut Svg, layout: &ChartLayout, theme: &Theme) {
    if layout.legend.is_empty() {
        return;
    }
    svg.group(&format!(
        "fill=\"{}\" font-size=\"{}\"",
        theme.ink.hex(),
        number(theme.small)
    ));
    for entry in &layout.legend {
        let top = layout.legend_top + entry.row as f64 * (theme.small * LINE + 4.0);
        let middle = top + theme.small * LINE / 2.0;
        shapes::key(svg, entry, middle, theme);
        let x = entry.x + key_width(entry.shape) + 6.0;
        svg.text(
            x,
            middle + theme.small * CAPITAL / 2.0,
            &entry.name,
            Set::default(),
        );
    }
    svg.end();
}
