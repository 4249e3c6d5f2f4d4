//! From values to places on an axis, and the ticks that say so.

use super::quantity::{AxisUnit, Quantity, plain};

/// How values are spread over an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly by powers of two; values of 0 and below have no place.
    Log2,
    /// Evenly by powers of ten; values of 0 and below have no place.
    Log10,
    /// Evenly, in ms, with ticks at whole seconds, minutes, hours.
    Time,
    /// Value *n* is the *n*-th of these names, counted from 0.
    Ordinal(Vec<String>),
}

/// Where an axis begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// At ticks; a linear one at 0 when no value is negative, so that twice as
    /// high is twice as much.
    Ticks,
    /// A little beyond the first and the last value; a linear one at 0 when no
    /// value is negative.
    Values,
}

/// An axis as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartAxis {
    /// What is on it, without unit.
    pub title: String,
    /// What its numbers are.
    pub quantity: Quantity,
    /// How they are spread.
    pub scale: Scale,
    /// Where it begins and ends.
    pub ends: Ends,
}

/// A tick that has a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value at it.
    pub at: f64,
    /// What is written there.
    pub label: String,
}

/// An axis that knows its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    scale: Scale,
    /// Ends, in the space in which the axis is even.
    low: f64,
    high: f64,
    /// The unit of all labels; `None` where each has its own.
    pub unit: Option<AxisUnit>,
    /// Ticks with numbers, ascending.
    pub ticks: Vec<Tick>,
    /// Ticks without, ascending.
    pub minor: Vec<f64>,
}

/// No axis ends later: no figure of storage is larger, and sums of larger ones overflow.
const LARGEST: f64 = 1e24;
/// No figure is smaller, but nothing.
const SMALLEST: f64 = 1e-12;
/// More ticks are never wanted, whatever the room.
const TICKS_MAX: usize = 64;

/// An end of the values, within the limits of what is drawn.
fn bounded(value: f64) -> f64 {
    if value.abs() < SMALLEST {
        0.0
    } else {
        value.clamp(-LARGEST, LARGEST)
    }
}

impl Scale {
    /// Whether 0 and what is below have no place.
    pub fn is_logarithmic(&self) -> bool {
        matches!(self, Self::Log2 | Self::Log10)
    }

    /// The value in the space in which the axis is even; `None` when it has no
    /// place on it.
    pub fn even(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        match self {
            Self::Linear | Self::Time | Self::Ordinal(_) => Some(value),
            Self::Log2 => (value > 0.0).then(|| value.log2()),
            Self::Log10 => (value > 0.0).then(|| value.log10()),
        }
    }
}

impl Fitted {
    /// The place of a value, 0 at the axis's beginning and 1 at its end; `None`
    /// when it has none. Values beyond an end, which only absurd ones are, lie on it.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = (self.scale.even(value)? - self.low) / (self.high - self.low);
        Some(place.clamp(0.0, 1.0))
    }

    /// The axis's title with its unit.
    pub fn title(&self, axis: &ChartAxis) -> String {
        match self.unit.filter(|unit| !unit.name.is_empty()) {
            Some(unit) => format!("{} ({})", axis.title, unit.name),
            None => axis.title.clone(),
        }
    }
}

/// Whether labels, each with its place on the axis, stand clear of each other.
pub type Fits<'f> = dyn Fn(&[(f64, String)]) -> bool + 'f;

/// Fits an axis to the smallest and largest of its values; `wanted` is the
/// largest number of ticks that is easily read.
pub fn fit(axis: &ChartAxis, extent: Option<(f64, f64)>, wanted: usize, fits: &Fits) -> Fitted {
    let mut wanted = wanted.clamp(1, TICKS_MAX);
    loop {
        let fitted = fit_to(axis, extent, wanted);
        let labels: Vec<(f64, String)> = fitted
            .ticks
            .iter()
            .filter_map(|tick| Some((fitted.place(tick.at)?, tick.label.clone())))
            .collect();
        if fits(&labels) {
            return fitted;
        }
        if wanted == 1 {
            return thinned(fitted, labels, fits);
        }
        wanted -= 1;
    }
}

/// With every second of its ticks left out, until their labels fit.
fn thinned(mut fitted: Fitted, mut labels: Vec<(f64, String)>, fits: &Fits) -> Fitted {
    fn halve<T>(items: &mut Vec<T>) {
        let mut n = 0;
        items.retain(|_| {
            n += 1;
            n % 2 == 1
        });
    }
    while labels.len() > 1 && !fits(&labels) {
        halve(&mut fitted.ticks);
        halve(&mut labels);
    }
    fitted
}

fn fit_to(axis: &ChartAxis, extent: Option<(f64, f64)>, wanted: usize) -> Fitted {
    let Some((min, max)) = extent else {
        return Fitted {
            scale: Scale::Linear,
            low: 0.0,
            high: 1.0,
            unit: None,
            ticks: Vec::new(),
            minor: Vec::new(),
        };
    };
    let (min, max) = (bounded(min), bounded(max));
    match &axis.scale {
        Scale::Linear => linear(axis, min, max, wanted),
        Scale::Time => time(axis, min, max, wanted),
        Scale::Log2 => log2(axis, min, max, wanted),
        Scale::Log10 => log10(axis, min, max, wanted),
        Scale::Ordinal(names) => ordinal(axis, names, wanted),
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
fn round_up(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        // A hair of tolerance: 0.1 + 0.2 asks for 0.3.
        .find(|nice| nice * power >= raw * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

/// Begin, end and step of an even axis.
fn even_range(min: f64, max: f64, ends: Ends, step_for: impl Fn(f64) -> f64) -> (f64, f64, f64) {
    let base = if min >= 0.0 { 0.0 } else { min };
    let top = if max <= 0.0 && min < 0.0 { 0.0 } else { max };
    let span = top - base;
    if span <= 0.0 {
        return (0.0, 1.0, 1.0);
    }
    // Steps finer than a billionth of the values would not move them.
    let step = step_for(span).max(base.abs().max(top.abs()) * 1e-9);
    match ends {
        Ends::Ticks => {
            let low = (base / step + 1e-9).floor() * step;
            let high = (top / step - 1e-9).ceil() * step;
            (low, high.max(low + step), step)
        }
        Ends::Values => {
            let low = if base < 0.0 { base - span * 0.02 } else { base };
            (low, top + span * 0.02, step)
        }
    }
}

/// Multiples of `step` from `low` to `high`, in order.
fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-6).ceil();
    let count = ((high / step + 1e-6).floor() - first).max(0.0) as usize;
    (0..=count.min(4 * TICKS_MAX))
        .map(|n| (first + n as f64) * step)
        .collect()
}

fn linear(axis: &ChartAxis, min: f64, max: f64, wanted: usize) -> Fitted {
    let unit = axis.quantity.unit(max.abs().max(min.abs()));
    let step_for = |span: f64| {
        let raw = span / wanted as f64;
        match axis.quantity {
            Quantity::Binary => raw.log2().ceil().max(0.0).exp2(),
            _ => round_up(raw / unit.factor) * unit.factor,
        }
    };
    let (low, high, step) = even_range(min, max, axis.ends, step_for);
    let decimals = (-(step / unit.factor).log10().floor()).clamp(0.0, 9.0) as usize;
    let ticks = multiples(low, high, step)
        .into_iter()
        .map(|at| Tick {
            at,
            label: format!(
                "{}{}",
                plain_fixed(at / unit.factor, decimals),
                suffix(unit, at)
            ),
        })
        .collect();
    Fitted {
        scale: axis.scale.clone(),
        low,
        high,
        unit: Some(unit),
        ticks,
        minor: Vec::new(),
    }
}

/// Numbers from here on are written with an exponent: they must not push
/// everything else aside.
const ABSURD: f64 = 1e9;

/// Nothing has no thousands.
fn suffix(unit: AxisUnit, at: f64) -> &'static str {
    if at == 0.0 { "" } else { unit.suffix }
}

/// With as many decimals as the step has, so that all labels have the same;
/// zero needs none.
fn plain_fixed(value: f64, decimals: usize) -> String {
    if value.abs() >= ABSURD {
        return format!("{value:.1e}");
    }
    let text = format!("{value:.decimals$}");
    if text.trim_matches(['-', '0', '.']).is_empty() {
        "0".to_owned()
    } else {
        text
    }
}

/// Steps of clocks and calendars, in ms.
const TIME_STEPS: [f64; 28] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4,
    1.2e5, 3e5, 6e5, 9e5, 1.8e6, 3.6e6, 7.2e6, 1.08e7, 2.16e7, 4.32e7, 8.64e7, 1.728e8,
];

fn time(axis: &ChartAxis, min: f64, max: f64, wanted: usize) -> Fitted {
    let unit = axis.quantity.unit(max.abs().max(min.abs()));
    let step_for = |span: f64| {
        let raw = span / wanted as f64;
        let steps = TIME_STEPS.into_iter();
        steps
            .into_iter()
            .find(|&step| step >= raw)
            .unwrap_or_else(|| round_up(raw / 8.64e7) * 8.64e7)
    };
    let (low, high, step) = even_range(min, max, axis.ends, step_for);
    let ticks = multiples(low, high, step)
        .into_iter()
        .map(|at| Tick {
            at,
            label: if (at / unit.factor).abs() >= ABSURD {
                format!("{:.1e}", at / unit.factor)
            } else {
                plain(at / unit.factor, 3)
            },
        })
        .collect();
    Fitted {
        scale: Scale::Time,
        low,
        high,
        unit: Some(unit),
        ticks,
        minor: Vec::new(),
    }
}

fn log2(axis: &ChartAxis, min: f64, max: f64, wanted: usize) -> Fitted {
    let (first, last) = log_extent(min, max, f64::log2);
    let (low, high) = match axis.ends {
        Ends::Values => (first - 0.35, last + 0.35),
        Ends::Ticks => (first.floor(), last.ceil().max(first.floor() + 1.0)),
    };
    let powers = (low - 1e-9).ceil() as i32..=(high + 1e-9).floor() as i32;
    let stride = powers.clone().count().div_ceil(wanted).max(1);
    let at = |power: i32| f64::from(power).exp2();
    let ticks = powers
        .clone()
        .step_by(stride)
        .map(|power| Tick {
            at: at(power),
            label: axis.quantity.text(at(power)),
        })
        .collect();
    Fitted {
        scale: Scale::Log2,
        low,
        high,
        unit: None,
        ticks,
        minor: powers.map(at).collect(),
    }
}

/// The extent of the values that have a logarithm.
fn log_extent(min: f64, max: f64, log: fn(f64) -> f64) -> (f64, f64) {
    let max = if max > 0.0 { max } else { 1.0 };
    let min = if min > 0.0 { min } else { max };
    (log(min), log(max))
}

/// Numbers between two powers of ten, in the order in which they are given
/// ticks when there is room.
const BETWEEN: [&[f64]; 3] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0]];

fn log10(axis: &ChartAxis, min: f64, max: f64, wanted: usize) -> Fitted {
    let (first, last) = log_extent(min, max, f64::log10);
    let (low, high) = match axis.ends {
        Ends::Values => (first - 0.08, last + 0.08),
        Ends::Ticks => (log_step(first, f64::floor), log_step(last, f64::ceil)),
    };
    // One value, or values of one place: a little room on both sides.
    let (low, high) = if high - low < 0.3 {
        (
            log_step(first - 0.15, f64::floor),
            log_step(last + 0.15, f64::ceil),
        )
    } else {
        (low, high)
    };
    let within = |even: f64| even >= low - 1e-9 && even <= high + 1e-9;
    let decades = low.floor() as i32..=high.ceil() as i32;
    let series = |between: &[f64], stride: usize| -> Vec<f64> {
        let powers = decades
            .clone()
            .filter(|power| power.rem_euclid(stride as i32) == 0);
        powers
            .flat_map(|power| between.iter().map(move |digit| digit * 10f64.powi(power)))
            .filter(|value| within(value.log10()))
            .collect()
    };
    let finest = BETWEEN
        .iter()
        .rev()
        .map(|between| series(between, 1))
        .find(|values| values.len() <= wanted)
        // One number says nothing of a scale.
        .map(|values| {
            if values.len() < 2 {
                series(BETWEEN[2], 1)
            } else {
                values
            }
        });
    let values = finest.unwrap_or_else(|| {
        let stride = decades.clone().count().div_ceil(wanted).max(1);
        series(&[1.0], stride)
    });
    let ticks = values
        .into_iter()
        .map(|at| Tick {
            at,
            label: axis.quantity.text(at),
        })
        .collect();
    Fitted {
        scale: Scale::Log10,
        low,
        high,
        unit: None,
        ticks,
        minor: series(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1),
    }
}

/// The logarithm of the next 1, 2, 5 times a power of ten in the direction of `round`.
fn log_step(even: f64, round: fn(f64) -> f64) -> f64 {
    let power = even.floor();
    let within = even - power;
    let steps = [0.0, 2f64.log10(), 5f64.log10(), 1.0];
    let up = round(0.5) > 0.5;
    let found = if up {
        steps.iter().find(|&&step| step >= within - 1e-9)
    } else {
        steps.iter().rev().find(|&&step| step <= within + 1e-9)
    };
    power + found.copied().unwrap_or(0.0)
}

fn ordinal(axis: &ChartAxis, names: &[String], wanted: usize) -> Fitted {
    let stride = names.len().div_ceil(wanted).max(1);
    let ticks = names
        .iter()
        .enumerate()
        .step_by(stride)
        .map(|(n, name)| Tick {
            at: n as f64,
            label: name.clone(),
        })
        .collect();
    Fitted {
        scale: axis.scale.clone(),
        low: -0.5,
        high: names.len().max(1) as f64 - 0.5,
        unit: None,
        ticks,
        minor: Vec::new(),
    }
}
