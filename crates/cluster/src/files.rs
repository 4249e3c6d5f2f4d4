//! Files of a pod, printed as [`fathom_device::node`] reads them.

use super::image::PROGRAM;

/// The command that prints files: by a shell, or by Fathom in an image that
/// holds nothing else. What cannot be read is left out.
pub(super) fn print(patterns: &[impl AsRef<str>], is_alone: bool) -> Vec<String> {
    let before: &[&str] = match is_alone {
        true => &[PROGRAM, "pod", "files"],
        false => &[
            "sh",
            "-c",
            r#"for f; do echo "==> $f"; cat $f 2>/dev/null; done; :"#,
            "sh",
        ],
    };
    let before = before.iter().copied();
    let argv = before.chain(patterns.iter().map(AsRef::as_ref));
    argv.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_and_fathom_print_the_same() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a/1", "one\n"), ("a/x", "two\n"), ("b", "three\n")] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let names = ["a/[0-9]*", "a/*", "none/*", "b"];
        let root = folder.path().display();
        let patterns = names.map(|name| format!("{root}/{name}"));
        let argv = print(&patterns, false);
        let by_shell = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .output();
        let mut by_us = Vec::new();
        fathom_device::node::dump(&patterns, &mut by_us).unwrap();
        let by_us = String::from_utf8(by_us).unwrap();
        assert_eq!(String::from_utf8(by_shell.unwrap().stdout).unwrap(), by_us);
        assert!(
            by_us.ends_with("/b\nthree\n") && by_us.contains("/a/*\none\ntwo\n"),
            "{by_us}"
        );
    }
}
