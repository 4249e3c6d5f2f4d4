//! A place to run job files in, and what came of them.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::guard::GuardPlace;
use fathom_engine::{Control, Engine, Outcome, Request, Sink};
use fathom_engine_fio::Fio;
use fathom_engine_fio::version::Program;
use fathom_model::{Event, Failure, FailureKind, Results, Sample};
use tempfile::TempDir;

/// A folder with a job file in it.
pub struct Bench {
    dir: TempDir,
    fio: Fio,
}

/// What a run told.
pub struct Told {
    pub outcome: Outcome,
    pub events: Vec<Event>,
}

/// Keeps events, and may act on them.
struct Recorder<'r> {
    events: Vec<Event>,
    on_event: &'r mut dyn FnMut(&Event) -> ControlFlow<()>,
}

impl Sink for Recorder<'_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        let flow = (self.on_event)(&event);
        self.events.push(event);
        flow
    }
}

impl Bench {
    pub fn new() -> Self {
        let program = Program::find(None).expect("these tests need fio");
        Self {
            dir: TempDir::with_prefix("fathom-fio-").expect("a temporary folder"),
            fio: Fio::new(program, GuardPlace::Thread),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn raw(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join("raw").join(name)).unwrap_or_default()
    }

    pub fn request(&self, job_file: &str) -> Request {
        let path: PathBuf = self.dir.path().join("test.fio");
        fs::write(&path, job_file).expect("the folder is ours");
        Request {
            job_file: path,
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: self.dir.path().to_owned(),
            raw_dir: self.dir.path().join("raw"),
            interval: Duration::from_millis(200),
            deadline: Some(Duration::from_secs(300)),
            fio: None,
            checked: None,
        }
    }

    pub fn run(&self, job_file: &str) -> Told {
        self.run_with(&self.request(job_file), &Control::default(), &mut |_| {
            ControlFlow::Continue(())
        })
    }

    pub fn run_with(
        &self,
        request: &Request,
        control: &Control,
        on_event: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> Told {
        let mut recorder = Recorder {
            events: Vec::new(),
            on_event,
        };
        let outcome = self
            .fio
            .run(request, control, &mut recorder)
            .expect("fio can be started");
        Told {
            outcome,
            events: recorder.events,
        }
    }
}

impl Told {
    pub fn failures(&self) -> Vec<&Failure> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Failure(failure) => Some(failure),
                _ => None,
            })
            .collect()
    }

    /// The only failure, which must be of this kind.
    pub fn failure(&self, kind: FailureKind) -> &Failure {
        assert_eq!(self.outcome, Outcome::Failed, "{:?}", self.failures());
        match self.failures()[..] {
            [failure] if failure.kind == kind => {
                // What is told with it, and nothing that would lead astray.
                let advice = format!("\n  to do: {}", kind.advice());
                assert!(failure.to_string().ends_with(&advice), "{failure}");
                failure
            }
            ref other => panic!("not one failure of the kind {kind:?}: {other:#?}"),
        }
    }

    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.events.iter().filter_map(|event| match event {
            Event::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    pub fn notes(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Note { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub fn results(&self) -> Option<&Results> {
        self.events.iter().find_map(|event| match event {
            Event::Finished { results } => Some(&**results),
            _ => None,
        })
    }
}

pub fn pid_of(event: &Event) -> Option<u32> {
    match event {
        Event::EngineStarted { pid, .. } => *pid,
        _ => None,
    }
}
