//! vdbench: `summary.html`, `totals.html` or what it prints. A run definition begins with
//! `Starting RD=`, and its figures are those of its last line `avg_N-M`.

use fathom_model::{JobResult, Latency, Results};

use super::{ForeignError, ForeignTool, ToldRates, figure, load, options};

/// A run definition, until its figures come.
struct RunDefinition {
    name: String,
    elapsed_ms: Option<f64>,
    threads: Option<String>,
}

pub(super) fn read(text: &str) -> Result<Vec<Results>, ForeignError> {
    let version = version(text);
    let mut run: Option<RunDefinition> = None;
    // vdbench before 5.04.07 has one column of maxima, later one for each direction.
    let mut columns = 13;
    let mut loads = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((_, told)) = line.split_once("Starting RD=") {
            run = Some(definition(told));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(rate) = words.iter().position(|word| *word == "rate")
            && words.get(rate + 1) == Some(&"1024**2")
        {
            columns = words.len() - rate;
        }
        let Some(avg) = words.iter().position(|word| word.starts_with("avg_")) else {
            continue;
        };
        let at = |what: String| ForeignError::At {
            tool: ForeignTool::Vdbench,
            line: number,
            column: line.find("avg_").unwrap_or(0) + 1,
            what,
        };
        let figures = figures(&words[avg + 1..]).ok_or_else(|| {
            at("behind avg_ come rate, MB/s, bytes, read %, and three response times".to_owned())
        })?;
        // Of file systems without I/O, and of what formats them.
        if figures[0] > 0.0 {
            loads.push(load(
                &version,
                job(run.as_ref(), &figures, &words[avg + 1..], columns),
            ));
        }
    }
    Ok(loads)
}

/// rate, MB/s, bytes per I/O, read %, response in ms: of all, of reads, of writes.
fn figures(words: &[&str]) -> Option<[f64; 7]> {
    let mut figures = [0.0; 7];
    for (to, word) in figures.iter_mut().zip(words) {
        *to = figure(word)?;
    }
    (words.len() >= 7 && figures[3] <= 100.0).then_some(figures)
}

fn job(
    run: Option<&RunDefinition>,
    figures: &[f64; 7],
    words: &[&str],
    columns: usize,
) -> JobResult {
    let &[rate, mib, bytes, read_percent, _, read_ms, write_ms] = figures;
    let max = |place: usize| words.get(place).and_then(|word| figure(word));
    let maxima = if columns >= 13 {
        [max(7), max(8)]
    } else {
        [max(7), max(7)]
    };
    let side = |share: f64, mean_ms: f64, max_ms: Option<f64>| {
        (share > 0.0).then(|| {
            let rates = ToldRates {
                iops: rate * share,
                bw_bytes: mib * f64::from(1 << 20) * share,
                runtime_ms: run.and_then(|run| run.elapsed_ms),
                clat: Some(Latency {
                    mean_ns: mean_ms * 1e6,
                    max_ns: (max_ms.unwrap_or(0.0) * 1e6) as u64,
                    ..Latency::default()
                }),
            };
            rates.result()
        })
    };
    let reads = read_percent / 100.0;
    // One column is of both: whose it is, nobody can say of a mix.
    let mixed = reads > 0.0 && reads < 1.0;
    let known = |max: Option<f64>| max.filter(|_| columns >= 13 || !mixed);
    let pattern = match (reads > 0.0, reads < 1.0) {
        (true, true) => "rw",
        (true, false) => "read",
        _ => "write",
    };
    JobResult {
        name: run.map_or_else(|| "vdbench".to_owned(), |run| run.name.clone()),
        options: options([
            ("rw", Some(pattern.to_owned())),
            (
                "rwmixread",
                mixed.then(|| format!("{:.0}", read_percent.round())),
            ),
            ("bs", (bytes > 0.0).then(|| format!("{bytes:.0}"))),
            ("iodepth", run.and_then(|run| run.threads.clone())),
        ]),
        runtime_ms: run.and_then(|run| run.elapsed_ms).map(|ms| ms as u64),
        read: side(reads, read_ms, known(maxima[0])),
        write: side(1.0 - reads, write_ms, known(maxima[1])),
        ..JobResult::default()
    }
}

/// `rd1; I/O rate: Uncontrolled MAX; elapsed=30; For loops: threads=2`
fn definition(told: &str) -> RunDefinition {
    let of = |option: &str| {
        let (_, value) = told.split_once(option)?;
        let value = value.split([' ', ';', ',', ')']).next()?;
        value.parse::<u32>().ok()
    };
    let name: String = told
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .chars()
        .take(80)
        .collect();
    let loops = told
        .split_once("For loops:")
        .map_or("", |(_, loops)| loops.trim());
    RunDefinition {
        name: match loops {
            "" | "None" => name,
            loops => format!("{name} {}", loops.chars().take(80).collect::<String>()),
        },
        elapsed_ms: of("elapsed=").map(|seconds| f64::from(seconds) * 1000.0),
        threads: of("threads=").map(|threads| threads.to_string()),
    }
}

fn version(text: &str) -> String {
    let told = text
        .lines()
        .take(40)
        .find_map(|line| line.split_once("Vdbench distribution:"));
    let version = told.and_then(|(_, behind)| behind.split_whitespace().next());
    version.map_or_else(
        || "vdbench".to_owned(),
        |word| word.chars().take(40).collect(),
    )
}
