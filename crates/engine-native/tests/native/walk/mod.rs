//! Nothing is accepted and ignored: every option of the native engine, with every value of
//! those that have a few, changes what can be seen of a small job. What has no effect says
//! so in the table of options ([`fathom_engine_native::Listed::idle`]).

mod look;
mod witnesses;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fathom_engine_native::Listed;
use fathom_jobfile::JobFile;
use fathom_jobfile::table::{ValueKind, table};
use fathom_testkit::skip;

use look::{Case, See};
use witnesses::WITNESSES;

/// A job that an option changes.
pub(super) struct Witness {
    option: &'static str,
    /// Values with a blank between two, each of which shows something else; joined by `|`
    /// those that mean the same. `-`: without the option.
    values: &'static str,
    /// Its options with a blank between two; the one in question stands at `@`, or at the
    /// end of the first section. Without a section it is `[j]`.
    job: &'static str,
    see: See,
}

impl Witness {
    fn groups(&self) -> impl Iterator<Item = Vec<&'static str>> {
        let groups = self.values.split_whitespace();
        groups.map(|group| group.split('|').collect())
    }

    fn text(&self, value: &str) -> String {
        let job = match self.job.starts_with('[') {
            true => self.job.to_owned(),
            false => format!("[j] filename=f size=64k bs=4k {}", self.job),
        };
        let job = if job.contains('@') {
            job
        } else {
            match job[1..].find(" [") {
                Some(next) => format!("{} @{}", &job[..=next], &job[next + 1..]),
                None => format!("{job} @"),
            }
        };
        let option = match value {
            "-" => String::new(),
            value => format!("{}={value}", self.option),
        };
        job.replace('@', &option).replace(' ', "\n") + "\n"
    }

    /// Why it is none.
    fn fault(&self) -> Option<String> {
        match std::panic::catch_unwind(|| self.check()) {
            Ok(done) => done.err(),
            Err(_) => Some(format!("{}: it panicked", self.option)),
        }
    }

    /// Each value shows what its synonyms show, and nothing that another one does.
    fn check(&self) -> Result<(), String> {
        if let See::Elsewhere(file, test) = self.see {
            let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let there = text.contains(&format!("fn {test}()")) && text.contains("#[test]");
            let missing = format!("{}: there is no test {test} in {file}", self.option);
            return there.then_some(()).ok_or(missing);
        }
        let case = |value: &str| self.see.look(&Case::new(self.text(value)));
        let mut seen: Vec<(&str, String)> = Vec::new();
        for group in self.groups() {
            let shown = case(group[0])?;
            // What differs from run to run is no witness.
            let again = if group.len() > 1 { &group[1..] } else { &group };
            for value in again {
                let other = case(value)?;
                if other != shown {
                    let (name, first) = (self.option, group[0]);
                    return Err(format!(
                        "{name}: {value} is not as {first}:\n{shown}\n--\n{other}"
                    ));
                }
            }
            if let Some((value, _)) = seen.iter().find(|(_, other)| *other == shown) {
                let (name, this) = (self.option, group[0]);
                return Err(format!("{name}: {this} shows what {value} does:\n{shown}"));
            }
            seen.push((group[0], shown));
        }
        Ok(())
    }
}

fn of(listed: &Listed) -> Vec<&'static Witness> {
    let theirs = |witness: &&Witness| listed.names.contains(&witness.option);
    WITNESSES.iter().filter(theirs).collect()
}

fn effective() -> impl Iterator<Item = Listed> {
    fathom_engine_native::options().filter(|listed| !listed.idle)
}

#[test]
fn every_option_has_a_witness_or_no_effect() {
    let without = effective().filter(|listed| of(listed).is_empty());
    let without: Vec<_> = without.map(|listed| listed.names[0]).collect();
    assert!(
        without.is_empty(),
        "without a witness: {without:?}; add a row in crates/engine-native/tests/native/walk/witnesses.rs"
    );
    let idle: Vec<_> = fathom_engine_native::options()
        .filter(|listed| listed.idle)
        .collect();
    for listed in &idle {
        assert!(of(listed).is_empty(), "has an effect: {listed:?}");
        assert!(listed.differs.starts_with("no effect"), "{listed:?}");
    }
    for witness in WITNESSES {
        assert!(witness.groups().count() > 1, "{}", witness.option);
        let known =
            fathom_engine_native::options().any(|listed| listed.names.contains(&witness.option));
        assert!(known, "no such option: {}", witness.option);
    }
}

/// By fio's own list of values: what is taken is witnessed, all else is refused.
#[test]
fn every_value_of_a_few_has_a_witness_or_is_refused() {
    let mut faults = Vec::new();
    for listed in effective() {
        let witnesses = of(&listed);
        let Some(first) = witnesses.first() else {
            faults.push(format!("{}: no witness", listed.names[0]));
            continue;
        };
        let engines: Vec<_> = fathom_engine_native::io_engines().collect();
        let Some(spec) = table().find(listed.names[0]).next() else {
            faults.push(format!("unknown to fio: {}", listed.names[0]));
            continue;
        };
        let all = match spec.kind {
            ValueKind::Flag => vec!["1"],
            ValueKind::Bool => vec!["0", "1"],
            ValueKind::Choice => spec.choices.iter().map(|choice| choice.0).collect(),
            ValueKind::Engine => engines,
            _ => continue,
        };
        let witnessed: BTreeSet<_> = witnesses
            .iter()
            .flat_map(|witness| witness.groups())
            .flatten()
            .map(|value| value.split_once(':').map_or(value, |(name, _)| name))
            .collect();
        let off = |value: &str| value == "0" && witnessed.contains("-");
        for value in all.into_iter().filter(|value| !off(value)) {
            if !witnessed.contains(value) && !is_refused(first, value) {
                faults.push(format!("{}={value}", listed.names[0]));
            }
        }
    }
    assert!(faults.is_empty(), "taken, and no witness: {faults:#?}");
}

fn is_refused(witness: &Witness, value: &str) -> bool {
    let text = witness.text(value);
    let file = JobFile::parse(&text, std::path::Path::new("a.fio"), &|_| None);
    fathom_engine_native::supports(&file.file.jobs()).is_err()
}

#[test]
fn every_option_changes_what_can_be_seen() {
    let test = "every_option_changes_what_can_be_seen";
    let next = AtomicUsize::new(0);
    let at_fault = Mutex::new(Vec::new());
    let only = std::env::var("FATHOM_WALK_ONLY").ok();
    let is_known = |only| WITNESSES.iter().any(|witness| witness.option == only);
    assert!(
        only.as_deref().is_none_or(is_known),
        "FATHOM_WALK_ONLY: no witness of that option"
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(witness) = WITNESSES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if only.as_ref().is_some_and(|only| only != witness.option) {
                        continue;
                    }
                    if witness.fault().is_some() {
                        at_fault.lock().unwrap().push(witness);
                    }
                }
            });
        }
    });
    // What shows in when something happens may need a machine that has the time: once more,
    // by itself.
    let at_fault = at_fault.into_inner().unwrap();
    let mut faults = Vec::new();
    for why in at_fault.into_iter().filter_map(Witness::fault) {
        match why.strip_prefix(look::CANNOT) {
            Some(why) => skip(test, why),
            None => faults.push(why),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
