//! fio's own options among those after `--`: passed on, or refused because
//! Fathom does what they are for.

/// What happens to an option of fio's command line (`l_opts` in fio's init.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionRule {
    /// Passed on; it has no value, or may have one behind `=`.
    Flag,
    /// Passed on with its value, behind `=` or as the next argument.
    Value,
    /// Refused, with what to do instead.
    Refused(&'static str),
}

use OptionRule::{Flag, Refused, Value};

const RULES: &[(&str, OptionRule)] = &[
    ("debug", Value),
    ("bandwidth-log", Flag),
    ("latency-log", Flag),
    ("append-terse", Flag),
    ("terse-version", Value),
    ("readonly", Flag),
    ("section", Value),
    ("alloc-size", Value),
    ("warnings-fatal", Flag),
    ("max-jobs", Value),
    ("idle-prof", Value),
    ("aux-path", Value),
    ("trigger-file", Value),
    ("trigger-timeout", Value),
    ("trigger", Value),
    (
        "output",
        Refused("give --output FILE with --output-format in front of the --"),
    ),
    (
        "output-format",
        Refused("give --output-format in front of the --"),
    ),
    (
        "minimal",
        Refused("give --output-format=terse in front of the --"),
    ),
    (
        "status-interval",
        Refused("give --interval in front of the --"),
    ),
    (
        "eta",
        Refused("Fathom shows the progress itself; -q turns it off"),
    ),
    (
        "eta-newline",
        Refused("Fathom shows the progress itself; --interval sets its pace"),
    ),
    ("client", Refused("give --client HOST in front of the --")),
    (
        "remote-config",
        Refused("give --remote-config FILE in front of the --"),
    ),
    (
        "trigger-remote",
        Refused("a server that takes commands from everybody is not asked to run one"),
    ),
    ("server", Refused("use 'fathom serve'")),
    (
        "daemonize",
        Refused("a run stays under Fathom's eyes; use nohup or tmux for Fathom"),
    ),
    ("parse-only", Refused("use 'fathom job check'")),
    ("showcmd", Refused("use 'fathom job show --cmdline'")),
    ("enghelp", Refused("use 'fathom engines'")),
    ("cmdhelp", Refused("call fio itself: this is no run")),
    ("help", Refused("call fio itself: this is no run")),
    ("version", Refused("call fio itself: this is no run")),
    ("crctest", Refused("call fio itself: this is no run")),
    ("cpuclock-test", Refused("call fio itself: this is no run")),
    ("inflate-log", Refused("call fio itself: this is no run")),
    (
        "merge-blktrace-only",
        Refused("call fio itself: this is no run"),
    ),
];

/// The arguments after `--`, told apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FioArguments {
    /// fio's own options, as they are passed on.
    pub passed: Vec<String>,
    /// Options that describe jobs.
    pub job: Vec<String>,
}

/// Tells fio's own options from those of jobs.
///
/// # Errors
/// A sentence about an option that cannot be passed on.
pub fn split(args: &[String]) -> Result<FioArguments, String> {
    let mut split = FioArguments::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // getopt_long_only: one dash is as good as two.
        let dashed = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'));
        let name = dashed.map(|text| text.split('=').next().unwrap_or(text));
        let rule = name.and_then(|name| RULES.iter().find(|(known, _)| *known == name));
        match rule {
            None => split.job.push(arg.clone()),
            Some((name, Refused(instead))) => {
                return Err(format!("--{name} cannot be passed on to fio: {instead}"));
            }
            Some((_, Flag)) => split.passed.push(arg.clone()),
            Some((name, Value)) => {
                split.passed.push(arg.clone());
                if !arg.contains('=') {
                    let value = args
                        .next()
                        .ok_or_else(|| format!("--{name} needs a value"))?;
                    split.passed.push(value.clone());
                }
            }
        }
    }
    Ok(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<FioArguments, String> {
        let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
        split(&args)
    }

    #[test]
    fn options_of_fio_and_of_jobs_are_told_apart() {
        let split =
            of("--max-jobs 8 --name=a --rw=read --section=x -readonly --debug=io --size=1m")
                .unwrap();
        assert_eq!(
            split.passed.join(" "),
            "--max-jobs 8 --section=x -readonly --debug=io"
        );
        assert_eq!(split.job.join(" "), "--name=a --rw=read --size=1m");
    }

    #[test]
    fn what_fathom_does_itself_is_refused_with_what_to_do() {
        assert!(of("--output=x").unwrap_err().contains("--output FILE"));
        assert!(of("-status-interval=1").unwrap_err().contains("--interval"));
        assert!(of("--client host").unwrap_err().contains("in front of"));
        assert!(of("--section").unwrap_err().contains("needs a value"));
    }
}
