use super::*;
use crate::random::Random;

const QUESTION: PairedQuestion = PairedQuestion {
    chance: FALSE_CHANCE,
    margin: 0.0,
    more_is_better: true,
    resolution: 0.0,
};
/// Pairs of a comparison at the most.
const PAIRS: usize = 20;

/// What a device does by itself from one measurement to the next.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Each measurement resembles the one before it.
    Correlated,
    /// The device becomes slower by as much as noise makes it.
    Drifting,
    /// The device stays in one of two modes for a while, which differ by half.
    Bimodal,
}

/// Measurements one after the other, as logarithms.
struct Device {
    noise: Noise,
    random: Random,
    x: f64,
    time: f64,
}

impl Device {
    fn new(noise: Noise, seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let x = random.normal();
        Self {
            noise,
            random,
            x,
            time: 0.0,
        }
    }

    fn measure(&mut self) -> f64 {
        let fresh = self.random.normal();
        self.time += 1.0;
        match self.noise {
            Noise::Correlated => {
                self.x = 0.9 * self.x + 0.19_f64.sqrt() * fresh;
                0.05 * self.x
            }
            Noise::Drifting => 0.01 * fresh - 0.01 * self.time,
            Noise::Bimodal => {
                if self.random.share() < 0.2 {
                    self.x = -self.x;
                }
                0.2 * self.x.signum() + 0.01 * fresh
            }
        }
    }

    /// A pair whose second side is so much faster.
    fn pair(&mut self, effect: f64) -> (f64, f64) {
        let heads = self.random.share() < 0.5;
        let (first, second) = (self.measure(), self.measure());
        let (a, b) = if heads {
            (first, second)
        } else {
            (second, first)
        };
        (a.exp(), (b + effect).exp())
    }
}

/// After how many pairs the first answer came, and which.
fn answer(device: &mut Device, effect: f64, question: PairedQuestion) -> (usize, CompareVerdict) {
    let mut pairs = Vec::new();
    while pairs.len() < PAIRS {
        pairs.push(device.pair(effect));
        let verdict = judge(&pairs, question).verdict;
        if verdict != CompareVerdict::CannotTell {
            return (pairs.len(), verdict);
        }
    }
    (PAIRS, CompareVerdict::CannotTell)
}

#[test]
fn of_2000_comparisons_of_the_same_with_itself_5_percent_differ_at_the_most() {
    for noise in [Noise::Correlated, Noise::Drifting, Noise::Bimodal] {
        let differs = |seed: &u64| {
            let mut device = Device::new(noise, *seed);
            let mut pairs = Vec::new();
            // As `judge` does it: the interval would cost most of the time.
            (0..PAIRS).any(|_| {
                let (a, b) = device.pair(0.0);
                pairs.push(b.ln() - a.ln());
                evidence(&pairs, 0.0) >= -FALSE_CHANCE.ln()
            })
        };
        let wrong = (0..2000).filter(differs).count();
        assert!(wrong <= 100, "{noise:?}: {wrong} of 2000");
    }
}

#[test]
fn what_is_told_as_the_same_is_the_same() {
    let question = PairedQuestion {
        margin: 0.02,
        ..QUESTION
    };
    let mut wrong = 0;
    for seed in 0..100 {
        let mut device = Device::new(Noise::Correlated, seed);
        // It differs by more than the margin.
        let (_, verdict) = answer(&mut device, 0.03, question);
        wrong += u32::from(matches!(
            verdict,
            CompareVerdict::Same | CompareVerdict::Slower
        ));
    }
    assert!(wrong <= 5, "{wrong} of 100");
}

#[test]
fn ten_percent_are_told_in_ten_pairs_in_a_drift_and_in_noise() {
    for noise in [Noise::Drifting, Noise::Correlated] {
        let told = (0..100).filter(|&seed| {
            let mut device = Device::new(noise, seed);
            let (pairs, verdict) = answer(&mut device, 0.1, QUESTION);
            pairs <= 10 && verdict == CompareVerdict::Faster
        });
        let told = told.count();
        assert!(told >= 90, "{noise:?}: {told} of 100");
    }
}

#[test]
fn what_never_varies_is_the_same_in_six_pairs() {
    let question = PairedQuestion {
        margin: 0.02,
        ..QUESTION
    };
    let of = |n| judge(&vec![(1000.0, 1000.0); n], question);
    assert_eq!(of(5).verdict, CompareVerdict::CannotTell);
    assert_eq!(of(5).ratio_low, None);
    assert_eq!(of(6).verdict, CompareVerdict::Same);
    let faster = judge(&[(1000.0, 1100.0); 6], question);
    assert_eq!(faster.verdict, CompareVerdict::Faster);
    let (low, high) = (faster.ratio_low.unwrap(), faster.ratio_high.unwrap());
    assert!(low > 1.099 && high < 1.101, "{low} {high}");
}

#[test]
fn less_latency_is_faster_and_what_is_missing_is_no_pair() {
    let question = PairedQuestion {
        more_is_better: false,
        ..QUESTION
    };
    let pairs = [(2e6, 1e6); 6];
    assert_eq!(judge(&pairs, question).verdict, CompareVerdict::Faster);
    let pairs = [(2e6, 1e6), (0.0, 1e6), (f64::NAN, 1e6), (1e6, 0.0)];
    let found = judge(&pairs, question);
    assert_eq!(found.verdict, CompareVerdict::CannotTell);
    assert!((found.ratio.unwrap() - 0.5).abs() < 1e-9, "{found:?}");
    assert_eq!(found.more_runs, None);
    let three = judge(&[(2e6, 1e6); 3], question);
    let more = three.more_runs.unwrap();
    assert!((3..=8).contains(&more), "{more}");
    let nothing = judge(&[], question);
    assert_eq!(nothing.why_not, Some(WhyNot::Invalid));
}

#[test]
fn what_is_less_than_the_step_of_a_histogram_is_no_difference() {
    let pairs = [(165e3, 169e3); 20];
    let question = PairedQuestion {
        more_is_better: false,
        ..QUESTION
    };
    assert_eq!(judge(&pairs, question).verdict, CompareVerdict::Slower);
    let question = PairedQuestion {
        resolution: 1.0 / 32.0,
        ..question
    };
    assert_eq!(judge(&pairs, question).verdict, CompareVerdict::CannotTell);
}

#[test]
fn the_interval_holds_the_truth() {
    let mut missed = 0;
    for seed in 0..200 {
        let mut device = Device::new(Noise::Correlated, 7000 + seed);
        let pairs: Vec<_> = (0..12).map(|_| device.pair(0.05)).collect();
        let found = judge(&pairs, QUESTION);
        let truth = 0.05_f64.exp();
        let (low, high) = (found.ratio_low.unwrap(), found.ratio_high.unwrap());
        missed += u32::from(!(low..=high).contains(&truth));
    }
    assert!(missed <= 10, "{missed} of 200");
}
