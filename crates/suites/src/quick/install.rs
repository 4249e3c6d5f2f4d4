//! fio where it is missing: which package tool brings it, and what it said.

use super::QuickError;

/// Exit status of [`INSTALL_FIO`] when no package tool is known.
const NO_TOOL: i32 = 90;

/// Installs fio with the first package tool found; POSIX sh on one line, since
/// it also travels through login shells that are none. The lists of apt may be
/// empty on a fresh machine: they are fetched when the first attempt fails.
/// SunOS has a `pkg` of its own that asks nothing and knows no `-y`.
/// What the tools say goes to stderr: stdout may carry a document.
pub const INSTALL_FIO: &str = "exec >&2; if command -v apt-get >/dev/null 2>&1; then \
    DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; \
    apt-get install -y fio || { apt-get update && apt-get install -y fio; }; \
    elif command -v dnf >/dev/null 2>&1; then dnf install -y fio; \
    elif command -v yum >/dev/null 2>&1; then yum install -y fio; \
    elif command -v pkg >/dev/null 2>&1; then \
    if [ \"$(uname -s)\" = SunOS ]; then pkg install fio; else pkg install -y fio; fi; \
    else exit 90; fi";

/// What an exit status of [`INSTALL_FIO`] means; `None`: killed by a signal.
///
/// # Errors
/// When fio was not installed.
pub fn judge(code: Option<i32>) -> Result<(), QuickError> {
    match code {
        Some(0) => Ok(()),
        Some(NO_TOOL) => Err(QuickError::Missing(
            "fio is not installed, and there is no apt-get, dnf, yum or pkg to install it with; \
             install fio and try again"
                .into(),
        )),
        _ => Err(QuickError::Missing(
            "fio is not installed, and installing it failed (the package tool's words are above)"
                .into(),
        )),
    }
}

/// The refusal where fio is missing and may not or cannot be installed.
pub fn refusal(host: &str, may_install: bool) -> QuickError {
    QuickError::Missing(if may_install {
        format!(
            "fio is not installed on {host}, and only root can install it; \
             install it (Debian: apt-get install fio) or run this as root"
        )
    } else {
        format!(
            "fio is not installed on {host}, and --no-install forbids installing it; \
             install it (Debian: apt-get install fio)"
        )
    })
}

/// Names of engines in what `fio --enghelp` prints: a headline, then one a line.
pub fn parse_engines(text: &str) -> Vec<String> {
    let indented = |line: &&str| line.starts_with(char::is_whitespace);
    text.lines()
        .filter(indented)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_the_indented_lines() {
        let text = "Available IO engines:\n\tcpuio\n\tlibaio\n\tio_uring\n";
        assert_eq!(parse_engines(text), ["cpuio", "libaio", "io_uring"]);
        assert_eq!(parse_engines(""), Vec::<String>::new());
    }

    #[test]
    fn a_machine_without_a_package_tool_is_told_so() {
        assert!(
            judge(Some(90))
                .unwrap_err()
                .to_string()
                .contains("apt-get, dnf, yum or pkg")
        );
        assert!(
            judge(Some(100))
                .unwrap_err()
                .to_string()
                .contains("installing it failed")
        );
        assert!(!INSTALL_FIO.contains('\n') && !INSTALL_FIO.contains('!'));
    }
}
