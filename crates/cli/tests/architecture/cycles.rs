//! No file knows another that comes back to it by more than four files.
//!
//! What a module says of the ones above it does not count: `mod.rs` and its children share
//! a type. A name that is passed on (`pub use`) is the file's that declares it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{crate_of, is_shipped, root, shipped_code, sources};

/// More cannot be kept in mind at once.
const FILES_MOST: usize = 4;

/// A module's place in its crate: `native::worker` is `["native", "worker"]`.
type Module = Vec<String>;

/// The modules of its crate that a file names.
#[derive(Default)]
struct Mentions {
    /// Paths as written, from the root of the crate.
    paths: Vec<Vec<String>>,
    /// Names that it passes on, and where they are from.
    passed_on: BTreeMap<String, Vec<String>>,
}

fn module_of(path: &Path) -> Module {
    let below = path.strip_prefix(root().join("crates")).unwrap();
    let parts = below.with_extension("");
    let parts = parts
        .iter()
        .skip(2)
        .map(|it| it.to_string_lossy().into_owned());
    let mut module: Module = parts.collect();
    let last = module.last().map(String::as_str);
    if matches!(last, Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// The names of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn flattened(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, inner)) = tree.split_once('{') else {
        let name = tree.split_whitespace().next().unwrap_or_default();
        return vec![name.trim_end_matches("::self").to_owned()];
    };
    let inner = inner.trim_end().trim_end_matches('}');
    let mut depth = 0;
    let is_end = |c: char| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    };
    let parts = inner.split(is_end).filter(|part| !part.trim().is_empty());
    parts
        .flat_map(flattened)
        .map(|name| format!("{before}{name}"))
        .collect()
}

fn mentions(code: &str, module: &Module, all: &BTreeSet<Module>) -> Mentions {
    let mut found = Mentions::default();
    let absolute = |path: &str| absolute(path, module, all);
    let mut rest = String::new();
    for statement in code.split_inclusive(';') {
        let uses = statement.rfind("use ").filter(|&at| {
            let before = statement[..at].trim_end();
            before.is_empty() || before.ends_with([')', '}', ';', ']', 'b'])
        });
        let Some(at) = uses else {
            rest.push_str(statement);
            continue;
        };
        rest.push_str(&statement[..at]);
        let is_public = statement[..at].trim_end().ends_with(['b', ')']);
        let names = flattened(statement[at + 4..].trim_end_matches(';'));
        for path in names.iter().filter_map(|name| absolute(name)) {
            if let (true, Some(name)) = (is_public, path.last()) {
                found.passed_on.insert(name.clone(), path.clone());
            }
            found.paths.push(path);
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = rest
        .split(|c| !is_part(c))
        .filter(|word| word.contains("::"));
    found.paths.extend(words.filter_map(absolute));
    found
}

/// A path from the root of the crate; `None`: it is of another crate, or no module.
fn absolute(path: &str, module: &Module, all: &BTreeSet<Module>) -> Option<Vec<String>> {
    let mut parts = path.split("::").map(str::to_owned).peekable();
    let mut base = module.clone();
    match parts.peek()?.as_str() {
        "crate" => {
            parts.next();
            base.clear();
        }
        "self" => {
            parts.next();
        }
        "super" => {
            while parts.next_if(|part| part == "super").is_some() {
                base.pop();
            }
        }
        first => {
            let child: Module = base.iter().cloned().chain([first.to_owned()]).collect();
            if !all.contains(&child) {
                return None;
            }
        }
    }
    base.extend(parts);
    Some(base)
}

/// The module in which what is at `path` is declared.
fn declared(path: &[String], all: &BTreeMap<Module, Mentions>, depth: u32) -> Module {
    let length = (0..=path.len()).rev();
    let module = length.map(|n| &path[..n]).find(|it| all.contains_key(*it));
    let module = module.unwrap_or_default();
    let next = path.get(module.len());
    let mentions = all.get(module);
    match next.and_then(|name| mentions?.passed_on.get(name)) {
        // A name may be passed on several times.
        Some(from) if depth < 6 && from != path => declared(from, all, depth + 1),
        _ => module.to_vec(),
    }
}

/// The other modules that each knows, but those above it.
fn known(all: &BTreeMap<Module, Mentions>) -> BTreeMap<&Module, BTreeSet<Module>> {
    let of = |module: &Module, mentions: &Mentions| -> BTreeSet<Module> {
        let homes = mentions.paths.iter().map(|path| declared(path, all, 0));
        homes.filter(|home| !module.starts_with(home)).collect()
    };
    all.iter()
        .map(|(module, mentions)| (module, of(module, mentions)))
        .collect()
}

#[test]
fn no_cycle_has_more_than_four_files() {
    let mut crates: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for path in sources().into_iter().filter(|path| is_shipped(path)) {
        crates.entry(crate_of(&path)).or_default().push(path);
    }
    let mut wrong = Vec::new();
    for (name, paths) in crates {
        let modules: BTreeSet<Module> = paths.iter().map(|path| module_of(path)).collect();
        let all: BTreeMap<Module, Mentions> = paths
            .iter()
            .map(|path| {
                let module = module_of(path);
                let lines = shipped_code(path).into_iter().map(|(_, line)| line + "\n");
                let found = mentions(&lines.collect::<String>(), &module, &modules);
                (module, found)
            })
            .collect();
        let known = known(&all);
        let reached = |from: &Module| {
            let mut seen = BTreeSet::new();
            let mut open = vec![from];
            while let Some(module) = open.pop() {
                let next = known[module].iter().filter(|it| !seen.contains(*it));
                let next: Vec<&Module> = next.collect();
                seen.extend(next.iter().copied());
                open.extend(next);
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = known
            .keys()
            .map(|module| (*module, reached(module)))
            .collect();
        for (module, seen) in &reached {
            let back = |other: &&&Module| reached[**other].contains(module);
            let cycle: Vec<String> = seen.iter().filter(back).map(|it| it.join("::")).collect();
            if cycle.len() > FILES_MOST && cycle.first() == Some(&module.join("::")) {
                wrong.push(format!("{name}: {}", cycle.join(", ")));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "cycles of more than four files: {wrong:#?}"
    );
}
