//! temporary
#![allow(clippy::all, clippy::print_stdout, clippy::unwrap_used)]
use std::collections::BTreeMap;
fn variable(_: &str) -> Option<String> {
    Some("1".to_owned())
}
fn main() {
    let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ok = 0;
    let mut bad = 0;
    let mut unparsed = 0;
    for path in std::env::args().skip(1) {
        let p = std::path::PathBuf::from(&path);
        let Ok(checked) = fathom_engine::jobfile::JobFile::read(&p, &variable) else {
            unparsed += 1;
            continue;
        };
        let specs = checked.file.jobs();
        match fathom_engine::native::supports(&specs) {
            Ok(()) => {
                ok += 1;
                println!("OK {path}");
            }
            Err(e) => {
                bad += 1;
                let mut names: Vec<String> = e
                    .iter()
                    .map(|u| {
                        if u.option == "ioengine" {
                            u.reason.clone()
                        } else {
                            format!("{}: {}", u.option, u.reason)
                        }
                    })
                    .collect();
                names.sort();
                names.dedup();
                by.entry(names.join(" + "))
                    .or_default()
                    .push(p.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    for (k, v) in by {
        println!("{} {k}: {v:?}", v.len());
    }
    println!("{ok} {bad} unparsed {unparsed}");
}
