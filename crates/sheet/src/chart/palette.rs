//! Colours that people with any colour vision can tell apart, and what else
//! tells curves apart where there are none: dashes and markers.
//!
//! The colours of curves are those of Okabe and Ito, "Color Universal Design"
//! (2008), <https://jfly.uni-koeln.de/color/>. Yellow is left out: on white its
//! contrast is 1.3. The colours of heat maps are viridis by van der Walt and
//! Smith (matplotlib 2.0, CC0), whose lightness grows evenly, so that it reads
//! in grey too.

use fathom_model::Direction;

/// A colour of the sRGB space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Srgb(pub u8, pub u8, pub u8);

impl Srgb {
    /// As CSS and SVG write it: `#0072b2`.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Relative luminance from 0 (black) to 1 (white): WCAG 2.2, "relative luminance".
    pub fn luminance(self) -> f64 {
        let linear = |byte: u8| {
            let share = f64::from(byte) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Contrast of two colours from 1 to 21: WCAG 2.2, "contrast ratio".
    pub fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The colour at `share` (0 … 1) of the way to `other`.
    #[must_use]
    pub fn mix(self, other: Self, share: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        let part =
            |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Self(
            part(self.0, other.0),
            part(self.1, other.1),
            part(self.2, other.2),
        )
    }
}

/// Okabe and Ito's blue.
pub const BLUE: Srgb = Srgb(0x00, 0x72, 0xb2);
/// Okabe and Ito's vermillion.
pub const VERMILLION: Srgb = Srgb(0xd5, 0x5e, 0x00);
/// Okabe and Ito's bluish green.
pub const GREEN: Srgb = Srgb(0x00, 0x9e, 0x73);
/// Okabe and Ito's reddish purple.
pub const PURPLE: Srgb = Srgb(0xcc, 0x79, 0xa7);
/// Okabe and Ito's orange.
pub const ORANGE: Srgb = Srgb(0xe6, 0x9f, 0x00);
/// Okabe and Ito's sky blue.
pub const SKY: Srgb = Srgb(0x56, 0xb4, 0xe9);

/// Colours of curves in the order in which they are used; the first ones have
/// the most contrast to white.
pub const CURVES: [Srgb; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY];

/// The colour of a direction, the same in every graph.
pub fn of_direction(dir: Direction) -> Srgb {
    match dir {
        Direction::Read => BLUE,
        Direction::Write => VERMILLION,
        Direction::Trim => PURPLE,
        Direction::Sync => ORANGE,
        Direction::Mixed => GREEN,
    }
}

/// Viridis at the tenths; between them colours are mixed.
const VIRIDIS: [Srgb; 11] = [
    Srgb(0x44, 0x01, 0x54),
    Srgb(0x48, 0x25, 0x76),
    Srgb(0x41, 0x44, 0x87),
    Srgb(0x35, 0x5f, 0x8d),
    Srgb(0x2a, 0x78, 0x8e),
    Srgb(0x21, 0x91, 0x8c),
    Srgb(0x22, 0xa8, 0x84),
    Srgb(0x44, 0xbf, 0x70),
    Srgb(0x7a, 0xd1, 0x51),
    Srgb(0xbd, 0xdf, 0x26),
    Srgb(0xfd, 0xe7, 0x25),
];

/// The colour of a cell of a heat map, from 0 (lowest) to 1 (highest).
pub fn viridis(share: f64) -> Srgb {
    let steps = VIRIDIS.len() - 1;
    let place = share.clamp(0.0, 1.0) * steps as f64;
    let below = (place as usize).min(steps - 1);
    VIRIDIS[below].mix(VIRIDIS[below + 1], place - below as f64)
}

/// How a line is broken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dash {
    /// Not at all.
    #[default]
    Solid,
    /// Long strokes.
    Dashed,
    /// Dots.
    Dotted,
    /// Stroke, dot.
    DashDotted,
}

impl Dash {
    /// SVG's `stroke-dasharray` for a line of two pixels; `None` for a solid one.
    pub fn array(self) -> Option<&'static str> {
        match self {
            Self::Solid => None,
            Self::Dashed => Some("8 4"),
            Self::Dotted => Some("2 3"),
            Self::DashDotted => Some("8 3 2 3"),
        }
    }
}

/// The sign at a point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Marker {
    /// ●
    #[default]
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
    /// ▼
    TriangleDown,
    /// ✕
    Cross,
    /// ○
    Ring,
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ink {
    /// Its colour.
    pub color: Srgb,
    /// How its line is broken.
    pub dash: Dash,
    /// The sign at its points.
    pub marker: Marker,
}

impl Ink {
    /// A solid line with circles.
    pub fn new(color: Srgb) -> Self {
        Self {
            color,
            dash: Dash::Solid,
            marker: Marker::Circle,
        }
    }

    /// The ink of the curve in this place, counted from 0. Neighbours differ in
    /// colour, dash and marker alike, and the first thirty in colour or dash.
    pub fn of_place(place: usize) -> Self {
        const DASHES: [Dash; 4] = [Dash::Solid, Dash::Dashed, Dash::DashDotted, Dash::Dotted];
        const MARKERS: [Marker; 5] = [
            Marker::Circle,
            Marker::Square,
            Marker::Triangle,
            Marker::Diamond,
            Marker::TriangleDown,
        ];
        let round = place / CURVES.len();
        Self {
            color: CURVES[place % CURVES.len()],
            dash: DASHES[(place + round) % DASHES.len()],
            marker: MARKERS[place % MARKERS.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colours_stand_out_from_white_and_viridis_grows_lighter() {
        let white = Srgb(255, 255, 255);
        for color in &CURVES[..4] {
            // 3 is what WCAG 2.2 (1.4.11) asks of graphics.
            assert!(color.contrast(white) >= 2.99, "{color:?}");
        }
        let steps: Vec<f64> = (0..=100)
            .map(|step| viridis(f64::from(step) / 100.0).luminance())
            .collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn many_curves_differ() {
        let inks: Vec<Ink> = (0..24).map(Ink::of_place).collect();
        for (n, ink) in inks.iter().enumerate() {
            assert!(!inks[..n].contains(ink), "{n}");
        }
        let neighbours = inks.windows(2);
        assert!(
            neighbours
                .into_iter()
                .all(|pair| pair[0].color != pair[1].color && pair[0].marker != pair[1].marker)
        );
    }
}
