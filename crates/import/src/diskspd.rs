//! DISKSPD's results as XML (`-Rxml`): what was asked stands in `Profile`, what came of
//! each time span in a `TimeSpan` behind it.

use fathom_model::{DirectionResult, JobResult, Latency, Results};
use roxmltree::Node;

use super::xml::{self, children, path, text_below};
use super::{ForeignError, ForeignTool, LOADS_MAX, figure, load, options};

pub(super) fn read(text: &str) -> Result<Vec<Results>, ForeignError> {
    let document = xml::parse(text, ForeignTool::Diskspd)?;
    let root = document.root_element();
    let version = text_below(root, &["System", "Tool", "Version"]);
    let version = format!("diskspd {}", version.unwrap_or_default());
    let asked: Vec<Node> = path(root, &["Profile", "TimeSpans"])
        .map(|spans| children(spans, "TimeSpan").collect())
        .unwrap_or_default();
    let mut loads = Vec::new();
    for (place, span) in children(root, "TimeSpan").enumerate() {
        if loads.len() == LOADS_MAX {
            return Err(ForeignError::TooLarge {
                tool: ForeignTool::Diskspd,
            });
        }
        let job = job(span, asked.get(place).copied()).ok_or_else(|| {
            let what = "a time span without its seconds (TestTimeSeconds)";
            xml::at(span, ForeignTool::Diskspd, what)
        })?;
        loads.push(load(version.trim(), job));
    }
    Ok(loads)
}

fn number_below(node: Node, names: &[&'static str]) -> Option<f64> {
    figure(text_below(node, names)?)
}

/// The threads' targets of a span.
fn targets<'a, 'i>(span: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    children(span, "Thread").flat_map(|thread| children(thread, "Target"))
}

fn job(span: Node, asked: Option<Node>) -> Option<JobResult> {
    let seconds = number_below(span, &["TestTimeSeconds"]).filter(|&seconds| seconds > 0.0)?;
    let side = |count: &'static str, bytes: &'static str, word: &'static str| {
        let sum = |name: &'static str| -> f64 {
            targets(span).filter_map(|t| number_below(t, &[name])).sum()
        };
        let (ios, bytes) = (sum(count), sum(bytes));
        (ios > 0.0).then(|| DirectionResult {
            total_ios: ios as u64,
            io_bytes: bytes as u64,
            iops: ios / seconds,
            bw_bytes: bytes / seconds,
            runtime_ms: (seconds * 1000.0).round() as u64,
            clat: latency(span, word),
            ..DirectionResult::default()
        })
    };
    let read = side("ReadCount", "ReadBytes", "Read");
    let write = side("WriteCount", "WriteBytes", "Write");
    let random = agreed(asked, is_random);
    let pattern = random.map(|random| match (random, &read, &write) {
        (true, Some(_), Some(_)) => "randrw",
        (true, Some(_), None) => "randread",
        (true, None, _) => "randwrite",
        (false, Some(_), Some(_)) => "rw",
        (false, Some(_), None) => "read",
        (false, None, _) => "write",
    });
    let whole = |value: Option<f64>| value.map(|value| format!("{value:.0}"));
    let told =
        |name: &'static str| agreed(asked, |target| text_below(target, &[name]).and_then(figure));
    let reads = told("WriteRatio")
        .filter(|ratio| *ratio <= 100.0)
        .map(|writes| 100.0 - writes);
    let mixed = read.is_some() && write.is_some();
    Some(JobResult {
        name: pattern.unwrap_or("diskspd").to_owned(),
        options: options([
            ("rw", pattern.map(str::to_owned)),
            ("rwmixread", whole(reads.filter(|_| mixed))),
            ("bs", whole(told("BlockSize"))),
            ("iodepth", whole(told("RequestCount"))),
            ("numjobs", whole(number_below(span, &["ThreadCount"]))),
        ]),
        runtime_ms: Some((seconds * 1000.0).round() as u64),
        read,
        write,
        ..JobResult::default()
    })
}

/// What all targets of a span were told alike.
fn agreed<T: PartialEq>(asked: Option<Node>, says: impl Fn(Node) -> Option<T>) -> Option<T> {
    let targets = path(asked?, &["Targets"])?;
    let mut all = children(targets, "Target").map(says);
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}

/// `Random` has the alignment of random I/O, `RandomRatio` the share of it; a target with
/// neither goes on in strides.
fn is_random(target: Node) -> Option<bool> {
    if let Some(percent) = number_below(target, &["RandomRatio"]) {
        return match percent as u32 {
            0 => Some(false),
            100 => Some(true),
            _ => None,
        };
    }
    Some(path(target, &["Random"]).is_some())
}

/// Latencies of all threads, in ms there.
fn latency(span: Node, word: &str) -> Option<Latency> {
    let all = path(span, &["Latency"])?;
    let below = |node: Node, name: &str| {
        let child = node.children().find(|child| child.has_tag_name(name))?;
        figure(child.text()?)
    };
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    let mean_ns = below(all, &format!("Average{word}Milliseconds"))? * 1e6;
    let bucket = |node: Node| {
        Some((
            below(node, "Percentile")?,
            below(node, &format!("{word}Milliseconds"))?,
        ))
    };
    let buckets: Vec<(f64, f64)> = children(all, "Bucket")
        .filter_map(bucket)
        .take(200)
        .collect();
    let at = |percent: f64| {
        buckets
            .iter()
            .find(|bucket| bucket.0 == percent)
            .map(|bucket| ns(bucket.1))
    };
    let inner = buckets
        .iter()
        .filter(|bucket| bucket.0 > 0.0 && bucket.0 < 100.0);
    Some(Latency {
        min_ns: at(0.0).unwrap_or(0),
        max_ns: at(100.0).unwrap_or(0),
        mean_ns,
        stddev_ns: below(all, &format!("{word}LatencyStdev")).map(|ms| ms * 1e6),
        percentiles_ns: inner.map(|&(percent, ms)| (percent, ns(ms))).collect(),
        ..Latency::default()
    })
}
