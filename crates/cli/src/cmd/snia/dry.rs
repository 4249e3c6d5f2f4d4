//! What a test would do and what it costs, before anything is done.

use fathom_analysis::snia::NOTICE;
use fathom_flow::budget::{self, Cost, Endurance, Speed};
use fathom_flow::{Case, History, Task, outlook};
use fathom_model::StageKind;
use fathom_suites::snia::Snia;

/// What is left of a test, if all goes well and if nothing ever is steady.
pub struct Outlook {
    /// The stages, if all goes well.
    pub best: Vec<Task>,
    worst: Vec<Task>,
    speed: Option<Speed>,
    /// The most that all rounds together write, where they end by it.
    rounds_bytes_max: Option<u64>,
}

impl Outlook {
    /// Of what is left behind `history`.
    pub fn of(script: &Snia, history: &History, speed: Option<Speed>) -> Self {
        let tasks = |case| outlook(script, history, case).0;
        Self {
            best: tasks(Case::Best),
            worst: tasks(Case::Worst),
            speed,
            rounds_bytes_max: script.rounds_write_bytes_max(history),
        }
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.best.is_empty()
    }

    /// The least that it costs.
    pub fn least(&self) -> Cost {
        self.cost(&self.best, Case::Best)
    }

    /// The most.
    pub fn most(&self) -> Cost {
        self.cost(&self.worst, Case::Worst)
    }

    fn cost(&self, tasks: &[Task], case: Case) -> Cost {
        let is_round = |task: &&Task| task.stage.kind == StageKind::Round;
        let (rounds, others): (Vec<&Task>, Vec<&Task>) = tasks.iter().partition(is_round);
        let mut rounds = cost(&rounds, case, self.speed);
        let others = cost(&others, case, self.speed);
        if let Some(most) = self.rounds_bytes_max
            && (rounds.write_bytes > most || (case == Case::Worst && rounds.unbounded > 0))
        {
            rounds.write_bytes = most;
            rounds.unbounded = 0;
        }
        Cost {
            steps: rounds.steps + others.steps,
            duration: rounds.duration + others.duration,
            endless: rounds.endless + others.endless,
            write_bytes: rounds.write_bytes.saturating_add(others.write_bytes),
            unbounded: rounds.unbounded + others.unbounded,
        }
    }
}

fn cost(tasks: &[&Task], case: Case, speed: Option<Speed>) -> Cost {
    let mut cost = Cost::default();
    for task in tasks {
        cost.steps += 1;
        match task.work.time(case, speed) {
            Some(time) => cost.duration += time,
            None => cost.endless += 1,
        }
        match task.work.write_bytes(case, speed) {
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
