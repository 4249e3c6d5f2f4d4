//! Every I/O engine, who has it, and its own options.

use std::collections::BTreeMap;

use fathom_engine_fio::inventory::{self, EngineOption};
use fathom_engine_fio::version::Program;

use fathom_sheet::style::wrap;

use super::document::{EngineOfList, EnginesDocument};
use super::{Global, WIDTH, missing, own};
use crate::out;

/// One I/O engine.
#[derive(Default)]
struct EngineRow {
    /// Whether this fio names it.
    in_fio: bool,
    /// Its own options; `None` where fio cannot tell.
    options: Option<Vec<EngineOption>>,
}

impl EngineRow {
    fn fio(&self) -> &'static str {
        match (self.in_fio, &self.options) {
            (true, Some(_)) => "yes",
            (true, None) => "cannot be loaded",
            (false, _) => "no",
        }
    }
}

/// Lists them; without fio, those of the native engine.
pub fn show(global: &Global, fio: Option<&Program>) -> anyhow::Result<()> {
    let mut rows: BTreeMap<String, EngineRow> = fathom_engine_native::io_engines()
        .map(|name| (name.to_owned(), EngineRow::default()))
        .collect();
    let mut version = None;
    if let Some(fio) = fio {
        version = Some(fio.version().map_err(missing)?.to_string());
        for engine in inventory::engines(fio)? {
            let row = rows.entry(engine.name).or_default();
            row.in_fio = true;
            row.options = engine.options;
        }
    }
    if global.json {
        let engines = rows.iter().map(|(name, row)| EngineOfList {
            name,
            fio: row.fio(),
            native: own::has(name),
            options: row.options.as_deref(),
        });
        return out::json(&EnginesDocument {
            schema: "fathom.engines/1",
            fio: version,
            native: fathom_engine_native::version().to_string(),
            engines: engines.collect(),
        });
    }
    table(global, &rows);
    let fio = version.as_deref().unwrap_or("not installed");
    let native = fathom_engine_native::version();
    let told = format!("fio: {fio}; native: {native}, its options: fathom engines native");
    let width = out::style(global.color).width.map_or(WIDTH, usize::from);
    out::line("");
    wrap(&told, width).iter().for_each(out::line);
    Ok(())
}

fn table(global: &Global, rows: &BTreeMap<String, EngineRow>) {
    let longest = rows.keys().map(String::len).max().unwrap_or(0);
    let name_width = longest.max("engine".len());
    let margin = name_width + "  fio  native  ".len();
    let width = out::style(global.color).width.map_or(WIDTH, usize::from);
    let line = |name: &str, fio: &str, native: &str, text: &str| {
        out::line(format!("{name:name_width$}  {fio:3}  {native:6}  {text}").trim_end());
    };
    line("engine", "fio", "native", "options of its own");
    for (name, row) in rows {
        let text = match (&row.options, row.in_fio) {
            (Some(options), _) => {
                let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
                names.join(", ")
            }
            (None, true) => "named by fio, but it cannot be loaded here".to_owned(),
            (None, false) => String::new(),
        };
        let fio = if row.fio() == "yes" { "yes" } else { "no" };
        let native = if own::has(name) { "yes" } else { "no" };
        let mut lines = wrap(&text, width.saturating_sub(margin).max(20)).into_iter();
        line(name, fio, native, &lines.next().unwrap_or_default());
        for rest in lines {
            out::line(format_args!("{:margin$}{rest}", ""));
        }
    }
}
