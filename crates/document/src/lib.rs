//! From a record to the one document of its run.
//!
//! [`document()`] makes the [`fathom_model::RunDocument`] of a record, finished or not: the one
//! that `--json` prints and everything shows. [`sweep`] reads the curves of a campaign,
//! [`attempts`] says which try of a step counts.

#![forbid(unsafe_code)]

pub mod attempts;
pub mod certainty;
pub mod clean;
pub mod folding;
pub mod nodes;
pub mod samples;
pub mod sweep;

use std::collections::BTreeSet;
use std::path::Path;

use fathom_analysis::groups;
use fathom_analysis::hosts::{Overlap, totals};
use fathom_analysis::nodes::Windows;
use fathom_analysis::rate::PERCENTILES;
use fathom_analysis::step_evidence::{StepEvidence, TrackRow};
use fathom_analysis::{verdict, volumes};
use fathom_model::{
    DiskUse, Entry, Event, Failure, Host, JobResult, ReasonKind, Results, RunDocument, RunStatus,
    StageKind, Volume, units,
};
use fathom_model::{document::RUN_SCHEMA, result::Latency};
use fathom_record::digest::{DigestRow, DigestSums, DigestTrack, SampleSum};
use fathom_record::{
    DamagedLines, Entries, Header, Record, RecordError, RecordPart, RunRemark, RunRemarks,
};
use jiff::Timestamp;

use attempts::Attempts;
use certainty::StepCertainties;
use samples::SampleTally;

/// The document of a run, without histograms.
///
/// Jobs without figures of their own (the run was killed, still goes on, or a
/// job of it was killed) are counted from the samples.
pub fn document(record: &Record) -> RunDocument {
    let status = record.status().unwrap_or(RunStatus::Running);
    let mut doc = compose(record.id(), status, &record.header, &record.entries);
    drop_histograms(&mut doc);
    doc
}

/// The document of a record folder, with the histograms where the engine gave
/// them. Takes memory for the jobs, not for the samples.
///
/// Damaged lines are left out, and a note says so; in a record of version 1 they end
/// the reading.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read(dir: &Path) -> Result<RunDocument, RecordError> {
    Ok(read_entries(Entries::summed(dir)?))
}

/// As [`read`], of a record that has been opened.
pub fn read_entries(entries: Entries) -> RunDocument {
    read_seeing(entries, &mut |_| {})
}

/// As [`read_entries`], with every part shown to `see`.
pub fn read_seeing(mut entries: Entries, see: &mut dyn FnMut(&RecordPart)) -> RunDocument {
    let mut run = RunReader::of(&entries);
    run.certainties = StepCertainties::before(&entries);
    let mut windows = Windows::default();
    let mut doc = run.read(&mut entries, |run, part| {
        see(part);
        match part {
            RecordPart::Entry(entry) => windows.take(entry),
            RecordPart::Sums(sums) => sums.interval().iter().for_each(|last| windows.take(last)),
        }
        run.take_part(part);
    });
    doc.nodes = nodes::uses(entries.dir(), &windows.finish());
    doc
}

/// The document of a record, and what was seen beside its figures.
pub fn with_evidence(mut entries: Entries) -> (RunDocument, Vec<StepEvidence>) {
    let mut run = RunReader::of(&entries);
    run.read_parts(&mut entries, RunReader::take_part);
    run.judged()
}

/// Takes the histograms out: they are long, and their percentiles stay.
pub fn drop_histograms(doc: &mut RunDocument) {
    let latencies = doc.jobs.iter_mut().flat_map(clean::latencies_mut);
    latencies.for_each(|latency| latency.histogram = None);
}

/// The document of what a record holds.
pub fn compose(id: String, status: RunStatus, header: &Header, entries: &[Entry]) -> RunDocument {
    let mut run = RunReader::new(id, status, header);
    for entry in entries {
        run.take(entry);
    }
    run.finish()
}

/// The document of figures alone, as an engine gives them while it runs.
pub fn of_results(results: &Results) -> RunDocument {
    let mut run = RunReader::new(String::new(), RunStatus::Running, &Header::new("", ""));
    run.results.push(results.clone());
    run.finish()
}

/// Damaged parts of a record that are told one by one.
const DAMAGES_TOLD: u64 = 5;

/// A time as RFC 3339 in UTC with milliseconds.
pub fn rfc3339(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// What a job's search for the depth that keeps a latency came to.
fn latency_target(job: &JobResult) -> Option<String> {
    let found = job.latency_target?;
    let verdict = match job.error {
        0 => format!("its search ended at depth {}", found.depth),
        _ => format!("it failed at depth {}", found.depth),
    };
    Some(format!(
        "{}: latency_target {} for {} % of the I/Os in windows of {}: {verdict}",
        job.name,
        units::latency(found.target_ns as f64),
        found.percentile,
        units::latency(found.window_us as f64 * 1000.0)
    ))
}

/// What is to know of a run that was resumed.
fn interruption(after: Option<RunStatus>, gap_ms: u64) -> String {
    let how = match after {
        None => "was killed",
        Some(RunStatus::Interrupted) => "was interrupted",
        Some(RunStatus::Failed) => "had ended with failures",
        Some(RunStatus::Complete | RunStatus::Running) => "had ended",
    };
    let gap = units::duration(gap_ms);
    format!("the run {how} and was resumed: nothing was measured for {gap}")
}

/// How the samples of a sum went.
fn pieces(sums: &DigestSums, sum: &SampleSum) -> Vec<TrackRow> {
    let of = |row: &DigestRow| TrackRow {
        t_ms: row.t_ms,
        span_ms: row.span_ms,
        ios: row.ios,
        bytes: row.bytes,
    };
    let its = |track: &&DigestTrack| (track.job, track.dir) == (Some(sum.job), sum.dir);
    let track = sums.tracks.iter().find(its);
    track.map_or_else(Vec::new, |track| track.rows.iter().map(of).collect())
}

/// A run while its events are read in order.
#[derive(Debug)]
pub struct RunReader {
    /// The document, as far as the events have come.
    pub doc: RunDocument,
    /// Name of the step in progress, when there are several.
    step: Option<String>,
    /// That of the first one, while it is not known whether there will be others.
    alone: Option<String>,
    /// Whether the stage in progress makes a device ready.
    prepares: bool,
    results: Vec<Results>,
    tally: SampleTally,
    certainties: StepCertainties,
    /// What the hosts did together, and which they are.
    overlap: Overlap,
    hosts: Vec<Host>,
    /// What is said against all figures of the step.
    told: Vec<ReasonKind>,
    /// What was seen beside the figures: of the step in progress, and of those before.
    pub evidence: StepEvidence,
    /// What the steps brought.
    attempts: Attempts,
}

impl RunReader {
    /// The run of a record that nothing has been read of but the header.
    pub fn of(entries: &Entries) -> Self {
        let status = entries.status.unwrap_or(RunStatus::Running);
        let mut run = Self::new(entries.id(), status, &entries.header);
        let remarks = RunRemarks::read(entries.dir()).map(|remarks| remarks.notes);
        for RunRemark { at_ms, text } in remarks.unwrap_or_default() {
            run.note(&format!("noted at {}: {text}", rfc3339(at_ms)));
        }
        run
    }

    /// Gives every part to `take`, which passes on what belongs here.
    pub fn read(
        mut self,
        entries: &mut Entries,
        take: impl FnMut(&mut Self, &RecordPart),
    ) -> RunDocument {
        self.read_parts(entries, take);
        self.finish()
    }

    fn read_parts(&mut self, entries: &mut Entries, mut take: impl FnMut(&mut Self, &RecordPart)) {
        let mut damaged = 0u64;
        while let Some(part) = entries.next_part() {
            match part {
                Ok(part) => take(self, &part),
                Err(damage) => {
                    damaged += 1;
                    if damaged <= DAMAGES_TOLD {
                        self.note(&damage.to_string());
                    }
                }
            }
        }
        if let Some(more @ 1..) = damaged.checked_sub(DAMAGES_TOLD) {
            self.note(&format!("{more} further parts of the record are damaged"));
        }
        if entries.damaged.count > 0 {
            let DamagedLines { count, first } = entries.damaged;
            self.note(&format!(
                "{count} damaged lines of the record were passed over, the first is line {first}: figures may be missing, or stand under the step before theirs"
            ));
        }
        if entries.unknown_events > 0 {
            self.note(&format!(
                "{} events of kinds this Fathom does not know were passed over: a newer one wrote them",
                entries.unknown_events
            ));
        }
    }

    /// Begins with the header of a record.
    pub fn new(id: String, status: RunStatus, header: &Header) -> Self {
        Self {
            doc: RunDocument {
                schema: RUN_SCHEMA.into(),
                id,
                name: header.name.clone(),
                command: header.command.clone(),
                label: header.label.clone(),
                status,
                started: rfc3339(header.started_ms),
                ended: None,
                engine: String::new(),
                engine_version: None,
                from_samples: false,
                verdict: None,
                jobs: Vec::new(),
                preparations: BTreeSet::new(),
                groups: Vec::new(),
                disks: Vec::new(),
                hosts: Vec::new(),
                volumes: Vec::new(),
                nodes: Vec::new(),
                failures: Vec::new(),
                notes: Vec::new(),
                environment: header.environment.clone(),
            },
            step: None,
            alone: None,
            prepares: false,
            results: Vec::new(),
            tally: SampleTally::default(),
            certainties: StepCertainties::default(),
            overlap: Overlap::default(),
            hosts: Vec::new(),
            told: Vec::new(),
            evidence: StepEvidence::default(),
            attempts: Attempts::default(),
        }
    }

    /// Takes the next part of a record that is read in sums.
    pub fn take_part(&mut self, part: &RecordPart) {
        let sums = match part {
            RecordPart::Entry(entry) => return self.take(entry),
            RecordPart::Sums(sums) => sums,
        };
        for sum in &sums.sums {
            self.tally.add_sum(sum);
            self.certainties.add_sum(sum);
            self.overlap.add(&sum.as_sample());
        }
        self.take_evidence(part);
        if let Some(t_ms) = sums.t_ms {
            self.overlap.interval(t_ms);
            self.certainties.end_sums(t_ms);
        }
    }

    /// Takes what a part tells beside the figures.
    pub fn take_evidence(&mut self, part: &RecordPart) {
        match part {
            RecordPart::Entry(entry) => self.evidence.take(&entry.event),
            RecordPart::Sums(sums) => {
                for sum in &sums.sums {
                    let pieces = pieces(sums, sum);
                    self.evidence.stretch(
                        &sum.as_io_sample(),
                        sum.interval_ms,
                        &pieces,
                        &sum.stalls_ms,
                    );
                }
                sums.evidence
                    .iter()
                    .for_each(|sum| self.evidence.evidence_sum(sum));
            }
        }
    }

    /// Takes the next entry.
    pub fn take(&mut self, entry: &Entry) {
        self.take_event(entry.at_ms, &entry.event);
    }

    /// Takes what happened at this time, in ms since 1970 UTC.
    pub fn take_event(&mut self, at_ms: u64, event: &Event) {
        self.evidence.take(event);
        self.certainties.take(event);
        if matches!(event, Event::Step { .. } | Event::Resumed { .. }) {
            self.end_step();
        }
        self.attempts.take(at_ms, event);
        match event {
            Event::Step {
                step,
                of,
                name,
                point,
            } => {
                // A search does not know at its first step whether others will follow.
                if let Some(first) = self.alone.take().filter(|_| *step > 1 && point.is_none()) {
                    self.name_first(&first);
                }
                let is_alone = *of == 1 && point.is_none() && !self.prepares;
                self.alone = is_alone.then(|| name.clone());
                self.step = (*of > 1 || point.is_some()).then(|| name.clone());
                let prepares = self.step.iter().filter(|_| self.prepares);
                self.doc.preparations.extend(prepares.cloned());
            }
            Event::EngineStarted {
                engine, version, ..
            } => {
                self.doc.engine.clone_from(engine);
                self.doc.engine_version.clone_from(version);
            }
            Event::Jobs { names, hosts } => {
                self.tally.begin(names, hosts);
                self.overlap
                    .begin(if hosts.is_empty() { &[] } else { names });
            }
            Event::Sample(sample) => {
                self.tally.add(sample);
                self.overlap.add(sample);
            }
            Event::Interval { t_ms, .. } => self.overlap.interval(*t_ms),
            Event::Hosts { hosts } => self.hosts.clone_from(hosts),
            Event::Doubted { doubt } => self.told.push(*doubt),
            Event::Volumes { volumes } => {
                let of_step = volumes.iter().map(|volume| Volume {
                    step: self.step.clone(),
                    ..volume.clone()
                });
                self.attempts.brought().volumes.extend(of_step);
            }
            Event::Note { text } => self.note(text),
            Event::Skipped { point, reason, .. } => {
                self.note(&format!("{} was left out: {reason}", point.id));
            }
            Event::Resumed { after, gap_ms } => self.go_on(&interruption(*after, *gap_ms)),
            Event::Failure(failure) => self.failure(failure),
            Event::Finished { results } => self.results.push(Results::clone(results)),
            Event::Ended { .. } => self.doc.ended = Some(rfc3339(at_ms)),
            Event::Stage { stage } => {
                self.prepares = matches!(stage.kind, StageKind::Fill | StageKind::Settle);
            }
            Event::StageEnded { .. } => self.prepares = false,
            Event::StepEnded { .. }
            | Event::Preparing { .. }
            | Event::LayingOut { .. }
            | Event::WrittenBeside { .. }
            | Event::KernelCounted { .. }
            | Event::Evidence(_)
            | Event::Booted(_)
            | Event::Status { .. } => {}
        }
    }

    fn go_on(&mut self, behind: &str) {
        self.step = None;
        self.prepares = false;
        self.doc.ended = None;
        self.note(behind);
    }

    /// Once is enough: a note can repeat with every step.
    fn note(&mut self, text: &str) {
        if !self.doc.notes.iter().any(|note| note == text) {
            self.doc.notes.push(text.to_owned());
        }
    }

    fn failure(&mut self, failure: &Failure) {
        self.attempts.brought().failures.push(failure.clone());
    }

    /// Cleans and judges what was read.
    pub fn finish(self) -> RunDocument {
        self.judged().0
    }

    /// The same, and what the judgement rests on.
    fn judged(mut self) -> (RunDocument, Vec<StepEvidence>) {
        self.certainties.end_step();
        self.end_step();
        let mut doc = self.doc;
        let evidences = self.attempts.give(&mut doc);
        if doc.engine.is_empty() {
            // An import starts no engine: `fio-3.33` names both.
            let unknown = if doc.command == "import" {
                "fio"
            } else {
                "unknown"
            };
            let version = doc.engine_version.as_deref().unwrap_or(unknown);
            doc.engine = version.split('-').next().unwrap_or(version).to_owned();
        }
        doc.jobs.iter_mut().for_each(clean::job);
        doc.disks.iter_mut().for_each(clean::disk);
        let (disks, jobs) = (std::mem::take(&mut doc.disks), &doc.jobs);
        let read = disks.into_iter().filter(|disk| !is_unread(disk, jobs));
        doc.disks = read.collect();
        doc.groups = groups(&doc.jobs);
        verdict::judge(&mut doc, &evidences);
        let mut said = std::mem::take(&mut doc.notes);
        match doc.engine.as_str() {
            NATIVE => said.push(NOT_FIO.to_owned()),
            SIM => said.insert(0, NOT_MEASURED.to_owned()),
            _ => {}
        }
        doc.notes = verdict::sentences(&doc.jobs)
            .into_iter()
            .map(|(_, sentence)| sentence)
            .chain(volumes::notes(&doc))
            .chain(doc.jobs.iter().filter_map(latency_target))
            .chain(said)
            .collect();
        (doc, evidences)
    }

    /// Says of what the first step brought that it was one of several.
    fn name_first(&mut self, name: &str) {
        for brought in self.attempts.each() {
            let jobs = brought.jobs.iter_mut().map(|job| &mut job.step);
            let disks = brought.disks.iter_mut().map(|disk| &mut disk.step);
            let hosts = brought.hosts.iter_mut().map(|host| &mut host.step);
            let volumes = brought.volumes.iter_mut().map(|volume| &mut volume.step);
            let seen = brought.evidences.iter_mut();
            let seen = seen.map(|evidence| &mut evidence.step);
            for step in jobs.chain(disks).chain(hosts).chain(volumes).chain(seen) {
                step.get_or_insert_with(|| name.to_owned());
            }
        }
    }

    /// Takes over what the step in progress brought.
    fn end_step(&mut self) {
        let tally = std::mem::take(&mut self.tally);
        let mut jobs = Vec::new();
        for mut results in std::mem::take(&mut self.results) {
            if self.doc.engine_version.is_none() {
                self.doc.engine_version.clone_from(&results.engine_version);
            }
            apply_globals(&mut results);
            jobs.append(&mut results.jobs);
            for mut disk in results.disks {
                disk.step.clone_from(&self.step);
                self.attempts.brought().disks.push(disk);
            }
        }
        let hosts = std::mem::take(&mut self.hosts);
        let from_samples = samples::fill(&mut jobs, tally, &hosts);
        let of_sums = self.certainties.give(&mut jobs);
        let mut totals = totals(&jobs, &hosts, &self.overlap);
        certainty::give_totals(&mut totals, &hosts, of_sums);
        jobs.extend(totals);
        let told = std::mem::take(&mut self.told);
        for result in jobs.iter_mut().flat_map(clean::directions_mut) {
            result.told.extend(&told);
        }
        let mut evidence = std::mem::take(&mut self.evidence).closed();
        if !jobs.is_empty() {
            evidence.step.clone_from(&self.step);
            self.attempts.brought().evidences.push(evidence);
        }
        if let Some(note) = start_note(&hosts, self.step.as_deref()) {
            self.note(&note);
        }
        if hosts.is_empty() && jobs.is_empty() {
            return;
        }
        let brought = self.attempts.brought();
        brought.from_samples |= from_samples;
        for mut host in hosts {
            host.step.clone_from(&self.step);
            brought.hosts.push(host);
        }
        for mut job in jobs {
            job.step = job.step.or_else(|| self.step.clone());
            brought.jobs.push(job);
        }
    }
}

/// How far apart the hosts began.
fn start_note(hosts: &[Host], step: Option<&str>) -> Option<String> {
    let skew_ms = fathom_model::host::start_skew_ms(hosts)?;
    let began = hosts.iter().filter(|host| host.start_ms.is_some()).count();
    let where_to = step.map_or_else(String::new, |step| format!("{step}: "));
    Some(format!(
        "{where_to}{began} hosts began within {skew_ms:.1} ms"
    ))
}

/// Gives the jobs the options of `[global]`; their own win.
pub fn apply_globals(results: &mut Results) {
    for job in &mut results.jobs {
        for (name, value) in &results.global_options {
            let option = job.options.entry(name.clone());
            option.or_insert_with(|| value.clone());
        }
    }
}

/// The embedded engine, as its runs name it.
const NATIVE: &str = "native";
/// Engines differ in what an I/O costs them and in what their latencies begin with.
const NOT_FIO: &str = "measured by the native engine: compare with figures of fio only with care";

/// The simulation, as its runs name it.
const SIM: &str = "sim";
const NOT_MEASURED: &str = "simulated: no device was measured, these figures say nothing about any";

/// Whether a disk's counters were not read while it worked: all are 0 although
/// the step may have been over before the first reading. A longer run that left
/// its disk alone keeps the zeros, for they are measured.
fn is_unread(disk: &DiskUse, jobs: &[JobResult]) -> bool {
    let counters = [
        disk.read_ios,
        disk.write_ios,
        disk.read_merges,
        disk.write_merges,
        disk.read_ticks_ms,
        disk.write_ticks_ms,
    ];
    let of_step = jobs.iter().filter(|job| job.step == disk.step);
    let longest_ms = of_step.filter_map(|job| job.runtime_ms).max().unwrap_or(0);
    longest_ms < verdict::DISK_FIGURES_MS && counters == [0; 6]
}

/// Fills in the percentiles that the histogram knows and the engine did not report.
pub fn fill_percentiles(latency: &mut Latency) {
    let percents: Vec<f64> = match latency.percentiles_ns.as_slice() {
        [] => PERCENTILES.to_vec(),
        reported => reported.iter().map(|&(percent, _)| percent).collect(),
    };
    let bounded = percents.into_iter();
    latency.percentiles_ns = bounded
        .filter_map(|percent| Some((percent, latency.percentile_ns(percent)?)))
        .collect();
}
