//! Writing SVG: short, the same bytes for the same chart, text as text.

use std::fmt::Write as _;

use fathom_model::text;

use super::palette::Srgb;
use super::quantity::plain;
use super::text::{FAMILIES, Weight};

/// A drawing in the making.
#[derive(Debug)]
pub(crate) struct Svg {
    out: String,
    /// Groups that have not ended.
    open: usize,
}

/// Where text stands relative to its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TextAnchor {
    #[default]
    Start,
    Middle,
    End,
}

/// How text is set, where it differs from what stands around it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Set {
    pub anchor: TextAnchor,
    pub weight: Weight,
    pub size: Option<f64>,
    pub color: Option<Srgb>,
    /// Read from bottom to top.
    pub upright: bool,
}

/// A coordinate as it is written: a hundredth of a pixel is not seen.
pub(crate) fn number(value: f64) -> String {
    plain(value, 2)
}

/// `text` without what XML 1.0 does not allow (section 2.2) and with its signs
/// (`&`, `<`, quotes) escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text::line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(text::REPLACEMENT),
            _ => escaped.push(c),
        }
    }
    escaped
}

impl Svg {
    /// Begins a drawing. Programs that read aloud say its title and description.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let (w, h) = (number(width), number(height));
        let mut svg = Self {
            out: String::with_capacity(8 << 10),
            open: 0,
        };
        let _ = write!(
            svg.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" role=\"img\" aria-labelledby=\"t d\" \
             font-family=\"{FAMILIES}\">\n<title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n",
            escape(title),
            escape(description)
        );
        svg
    }

    /// Begins a group whose attributes hold for all in it. `attributes` are
    /// written as they are.
    pub fn group(&mut self, attributes: &str) {
        let _ = writeln!(self.out, "<g {attributes}>");
        self.open += 1;
    }

    /// Ends the last group.
    pub fn end(&mut self) {
        debug_assert!(self.open > 0, "a group ends that has not begun");
        self.open = self.open.saturating_sub(1);
        self.out.push_str("</g>\n");
    }

    /// A gradient from bottom to top; `stops` are written as they are.
    pub fn gradient(&mut self, id: &str, stops: &str) {
        let _ = writeln!(
            self.out,
            "<linearGradient id=\"{id}\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">{stops}</linearGradient>"
        );
    }

    /// An element without content; `attributes` are written as they are.
    pub fn element(&mut self, tag: &str, attributes: &str) {
        let _ = writeln!(self.out, "<{tag} {attributes}/>");
    }

    /// A path.
    pub fn path(&mut self, d: &str, attributes: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        let _ = writeln!(self.out, "<path d=\"{d}\"{space}{attributes}/>");
    }

    /// One line of text; `y` is its base line.
    pub fn text(&mut self, x: f64, y: f64, text: &str, set: Set) {
        if text.is_empty() {
            return;
        }
        let (x, y) = (number(x), number(y));
        let _ = write!(self.out, "<text x=\"{x}\" y=\"{y}\"");
        if set.upright {
            let _ = write!(self.out, " transform=\"rotate(-90 {x} {y})\"");
        }
        match set.anchor {
            TextAnchor::Start => {}
            TextAnchor::Middle => self.out.push_str(" text-anchor=\"middle\""),
            TextAnchor::End => self.out.push_str(" text-anchor=\"end\""),
        }
        if set.weight == Weight::Bold {
            self.out.push_str(" font-weight=\"700\"");
        }
        if let Some(size) = set.size {
            let _ = write!(self.out, " font-size=\"{}\"", number(size));
        }
        if let Some(color) = set.color {
            let _ = write!(self.out, " fill=\"{}\"", color.hex());
        }
        let _ = writeln!(self.out, ">{}</text>", escape(text));
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        while self.open > 0 {
            self.end();
        }
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// A path's `d`, its numbers as short as they can be: relative after the first.
#[derive(Debug, Default)]
pub(crate) struct Path {
    d: String,
    at: (f64, f64),
    command: char,
}

impl Path {
    /// Goes to a place without a line.
    pub fn go(&mut self, x: f64, y: f64) -> &mut Self {
        self.at = (hundredths(x), hundredths(y));
        let _ = write!(self.d, "M{}", number(x));
        self.push(self.at.1);
        self.command = 'M';
        self
    }

    /// Draws a line to a place.
    pub fn line(&mut self, x: f64, y: f64) -> &mut Self {
        let to = (hundredths(x), hundredths(y));
        if self.command == 'l' {
            self.push(to.0 - self.at.0);
        } else {
            let _ = write!(self.d, "l{}", number(to.0 - self.at.0));
            self.command = 'l';
        }
        self.push(to.1 - self.at.1);
        self.at = to;
        self
    }

    /// Closes what was drawn since the last [`Path::go`].
    pub fn close(&mut self) -> &mut Self {
        self.d.push('z');
        self.command = 'z';
        self
    }

    /// A rectangle between two of its corners.
    pub fn rect(&mut self, from: (f64, f64), to: (f64, f64)) -> &mut Self {
        self.go(from.0, from.1);
        let (x, y) = (number(hundredths(to.0)), number(hundredths(to.1)));
        let back = number(self.at.0);
        let _ = write!(self.d, "H{x}V{y}H{back}z");
        self.command = 'z';
        self
    }

    fn push(&mut self, value: f64) {
        let text = number(value);
        // A minus separates as well as a space.
        if !text.starts_with('-') {
            self.d.push(' ');
        }
        self.d.push_str(&text);
    }

    pub fn is_empty(&self) -> bool {
        self.d.is_empty()
    }

    pub fn d(&self) -> &str {
        &self.d
    }
}

/// What [`number`] writes, so that relative steps do not add up errors.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_do_not_drift() {
        let mut path = Path::default();
        path.go(10.0, 20.0).line(12.5, 18.0).line(12.504, 18.0);
        assert_eq!(path.d(), "M10 20l2.5-2 0 0");
        let mut path = Path::default();
        path.go(0.0, 0.0);
        for step in 1..=1000 {
            path.line(f64::from(step) / 3.0, 0.0);
        }
        assert!((path.at.0 - 1000.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn text_is_escaped_and_controls_are_replaced() {
        assert_eq!(
            escape("a<b & \"c\"\u{1}\n"),
            "a&lt;b &amp; &quot;c&quot;\u{fffd} "
        );
        let mut svg = Svg::new(10.0, 10.0, "<t>", "d\u{0}");
        svg.group("fill=\"#000000\"");
        svg.text(1.0, 2.0, "x\u{b}", Set::default());
        let text = svg.finish();
        let document = roxmltree::Document::parse(&text).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "svg");
    }
}
