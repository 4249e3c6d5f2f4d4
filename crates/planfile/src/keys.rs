//! The keys of a plan file: what each takes, and what it means. The reader, its
//! "did you mean", the schema for editors and the check of docs/STUDIES.md are made
//! from these tables.

use std::any::TypeId;
use std::sync::LazyLock;

use fathom_flow::RunOptions;
use fathom_suites::prio::PrioLoad;
use fathom_suites::snia::{SniaChoices, SniaHow};

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyForm {
    /// A text of one line.
    Text,
    /// A text that may have several lines, and `${…}` of others than loops.
    Script,
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the last.
    Whole(u64, u64),
    /// A number that is not negative.
    Number,
    /// A time: `500ms`, `10s`, `8h`.
    Time,
    /// A size: `64M`, `20T`; powers of 1024.
    Size,
    /// A file that must be there.
    File,
    /// A folder that must be there.
    Folder,
    /// One of these.
    Word(&'static [&'static str]),
    /// One of these, or a list of several.
    Words(&'static [&'static str]),
    /// A way to purge, or `true` for the best.
    Purge,
    /// A folder, or `true` for the target.
    FolderOrTarget,
    /// A list of texts.
    Texts,
    /// The same, as one value of the command line.
    List,
    /// A list of whole numbers from the first to the last.
    Wholes(u64, u64),
    /// A table of values by names that are checked where it is read; the name is that
    /// of its part of the schema.
    Table(&'static str),
    /// A list of tables, by the name of their part of the schema.
    Tables(&'static str),
}

/// A key.
#[derive(Debug)]
pub(super) struct StudyKey {
    pub(super) name: &'static str,
    pub(super) form: KeyForm,
    /// For the schema: one sentence.
    pub(super) about: &'static str,
    /// The option of the command line that it is, where that has another name.
    pub(super) option: Option<&'static str>,
}

/// A kind of step: the key that makes it one, and those that go with it.
#[derive(Debug)]
pub(super) struct StepKind {
    pub(super) key: StudyKey,
    pub(super) options: &'static [StudyKey],
    /// What is one of the command line's, too.
    pub(super) of_command: Option<&'static LazyLock<Vec<StudyKey>>>,
}

const fn key(name: &'static str, form: KeyForm, about: &'static str) -> StudyKey {
    let option = None;
    StudyKey {
        name,
        form,
        about,
        option,
    }
}

/// A table of keys: `"name": form, "about";`.
macro_rules! keys {
    ($($name:literal: $form:expr, $about:literal;)*) => {
        &[$(key($name, $form, $about)),*]
    };
}

use KeyForm::{
    File, Flag, Folder, FolderOrTarget, List, Number, Purge, Script, Size, Table, Tables, Text,
    Texts, Time, Whole, Wholes, Word, Words,
};

/// Most of what is counted.
const MANY: u64 = u32::MAX as u64;

/// The options of every run, from their one declaration.
pub(super) static OPTIONS: LazyLock<Vec<StudyKey>> = LazyLock::new(of_args::<RunOptions>);

/// Those of a test after SNIA's specification.
pub(super) static SNIA: LazyLock<Vec<StudyKey>> = LazyLock::new(|| {
    // The step that purges has the other name.
    let differs = [("purge", "purge-method", Text)];
    but_for(of_args::<SniaArgs>(), &differs)
});

/// Those of priorities.
pub(super) static PRIO: LazyLock<Vec<StudyKey>> = LazyLock::new(|| {
    let differs = [
        ("qds", "qds", Wholes(1, 65_535)),
        ("ramptime", "ramptime", Whole(0, MANY)),
    ];
    but_for(of_args::<PrioLoad>(), &differs)
});

/// Keys that have another name, or form, than their options.
fn but_for(
    mut keys: Vec<StudyKey>,
    differs: &[(&'static str, &'static str, KeyForm)],
) -> Vec<StudyKey> {
    for (option, name, form) in differs {
        if let Some(key) = keys.iter_mut().find(|key| key.name == *option) {
            (key.name, key.form, key.option) = (name, *form, Some(*option));
        }
    }
    keys
}

fn of_args<A: clap::Args>() -> Vec<StudyKey> {
    of_command(&A::augment_args(clap::Command::new("plan")))
}

fn of_command(command: &clap::Command) -> Vec<StudyKey> {
    command.get_arguments().map(of_argument).collect()
}

/// A key that takes what an option of the command line does. These are as many as there are
/// options, and live as long as the program.
fn of_argument(arg: &clap::Arg) -> StudyKey {
    let kept = |text: String| -> &'static str { text.leak() };
    let words = arg.get_possible_values();
    let words = words.iter().map(|word| kept(word.get_name().to_owned()));
    let words: Vec<&'static str> = words.collect();
    let value = arg
        .get_value_names()
        .and_then(|names| Some(names.first()?.as_str()));
    let of_type = arg.get_value_parser().type_id();
    let takes_value = arg.get_num_args() != Some(0.into()) && arg.get_action().takes_values();
    let form = match value {
        _ if !takes_value => Flag,
        _ if !words.is_empty() => Word(words.leak()),
        _ if of_type == TypeId::of::<u32>() || of_type == TypeId::of::<usize>() => Whole(1, MANY),
        _ if of_type == TypeId::of::<f64>() => Number,
        Some("FILE") => File,
        Some("TIME") => Time,
        Some("BYTES" | "SIZE") => Size,
        Some("WORDS") => Texts,
        Some("LIST") => List,
        _ => Text,
    };
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    StudyKey {
        name: kept(arg.get_long().unwrap_or_default().to_owned()),
        form,
        about: kept(about),
        option: None,
    }
}

/// All keys of the file itself.
pub(super) fn top() -> impl Iterator<Item = &'static StudyKey> + Clone {
    let (before, after) = TOP.split_at(OPTIONS_AT);
    before.iter().chain(OPTIONS.iter()).chain(after)
}

/// Where the options stand among [`TOP`]: behind the name.
const OPTIONS_AT: usize = 2;

/// The file's own keys, beside [`OPTIONS`].
const TOP: &[StudyKey] = keys! {
    "format": Word(&["fathom.study/1"]), "The version of this format; the newest if absent.";
    "name": Text, "Name of the run; the file's name if absent.";
    "interval": Time, "Time between two samples.";
    "hosts": Texts, "Machines to run on at once, over ssh.";
    "target": Table("target"), "What is measured.";
    "assert": Texts, "Conditions on the figures: \"STEP.read.iops >= 100k\".";
    "step": Tables("step"), "What is done, in order.";
};

/// The keys of `[target]`.
pub(super) const TARGET: &[StudyKey] = keys! {
    "path": Text, "The device, file or folder.";
    "host": Table("hosts"), "What is measured on a host, where it is something else.";
};

/// The keys of `[target.host.NAME]`.
pub(super) const HOST_TARGET: &[StudyKey] = keys! {
    "path": Text, "The device, file or folder on this host.";
};

/// The keys of every step.
pub(super) const STEP: &[StudyKey] = keys! {
    "name": Text, "The step's name, for assertions and the record.";
    "for": Table("loops"), "Does the step once for each combination of these values; ${NAME} stands for a value.";
};

/// What else a step has that measures.
pub(super) const ASSERT: StudyKey = key(
    "assert",
    Texts,
    "Conditions on the figures of this step: \"read.iops >= 100k\".",
);

/// The steps of a loop.
pub(super) const STEPS: StudyKey = key("step", Tables("step"), "The steps of a loop.");

/// What the command line takes for a test, too.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SniaArgs {
    #[command(flatten)]
    pub(super) how: SniaHow,
    #[command(flatten)]
    pub(super) wanted: SniaChoices,
}

/// The kinds of steps.
pub(super) static KINDS: &[StepKind] = &[
    StepKind {
        key: key(
            "purge",
            Purge,
            "Erases the target and verifies that nothing is left: true, or a method.",
        ),
        options: keys! {
            "samples": Whole(1, 1 << 20), "Blocks that get known content before and are looked for afterwards.";
            "unchecked": Flag, "Has the device try a method that it says it lacks.";
            "reason": Text, "Why, for the log and the ledger.";
        },
        of_command: None,
    },
    StepKind {
        key: key(
            "precondition",
            Word(&["random", "seq", "mixed"]),
            "Brings the target into steady state for this load.",
        ),
        options: keys! {
            "method": Word(&["sc", "snia"]), "How it gets there.";
            "purge-method": Text, "How the device is purged first; auto if absent.";
            "no-purge": Flag, "Does not purge the device first.";
            "force": Flag, "Also where the target is in the wanted state already.";
            "config": Folder, "Folder of the campaign whose configuration holds.";
        },
        of_command: None,
    },
    StepKind {
        key: key(
            "job",
            Script,
            "A job file, or the text of one: what has several lines, or begins with [.",
        ),
        options: keys! {
            "set": Table("settings"), "Options that are set in every job.";
            "section": Texts, "Runs these sections only.";
            "timeout": Time, "Stops the step after this time.";
        },
        of_command: None,
    },
    StepKind {
        key: key(
            "quick",
            FolderOrTarget,
            "Runs the quick series in this folder; true: in the target.",
        ),
        options: keys! {
            "group": Text, "Group of tests: a name of fathom quick list, or a file.";
            "test": Text, "Runs this test only.";
            "runtime": Whole(1, MANY), "Seconds of each timed test.";
            "size": Size, "Size of each set of files.";
            "nocow": Flag, "Makes its files without copy-on-write (btrfs).";
        },
        of_command: None,
    },
    StepKind {
        key: key("campaign", Folder, "Runs the campaign in this folder."),
        options: keys! {
            "only": Texts, "Only these tests, folders, series, profiles or job files.";
            "repeat": Whole(1, MANY), "Measures each point so often.";
            "order": Word(&["interleaved", "in-a-row"]), "How the measurements of a point follow each other.";
            "no-guard": Flag, "Measures every series to its end.";
            "point-limit": Time, "Longest time of a point.";
        },
        of_command: None,
    },
    StepKind {
        key: key(
            "snia",
            Word(&["iops", "throughput", "latency", "wsat"]),
            "Runs this test after SNIA's specification.",
        ),
        options: keys! {
            "class": Word(&["enterprise", "client"]), "The class of drive; enterprise if absent.";
        },
        of_command: Some(&SNIA),
    },
    StepKind {
        key: key(
            "prio",
            Words(&["baseline", "ncq-prio", "cdl-single", "cdl-multi"]),
            "Measures the target with priorities or duration limits.",
        ),
        options: keys! {
            "percentage": Whole(1, 100), "Share of I/Os with a high priority or a limit, in percent.";
            "dld": Whole(1, 7), "Number of the limit of cdl-single.";
            "dldsplit": Table("split"), "Limits of cdl-multi with their shares: { 1 = 10, 2 = 20 }.";
            "t2a": File, "Page with the limits of reads.";
            "t2b": File, "Page with the limits of writes.";
        },
        of_command: Some(&PRIO),
    },
    StepKind {
        key: key(
            "command",
            Script,
            "Runs this with sh, in the file's folder.",
        ),
        options: keys! {
            "undo": Script, "Runs this at the end of the run, however it ends.";
            "timeout": Time, "Ends the command after this time.";
        },
        of_command: None,
    },
];

/// Whether a kind gives figures that a condition can be about.
pub(super) fn measures(kind: &str) -> bool {
    !matches!(kind, "purge" | "precondition" | "command")
}

/// The keys of a step of this kind.
pub(super) fn of_kind(kind: &StepKind) -> impl Iterator<Item = &StudyKey> + Clone {
    let assert = measures(kind.key.name).then_some(&ASSERT);
    let own = std::iter::once(&kind.key).chain(kind.options);
    let of_command = kind.of_command.into_iter().flat_map(|keys| keys.iter());
    STEP.iter().chain(own).chain(of_command).chain(assert)
}
