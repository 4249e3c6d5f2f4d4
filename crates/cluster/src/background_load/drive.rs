//! A background load while it goes on: started before the first phase, asked at
//! the begin and the end of each what it has done, ended with the run.
//!
//! fio writes one more JSON document where the file `fio-dump-status` appears in
//! its folder of temporary files (backend.c, `check_status_file`), and at an
//! interval. Two documents tell all that came between them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_analysis::rate::BEHIND_RATE_SHARE;
use fathom_fio_output::import;
use fathom_fio_output::intervals::Intervals;
use fathom_model::{Event, Failure, FailureKind, JobResult, ReasonKind, Results, RunStatus};
use fathom_record::{Header, Writer};
use serde_json::Value;

use super::super::cluster_run::{ClusterRun, SHORT};
use super::super::error::ClusterError;
use super::super::manifests::CALM;
use super::super::start::PollPace;
use super::super::trouble::text;
use super::record::{BackgroundLoad, Did, Pod, did};
use super::{BackgroundLoadSpec, PART, WORK};

/// Seconds between two documents that nobody asked for: a day of them is a few
/// hundred MB in the pod, and a stall of that length is seen.
const INTERVAL_S: u32 = 10;
/// How long a load may take to begin, and to end when it is told to.
const BEGIN: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);

impl ClusterRun<'_, '_> {
    /// Starts the load that is asked for, and waits until it moves data.
    pub(in super::super) fn start_background_load(
        &mut self,
        phases: usize,
    ) -> Result<(), ClusterError> {
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
        self.prefill_background_load(&calm, &names)?;
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
        let mut load = BackgroundLoad {
            writer: self.background_record(&calm)?,
            calm,
            pods: pods.collect(),
            began: Instant::now(),
            phase: (0, of),
            phase_ms: 0,
            is_behind: false,
        };
        let begun = self.wait_for_background_load(&mut load);
        let text = format!(
            "background load beside this run: {}; its record: {}",
            load.calm.told(),
            load.shown()
        );
        self.background_load = Some(load);
        self.tell(Event::Note { text });
        begun
    }

    /// A record of its own, within that of the run.
    fn background_record(&self, calm: &BackgroundLoadSpec) -> Result<Writer, ClusterError> {
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
    fn prefill_background_load(
        &mut self,
        calm: &BackgroundLoadSpec,
        pods: &[String],
    ) -> Result<(), ClusterError> {
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
            let mut pace = PollPace::new();
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
    fn wait_for_background_load(&self, load: &mut BackgroundLoad) -> Result<(), ClusterError> {
        let began = Instant::now();
        for place in 0..load.pods.len() {
            loop {
                self.go_on()?;
                let documents = self.ask_background_load(load, place)?;
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
    fn ask_background_load(
        &self,
        load: &mut BackgroundLoad,
        place: usize,
    ) -> Result<Vec<Results>, ClusterError> {
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
    pub(in super::super) fn background_phase_begins(&mut self) -> Result<(), ClusterError> {
        let Some(mut load) = self.background_load.take() else {
            return Ok(());
        };
        let asked = (0..load.pods.len()).try_for_each(|place| {
            let documents = self.ask_background_load(&mut load, place)?;
            let pod = &mut load.pods[place];
            for results in &documents {
                pod.intervals.document(results, Duration::ZERO, None);
                pod.base_ms = results.timestamp_ms.unwrap_or(pod.base_ms);
            }
            Ok(())
        });
        load.phase_ms = load.t_ms();
        self.background_load = Some(load);
        asked
    }

    /// A phase is over: what the load did meanwhile goes into its record. Where it
    /// fell behind its rate, the figures of the phase are marked.
    pub(in super::super) fn background_phase_ends(
        &mut self,
        name: &str,
    ) -> Result<(), ClusterError> {
        let Some(mut load) = self.background_load.take() else {
            return Ok(());
        };
        let all: Result<Vec<Did>, ClusterError> = (0..load.pods.len())
            .map(|place| {
                let documents = self.ask_background_load(&mut load, place)?;
                Ok(did(&mut load, place, &documents))
            })
            .collect();
        let all = all.and_then(|all| load.write_phase(name, &all).map(|()| all));
        let iops = f64::from(load.calm.iops());
        let wanted = iops * f64::from(load.calm.ninstances);
        let is_behind = |did: &Did| did.iops() < iops * BEHIND_RATE_SHARE;
        let fell_behind = all.as_ref().is_ok_and(|all| all.iter().any(is_behind));
        load.is_behind |= fell_behind;
        self.background_load = Some(load);
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
            let doubt = ReasonKind::BackgroundBehind;
            self.tell(Event::Doubted { doubt });
        }
        Ok(())
    }

    /// Ends the load, however the run has ended, and closes its record.
    pub(in super::super) fn end_background_load(&mut self, status: RunStatus, why: Option<String>) {
        let Some(mut load) = self.background_load.take() else {
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
