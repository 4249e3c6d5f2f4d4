//! As many points as can be seen, and no fewer.
//!
//! Of all points in one column of pixels only the first, the lowest, the
//! highest and the last matter for the line that is drawn: M4, by Jugel,
//! Jerzak, Hackenbroich and Markl, "M4: A Visualization-Oriented Time Series
//! Data Aggregation" (VLDB 2014). Peaks and stalls stay, whatever the zoom.

/// A point in pixels.
pub type Pixel = (f64, f64);

/// Reduces a line, point after point, in memory that grows with the columns
/// and not with the points. The line need not go from left to right.
///
/// ```
/// let line = (0..100_000).map(|n| (f64::from(n) / 1000.0, f64::from(n % 7)));
/// assert!(fathom_sheet::chart::reduce::reduce(line).len() <= 4 * 101);
/// ```
pub fn reduce(points: impl IntoIterator<Item = Pixel>) -> Vec<Pixel> {
    let mut kept = Vec::new();
    let mut column: Option<PixelColumn> = None;
    for (n, point) in points.into_iter().enumerate() {
        match &mut column {
            Some(open) if open.place == place(point) => open.add(n, point),
            _ => {
                if let Some(done) = column.replace(PixelColumn::new(n, point)) {
                    done.give(&mut kept);
                }
            }
        }
    }
    if let Some(done) = column {
        done.give(&mut kept);
    }
    kept
}

/// The column of pixels that a point is in.
fn place(point: Pixel) -> i64 {
    point.0.floor() as i64
}

/// What is kept of a column; the number of each point says its order.
struct PixelColumn {
    place: i64,
    first: (usize, Pixel),
    low: (usize, Pixel),
    high: (usize, Pixel),
    last: (usize, Pixel),
}

impl PixelColumn {
    fn new(n: usize, point: Pixel) -> Self {
        let point_n = (n, point);
        Self {
            place: place(point),
            first: point_n,
            low: point_n,
            high: point_n,
            last: point_n,
        }
    }

    fn add(&mut self, n: usize, point: Pixel) {
        if point.1 < self.low.1.1 {
            self.low = (n, point);
        }
        if point.1 > self.high.1.1 {
            self.high = (n, point);
        }
        self.last = (n, point);
    }

    fn give(self, kept: &mut Vec<Pixel>) {
        let mut four = [self.first, self.low, self.high, self.last];
        four.sort_by_key(|&(n, _)| n);
        let mut given = None;
        for (n, point) in four {
            if given != Some(n) {
                kept.push(point);
                given = Some(n);
            }
        }
    }
}

/// A curve over time of any length in bounded memory, before it is known how
/// long it will be and how wide it will be drawn.
///
/// Time is cut into spans, of each of which the lowest and the highest value
/// are kept; when there are too many spans, neighbours are joined. So a peak is
/// never lost, and its place is known to one part in [`CurveReducer::SPANS`] of the
/// time, less than a pixel.
#[derive(Debug, Clone)]
pub struct CurveReducer {
    span: f64,
    spans: Vec<Option<ReducedSpan>>,
}

#[derive(Debug, Clone, Copy)]
struct ReducedSpan {
    low: (f64, f64),
    high: (f64, f64),
}

impl ReducedSpan {
    fn join(self, other: Self) -> Self {
        Self {
            low: if other.low.1 < self.low.1 {
                other.low
            } else {
                self.low
            },
            high: if other.high.1 > self.high.1 {
                other.high
            } else {
                self.high
            },
        }
    }
}

impl Default for CurveReducer {
    fn default() -> Self {
        Self {
            span: 1.0,
            spans: Vec::new(),
        }
    }
}

impl CurveReducer {
    /// The most spans that are kept.
    pub const SPANS: usize = 8192;

    /// Adds a value at a time of 0 or later; what is not finite, or earlier,
    /// is left out.
    pub fn add(&mut self, time: f64, value: f64) {
        if !time.is_finite() || !value.is_finite() || time < 0.0 {
            return;
        }
        while time / self.span >= Self::SPANS as f64 {
            self.join_neighbours();
        }
        let place = (time / self.span) as usize;
        if place >= self.spans.len() {
            self.spans.resize(place + 1, None);
        }
        let one = ReducedSpan {
            low: (time, value),
            high: (time, value),
        };
        let slot = &mut self.spans[place];
        *slot = Some(slot.map_or(one, |span| span.join(one)));
    }

    fn join_neighbours(&mut self) {
        self.span *= 2.0;
        self.spans = self
            .spans
            .chunks(2)
            .map(|pair| match (pair[0], pair.get(1).copied().flatten()) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            })
            .collect();
    }

    /// What was kept, in the order of time.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.spans.len());
        for span in self.spans.iter().flatten() {
            let (first, second) = if span.low.0 <= span.high.0 {
                (span.low, span.high)
            } else {
                (span.high, span.low)
            };
            points.push(first);
            if second != first {
                points.push(second);
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn extremes(points: &[Pixel]) -> BTreeMap<i64, (f64, f64)> {
        let mut found: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for &point in points {
            let seen = found.entry(place(point)).or_insert((point.1, point.1));
            *seen = (seen.0.min(point.1), seen.1.max(point.1));
        }
        found
    }

    proptest! {
        #[test]
        fn the_lowest_and_highest_of_each_column_stay(
            values in prop::collection::vec(-1e6..1e6f64, 0..2000),
            step in 0.001..3.0f64,
        ) {
            let points: Vec<Pixel> =
                values.iter().enumerate().map(|(n, &v)| (n as f64 * step, v)).collect();
            let kept = reduce(points.iter().copied());
            prop_assert_eq!(extremes(&points), extremes(&kept));
            prop_assert_eq!(points.first(), kept.first());
            prop_assert_eq!(points.last(), kept.last());
            prop_assert!(kept.len() <= 4 * extremes(&points).len());
            prop_assert!(kept.iter().all(|point| points.contains(point)));
        }

        #[test]
        fn a_stream_keeps_lowest_and_highest(
            values in prop::collection::vec((0.0..1e9f64, -1e6..1e6f64), 1..300),
        ) {
            let mut stream = CurveReducer::default();
            values.iter().for_each(|&(time, value)| stream.add(time, value));
            let kept = stream.points();
            let largest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(f64::MIN, f64::max);
            let smallest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(f64::MAX, f64::min);
            prop_assert_eq!(largest(&kept), largest(&values));
            prop_assert_eq!(smallest(&kept), smallest(&values));
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0.0, 1.0), (10.0, 2.0), (20.0, 1.5), (15.0, 9.0)];
        assert_eq!(reduce(points), points);
        assert!(reduce([]).is_empty());
    }

    #[test]
    fn ten_million_points_take_little() {
        let mut stream = CurveReducer::default();
        for n in 0..10_000_000u32 {
            stream.add(
                f64::from(n),
                if n == 7_654_321 {
                    99.0
                } else {
                    f64::from(n % 3)
                },
            );
        }
        let kept = stream.points();
        assert!(kept.len() <= 2 * CurveReducer::SPANS);
        assert!(kept.contains(&(7_654_321.0, 99.0)));
    }
}
