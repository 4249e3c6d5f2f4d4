//! `fathom config oldconfig`: asks for what `.config` does not say yet.

use std::io::{self, BufRead};

use anyhow::Context;
use fathom_kconfig::{AnswerKind, Config, ConfigQuestion, Item, OldConfig};
use fathom_model::Exit;

use super::{ConfigSession, entry, explain};
use crate::out;

/// Ask for the symbols that .config does not have yet
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An empty answer takes the default, ? explains the question. Answers are read from stdin, one a
line; nothing is written when they end too early.

Examples:
  fathom config oldconfig
  yes '' | fathom config oldconfig     the defaults, as olddefconfig takes them")]
pub struct Args {}

/// Asks, then writes.
pub fn run(mut session: ConfigSession) -> anyhow::Result<Exit> {
    let mut answers = io::stdin().lock().lines();
    let to_stderr = session.global.json;
    let say = |text: &str| match to_stderr {
        true => out::note(text),
        false => out::line(text),
    };
    let mut menu = Vec::new();
    let mut questions = OldConfig::new(&mut session.config);
    while let Some(question) = questions.question() {
        let config = questions.config();
        let here = entry::menus(config, question.node);
        if here != menu && !here.is_empty() {
            say(&format!("\n* {}", here.join(" › ")));
        }
        menu = here;
        ask(config, &question, &say);
        let answer = answers
            .next()
            .transpose()
            .context("cannot read the answer")?;
        let Some(answer) = answer else {
            let message = "the answers ended before the questions: .config is as it was; \
                           `fathom config olddefconfig` takes the defaults without asking";
            return Err(super::input(message.to_owned()).into());
        };
        let answer = answer.trim();
        if answer == "?" {
            let help = explain::lines(config, question.node, 80);
            help.iter().for_each(|line| say(line));
            continue;
        }
        if let Err(error) = questions.answer(answer) {
            say(&format!("  {error}"));
        }
    }
    session.finish(&[])
}

/// Writes a question: its prompt, what can be answered, the default.
fn ask(config: &Config, question: &ConfigQuestion, say: &dyn Fn(&str)) {
    let tree = config.tree();
    let prompt = entry::prompt(config, question.node).unwrap_or_default();
    let default = &question.default;
    let text = match (&question.wanted, tree.node(question.node).item) {
        (AnswerKind::Values(values), Item::Symbol(id)) => {
            let values: Vec<String> = values
                .iter()
                .map(|value| value.to_string())
                .map(|value| {
                    if value == *default {
                        value.to_uppercase()
                    } else {
                        value
                    }
                })
                .collect();
            format!(
                "{prompt} ({}) [{}/?]",
                tree.symbol(id).name,
                values.join("/")
            )
        }
        (AnswerKind::Text(kind), Item::Symbol(id)) => {
            let range = config.range(id);
            let range = range.map(|(low, high)| format!(", {}", explain::range(*kind, low, high)));
            let (name, range) = (&tree.symbol(id).name, range.unwrap_or_default());
            format!("{prompt} ({name}) [{default}] ({}{range})", kind.as_str())
        }
        (AnswerKind::Member(members), _) => {
            say(&prompt);
            for (n, &member) in members.iter().enumerate() {
                let name = &tree.symbol(member).name;
                let mark = if name == default { ">" } else { " " };
                let about = entry::node_of(config, member)
                    .and_then(|node| entry::prompt(config, node))
                    .unwrap_or_default();
                say(&format!("{mark} {}. {about} ({name})", n + 1));
            }
            format!("number or name [{default}]")
        }
        _ => prompt,
    };
    say(&format!("{text} (NEW)"));
}
