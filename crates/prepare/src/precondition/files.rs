//! The job files of pre-conditioning in a campaign's folder, under the names that
//! fio-tests gives them. They are to be looked at, and run by hand: a run makes
//! its own with the size of the device it finds.

use std::path::PathBuf;

use fathom_model::DevicePhase;

use super::{DeviceFacts, PreconditionMethod, PreconditionSettings};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Below the campaign's folder.
    pub path: PathBuf,
    /// What it does, in a few words.
    pub about: String,
    /// Its text.
    pub text: String,
}

/// Where they lie.
const FOLDER: &str = "pre-conditioning";

/// The job files of pre-conditioning: fills, and a load for each metric that is
/// to be steady. The two of one phase are the same load: Fathom judges both
/// metrics on one run of it.
pub fn files(settings: &PreconditionSettings) -> Vec<File> {
    let here = DeviceFacts::default();
    let mut files = Vec::new();
    let loops = settings.loops;
    let mut add = |path: String, about: String, job: String| {
        let comment = format!("# Made by fathom gen: {about}.\n# What is changed here is lost.\n");
        files.push(File {
            path: PathBuf::from(format!("{FOLDER}/{path}")),
            text: format!("{comment}\n{job}"),
            about,
        });
    };
    for (number, phase, word) in PHASES {
        if phase == DevicePhase::Random && settings.method == PreconditionMethod::Snia {
            continue;
        }
        let name = format!("0001-workload-independent/{number:04}-pre-condition-{word}.ini");
        let about = format!("{word} fill, run {loops} times");
        add(name, about, super::jobs::fill(settings, phase, here));
    }
    let Some(steady) = &settings.steady else {
        return files;
    };
    let metrics = [("iops", steady.iops), ("bw", steady.bw)];
    let metrics = metrics.iter().filter(|(_, limits)| limits.is_some());
    for (nth, (metric, _)) in (1..).zip(metrics) {
        for (_, phase, word) in PHASES {
            let name = format!(
                "0002-workload-dependent/{word}/{nth:04}-fio_ss_generic-{word}-{metric}.ini"
            );
            let about = format!(
                "{word} writes, which Fathom ends as soon as they are steady ({})",
                settings.rule_text(phase)
            );
            let job = super::jobs::settle(settings, phase, here, steady.most());
            add(name, about, job);
        }
    }
    files
}

const PHASES: [(u32, DevicePhase, &str); 2] = [
    (1, DevicePhase::Sequential, "sequential"),
    (2, DevicePhase::Random, "random"),
];
