//! `fathom schema`: JSON Schemas of what `--json` prints, made from the types that print it.

use clap::builder::PossibleValuesParser;
use fathom_model::Exit;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::{Global, check, config, demo, doctor, export, graph, init, job, ledger, plan, plot};
use super::{r#gen, provision, quick, report, run, runs};
use crate::out;

/// Print the JSON Schema of a document; without a name, list them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom schema                      the documents that have one
  fathom schema fathom.run/1         of a run: show, job run, quick --json
  fathom schema fathom.plan/1 > plan.schema.json")]
pub struct Args {
    /// What the document has in its field \"schema\"
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    #[arg(hide_possible_values = true)]
    name: Option<String>,
}

/// Makes a schema.
type Maker = fn() -> Schema;

/// The documents, each with the type that is written.
const DOCUMENTS: [(&str, Maker); 29] = [
    ("fathom.check/1", of::<check::Document<'_>>),
    (
        "fathom.compare/1",
        of::<fathom_report::compare::CompareDocument>,
    ),
    ("fathom.config/1", of::<config::ConfigDocument<'_>>),
    ("fathom.config-change/1", of::<config::ChangeDocument>),
    ("fathom.demo/1", of::<demo::Document<'_>>),
    ("fathom.doctor/1", of::<doctor::Document<'_>>),
    ("fathom.export/1", of::<fathom_report::export::Document<'_>>),
    ("fathom.exported/1", of::<export::Document<'_>>),
    ("fathom.gen/1", of::<r#gen::Document>),
    ("fathom.graphs/1", of::<graph::Document>),
    (
        "fathom.history/1",
        of::<fathom_report::history::HistoryDocument>,
    ),
    ("fathom.init/1", of::<init::Document<'_>>),
    ("fathom.job-check/1", of::<job::CheckDocument<'_>>),
    ("fathom.job-show/1", of::<job::ShowDocument>),
    ("fathom.ledger-device/1", of::<ledger::DeviceHistory<'_>>),
    ("fathom.ledger-list/1", of::<ledger::DeviceList<'_>>),
    ("fathom.plan/1", of::<plan::Document<'_>>),
    ("fathom.plots/1", of::<plot::Document>),
    ("fathom.provision/1", of::<provision::document::Document>),
    ("fathom.purge/1", of::<fathom_model::PurgeDocument>),
    ("fathom.quick/1", of::<quick::summary::Quick>),
    ("fathom.report-file/1", of::<report::Document>),
    ("fathom.run/1", of::<fathom_model::RunDocument>),
    ("fathom.runs/1", of::<runs::Document>),
    ("fathom.schemas/1", of::<SchemaList>),
    ("fathom.snia/1", of::<fathom_report::snia::Document>),
    ("fathom.status/1", of::<run::summary::Document>),
    (
        "fathom.steady/1",
        of::<fathom_report::steady::RecordVerdicts>,
    ),
    ("fathom.study/1", study),
];

/// What `--json` prints without a name.
#[derive(serde::Serialize, JsonSchema)]
struct SchemaList {
    /// `fathom.schemas/1`
    schema: &'static str,
    /// Names of the documents, as their field `schema` has them.
    documents: Vec<&'static str>,
}

fn names() -> Vec<&'static str> {
    DOCUMENTS.iter().map(|(name, _)| *name).collect()
}

/// Lists the documents, or prints one's schema.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.name {
        Some(name) => out::json(&schema(name))?,
        None if global.json => out::json(&SchemaList {
            schema: "fathom.schemas/1",
            documents: names(),
        })?,
        None => names().iter().for_each(out::line),
    }
    Ok(Exit::Success)
}

/// The schema of the document of this name.
fn schema(name: &str) -> Value {
    let found = DOCUMENTS.iter().find(|(known, _)| *known == name);
    let mut schema = found.map_or(Value::Null, |(_, of)| of().to_value());
    schema["title"] = name.into();
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        *field = json!({ "const": name });
    }
    schema
}

/// As the type is written: what may be absent is not required.
fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// That of plan files, which is made of the table of their keys.
fn study() -> Schema {
    let text = include_str!("../../../../docs/study.schema.json");
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `docs/schemas/run-1.json` of `fathom.run/1`.
    fn file(name: &str) -> String {
        let (name, version) = name.trim_start_matches("fathom.").split_once('/').unwrap();
        format!("{name}-{version}.json")
    }

    #[test]
    fn docs_have_the_schemas_of_the_types() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let bless = std::env::var_os("FATHOM_BLESS").is_some();
        let mut known = Vec::new();
        for name in names().into_iter().filter(|it| *it != "fathom.study/1") {
            let text = serde_json::to_string_pretty(&schema(name)).unwrap() + "\n";
            let path = dir.join(file(name));
            known.push(path.clone());
            if bless {
                std::fs::create_dir_all(&dir).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let current = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                current == text,
                "{} is not current: run this test with FATHOM_BLESS=1",
                path.display()
            );
        }
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            assert!(known.contains(&path), "{}: of no type", path.display());
        }
    }

    #[test]
    fn every_schema_names_its_document() {
        for name in names().into_iter().filter(|it| *it != "fathom.study/1") {
            let schema = schema(name);
            assert_eq!(schema["properties"]["schema"]["const"], name, "{name}");
        }
    }
}
