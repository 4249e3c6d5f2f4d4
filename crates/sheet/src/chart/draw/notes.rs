//! Labels of single points: where they go, and drawing them.

use crate::chart::frame::Framed;
use crate::chart::label::{LabelWish, Rect, Taken, leader_end, place as place_labels};
use crate::chart::layout::ChartLayout;
use crate::chart::palette::Srgb;
use crate::chart::svg::{Path, Set, Svg, TextAnchor, number};
use crate::chart::text::{CAPITAL, LINE, Weight, width};
use crate::chart::{Note, NoteKind, Shape, Theme};

/// Room between a label's text and its edge.
const PAD: f64 = 3.0;
/// Radius of the mark at a point with a leader line.
const MARK: f64 = 5.2;
/// Radius of a mark that holds a letter.
const LETTER_MARK: f64 = 8.0;

/// The labels of all panels.
pub(crate) struct Noted {
    pub panels: Vec<Vec<Placed>>,
    /// Lines for the footer that explain the letters of labels without a place.
    pub keys: Vec<String>,
}

/// A label, its point and its place.
pub(crate) struct Placed {
    lines: Vec<String>,
    kind: NoteKind,
    hollow: bool,
    color: Option<Srgb>,
    anchor: (f64, f64),
    place: Where,
}

enum Where {
    At(Rect),
    /// Explained in the footer under this letter.
    Letter(String),
}

/// Finds places for the labels of all panels.
pub(crate) fn place(layout: &ChartLayout, theme: &Theme) -> Noted {
    let mut noted = Noted {
        panels: Vec::new(),
        keys: Vec::new(),
    };
    for panel in &layout.panels {
        let notes = merged(&panel.panel.notes);
        let anchored: Vec<(&Note, (f64, f64))> = notes
            .iter()
            .filter_map(|note| Some((note, panel.pixel(note.at)?)))
            .collect();
        if anchored.is_empty() {
            noted.panels.push(Vec::new());
            continue;
        }
        let wishes: Vec<LabelWish> = anchored
            .iter()
            .map(|(note, anchor)| LabelWish {
                anchor: *anchor,
                size: size(note, theme),
                beside: note.kind == NoteKind::Beside,
            })
            .collect();
        let places = place_labels(taken(panel, theme), &wishes);
        let mut placed = Vec::new();
        let first_key = noted.keys.len();
        for ((note, anchor), rect) in anchored.into_iter().zip(places) {
            let place = match (rect, note.kind) {
                (Some(rect), _) => Where::At(rect),
                (None, NoteKind::Beside) => continue,
                (None, NoteKind::Leader) => {
                    let said = note.lines.join(": ");
                    if let Some(key) = beside_letter(&placed, anchor, first_key) {
                        noted.keys[key].push_str(&format!("; {said}"));
                        continue;
                    }
                    let letter = letter(noted.keys.len());
                    noted.keys.push(format!("{letter}: {said}"));
                    Where::Letter(letter)
                }
            };
            placed.push(Placed {
                lines: note.lines.clone(),
                kind: note.kind,
                hollow: note.hollow,
                color: note.color,
                anchor,
                place,
            });
        }
        noted.panels.push(placed);
    }
    noted
}

/// The line of the footer for a letter so near that another one would lie on it.
fn beside_letter(placed: &[Placed], anchor: (f64, f64), first_key: usize) -> Option<usize> {
    let letters = placed
        .iter()
        .filter(|label| matches!(label.place, Where::Letter(_)));
    let near = |label: &Placed| {
        let (dx, dy) = (label.anchor.0 - anchor.0, label.anchor.1 - anchor.1);
        dx.hypot(dy) < 2.0 * LETTER_MARK
    };
    Some(first_key + letters.into_iter().position(near)?)
}

/// A … Z, then A1 … Z1 and so on.
fn letter(n: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(n % 26).unwrap_or(0));
    match n / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// Notes of the same point and kind as one.
fn merged(notes: &[Note]) -> Vec<Note> {
    let mut all: Vec<Note> = Vec::new();
    for note in notes {
        match all
            .iter_mut()
            .find(|other| other.at == note.at && other.kind == note.kind)
        {
            Some(same) => {
                same.lines.extend(note.lines.iter().cloned());
                same.hollow |= note.hollow;
            }
            None => all.push(note.clone()),
        }
    }
    all
}

fn weight(note_lines: usize, line: usize) -> Weight {
    if note_lines > 1 && line == 0 {
        Weight::Bold
    } else {
        Weight::Regular
    }
}

fn size(note: &Note, theme: &Theme) -> (f64, f64) {
    let count = note.lines.len();
    let widths = note
        .lines
        .iter()
        .enumerate()
        .map(|(n, line)| width(line, theme.small, weight(count, n)));
    let (pad, height) = match note.kind {
        NoteKind::Leader => (PAD, LINE),
        NoteKind::Beside => (0.0, CAPITAL + 0.2),
    };
    (
        widths.fold(0.0, f64::max) + 2.0 * pad,
        count as f64 * theme.small * height + 2.0 * pad,
    )
}

/// Everything of a panel that a label must not cover.
fn taken(panel: &Framed, theme: &Theme) -> Taken {
    let mut taken = Taken::new(panel.frame);
    let around = |(x, y): (f64, f64), radius: f64| Rect {
        left: x - radius,
        top: y - radius,
        width: 2.0 * radius,
        height: 2.0 * radius,
    };
    for layer in &panel.panel.layers {
        let (pieces, marked) = match &layer.shape {
            Shape::Curve(points) => (panel.pieces(points), true),
            Shape::Points(points) => {
                let lone = points.iter().filter_map(|&point| panel.pixel(point));
                (lone.map(|point| vec![point]).collect(), true)
            }
            Shape::Line(points) | Shape::Area(points) => (panel.pieces(points), false),
            Shape::Steps(points) => (panel.stairs(points), false),
            Shape::ErrorBars(spans) => {
                let bars = panel.spans(spans).into_iter();
                (
                    bars.map(|(x, low, high)| vec![(x, low), (x, high)])
                        .collect(),
                    true,
                )
            }
            Shape::OnAxis(at) => {
                let places = at.iter().filter_map(|&x| panel.px(x));
                (
                    places.map(|x| vec![(x, panel.frame.bottom())]).collect(),
                    true,
                )
            }
            // Cells fill the frame, and words of them stand in the cells.
            Shape::Band(_) | Shape::Cells(_) => continue,
        };
        for piece in pieces {
            for pair in piece.windows(2) {
                taken.line(pair[0], pair[1]);
            }
            for &point in piece.iter().filter(|_| marked || piece.len() == 1) {
                taken.rect(around(point, theme.marker));
            }
        }
    }
    taken
}

/// Draws marks, leader lines and labels.
pub(crate) fn draw(svg: &mut Svg, placed: &[Placed], theme: &Theme) {
    if placed.is_empty() {
        return;
    }
    leaders(svg, placed, theme);
    svg.group(&format!(
        "fill=\"{}\" font-size=\"{}\"",
        theme.ink.hex(),
        number(theme.small)
    ));
    for label in placed {
        if let Where::At(rect) = label.place {
            text(svg, label, rect, theme);
        }
        if label.kind == NoteKind::Leader {
            mark(svg, label, theme);
        }
    }
    svg.end();
}

fn leaders(svg: &mut Svg, placed: &[Placed], theme: &Theme) {
    let mut path = Path::default();
    for label in placed.iter().filter(|label| label.kind == NoteKind::Leader) {
        if let Where::At(rect) = label.place {
            let end = leader_end(label.anchor, rect);
            path.go(label.anchor.0, label.anchor.1).line(end.0, end.1);
        }
    }
    if !path.is_empty() {
        let color = theme.soft.hex();
        svg.path(path.d(), &format!("stroke=\"{color}\" fill=\"none\""));
    }
}

fn text(svg: &mut Svg, label: &Placed, rect: Rect, theme: &Theme) {
    let leader = label.kind == NoteKind::Leader;
    let (pad, height) = if leader {
        (PAD, LINE)
    } else {
        (0.0, CAPITAL + 0.2)
    };
    if leader {
        // The grid ends at a label: letters on lines are hard to read.
        svg.element(
            "rect",
            &format!(
                "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{}\"",
                number(rect.left),
                number(rect.top),
                number(rect.width),
                number(rect.height),
                theme.ground.hex()
            ),
        );
    }
    let count = label.lines.len();
    // Towards its point, whatever the width of the font in the end.
    let end = leader_end(label.anchor, rect);
    let (anchor, x) = if label.anchor.0 < rect.left {
        (TextAnchor::Start, rect.left + pad)
    } else if label.anchor.0 > rect.right() {
        (TextAnchor::End, rect.right() - pad)
    } else {
        debug_assert!(end.0 >= rect.left && end.0 <= rect.right());
        (TextAnchor::Middle, rect.left + rect.width / 2.0)
    };
    for (n, line) in label.lines.iter().enumerate() {
        let top = rect.top + pad + n as f64 * theme.small * height;
        let y = top + theme.small * ((height - CAPITAL) / 2.0 + CAPITAL);
        let set = Set {
            anchor,
            weight: weight(count, n),
            color: (!leader).then_some(label.color.unwrap_or(theme.soft)),
            ..Set::default()
        };
        svg.text(x, y, line, set);
    }
}

fn mark(svg: &mut Svg, label: &Placed, theme: &Theme) {
    let (x, y) = label.anchor;
    let radius = match label.place {
        Where::At(_) => MARK,
        Where::Letter(_) => LETTER_MARK,
    };
    // The group has the ink: filled with it, or drawn with it.
    let look = match label.hollow {
        false => format!("stroke=\"{}\" stroke-width=\"1.5\"", theme.ground.hex()),
        true => format!(
            "fill=\"{}\" stroke=\"{}\" stroke-width=\"2\"",
            theme.ground.hex(),
            theme.ink.hex()
        ),
    };
    svg.element(
        "circle",
        &format!(
            "cx=\"{}\" cy=\"{}\" r=\"{}\" {look}",
            number(x),
            number(y),
            number(radius)
        ),
    );
    if let Where::Letter(letter) = &label.place {
        let set = Set {
            anchor: TextAnchor::Middle,
            weight: Weight::Bold,
            color: (!label.hollow).then_some(theme.ground),
            ..Set::default()
        };
        svg.text(x, y + theme.small * CAPITAL / 2.0, letter, set);
    }
}
