//! What a test would do and what it costs, before anything is done.

use fathom_analysis::snia::NOTICE;
use fathom_campaign::budget::{self, Cost, Endurance, Speed};
use fathom_campaign::flow::{History, Luck, Task, Work, outlook};
use fathom_campaign::snia::Snia;
use fathom_engine::jobfile::shell_quote;
use serde_json::{Value, json};

use crate::cmd::Global;
use crate::out;

/// What is left of a test, if all goes well and if nothing ever is steady.
pub struct Outlook {
    best: Vec<Task>,
    worst: Vec<Task>,
    speed: Option<Speed>,
}

impl Outlook {
    /// Of what is left behind `history`.
    pub fn of(script: &Snia, history: &History, speed: Option<Speed>) -> Self {
        let tasks = |luck| outlook(script, history, luck).0;
        Self {
            best: tasks(Luck::Best),
            worst: tasks(Luck::Worst),
            speed,
        }
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.best.is_empty()
    }

    /// The least that it costs.
    pub fn least(&self) -> Cost {
        cost(&self.best, Luck::Best, self.speed)
    }

    /// The most.
    pub fn most(&self) -> Cost {
        cost(&self.worst, Luck::Worst, self.speed)
    }
}

fn cost(tasks: &[Task], luck: Luck, speed: Option<Speed>) -> Cost {
    let mut cost = Cost::default();
    for task in tasks {
        cost.steps += 1;
        match task.work.time(luck, speed) {
            Some(time) => cost.duration += time,
            None => cost.endless += 1,
        }
        match task.work.write_bytes(luck, speed) {
            Some(bytes) => cost.write_bytes = cost.write_bytes.saturating_add(bytes),
            None => {
                cost.unbounded += 1;
                let least = task.work.least_write_bytes();
                cost.write_bytes = cost.write_bytes.saturating_add(least);
            }
        }
    }
    cost
}

/// The plan in a few lines.
pub fn plan(script: &Snia, outlook: &Outlook, endurance: &Endurance) -> Vec<String> {
    let setup = &script.setup;
    let mut lines = vec![
        format!(
            "{} test, {}, on {}",
            setup.test.title(),
            setup.class,
            script.dut.display()
        ),
        NOTICE.to_owned(),
    ];
    let sentence = |what: &str, cost: &Cost| {
        format!(
            "{what}, {} stages: {}",
            cost.steps,
            budget::sentence(cost, endurance)
        )
    };
    lines.push(sentence("steady as soon as it can be", &outlook.least()));
    if outlook.worst.len() > outlook.best.len() {
        lines.push(sentence("never steady", &outlook.most()));
    }
    lines.extend(setup.deviations());
    lines
}

/// Every stage with its commands; the rounds of the best case. Gives the steps
/// of `fathom.dry-run/1`.
pub fn show(global: &Global, script: &Snia, outlook: &Outlook, engine: &str) -> Vec<Value> {
    let mut steps = Vec::new();
    for task in &outlook.best {
        let stage = &task.stage;
        if !global.json {
            out::line(format_args!("# {}: {}", stage.id, stage.title));
        }
        let mut step = |command: &str, job_file: &str| match global.json {
            true => steps.push(json!({
                "name": stage.id,
                "device": script.dut,
                "command": [command],
                "job_file": job_file,
            })),
            false => out::line(command),
        };
        match &task.work {
            Work::Act(act) => act.commands().iter().for_each(|command| step(command, "")),
            Work::Skip(reason) => step(&format!("# {reason}"), ""),
            work => work
                .job_texts()
                .for_each(|text| step(&one_line(text, engine), text)),
        }
        if out::is_stopped() {
            break;
        }
    }
    steps
}

/// A job as a line: fio's own command line, or what another engine is given.
fn one_line(text: &str, engine: &str) -> String {
    let options = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('['));
    let quoted = options.map(|line| shell_quote(&format!("--{line}")));
    let options = quoted.collect::<Vec<String>>().join(" ");
    match engine {
        "fio" => format!("fio --name=cell {options}"),
        other => format!("# the {other} engine: {options}"),
    }
}
