use super::*;
use crate::random::Random;

fn measured(probe: LoadProbe, iops: f64, latency_ns: Option<f64>) -> ProbeResult {
    ProbeResult {
        probe,
        iops,
        latency_ns,
        cpu_percent: None,
        seconds: SECONDS[usize::from(probe.is_long)],
        is_early: false,
    }
}

/// Seconds of a short and of a long look.
const SECONDS: [f64; 2] = [10.0, 30.0];

/// The mean of so many seconds of noise with a correlation from second to second.
fn noise(random: &mut Random, seconds: f64, deviation: f64, rho: f64) -> f64 {
    let mut x = random.normal();
    let n = seconds as usize;
    let sum: f64 = (0..n)
        .map(|_| {
            x = rho * x + (1.0 - rho * rho).sqrt() * random.normal();
            x
        })
        .sum();
    deviation * sum / n as f64
}

/// Searches the knee of a curve; gives the depth's share of the best, and the seconds.
pub(super) fn search(
    curve: &[(u32, f64)],
    deviation: f64,
    rho: f64,
    random: &mut Random,
) -> (f64, f64) {
    let loads = FindLoads::whole(curve.iter().map(|&(depth, _)| depth));
    let truth = |load: f64| {
        curve
            .iter()
            .find(|&&(depth, _)| f64::from(depth) == load)
            .unwrap()
            .1
    };
    let most = curve.iter().map(|&(_, iops)| iops).fold(0.0, f64::max);
    let (mut probes, mut seconds) = (Vec::new(), 0.0);
    loop {
        match next_probe(FindGoal::Knee, &loads, &probes) {
            NextProbe::Measure(probe) => {
                let took = SECONDS[usize::from(probe.is_long)];
                seconds += took;
                let factor = 1.0 + noise(random, took, deviation, rho);
                probes.push(measured(probe, truth(probe.load.unwrap()) * factor, None));
                assert!(probes.len() <= loads.probes_most());
            }
            NextProbe::Found(found) => return (truth(found.load.unwrap()) / most, seconds),
        }
    }
}

fn recorded() -> Vec<Vec<(u32, f64)>> {
    let text = include_str!("../../tests/fixtures/nvme-2018.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let points = line.split(' ').skip(1);
            points
                .map(|point| {
                    let (depth, iops) = point.split_once(':').unwrap();
                    (depth.parse().unwrap(), iops.parse().unwrap())
                })
                .collect()
        })
        .collect()
}

#[test]
fn the_depth_found_on_recorded_curves_is_as_good_as_the_best() {
    // The knee is within 2 % of what was measured; 0.5 % more for what noise adds.
    let mut random = Random::new(1);
    let mut shares = Vec::new();
    let (mut trials, mut bad) = (0, 0);
    for curve in recorded() {
        let (share, seconds) = search(&curve, 0.0, 0.0, &mut random);
        assert!(share >= 0.98, "{share} of {curve:?}");
        assert!(seconds <= 0.4 * 300.0 * curve.len() as f64);
        for _ in 0..10 {
            let (share, seconds) = search(&curve, 0.03, 0.8, &mut random);
            trials += 1;
            bad += usize::from(share < 0.975);
            shares.push(seconds / (300.0 * curve.len() as f64));
        }
    }
    shares.sort_by(f64::total_cmp);
    assert!(bad * 100 <= trials, "{bad} of {trials}");
    let median = shares[shares.len() / 2];
    assert!(median <= 0.25, "{median} of the time");
    assert!(shares.last().unwrap() <= &0.4);
}

#[test]
fn what_ended_the_search_is_told() {
    // Latency is flat until the device does no more.
    let ask = |limit_ns: f64, of: &dyn Fn(f64) -> f64| {
        let mut probes = Vec::new();
        loop {
            match next_probe(
                FindGoal::Latency { limit_ns },
                &FindLoads::Rates { least: 1.0 },
                &probes,
            ) {
                NextProbe::Measure(probe) => {
                    let offered = probe.load.unwrap_or(f64::INFINITY);
                    probes.push(measured(probe, offered.min(1000.0), Some(of(offered))));
                }
                NextProbe::Found(found) => return found,
            }
        }
    };
    let device = ask(1e9, &|_| 1e5);
    assert_eq!(device.ended_by, FindEnd::Device);
    assert!((900.0..=1075.0).contains(&device.load.unwrap()));
    let never = ask(1e3, &|_| 1e5);
    assert_eq!((never.ended_by, never.load), (FindEnd::Nothing, None));
}

#[test]
fn a_depth_that_keeps_the_limit_is_found_by_halving() {
    let loads = FindLoads::whole((0..=8).map(|n| 1 << n));
    let goal = FindGoal::Latency { limit_ns: 1e6 };
    let mut probes = Vec::new();
    let found = loop {
        match next_probe(goal, &loads, &probes) {
            NextProbe::Measure(probe) => {
                let depth = probe.load.unwrap();
                // 20 µs for each I/O in the queue: 50 are too many.
                probes.push(measured(probe, 1e4, Some(2e4 * depth)));
            }
            NextProbe::Found(found) => break found,
        }
    };
    assert_eq!((found.load, found.too_much), (Some(32.0), Some(64.0)));
    assert_eq!(found.ended_by, FindEnd::Objective);
}

#[test]
fn a_search_that_is_led_through_comes_to_an_end() {
    let goals = [
        FindGoal::Knee,
        FindGoal::Latency { limit_ns: 1e6 },
        FindGoal::Cpu {
            limit_percent: 50.0,
        },
    ];
    let loads = [
        FindLoads::whole([1, 2, 4, 8]),
        FindLoads::Rates { least: 1.0 },
    ];
    for (goal, loads) in goals
        .into_iter()
        .flat_map(|goal| loads.iter().map(move |l| (goal, l)))
    {
        let mut probes = Vec::new();
        while let NextProbe::Measure(probe) = next_probe(goal, loads, &probes) {
            probes.push(measured(probe, 0.0, None));
            assert!(probes.len() <= loads.probes_most());
        }
    }
}

#[test]
fn of_depths_and_jobs_the_smallest_product_is_the_knee() {
    let mut loads: Vec<WholeLoad> = [1, 2, 4, 8]
        .into_iter()
        .flat_map(|jobs| {
            [1, 2, 4, 8].map(|load| WholeLoad {
                load,
                jobs: Some(jobs),
            })
        })
        .collect();
    loads.sort_by_key(|it| (it.load * it.jobs.unwrap(), it.jobs));
    let loads = FindLoads::Whole(loads);
    // A job does 4 I/Os at once at the most, and the device 8.
    let iops = |probe: &LoadProbe| {
        let at_once = probe.load.unwrap().min(4.0) * f64::from(probe.jobs.unwrap());
        1000.0 * at_once.min(8.0)
    };
    let mut probes = Vec::new();
    let found = loop {
        match next_probe(FindGoal::Knee, &loads, &probes) {
            NextProbe::Measure(probe) => probes.push(measured(probe, iops(&probe), None)),
            NextProbe::Found(found) => break found,
        }
    };
    assert_eq!((found.load, found.jobs), (Some(4.0), Some(2)));
    // 300 µs for each I/O under way: of those that keep 1.5 ms the one that does most.
    let goal = FindGoal::Latency { limit_ns: 1.5e6 };
    let mut probes = Vec::new();
    let found = loop {
        match next_probe(goal, &loads, &probes) {
            NextProbe::Measure(probe) => {
                let at_once = probe.load.unwrap() * f64::from(probe.jobs.unwrap());
                probes.push(measured(probe, iops(&probe), Some(3e5 * at_once)));
            }
            NextProbe::Found(found) => break found,
        }
    };
    assert_eq!((found.load, found.jobs), (Some(4.0), Some(1)));
    assert_eq!(found.iops, 4000.0);
}

#[test]
fn what_was_ended_early_and_became_slower_is_not_the_answer() {
    // Credits last for the short probes: from 500 on they are used up in a whole one.
    let goal = FindGoal::Latency { limit_ns: 1e6 };
    let mut probes = Vec::new();
    let found = loop {
        match next_probe(goal, &FindLoads::Rates { least: 1.0 }, &probes) {
            NextProbe::Measure(probe) => {
                let rate = probe.load.unwrap_or(1000.0);
                let is_early = !probe.is_whole && probe.is_long;
                let limit = if is_early { 900.0 } else { 550.0 };
                let latency = if rate >= limit { 1e7 } else { 1e5 };
                probes.push(ProbeResult {
                    is_early,
                    ..measured(probe, rate, Some(latency))
                });
            }
            NextProbe::Found(found) => break found,
        }
    };
    let rate = found.load.unwrap();
    assert!(rate <= 550.0, "{rate}");
    let last = probes.last().unwrap();
    assert!(last.probe.is_whole && !last.is_early);
}
