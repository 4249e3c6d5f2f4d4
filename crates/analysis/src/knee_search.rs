//! Which points of a series the search for its knee needs: the smallest load that gives
//! nearly all that the device can do.
//!
//! The ends come first, then the middle, then the middles of what is left, so that it is
//! known early where the curve turns. What lies between two points that are both enough,
//! or both too little, is left out. Beside a best point from which the curve falls nothing
//! is, because the true best may lie there. A peak between two points that are alike is
//! missed.

use crate::best::KNEE_SHARE;

/// The order in which the points of a series are measured: places on its x axis.
pub fn search_order(points: usize) -> Vec<usize> {
    let Some(last) = points.checked_sub(1) else {
        return Vec::new();
    };
    let mut order = vec![last];
    if last > 0 {
        order.push(0);
    }
    // Each level halves the gaps of the one before, from left to right.
    let mut gaps: Vec<(usize, usize)> = vec![(0, last)];
    while !gaps.is_empty() {
        let mut halves = Vec::new();
        for (low, high) in gaps {
            let middle = low.midpoint(high);
            if middle > low {
                order.push(middle);
                halves.extend([(low, middle), (middle, high)]);
            }
        }
        gaps = halves;
    }
    order
}

/// Why the point at `place` need not be measured, when so many bytes per second were
/// measured at the places of the x axis (`None`: not, or not yet); `None`: it is needed.
pub fn is_needless(bandwidths: &[Option<f64>], place: usize) -> Option<&'static str> {
    if bandwidths.get(place).copied().flatten().is_some() {
        return None;
    }
    let measured: Vec<(usize, f64)> = (bandwidths.iter().enumerate())
        .filter_map(|(place, bandwidth)| Some((place, (*bandwidth)?)))
        .collect();
    let above = measured.iter().position(|(at, _)| *at > place)?;
    let (left, right) = (measured[above.checked_sub(1)?].1, measured[above].1);
    let best = measured.iter().map(|(_, of)| *of).fold(0.0, f64::max);
    if best <= 0.0 {
        return None;
    }
    let is_enough = |bandwidth: f64| bandwidth >= KNEE_SHARE * best;
    // Between one that is enough and one that is not it rises to the knee, or falls from
    // what may not be the best.
    if is_enough(left) != is_enough(right) {
        return None;
    }
    let knee = measured.iter().find(|(_, bandwidth)| is_enough(*bandwidth));
    match knee.is_some_and(|(at, _)| *at < place) {
        true => Some("not needed: the knee is at a smaller one"),
        false => Some("not needed: the knee is at a larger one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the search measures of a curve, and the smallest point that is enough of these.
    fn searched(curve: &[f64]) -> (Vec<usize>, usize) {
        let mut known = vec![None; curve.len()];
        for place in search_order(curve.len()) {
            if is_needless(&known, place).is_none() {
                known[place] = Some(curve[place]);
            }
        }
        let measured: Vec<usize> = (0..curve.len()).filter(|at| known[*at].is_some()).collect();
        let best = measured.iter().map(|at| curve[*at]).fold(0.0, f64::max);
        let knee = measured.iter().find(|at| curve[**at] >= KNEE_SHARE * best);
        (measured.clone(), *knee.unwrap())
    }

    fn knee_of_all(curve: &[f64]) -> usize {
        let best = curve.iter().copied().fold(0.0, f64::max);
        curve
            .iter()
            .position(|of| *of >= KNEE_SHARE * best)
            .unwrap()
    }

    #[test]
    fn every_point_has_its_turn_once() {
        for points in 0..70 {
            let mut order = search_order(points);
            assert!(order.first().is_none_or(|first| first + 1 == points));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..points), "{points}");
        }
        assert_eq!(search_order(9), [8, 0, 4, 2, 6, 1, 3, 5, 7]);
    }

    #[test]
    fn a_curve_with_a_knee_takes_about_half_of_its_points() {
        // Bound by the device from a load on: min(load, limit).
        for knee in 0..9_usize {
            let curve: Vec<f64> = (0..9).map(|at| f64::from(1 << at.min(knee))).collect();
            let (measured, found) = searched(&curve);
            assert_eq!(found, knee);
            assert!(measured.len() <= 6, "{measured:?}");
        }
    }

    #[test]
    fn what_falls_behind_its_best_is_found_as_well() {
        for peak in 0..9_usize {
            let curve: Vec<f64> = (0..9_usize)
                .map(|at| match at.cmp(&peak) {
                    std::cmp::Ordering::Less => f64::from(1 << at),
                    _ => f64::from(1 << peak) * 0.95_f64.powi((at - peak) as i32),
                })
                .collect();
            let (_, found) = searched(&curve);
            assert_eq!(found, knee_of_all(&curve), "{peak}");
        }
    }

    #[test]
    fn what_failed_is_as_if_it_were_not_there() {
        let mut known = vec![None; 5];
        assert_eq!(is_needless(&known, 4), None);
        (known[0], known[4]) = (Some(0.0), Some(0.0));
        assert_eq!(is_needless(&known, 2), None);
        (known[0], known[4]) = (Some(99.0), Some(100.0));
        assert_eq!(
            is_needless(&known, 2),
            Some("not needed: the knee is at a smaller one")
        );
        assert_eq!(is_needless(&known, 9), None);
    }
}
