//! A value for each option, other than its default, that shows its effect.

const VALUES: &str = include_str!("values.txt");

/// The words of the command line with which an option is tried.
pub fn of(kinds: &[&str], option: &str) -> Vec<String> {
    let value = value(kinds, option);
    let dashed = format!("--{option}");
    match value {
        "" => vec![dashed],
        // An optional value is joined with '='.
        _ if value.starts_with('=') => vec![format!("{dashed}{value}")],
        value => vec![dashed, value.to_owned()],
    }
}

/// The same as a line of a plan file.
pub fn toml(option: &str, words: &[String]) -> String {
    let value = match words {
        [_, value] => value.as_str(),
        [word] => word.split_once('=').map_or("", |(_, value)| value),
        _ => "",
    };
    match value {
        "" => format!("{option} = true"),
        number if number.bytes().all(|it| it.is_ascii_digit()) => format!("{option} = {number}"),
        text => format!("{option} = {text:?}"),
    }
}

/// That of the first kind that has one, else that of all. Empty: a flag.
fn value(kinds: &[&str], option: &str) -> &'static str {
    let of = |name: String| {
        let mut lines = VALUES.lines().filter_map(|line| line.strip_prefix(&name));
        lines.find_map(|rest| match rest.strip_prefix(' ') {
            None => rest.is_empty().then_some(""),
            value => value,
        })
    };
    let mut own = kinds.iter().map(|kind| format!("{kind} --{option}"));
    own.find_map(of)
        .or_else(|| of(format!("--{option}")))
        .unwrap_or_else(|| panic!("with which value is --{option} of {kinds:?} tried?"))
}
