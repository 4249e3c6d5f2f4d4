//! How wide text is.
//!
//! Widths are those of DejaVu Sans, which PNGs are drawn with. Viewers of SVGs
//! take it, or Verdana, which has the same widths within a few percent, where
//! they have one of them; other common fonts (Arial, Helvetica, Liberation) are
//! narrower. So what fits here fits everywhere.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use skrifa::charmap::Charmap;
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::{FontRef, MetadataProvider as _};

/// DejaVu Sans and DejaVu Sans Bold, which are half of their size while they are packed.
static PACKED: [&[u8]; 2] = [
    include_bytes!("../../../../third_party/dejavu/DejaVuSans.ttf.gz"),
    include_bytes!("../../../../third_party/dejavu/DejaVuSans-Bold.ttf.gz"),
];
/// The same as font files.
pub(crate) static FONT_FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| PACKED.map(unpack));
/// What SVGs ask for.
pub const FAMILIES: &str = "DejaVu Sans,Verdana,Geneva,sans-serif";

/// From a line's top to its bottom, in font sizes.
pub const LINE: f64 = 1.3;
/// From the base line up to the top of a capital letter, in font sizes
/// (`sCapHeight` of DejaVu Sans: 1493 of 2048).
pub const CAPITAL: f64 = 0.73;

/// How heavy letters are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weight {
    /// Ordinary.
    #[default]
    Regular,
    /// Bold.
    Bold,
}

struct Font {
    charmap: Charmap<'static>,
    metrics: GlyphMetrics<'static>,
    em: f64,
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut font = Vec::new();
    let done = GzDecoder::new(packed).read_to_end(&mut font);
    done.expect("the font is compiled in, and a test reads it");
    font
}

fn load(bytes: &'static [u8]) -> Font {
    let font = FontRef::new(bytes).expect("the font is compiled in, and a test reads it");
    let metrics = font.metrics(Size::unscaled(), LocationRef::default());
    Font {
        charmap: font.charmap(),
        metrics: font.glyph_metrics(Size::unscaled(), LocationRef::default()),
        em: f64::from(metrics.units_per_em),
    }
}

static FONTS: LazyLock<[Font; 2]> = LazyLock::new(|| FONT_FILES.each_ref().map(|file| load(file)));

/// The width of `text` in pixels at a font size in pixels. A letter that the
/// font lacks counts as wide as it is high.
pub fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let font = &FONTS[usize::from(weight == Weight::Bold)];
    let advance = |c: char| {
        let glyph = font.charmap.map(c)?;
        font.metrics.advance_width(glyph)
    };
    let units: f64 = text
        .chars()
        .map(|c| advance(c).map_or(font.em, f64::from))
        .sum();
    units / font.em * size
}

/// `text` cut in its middle to at most `room` pixels: of long names the end
/// tells as much as the beginning.
pub fn cut(text: &str, room: f64, size: f64, weight: Weight) -> String {
    if width(text, size, weight) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| {
        let head: String = letters[..kept.div_ceil(2)].iter().collect();
        let tail: String = letters[letters.len() - kept / 2..].iter().collect();
        format!("{}…{}", head.trim_end(), tail.trim_start())
    };
    // The longest that fits, by halving.
    let (mut fits, mut too_long) = (0, letters.len());
    while too_long - fits > 1 {
        let middle = fits.midpoint(too_long);
        if width(&shortened(middle), size, weight) <= room {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    shortened(fits)
}

/// `text` broken at spaces into at most `lines` lines of at most `room` pixels;
/// what does not fit is cut.
pub fn wrap(text: &str, room: f64, lines: usize, size: f64, weight: Weight) -> Vec<String> {
    let mut broken: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let fits = broken.last().map(|line| format!("{line} {word}"));
        match fits.filter(|line| width(line, size, weight) <= room) {
            Some(longer) => *broken.last_mut().expect("it has just been read") = longer,
            None => broken.push(word.to_owned()),
        }
    }
    if broken.len() > lines {
        let rest = broken.split_off(lines.saturating_sub(1)).join(" ");
        broken.push(rest);
    }
    broken
        .iter()
        .map(|line| cut(line, room, size, weight))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_the_fonts_own() {
        // hmtx of DejaVu Sans: every digit is 1303 of 2048 units wide.
        assert!((width("12", 2048.0, Weight::Regular) - 2606.0).abs() < 0.5);
        assert!(width("12", 12.0, Weight::Bold) > width("12", 12.0, Weight::Regular));
        assert!((width("漢", 12.0, Weight::Regular) - 12.0).abs() < 0.01);
        assert!(width("µ → ≥", 12.0, Weight::Regular) > 0.0);
        assert!(width("", 12.0, Weight::Regular).abs() < 1e-9);
    }

    #[test]
    fn long_text_keeps_both_ends_or_breaks_at_spaces() {
        let long = "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30";
        let short = cut(long, 200.0, 12.0, Weight::Regular);
        assert!(width(&short, 12.0, Weight::Regular) <= 200.0, "{short}");
        assert!(
            short.starts_with("0003") && short.ends_with("30"),
            "{short}"
        );
        assert_eq!(cut("abc", 100.0, 12.0, Weight::Regular), "abc");
        let lines = wrap(
            "one two three four five six seven",
            80.0,
            2,
            12.0,
            Weight::Regular,
        );
        assert_eq!(lines.len(), 2);
        assert!(
            lines
                .iter()
                .all(|line| width(line, 12.0, Weight::Regular) <= 80.0)
        );
        assert!(wrap("", 80.0, 2, 12.0, Weight::Regular).is_empty());
        // Narrower than anything: still no panic.
        assert_eq!(cut("漢字", 1.0, 12.0, Weight::Regular), "…");
    }
}
