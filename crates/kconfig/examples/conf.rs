//! Runs an operation on a tree, for trying by hand:
//!
//! ```text
//! cargo run -p fathom-kconfig --example conf -- OPERATION KCONFIG [.config]
//! ```
//! OPERATION: olddefconfig, alldefconfig, allyesconfig, allnoconfig,
//! randconfig, savedefconfig, listnewconfig, oldconfig (asks on stdin), menu,
//! explain=NAME, search=WORDS. Writes the result to stdout, warnings to stderr.
//! `source` names are looked up in the folder of KCONFIG.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program to try by hand

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs, io};

use fathom_kconfig::{Config, DiskFiles, Loader, NodeId, OldConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [operation, kconfig, rest @ ..] = &args[..] else {
        return Err("usage: conf OPERATION KCONFIG [.config]".into());
    };
    let path = Path::new(kconfig);
    let files = DiskFiles::new(path.parent().unwrap_or(Path::new("")));
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("KCONFIG is no file name")?;
    let tree = Loader::new(&files)
        .env(|name| env::var(name).ok())
        .load(name)?;
    for line in tree.messages() {
        println!("{line}");
    }
    for warning in tree.warnings() {
        eprintln!("warning: {warning}");
    }
    let mut config = Config::new(Arc::new(tree));
    if let [dotconfig, ..] = rest {
        for warning in config.read(&fs::read_to_string(dotconfig)?, dotconfig) {
            eprintln!("warning: {warning}");
        }
    }
    run(operation, &mut config)?;
    for warning in config.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

fn run(operation: &str, config: &mut Config) -> Result<(), Box<dyn Error>> {
    let header = fathom_kconfig::kernel_header(config.tree().title());
    match operation.split_once('=').unwrap_or((operation, "")) {
        ("olddefconfig", _) => {}
        ("alldefconfig", _) => config.all_default(),
        ("allyesconfig", _) => config.all_yes(),
        ("allnoconfig", _) => config.all_no(),
        ("randconfig", seed) => config.randomize(seed.parse().unwrap_or(1)),
        ("oldconfig", _) => ask(config)?,
        ("savedefconfig", _) => {
            print!("{}", config.write_min(""));
            return Ok(());
        }
        ("listnewconfig", _) => {
            for id in config.new_symbols() {
                println!("{}", config.assignment(id));
            }
            return Ok(());
        }
        ("menu", _) => {
            menu(config, config.tree().root(), 0);
            return Ok(());
        }
        ("explain", name) => {
            let id = config.tree().find(name).ok_or("no such symbol")?;
            println!("{:#?}", config.explain(id));
            return Ok(());
        }
        ("search", words) => {
            for hit in config.search(words) {
                println!("{}", config.tree().symbol(hit.symbol).name);
            }
            return Ok(());
        }
        _ => return Err(format!("no operation is called {operation}").into()),
    }
    print!("{}", config.write(&header));
    Ok(())
}

fn menu(config: &Config, node: NodeId, depth: usize) {
    for row in config.rows(node, false) {
        let indent = " ".repeat(4 * depth + 2 * row.indent);
        let arrow = if row.enters { "  --->" } else { "" };
        println!("{indent}{} {}{arrow}", row.value, row.text);
        if row.enters {
            menu(config, row.node, depth + 1);
        }
    }
}

fn ask(config: &mut Config) -> Result<(), Box<dyn Error>> {
    let mut questions = OldConfig::new(config);
    while let Some(question) = questions.question() {
        let node = questions.config().tree().node(question.node);
        let prompt = node.prompt.as_ref().map_or("", |prompt| &prompt.text);
        eprintln!("{prompt} {:?} [{}]", question.wanted, question.default);
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer)? == 0 {
            return Err("the answers end before the questions".into());
        }
        if let Err(error) = questions.answer(answer.trim_end_matches('\n')) {
            eprintln!("{error}");
        }
    }
    Ok(())
}
