//! Where a figure changed over a history of runs.
//!
//! Divided hierarchically, as by E-divisive (D. S. Matteson and N. A. James, A
//! nonparametric approach for multiple change point analysis of multivariate data,
//! Journal of the American Statistical Association 109, 2014), which trackers of
//! benchmarks use (D. Daly et al., The use of change point detection to identify software
//! performance regressions, ICPE 2020): the place where both sides differ most, by
//! Student's t, is a change when few shuffled histories differ as much anywhere; each side is then
//! searched in its turn.

use fathom_model::mix::SplitMix;

/// Chance that a history without a change is given one: over all divisions of it, so that
/// a single one has less.
const CHANCE: f64 = 0.02;
/// Histories that are shuffled for each division.
const SHUFFLES: usize = 499;
/// Runs of a level at the least: one alone may be an outlier.
const RUNS_LEAST: usize = 2;
/// Runs of a history at the least: of fewer no order is seldom enough.
pub const HISTORY_LEAST: usize = 8;

/// The places of the first values of new levels, ascending. The values are taken as they
/// are: of figures whose noise is a share of them, give logarithms.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    if values.len() >= HISTORY_LEAST && values.iter().all(|value| value.is_finite()) {
        divide(values, 0, &mut found);
    }
    found.sort_unstable();
    found
}

fn divide(values: &[f64], first: usize, found: &mut Vec<usize>) {
    let Some((place, size)) = largest(values) else {
        return;
    };
    // The same history is always judged alike.
    let mut random = SplitMix(values.len() as u64);
    let mut shuffled = values.to_vec();
    let mut as_large = 0;
    let most = (CHANCE * (SHUFFLES + 1) as f64) as usize;
    for _ in 0..SHUFFLES {
        shuffle(&mut shuffled, &mut random);
        if largest(&shuffled).is_some_and(|(_, other)| other >= size) {
            as_large += 1;
            if as_large >= most {
                return;
            }
        }
    }
    found.push(first + place);
    divide(&values[..place], first, found);
    divide(&values[place..], first + place, found);
}

/// Where both sides differ most, and by how much.
fn largest(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < 2 * RUNS_LEAST.max(2) {
        return None;
    }
    let all: f64 = values.iter().sum();
    let mean = all / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if squares <= 0.0 {
        return None;
    }
    let mut before = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (place, value) in (1..n).zip(values) {
        before += value;
        if place < RUNS_LEAST || n - place < RUNS_LEAST {
            continue;
        }
        let (left, right) = (place as f64, (n - place) as f64);
        let distance = before / left - (all - before) / right;
        // What the division explains of all squares; t² grows with it.
        let explained = distance * distance * left * right / n as f64;
        let size = explained / (squares - explained).max(squares * 1e-12);
        if best.is_none_or(|(_, most)| size > most) {
            best = Some((place, size));
        }
    }
    best
}

/// Fisher and Yates.
fn shuffle(values: &mut [f64], random: &mut SplitMix) {
    for last in (1..values.len()).rev() {
        values.swap(last, (random.number() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of twelve uniform values, which are nearly normal.
    fn noise(seed: u64, n: u64) -> f64 {
        let mut x =
            seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut sum = 0.0;
        for _ in 0..12 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            sum += (x >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum - 6.0
    }

    #[test]
    fn steps_of_three_deviations_are_found_within_two_runs_and_few_others() {
        let (mut found, mut false_ones, mut without) = (0, 0, 0);
        for seed in 1..=100u64 {
            // 40 to 79 runs, with a step somewhere but in the first and last ten.
            let n = 40 + seed % 40;
            let step = 10 + (seed * 7) % (n - 20);
            let level = |at: u64| if at < step { 100.0 } else { 103.0 };
            let history: Vec<f64> = (0..n).map(|at| level(at) + noise(seed, at)).collect();
            let changes = change_points(&history);
            let near = |at: &&usize| at.abs_diff(step as usize) <= 2;
            found += usize::from(changes.iter().any(|at| near(&at)));
            false_ones += usize::from(changes.iter().any(|at| !near(&at)));
            let flat: Vec<f64> = (0..n).map(|at| 100.0 + noise(seed + 1000, at)).collect();
            without += usize::from(!change_points(&flat).is_empty());
        }
        assert!(found >= 95, "{found} of 100 found");
        assert!(
            false_ones <= 5 && without <= 5,
            "{false_ones} and {without} false ones"
        );
    }

    #[test]
    fn several_steps_are_found_and_nothing_in_short_or_flat_histories() {
        let level = |at: u64| [100.0, 110.0, 104.0][(at / 15) as usize];
        let history: Vec<f64> = (0..45).map(|at| level(at) + noise(5, at)).collect();
        assert_eq!(change_points(&history), [15, 30]);
        assert!(change_points(&[1.0, 1.0, 9.0, 9.0]).is_empty());
        assert!(change_points(&[5.0; 30]).is_empty());
        assert!(change_points(&[f64::NAN; 30]).is_empty());
    }
}
