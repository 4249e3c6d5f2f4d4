//! What the nodes of a run did, from the files beside its event log.

use std::path::Path;

use fathom_analysis::nodes::{StepWindow, Summary, then};
use fathom_model::{NodeSample, NodeUse};
use fathom_record::{NodeStats, StatsLine};

/// What every node did in every window, by window and node.
pub fn uses(record: &Path, windows: &[StepWindow]) -> Vec<NodeUse> {
    let mut all: Vec<Vec<NodeUse>> = windows.iter().map(|_| Vec::new()).collect();
    for stats in NodeStats::of_record(record) {
        let node = stats.header.node.clone();
        let mut summaries: Vec<Summary> = windows.iter().map(|_| Summary::default()).collect();
        for line in stats {
            for (window, summary) in windows.iter().zip(&mut summaries) {
                match &line {
                    StatsLine::Sample(sample) if window.has(sample) => summary.take(sample),
                    StatsLine::Missed { at_ms, .. }
                        if (window.begin_ms..=window.end_ms).contains(at_ms) =>
                    {
                        summary.miss();
                    }
                    _ => {}
                }
            }
        }
        for ((of_window, window), summary) in all.iter_mut().zip(windows).zip(summaries) {
            of_window.extend(summary.finish(&node, window.step.clone()));
        }
    }
    all.into_iter().flatten().collect()
}

/// One node over all of a run.
#[derive(Debug)]
pub struct NodeCurve {
    /// Its name.
    pub node: String,
    /// The intervals, merged where there were more than asked for.
    pub samples: Vec<NodeSample>,
    /// Every so many intervals are one.
    pub merged: u32,
}

/// The intervals of every node, at most `most` of each: neighbours are added up
/// until they fit.
pub fn tracks(record: &Path, most: usize) -> Vec<NodeCurve> {
    let all = NodeStats::of_record(record).into_iter();
    let tracks = all.map(|stats| track(stats, most));
    tracks.filter(|track| !track.samples.is_empty()).collect()
}

fn track(stats: NodeStats, most: usize) -> NodeCurve {
    let node = stats.header.node.clone();
    let (mut samples, mut merged, mut last): (Vec<NodeSample>, u32, u32) = (Vec::new(), 1, 0);
    for line in stats {
        let StatsLine::Sample(sample) = line else {
            continue;
        };
        match samples.last_mut().filter(|_| last < merged) {
            Some(before) => {
                then(before, &sample);
                last += 1;
            }
            None => {
                samples.push(*sample);
                last = 1;
            }
        }
        if samples.len() > most && last == merged {
            samples = halved(samples);
            // Of an odd number the last one is a half.
            merged *= 2;
            last = if samples.len() * 2 == most + 1 {
                merged
            } else {
                merged / 2
            };
        }
    }
    NodeCurve {
        node,
        samples,
        merged,
    }
}

fn halved(samples: Vec<NodeSample>) -> Vec<NodeSample> {
    let mut half: Vec<NodeSample> = Vec::with_capacity(samples.len() / 2 + 1);
    for (place, sample) in samples.into_iter().enumerate() {
        match half.last_mut().filter(|_| place % 2 == 1) {
            Some(before) => then(before, &sample),
            None => half.push(sample),
        }
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::StatsWriter;

    #[test]
    fn merged_intervals_lose_no_time() {
        for (count, most) in [(7, 100), (100, 8), (101, 9), (1000, 60)] {
            let record = tempfile::tempdir().unwrap();
            let mut writer = StatsWriter::create(record.path(), "a", 1000).unwrap();
            for place in 0..count {
                let mut sample = NodeSample {
                    at_ms: place * 1000 + 1000,
                    span_ms: 1000,
                    ..NodeSample::default()
                };
                sample.cpu.user_ms = 10;
                writer.sample(sample).unwrap();
            }
            let [track] = &tracks(record.path(), most)[..] else {
                panic!("one node");
            };
            let (spans, user) = track.samples.iter().fold((0, 0), |(spans, user), sample| {
                (spans + sample.span_ms, user + sample.cpu.user_ms)
            });
            assert_eq!((spans, user), (count * 1000, count * 10));
            assert!(track.samples.len() <= most);
            let whole = |sample: &NodeSample| sample.span_ms == u64::from(track.merged) * 1000;
            let (_, but_last) = track.samples.split_last().unwrap();
            assert!(but_last.iter().all(whole), "{count} {most}");
        }
    }
}
