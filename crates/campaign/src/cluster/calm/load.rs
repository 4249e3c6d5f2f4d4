//! A background load while it goes on: started before the first phase, asked at
//! the begin and the end of each what it has done, ended with the run.
//!
//! fio writes one more JSON document where the file `fio-dump-status` appears in
//! its folder of temporary files (backend.c, `check_status_file`), and at an
//! interval. Two documents tell all that came between them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_analysis::rate::{BEHIND_RATE_SHARE, latency};
use fathom_engine::fio::import;
use fathom_engine::fio::intervals::Intervals;
use fathom_model::{
    Direction, DirectionResult, Doubt, Event, Failure, FailureKind, Histogram, Host, JobResult,
    Results, RunStatus, Sample,
};
use fathom_record::{Header, Writer};
use serde_json::Value;

use super::super::going::{ClusterError, Going, SHORT};
use super::super::manifests::CALM;
use super::super::start::Pace;
use super::super::trouble::text;
use super::{Calm, PART, WORK};

/// Seconds between two documents that nobody asked for: a day of them is a few
/// hundred MB in the pod, and a stall of that length is seen.
const INTERVAL_S: u32 = 10;
/// How long a load may take to begin, and to end when it is told to.
const BEGIN: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);

/// A background load in progress.
#[derive(Debug)]
pub(in super::super) struct Load {
    calm: Calm,
    writer: Writer,
    pods: Vec<Pod>,
    began: Instant,
    /// Number of the phase, and how many there are.
    phase: (u32, u32),
    /// Begin of the phase, ms since the load's record began.
    phase_ms: u64,
    /// In some phase it did not keep its rate.
    is_behind: bool,
}

/// One of its servers.
#[derive(Debug)]
struct Pod {
    name: String,
    node: String,
    /// A pod that is made again has another one.
    uid: String,
    /// How much of fio's output has been read.
    read_bytes: usize,
    intervals: Intervals,
    /// Time of the document that the phase began with, by the pod's clock.
    base_ms: u64,
}

/// What a pod did in a phase.
#[derive(Debug, Default)]
struct Did {
    /// By document.
    samples: Vec<Vec<Sample>>,
    runtime_ms: u64,
    options: std::collections::BTreeMap<String, String>,
    version: Option<String>,
}

impl Load {
    /// Its record as `fathom show` takes it: `RUN/calm`.
    fn shown(&self) -> String {
        let dir = self.writer.dir();
        let last =
            |dir: Option<&Path>| dir.and_then(Path::file_name).unwrap_or_default().to_owned();
        let path = Path::new(&last(dir.parent())).join(last(Some(dir)));
        path.display().to_string()
    }

    /// Name and id of its pods.
    pub(in super::super) fn servers(&self) -> impl Iterator<Item = (&str, &str)> {
        let pods = self.pods.iter();
        pods.map(|pod| (pod.name.as_str(), pod.uid.as_str()))
    }

    fn t_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Going<'_, '_> {
    /// Starts the load that is asked for, and waits until it moves data.
    pub(in super::super) fn start_calm(&mut self, phases: usize) -> Result<(), ClusterError> {
        let Some(calm) = self.objects.parameters.calm.clone() else {
            return Ok(());
        };
        let what = format!("background load: {} start", calm.told());
        self.tell(Event::Preparing { what });
        let made = self.objects.all();
        let mut made = made.iter().filter(|made| made.folder == CALM);
        made.try_for_each(|made| self.make(made))?;
        let wanted = calm.ninstances as usize;
        let pods = self.wait_for("servers of the background load", PART, wanted)?;
        let names: Vec<String> = pods.iter().map(|pod| name_of(pod).to_owned()).collect();
        self.prefill_calm(&calm, &names)?;
        for name in &names {
            let start = format!(
                "cd {WORK}; : >out; (TMPDIR={WORK} fio --output-format=json+ --status-interval={INTERVAL_S} \
                 --eta=never --output=out calm.fio 2>log </dev/null & echo $! >pid; wait $!; echo $? >exit) \
                 >/dev/null 2>&1 &"
            );
            self.give(name, "calm.fio", &calm.job())?;
            self.must(name, &["sh", "-c", &start], None)?;
        }
        let of = u32::try_from(phases).unwrap_or(u32::MAX);
        let pods = pods.iter().map(|pod| Pod {
            name: name_of(pod).to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            uid: text(pod, "/metadata/uid").to_owned(),
            read_bytes: 0,
            intervals: Intervals::default(),
            base_ms: 0,
        });
        let mut load = Load {
            writer: self.calm_record(&calm)?,
            calm,
            pods: pods.collect(),
            began: Instant::now(),
            phase: (0, of),
            phase_ms: 0,
            is_behind: false,
        };
        let begun = self.wait_for_calm(&mut load);
        let text = format!(
            "background load beside this run: {}; its record: {}",
            load.calm.told(),
            load.shown()
        );
        self.calm = Some(load);
        self.tell(Event::Note { text });
        begun
    }

    /// A record of its own, within that of the run.
    fn calm_record(&self, calm: &Calm) -> Result<Writer, ClusterError> {
        let run = self.dir().file_name().unwrap_or_default();
        let run = run.to_string_lossy().into_owned();
        let mut header = Header::new("calm", "cluster calm");
        let facts = serde_json::json!({"beside": run, "load": calm});
        header.facts.insert("calm".to_owned(), facts);
        let mut writer = Writer::create_in(&self.dir().join("calm"), &header)?;
        let text = format!("background load of the run {run}: {}", calm.told());
        writer.append(&Event::Note { text })?;
        Ok(writer)
    }

    fn give(&self, pod: &str, file: &str, text: &str) -> Result<(), ClusterError> {
        let write = format!("cat > {WORK}/{file}");
        self.must(pod, &["sh", "-c", &write], Some(text.as_bytes()))?;
        self.keep(&format!("server_calm/{file}"), text.as_bytes())
    }

    /// Every file is written, and wholly: on all servers at once.
    fn prefill_calm(&mut self, calm: &Calm, pods: &[String]) -> Result<(), ClusterError> {
        let what = "background load: its files are written".to_owned();
        self.tell(Event::Preparing { what });
        for pod in pods {
            self.give(pod, "prefill.fio", &calm.prefill())?;
            let start = format!(
                "cd {WORK}; (fio --output-format=json prefill.fio >prefill.out 2>prefill.log </dev/null; \
                 echo $? >prefill.exit) >/dev/null 2>&1 &"
            );
            self.must(pod, &["sh", "-c", &start], None)?;
        }
        let limit = Duration::from_secs(self.objects.parameters.maxwait_s);
        let began = Instant::now();
        for pod in pods {
            let exit = format!("{WORK}/prefill.exit");
            let mut pace = Pace::new();
            while self.exec(pod, &["cat", &exit], None, SHORT)?.code != Some(0) {
                self.go_on()?;
                if began.elapsed() >= limit {
                    let what = format!("{pod}: its file was not written within {limit:?}");
                    return Err(ClusterError::Command(what));
                }
                pace.wait();
            }
            let out = self.must(pod, &["cat", &format!("{WORK}/prefill.out")], None)?;
            let log = self.must(pod, &["cat", &format!("{WORK}/prefill.log")], None)?;
            self.keep(&format!("server_calm/{pod}/fio.prefill.run.json"), &out)?;
            let written = written_bytes(&out);
            if written != Some(calm.file_bytes) {
                let said = String::from_utf8_lossy(&log);
                let what = format!(
                    "{pod}: of the {} bytes of its file {} were written: {}",
                    calm.file_bytes,
                    written.unwrap_or(0),
                    said.trim()
                );
                return Err(ClusterError::Command(what));
            }
        }
        Ok(())
    }

    /// Waits until every server has moved something.
    fn wait_for_calm(&self, load: &mut Load) -> Result<(), ClusterError> {
        let began = Instant::now();
        for place in 0..load.pods.len() {
            loop {
                self.go_on()?;
                let documents = self.ask_calm(load, place)?;
                let has_moved = |results: &Results| {
                    let jobs = results.jobs.iter();
                    jobs.flat_map(JobResult::directions)
                        .any(|(_, result)| result.total_ios > 0)
                };
                if documents.iter().any(has_moved) {
                    break;
                }
                if began.elapsed() >= BEGIN {
                    let pod = &load.pods[place].name;
                    let what = format!("{pod}: the background load did not begin within {BEGIN:?}");
                    return Err(ClusterError::Command(what));
                }
            }
        }
        Ok(())
    }

    /// The documents that came since the last time, with one of now.
    fn ask_calm(&self, load: &mut Load, place: usize) -> Result<Vec<Results>, ClusterError> {
        let pod = &mut load.pods[place];
        let from = pod.read_bytes + 1;
        // A document ends with a line that holds but its brace.
        let ask = format!(
            "cd {WORK}; n=$(grep -c '^}}' out); : >fio-dump-status; i=0; \
             while [ ! -e exit ] && [ \"$(grep -c '^}}' out)\" -le \"$n\" ] && [ $i -lt 100 ]; \
             do sleep 0.1; i=$((i+1)); done; tail -c +{from} out; [ ! -e exit ]"
        );
        let ran = self.exec(&pod.name, &["sh", "-c", &ask], None, SHORT)?;
        let whole = ran.stdout.windows(3).rposition(|bytes| bytes == b"\n}\n");
        let whole = &ran.stdout[..whole.map_or(0, |at| at + 3)];
        pod.read_bytes += whole.len();
        append(
            &self
                .dir()
                .join(format!("server_calm/{}/fio.calm.json", pod.name)),
            whole,
        )?;
        if ran.code != Some(0) {
            let log = self.exec(&pod.name, &["cat", &format!("{WORK}/log")], None, SHORT)?;
            let said = String::from_utf8_lossy(&log.stdout);
            let what = format!("{}: the background load ended: {}", pod.name, said.trim());
            return Err(ClusterError::Command(what));
        }
        Ok(import::read(whole)
            .map(|(_, all, _)| all)
            .unwrap_or_default())
    }

    /// A phase is about to begin.
    pub(in super::super) fn calm_phase_begins(&mut self) -> Result<(), ClusterError> {
        let Some(mut load) = self.calm.take() else {
            return Ok(());
        };
        let asked = (0..load.pods.len()).try_for_each(|place| {
            let documents = self.ask_calm(&mut load, place)?;
            let pod = &mut load.pods[place];
            for results in &documents {
                pod.intervals.document(results, Duration::ZERO, None);
                pod.base_ms = results.timestamp_ms.unwrap_or(pod.base_ms);
            }
            Ok(())
        });
        load.phase_ms = load.t_ms();
        self.calm = Some(load);
        asked
    }

    /// A phase is over: what the load did meanwhile goes into its record. Where it
    /// fell behind its rate, the figures of the phase are marked.
    pub(in super::super) fn calm_phase_ends(&mut self, name: &str) -> Result<(), ClusterError> {
        let Some(mut load) = self.calm.take() else {
            return Ok(());
        };
        let all: Result<Vec<Did>, ClusterError> = (0..load.pods.len())
            .map(|place| {
                let documents = self.ask_calm(&mut load, place)?;
                Ok(did(&mut load, place, &documents))
            })
            .collect();
        let all = all.and_then(|all| load.write_phase(name, &all).map(|()| all));
        let iops = f64::from(load.calm.iops());
        let wanted = iops * f64::from(load.calm.ninstances);
        let is_behind = |did: &Did| did.iops() < iops * BEHIND_RATE_SHARE;
        let fell_behind = all.as_ref().is_ok_and(|all| all.iter().any(is_behind));
        load.is_behind |= fell_behind;
        self.calm = Some(load);
        let all = match all {
            // What became of a pod the cluster knows better than a command in it.
            Err(ClusterError::Kube(error)) => {
                let lost = self.lost(&[]).unwrap_or_default();
                let why = match lost.is_empty() {
                    true => format!("the background load does not answer: {error}"),
                    false => lost.join("; "),
                };
                return Err(ClusterError::Command(why));
            }
            all => all?,
        };
        let got: f64 = all.iter().map(Did::iops).sum();
        if fell_behind {
            let percent = got * 100.0 / wanted;
            let text = format!(
                "the background load fell behind in {name}: {got:.0} of {wanted:.0} IOPS ({percent:.0} %)"
            );
            self.tell(Event::Note { text });
            let doubt = Doubt::BackgroundBehind;
            self.tell(Event::Doubted { doubt });
        }
        Ok(())
    }

    /// Ends the load, however the run has ended, and closes its record.
    pub(in super::super) fn end_calm(&mut self, status: RunStatus, why: Option<String>) {
        let Some(mut load) = self.calm.take() else {
            return;
        };
        for pod in &load.pods {
            let seconds = END.as_secs();
            let end = format!(
                "cd {WORK}; kill -TERM $(cat pid); i=0; \
                 while [ ! -e exit ] && [ $i -lt {seconds} ]; do sleep 1; i=$((i+1)); done; cat log"
            );
            // What a server says that is gone is not worth an error: it is removed.
            if let Ok(ran) = self.exec(&pod.name, &["sh", "-c", &end], None, END * 2) {
                let _ = self.keep(
                    &format!("server_calm/{}/fio.calm.log", pod.name),
                    &ran.stdout,
                );
            }
        }
        if let Some(why) = why {
            let failure = Failure::new(FailureKind::Other, why);
            let _ = load.writer.append(&Event::Failure(failure));
        } else if !load.is_behind && load.phase.0 > 0 {
            let text = "the background load kept its rate in every phase".to_owned();
            self.tell(Event::Note { text });
        }
        if let Err(error) = load.writer.finish(status) {
            let text = format!("the record of the background load is not whole: {error}");
            self.tell(Event::Note { text });
        }
    }
}

impl Load {
    fn write_phase(&mut self, name: &str, all: &[Did]) -> Result<(), ClusterError> {
        self.phase.0 += 1;
        let (step, of) = self.phase;
        let hosts: Vec<Host> = self
            .pods
            .iter()
            .zip(all)
            .map(|(pod, did)| did.host(pod))
            .collect();
        let mut events = vec![
            Event::Step {
                step,
                of,
                name: name.to_owned(),
                point: None,
            },
            Event::Jobs {
                names: vec![PART.to_owned(); self.pods.len()],
                hosts: hosts.iter().map(Host::label).collect(),
            },
        ];
        let documents = all.iter().map(|did| did.samples.len()).max().unwrap_or(0);
        for nth in 0..documents {
            let samples = all.iter().filter_map(|did| did.samples.get(nth)).flatten();
            let samples: Vec<&Sample> = samples.collect();
            let t_ms = samples.iter().map(|sample| sample.t_ms).max();
            events.extend(samples.into_iter().cloned().map(Event::Sample));
            if let Some(t_ms) = t_ms {
                let remaining_ms = None;
                events.push(Event::Interval { t_ms, remaining_ms });
            }
        }
        let jobs = self.pods.iter().zip(all).map(|(pod, did)| did.job(pod));
        let results = Box::new(Results {
            engine_version: all.iter().find_map(|did| did.version.clone()),
            jobs: jobs.collect(),
            ..Results::default()
        });
        events.extend([Event::Hosts { hosts }, Event::Finished { results }]);
        for event in &events {
            self.writer.append(event)?;
        }
        Ok(())
    }
}

/// What the documents of a phase tell of one server.
fn did(load: &mut Load, place: usize, documents: &[Results]) -> Did {
    let phase_ms = load.phase_ms;
    let pod = &mut load.pods[place];
    let mut did = Did::default();
    for results in documents {
        let since_ms = results
            .timestamp_ms
            .unwrap_or(pod.base_ms)
            .saturating_sub(pod.base_ms);
        did.runtime_ms = since_ms;
        did.version.clone_from(&results.engine_version);
        if let Some(job) = results.jobs.first() {
            did.options = results.global_options.clone();
            did.options.extend(job.options.clone());
        }
        let at = Duration::from_millis(phase_ms + since_ms);
        let events = pod.intervals.document(results, at, None).into_iter();
        did.samples.push(
            events
                .filter_map(|event| match event {
                    Event::Sample(sample) => Some(Sample {
                        job: u32::try_from(place).unwrap_or(u32::MAX),
                        ..sample
                    }),
                    _ => None,
                })
                .collect(),
        );
    }
    did
}

impl Did {
    fn ios(&self) -> u64 {
        self.samples.iter().flatten().map(|sample| sample.ios).sum()
    }

    fn iops(&self) -> f64 {
        self.ios() as f64 * 1000.0 / self.runtime_ms.max(1) as f64
    }

    fn host(&self, pod: &Pod) -> Host {
        Host {
            name: pod.name.clone(),
            node: Some(pod.node.clone()),
            engine_version: self.version.clone(),
            ..Host::default()
        }
    }

    fn job(&self, pod: &Pod) -> JobResult {
        let mut job = JobResult {
            name: PART.to_owned(),
            hostname: Some(pod.name.clone()),
            runtime_ms: Some(self.runtime_ms),
            options: self.options.clone(),
            ..JobResult::default()
        };
        for dir in [Direction::Read, Direction::Write] {
            if let Some(place) = job.direction_mut(dir) {
                *place = Some(self.direction(dir));
            }
        }
        job
    }

    fn direction(&self, dir: Direction) -> DirectionResult {
        let mut clat = Histogram::new();
        let mut result = DirectionResult {
            runtime_ms: self.runtime_ms,
            ..DirectionResult::default()
        };
        for sample in self
            .samples
            .iter()
            .flatten()
            .filter(|sample| sample.dir == dir)
        {
            result.total_ios += sample.ios;
            result.io_bytes += sample.bytes;
            if let Some(histogram) = &sample.clat {
                clat.merge(histogram);
            }
        }
        let per_second = |count: u64| count as f64 * 1000.0 / self.runtime_ms.max(1) as f64;
        result.iops = per_second(result.total_ios);
        result.bw_bytes = per_second(result.io_bytes);
        result.clat = latency(&clat);
        result
    }
}

fn name_of(pod: &Value) -> &str {
    text(pod, "/metadata/name")
}

/// How much a report says was written.
fn written_bytes(report: &[u8]) -> Option<u64> {
    let (_, all, _) = import::read(report).ok()?;
    let jobs = &all.last()?.jobs;
    jobs.iter()
        .map(|job| job.write.as_ref().map(|write| write.io_bytes))
        .sum()
}

/// Adds to a file of the record.
fn append(path: &Path, bytes: &[u8]) -> Result<(), ClusterError> {
    use std::io::Write as _;
    let wrong = |source| ClusterError::File {
        path: PathBuf::from(path),
        source,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .open(path)
        .map_err(wrong)?;
    file.write_all(bytes).map_err(wrong)
}
