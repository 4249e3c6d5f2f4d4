//! What must hold of every drawing, for tests.

use super::label::Rect;
use super::text;

/// Whether a drawing is XML, its text inside of it, and none of it on other text.
///
/// # Errors
/// The first fault, in words.
pub fn check(svg: &str) -> Result<(), String> {
    let document = roxmltree::Document::parse(svg).map_err(|error| error.to_string())?;
    if svg.contains("NaN") || svg.contains("inf\"") {
        return Err("a coordinate is no number".to_owned());
    }
    let root = document.root_element();
    let side = |name: &str| root.attribute(name).and_then(|text| text.parse().ok());
    let canvas = Rect {
        left: 0.0,
        top: 0.0,
        width: side("width").ok_or("no width")?,
        height: side("height").ok_or("no height")?,
    };
    let texts: Vec<(String, Rect)> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| (node.text().unwrap_or_default().to_owned(), box_of(node)))
        .collect();
    for (n, (text, rect)) in texts.iter().enumerate() {
        if !canvas.grown(0.5).holds(*rect) {
            return Err(format!("'{text}' leaves the canvas: {rect:?}"));
        }
        for (other, taken) in &texts[..n] {
            if rect.overlaps(*taken) {
                return Err(format!("'{text}' on '{other}': {rect:?} {taken:?}"));
            }
        }
    }
    Ok(())
}

/// The box of the letters of a text element.
fn box_of(node: roxmltree::Node) -> Rect {
    let inherited = |name: &str| node.ancestors().find_map(|node| node.attribute(name));
    let number = |text: Option<&str>| {
        text.and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    let (x, y) = (number(node.attribute("x")), number(node.attribute("y")));
    let size = number(inherited("font-size"));
    let weight = match node.attribute("font-weight") {
        Some(_) => text::Weight::Bold,
        None => text::Weight::Regular,
    };
    let wide = text::width(node.text().unwrap_or_default(), size, weight);
    let before = match inherited("text-anchor") {
        Some("middle") => wide / 2.0,
        Some("end") => wide,
        _ => 0.0,
    };
    let high = size * text::CAPITAL;
    if node.attribute("transform").is_some() {
        return Rect {
            left: x - high,
            top: y - wide + before,
            width: high,
            height: wide,
        };
    }
    Rect {
        left: x - before,
        top: y - high,
        width: wide,
        height: high,
    }
}
