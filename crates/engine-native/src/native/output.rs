//! What fio would have written of a run, kept beside its record like fio's own:
//! programs made for fio read it, and `--output-format` selects from it.

use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;

use fathom_fio_output::raw;
use fathom_fio_output::write::{FormatFacts, JobFacts, ShownSection, render_all};
use fathom_model::io_engine::DEFAULT_IO_ENGINE;
use fathom_model::{Event, JobOption, JobResult, JobSpec, Results};

use super::job::{DirIndex, NativeJob};
use super::results::BatchShares;
use fathom_engine::{EngineError, Request, Sink};

/// Hands events on and keeps the results at the end.
pub(super) struct ResultCapture<'s> {
    pub(super) sink: &'s mut dyn Sink,
    pub(super) results: Option<Results>,
}

impl Sink for ResultCapture<'_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        if let Event::Finished { results } = &event {
            self.results = Some(Results::clone(results));
        }
        self.sink.event(event)
    }
}

/// Writes `results` in fio's formats into the folder for raw outputs.
pub(super) fn keep(
    request: &Request,
    jobs: &[(JobSpec, NativeJob)],
    results: &Results,
    batches: &[BatchShares],
    took: Duration,
) -> Result<(), EngineError> {
    let facts = FormatFacts {
        sections: jobs.iter().map(|(_, job)| section(job, results)).collect(),
        jobs: results
            .jobs
            .iter()
            .zip(batches)
            .map(|(result, batches)| job_facts(result, jobs, batches, took))
            .collect(),
        ..FormatFacts::default()
    };
    let path = request.raw_dir.join(raw::OUT);
    fs::create_dir_all(&request.raw_dir)
        .and_then(|()| fs::write(&path, render_all(results, &facts)))
        .map_err(|source| EngineError::File { path, source })
}

fn section(job: &NativeJob, results: &Results) -> ShownSection {
    let reported = results.jobs.iter().find(|result| result.name == job.name);
    let blocks = |dir: DirIndex| {
        let sizes = &job.pattern.sizes[dir as usize];
        (u64::from(sizes.min()), u64::from(sizes.max()))
    };
    let option = |names: &[&str], default: &str| {
        let options = reported.map(|result| &result.options);
        let found = options.and_then(|options| names.iter().find_map(|name| options.get(*name)));
        found.map_or(default, String::as_str).to_owned()
    };
    ShownSection {
        name: job.name.clone(),
        group: reported.map_or(0, |result| result.group),
        rw: option(&["rw", "readwrite"], "read"),
        block_bytes: DirIndex::ALL.map(blocks),
        ioengine: option(&["ioengine"], DEFAULT_IO_ENGINE),
        iodepth: job.queue.depth,
        numjobs: job.order.clones,
        is_thread: true,
    }
}

fn job_facts(
    result: &JobResult,
    jobs: &[(JobSpec, NativeJob)],
    batches: &BatchShares,
    took: Duration,
) -> JobFacts {
    let section = jobs.iter().find(|(_, job)| job.name == result.name);
    // The last option of a name is the one in effect.
    let in_effect = |(spec, _): &(JobSpec, NativeJob)| -> Vec<(String, String)> {
        let last = |option: &&JobOption| spec.option(&option.name).is_some_and(|l| l == *option);
        let pair = |option: &JobOption| {
            let value = option.value.clone().unwrap_or_default();
            (option.name.clone(), value)
        };
        spec.options.iter().filter(last).map(pair).collect()
    };
    let options = section.map_or_else(Vec::new, in_effect);
    let error_text = match result.error {
        0 => String::new(),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    JobFacts {
        options,
        // Like fio, the second that has begun is counted.
        elapsed_s: took.as_secs() + u64::from(took.subsec_nanos() > 0),
        pid: std::process::id(),
        error_text,
        submit_percent: batches.submitted,
        complete_percent: batches.completed,
        iodepth: section.map_or(0, |(_, job)| job.queue.depth),
        ..JobFacts::default()
    }
}
