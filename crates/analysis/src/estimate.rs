//! A mean and how far to trust it.

use serde::{Deserialize, Serialize};

use crate::student;

/// The mean of a figure over repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Arithmetic mean, in the unit of the figure.
    pub mean: f64,
    /// Number of repetitions.
    pub n: u32,
    /// Half the width of the 95 % confidence interval of the mean (Student's t),
    /// in the unit of the figure; `None` for a single measurement, of which
    /// nobody can tell a difference from noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width_95: Option<f64>,
}

impl Estimate {
    /// The estimate from the figures of all repetitions; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|&n| n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let half_width_95 = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let freedom = n - 1;
            let deviation = (squares / f64::from(freedom)).sqrt();
            let t = student::quantile(0.05, f64::from(freedom));
            t * deviation / f64::from(n).sqrt()
        });
        Some(Self {
            mean,
            n,
            half_width_95,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_measurement_has_no_interval() {
        let one = Estimate::of(&[5.0]).unwrap();
        assert_eq!((one.mean, one.n, one.half_width_95), (5.0, 1, None));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_interval_is_students() {
        // 1, 2, 3: deviation 1, t(2) = 4.303, so 4.303 / √3.
        let three = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((three.mean - 2.0).abs() < 1e-12);
        assert!((three.half_width_95.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3);
    }
}
