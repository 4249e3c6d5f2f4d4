//! The same files as kconfiglib's own commands write, in the same folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::support::Campaign;

/// kconfiglib's commands; `Err` where they cannot be had.
fn kconfiglib() -> Result<std::path::PathBuf, String> {
    fathom_testkit::kconfiglib(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Runs one of kconfiglib's commands in the folder; gives what it printed.
fn theirs(bin: &Path, campaign: &Campaign, command: &str, args: &[&str]) -> String {
    let output = Command::new(bin.join("bin").join(command))
        .args(args)
        .current_dir(campaign.path())
        .env("DEV", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What both write from the same `.config`, or from none.
fn same(bin: &Path, campaign: &Campaign, command: &str, before: Option<&str>) {
    let mut written = Vec::new();
    for own in [true, false] {
        for name in [".config", ".config.old", "defconfig"] {
            let _ = fs::remove_file(campaign.path().join(name));
        }
        if let Some(before) = before {
            campaign.write(".config", before);
        }
        let said = match own {
            true => campaign.says(&[command]),
            false => theirs(bin, campaign, command, &[]),
        };
        let said = if command == "listnewconfig" {
            said
        } else {
            String::new()
        };
        let file = match command {
            "savedefconfig" => "defconfig",
            _ => ".config",
        };
        let text = fs::read_to_string(campaign.path().join(file)).unwrap_or_default();
        written.push((said, text));
    }
    assert_eq!(written[0], written[1], "{command} from {before:?}");
}

#[test]
fn every_command_writes_what_kconfiglib_writes() {
    let bin = match kconfiglib() {
        Ok(bin) => bin,
        Err(reason) => {
            return fathom_testkit::skip("every_command_writes_what_kconfiglib_writes", &reason);
        }
    };
    let campaign = Campaign::new();
    for command in ["allyesconfig", "allnoconfig", "alldefconfig"] {
        same(&bin, &campaign, command, None);
    }
    let mut starts = vec![String::new()];
    for seed in ["1", "2", "3"] {
        campaign.says(&["randconfig", "--seed", seed]);
        // Every third line is for the others to ask for.
        let text = campaign.file(".config");
        let some = text.lines().enumerate().filter(|(n, _)| n % 3 > 0);
        starts.push(some.map(|(_, line)| format!("{line}\n")).collect());
    }
    for start in &starts {
        for command in ["olddefconfig", "savedefconfig", "listnewconfig"] {
            same(&bin, &campaign, command, Some(start));
        }
    }
    fs::create_dir(campaign.path().join("defconfigs")).unwrap();
    for entry in fs::read_dir(super::support::shipped().join("configs")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let _ = fs::remove_file(campaign.path().join(".config"));
        campaign.says(&["defconfig", &name]);
        let own = campaign.file(".config");
        fs::remove_file(campaign.path().join(".config")).unwrap();
        let path = entry.path().canonicalize().unwrap();
        theirs(&bin, &campaign, "defconfig", &[path.to_str().unwrap()]);
        assert_eq!(own, campaign.file(".config"), "{name}");
    }
}
