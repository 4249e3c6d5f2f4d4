//! Runs the workloads of `fathom prio`: checks everything, switches, measures,
//! puts everything back.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fathom_campaign::Ledgers;
use fathom_campaign::ledger::BytesWritten;
use fathom_device::cdl::{Kind, Page};
use fathom_device::command::{Command, Data, Issue, Live as Devices, Reply};
use fathom_device::priority::Interface;
use fathom_device::switches::{Mode, Switches};
use fathom_device::{Hold, Sys, identity};
use fathom_engine::fio::raw;
use fathom_engine::fio::stream::{OutputFormat, select};
use fathom_engine::{Control, Outcome, Request, Sink as _};
use fathom_fleet::TargetCheck;
use fathom_fleet::local::Session;
use fathom_model::{Event, Exit, Failure, FailureKind, RunStatus};
use fathom_record::{SwitchFile, Writer};

use super::asked::{Options, Workload};
use super::ready::{Ready, fail};
use super::{device, hosts, outcome, restore};
use crate::cmd::Global;
use crate::live::{Live, LiveOptions};
use crate::{out, signals};

/// The command in records and ledgers.
pub const COMMAND: &str = "prio";

/// Runs them.
pub fn run(global: &Global, options: &Options) -> anyhow::Result<Exit> {
    if options.hosts.is_given() {
        return hosts::run(global, options);
    }
    let ready = Ready::make(options)?;
    let hold = Hold::of([ready.info.path.as_path()]);
    let _hold = hold.map_err(|refusal| fail(Exit::Refused, refusal.to_string()))?;
    let control = signals::control()?;
    if !control.all_are_ready() {
        return Ok(Exit::Interrupted);
    }
    let device = identity::block_device(&Sys::live(), &ready.node);
    let file = SwitchFile::of(&ready.switches_dir, &device);
    if let Some(leftover) = file.read()? {
        restore::finish(
            &restore::switches(&ready.node, &leftover, &Devices),
            &file,
            &leftover.found,
        )
        .context("a run that was killed has left switches behind")?;
        out::note("switches that a killed run had left were put back first");
    }
    let issue = Told::default();
    let ata = ready.info.interface == Interface::Ata;
    let switches = Switches::new(ready.node.clone(), ata, ready.switches_dir.clone(), &issue);
    let kinds: Vec<Kind> = ready.pages.iter().map(|page| page.kind).collect();
    let found = switches.found(&kinds)?;
    fs::create_dir_all(ready.outdir.parent().unwrap_or(Path::new("/")))
        .and_then(|()| fs::create_dir(&ready.outdir))
        .with_context(|| format!("cannot make {}", ready.outdir.display()))?;
    let record_error = |error: fathom_record::RecordError| fail(Exit::Record, error.to_string());
    let writer = Writer::create(&global.runs, &ready.header()).map_err(record_error)?;
    let dir = writer.dir().to_owned();
    file.keep(&device, &ready.info.path, &found)?;
    let put_back = PutBack {
        done: false,
        act: Box::new(|| restore::finish(&switches, &file, &found)),
    };
    ready.say_begin(global);
    let status = ready.measure(global, writer, &switches, &issue, &control, put_back)?;
    let prio = outcome::read(&dir)?;
    if global.json {
        out::json(&fathom_report::prio::document(&prio))?;
    } else {
        say(global, "");
        out::text(fathom_report::prio::text(&prio, out::style(global.color)));
    }
    Ok(match status {
        RunStatus::Complete => Exit::Success,
        RunStatus::Interrupted => Exit::Interrupted,
        RunStatus::Failed | RunStatus::Running => Exit::Failed,
    })
}

/// Puts everything back at the end, also when the stack unwinds.
struct PutBack<'a> {
    done: bool,
    act: Box<dyn Fn() -> anyhow::Result<()> + 'a>,
}

impl PutBack<'_> {
    fn now(mut self) -> anyhow::Result<()> {
        self.done = true;
        (self.act)()
    }
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        if !self.done
            && let Err(error) = (self.act)()
        {
            out::error(&error);
        }
    }
}

/// The devices of this machine, and what they were told since it was asked.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn take(&self) -> Vec<String> {
        let mut said = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut said)
    }
}

impl Issue for Told {
    fn issue(&self, path: &Path, command: &Command) -> io::Result<Reply> {
        let only_asks = matches!(
            command,
            Command::Scsi {
                data: Data::In(_),
                ..
            }
        );
        if !only_asks {
            let mut said = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            said.push(format!("{}: {command}", path.display()));
        }
        Devices.issue(path, command)
    }
}

impl Ready<'_> {
    fn say_begin(&self, global: &Global) {
        let options = self.options;
        say(
            global,
            &format!(
                "Run on {}, ramp time: {}s, run time: {}s\n  Output directory: {}\n\n{}",
                self.info.path.display(),
                options.ramptime,
                options.runtime,
                self.outdir.display(),
                device::block(&self.info, &self.system)
            ),
        );
        let pages: Vec<&Page> = self.pages.iter().collect();
        for text in device::limits_without_time(&self.workloads, &pages) {
            out::note(format_args!("- {text}"));
        }
    }

    /// Measures all workloads, puts everything back, and closes the record.
    fn measure(
        &self,
        global: &Global,
        writer: Writer,
        switches: &Switches,
        issue: &Told,
        control: &Control,
        put_back: PutBack,
    ) -> anyhow::Result<RunStatus> {
        let dir = writer.dir().to_owned();
        let mut live = None::<Live>;
        let mut moved = BytesWritten::default();
        let ledgers = match self.options.rw.writes() {
            true => Ledgers::of_user(),
            false => Ledgers::none(),
        };
        let notes = ledgers.begin([self.info.path.as_path()], COMMAND, Some(&dir));
        let mut observer = |event: &Event| {
            moved.take(event);
            observe(global, &mut live, event);
        };
        let targets = Some(TargetCheck::new(&self.options.destroy));
        let mut session = Session::new(writer, targets, control, &mut observer, 0);
        let mut state = Progress {
            dir: dir.clone(),
            began: Instant::now(),
            step: 0,
            of: u32::try_from(self.workloads.len() * self.options.qds.0.len()).unwrap_or(u32::MAX),
            uploaded: false,
            status: RunStatus::Complete,
        };
        let done = self.workloads.iter().try_for_each(|workload| {
            if state.status == RunStatus::Interrupted || !session.is_recorded() {
                return Ok(());
            }
            self.workload(
                global,
                workload,
                switches,
                issue,
                control,
                &mut session,
                &mut state,
            )
        });
        let back = put_back.now();
        for said in issue.take() {
            session.event(Event::Note { text: said });
        }
        for error in [done, back].into_iter().filter_map(Result::err) {
            let failure = Failure::new(FailureKind::Other, format!("{error:#}"));
            session.event(Event::Failure(
                failure.about(self.info.path.display().to_string()),
            ));
            state.status = RunStatus::Failed;
        }
        let closed = session.close(state.status);
        let notes = notes
            .into_iter()
            .chain(ledgers.end(COMMAND, &dir, moved.of_jobs()));
        notes.for_each(|note| out::note(format_args!("- {note}")));
        let (_, status) = closed.map_err(|error| fail(Exit::Record, error.to_string()))?;
        Ok(status)
    }

    #[allow(clippy::too_many_arguments)] // the parts of one run, once
    fn workload(
        &self,
        global: &Global,
        workload: &Workload,
        switches: &Switches,
        issue: &Told,
        control: &Control,
        session: &mut Session,
        state: &mut Progress,
    ) -> anyhow::Result<()> {
        switches.scheduler("none")?;
        if workload.is_cdl() && !state.uploaded {
            self.upload(global, switches, &state.dir)?;
            state.uploaded = true;
        }
        switches.set(match workload {
            Workload::Baseline => Mode::Plain,
            Workload::Ncq(_) => Mode::NcqPriority,
            Workload::Single { .. } | Workload::Multi(_) => Mode::Limits,
        })?;
        for said in issue.take() {
            session.event(Event::Note { text: said });
        }
        let out = self.outdir.join(workload.name());
        fs::create_dir(&out).with_context(|| format!("cannot make {}", out.display()))?;
        if workload.is_cdl() {
            let kinds: Vec<Kind> = self.pages.iter().map(|page| page.kind).collect();
            let text = switches.show(&kinds)?;
            fs::write(out.join("cdl_descriptors"), text)?;
        }
        say(global, &format!("\n{}", workload.title()));
        for &depth in &self.options.qds.0 {
            say(global, &format!("  QD={depth}..."));
            let outcome = self.point(workload, depth, control, session, state)?;
            match outcome {
                Outcome::Complete => {}
                Outcome::Failed => state.status = RunStatus::Failed,
                Outcome::Interrupted => {
                    state.status = RunStatus::Interrupted;
                    break;
                }
            }
            if !session.is_recorded() {
                break;
            }
        }
        Ok(())
    }

    fn upload(&self, global: &Global, switches: &Switches, dir: &Path) -> anyhow::Result<()> {
        switches.set(Mode::Plain)?;
        let folder = dir.join("raw");
        fs::create_dir_all(&folder)?;
        for page in &self.pages {
            say(global, &format!("Uploading {} CDL page", page.kind));
            let file = folder.join(format!("{}.cdl", page.kind));
            fs::write(&file, fathom_device::cdl::file::render(page))?;
            switches.upload(page, &file)?;
        }
        Ok(())
    }

    /// One workload at one depth.
    fn point(
        &self,
        workload: &Workload,
        depth: u32,
        control: &Control,
        session: &mut Session,
        state: &mut Progress,
    ) -> anyhow::Result<Outcome> {
        let point = self.options.point(workload, depth);
        let name = point.id.clone();
        let job_file = state.dir.join("jobs").join(format!("{name}.fio"));
        let raw_dir = state.dir.join("raw").join(&name);
        fs::create_dir_all(job_file.parent().unwrap_or(&state.dir))?;
        fs::create_dir_all(&raw_dir)?;
        fs::write(
            &job_file,
            self.options.job(&self.info.path, workload, depth),
        )?;
        state.step += 1;
        session.at(u64::try_from(state.began.elapsed().as_millis()).unwrap_or(u64::MAX));
        session.event(Event::Step {
            step: state.step,
            of: state.of,
            name: name.clone(),
            point: Some(Box::new(point)),
        });
        let request = Request {
            job_file,
            sections: Vec::new(),
            extra_args: Vec::new(),
            // Logs are named from here.
            work_dir: raw_dir.clone(),
            raw_dir: raw_dir.clone(),
            interval: Duration::from_secs(1),
            deadline: None,
        };
        let outcome = session.run(self.runner.engine(), &request, control);
        let to = self.outdir.join(&name);
        fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
        let kept = fs::read(raw_dir.join(raw::OUT)).unwrap_or_default();
        fs::write(to.join("fio.log"), select(&kept, OutputFormat::Normal))?;
        let log = outcome::log_name(self.options.rw.name());
        let (from, to) = (raw_dir.join(&log), to.join(&log));
        // A log may be large: one file under both names where that can be.
        if from.exists() && fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(outcome)
    }
}

/// Where a run is.
struct Progress {
    dir: PathBuf,
    began: Instant,
    step: u32,
    of: u32,
    uploaded: bool,
    status: RunStatus,
}

/// What stays on the screen: on stdout, unless that is for a document.
fn say(global: &Global, text: &str) {
    match (global.quiet, global.json) {
        (true, _) => {}
        (false, false) => out::line(text),
        (false, true) => out::note(text),
    }
}

/// Shows one measurement while it goes on, on a terminal; failures always.
fn observe(global: &Global, live: &mut Option<Live>, event: &Event) {
    if matches!(event, Event::Step { .. }) {
        let mut options = LiveOptions::new(global.quiet, global.color);
        options.quiet |= !io::stderr().is_terminal();
        *live = Some(Live::new(options));
        return;
    }
    // What engines remark is in the record; the table has what matters of it.
    if matches!(event, Event::Note { .. }) {
        return;
    }
    if let Some(shown) = live {
        shown.observe(event);
        if matches!(event, Event::Finished { .. }) {
            shown.finish();
        }
    } else if let Event::Failure(failure) = event {
        out::note(failure);
    }
}
