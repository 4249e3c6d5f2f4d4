//! `fathom schema`: JSON Schemas of what `--json` prints, made from the types that print it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use fathom_model::Exit;
use flate2::read::GzDecoder;
use schemars::JsonSchema;

use super::Global;
#[cfg(test)]
use super::{ab, baseline, check, cluster, config, demo, doctor, dry, engines, export, find};
#[cfg(test)]
use super::{
    r#gen, graph, init, job, ledger, pages, plan, plot, prio, provision, purge, query, quick,
};
#[cfg(test)]
use super::{repeat, report, restore, runs, screen, serve, show, soak, tune};
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

/// The text of each file of schemas, packed by build.rs.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.json.gz"));

/// A document and its schema.
struct DocumentSchema {
    name: &'static str,
    /// Its file below docs/: a test makes it from the type that is written, so that the
    /// program need not hold what makes it.
    file: &'static str,
    #[cfg(test)]
    of: fn() -> schemars::Schema,
}

macro_rules! documents {
    ($($name:literal: $file:literal, $of:expr;)*) => {
        const DOCUMENTS: &[DocumentSchema] = &[$(DocumentSchema {
            name: $name,
            file: $file,
            #[cfg(test)]
            of: $of,
        }),*];
    };
}

documents! {
    "fathom.ab/1": "schemas/ab-1.json", of::<ab::AbDocument<'_>>;
    "fathom.baseline-change/1": "schemas/baseline-change-1.json", of::<baseline::ChangeDocument<'_>>;
    "fathom.baseline/1": "schemas/baseline-1.json", of::<baseline::ShownBaseline<'_>>;
    "fathom.baselines/1": "schemas/baselines-1.json", of::<baseline::ListDocument<'_>>;
    "fathom.cdl-pages/1": "schemas/cdl-pages-1.json", of::<prio::pages::PagesDocument>;
    "fathom.check/1": "schemas/check-1.json", of::<check::Document<'_>>;
    "fathom.cluster-cleanup/1": "schemas/cluster-cleanup-1.json", of::<cluster::CleanupDocument<'_>>;
    "fathom.cluster-image/1": "schemas/cluster-image-1.json", of::<cluster::ImageDocument<'_>>;
    "fathom.cluster-runs/1": "schemas/cluster-runs-1.json", of::<cluster::compare::ClusterComparison>;
    "fathom.compare/1": "schemas/compare-1.json", of::<fathom_report::compare::CompareDocument>;
    "fathom.config-change/1": "schemas/config-change-1.json", of::<config::ChangeDocument>;
    "fathom.config-symbols/1": "schemas/config-symbols-1.json", of::<config::explain::SymbolsDocument>;
    "fathom.config/1": "schemas/config-1.json", of::<config::ConfigDocument<'_>>;
    "fathom.defconfigs/1": "schemas/defconfigs-1.json", of::<config::defconfig::DefconfigList<'_>>;
    "fathom.demo/1": "schemas/demo-1.json", of::<demo::Document<'_>>;
    "fathom.doctor/1": "schemas/doctor-1.json", of::<doctor::Document<'_>>;
    "fathom.dry-run/1": "schemas/dry-run-1.json", of::<dry::DryDocument>;
    "fathom.engine-option/1": "schemas/engine-option-1.json", of::<engines::document::OptionDocument<'_>>;
    "fathom.engine/1": "schemas/engine-1.json", of::<engines::document::EngineDocument<'_>>;
    "fathom.engines/1": "schemas/engines-1.json", of::<engines::document::EnginesDocument<'_>>;
    "fathom.explain/1": "schemas/explain-1.json", of::<fathom_report::explain::Explanation>;
    "fathom.export/1": "schemas/export-1.json", of::<fathom_report::export::Document<'_>>;
    "fathom.exported/1": "schemas/exported-1.json", of::<export::Document<'_>>;
    "fathom.find/1": "schemas/find-1.json", of::<find::show::FindDocument>;
    "fathom.find-map/1": "schemas/find-map-1.json", of::<find::map::MapDocument>;
    "fathom.gen/1": "schemas/gen-1.json", of::<r#gen::Document>;
    "fathom.graphs/1": "schemas/graphs-1.json", of::<graph::Document>;
    "fathom.history/1": "schemas/history-1.json", of::<fathom_report::history::HistoryDocument>;
    "fathom.init/1": "schemas/init-1.json", of::<init::Document<'_>>;
    "fathom.job-check/1": "schemas/job-check-1.json", of::<job::CheckDocument<'_>>;
    "fathom.job-file/1": "schemas/job-file-1.json", of::<job::from_cmdline::JobFileDocument>;
    "fathom.job-show/1": "schemas/job-show-1.json", of::<job::ShowDocument>;
    "fathom.lat/1": "schemas/lat-1.json", of::<fathom_logs::latlog::LatDocument<'_>>;
    "fathom.ledger-device/1": "schemas/ledger-device-1.json", of::<ledger::DeviceHistory<'_>>;
    "fathom.ledger-list/1": "schemas/ledger-list-1.json", of::<ledger::DeviceList<'_>>;
    "fathom.pages/1": "schemas/pages-1.json", of::<pages::PagesDocument>;
    "fathom.plan/1": "schemas/plan-1.json", of::<plan::Document<'_>>;
    "fathom.plots/1": "schemas/plots-1.json", of::<plot::Document>;
    "fathom.prio/1": "schemas/prio-1.json", of::<fathom_report::prio::PrioDocument<'_>>;
    "fathom.provision/1": "schemas/provision-1.json", of::<provision::document::Document>;
    "fathom.purge-methods/1": "schemas/purge-methods-1.json", of::<purge::list::MethodList<'_>>;
    "fathom.purge-plan/1": "schemas/purge-plan-1.json", of::<purge::list::PurgePlan<'_>>;
    "fathom.purge/1": "schemas/purge-1.json", of::<fathom_model::PurgeDocument>;
    "fathom.query/1": "schemas/query-1.json", of::<query::QueryDocument>;
    "fathom.quick-cleanup/1": "schemas/quick-cleanup-1.json", of::<quick::run::CleanupDocument>;
    "fathom.quick-list/1": "schemas/quick-list-1.json", of::<quick::list::ListDocument<'_>>;
    "fathom.quick/1": "schemas/quick-1.json", of::<quick::summary::Quick>;
    "fathom.refusal/1": "schemas/refusal-1.json", of::<fathom_model::RefusalDocument<'_>>;
    "fathom.report-file/1": "schemas/report-file-1.json", of::<report::Document>;
    "fathom.restore/1": "schemas/restore-1.json", of::<restore::RestoreDocument>;
    "fathom.run/1": "schemas/run-1.json", of::<fathom_model::RunDocument>;
    "fathom.runs/1": "schemas/runs-1.json", of::<runs::Document>;
    "fathom.runs-archive/1": "schemas/runs-archive-1.json", of::<runs::archive::Document>;
    "fathom.runs-rm/1": "schemas/runs-rm-1.json", of::<runs::rm::Document>;
    "fathom.samples/1": "schemas/samples-1.json", of::<show::samples::SamplesDocument<'_>>;
    "fathom.schemas/1": "schemas/schemas-1.json", of::<SchemaList>;
    "fathom.serve/1": "schemas/serve-1.json", of::<serve::ServeDocument>;
    "fathom.snia/1": "schemas/snia-1.json", of::<fathom_report::snia::Document>;
    "fathom.repeat/1": "schemas/repeat-1.json", of::<repeat::RepeatDocument<'_>>;
    "fathom.soak/1": "schemas/soak-1.json", of::<soak::SoakDocument<'_>>;
    "fathom.status/1": "schemas/status-1.json", of::<screen::summary::Document>;
    "fathom.steady/1": "schemas/steady-1.json", of::<fathom_report::steady::RecordVerdicts>;
    "fathom.tune/1": "schemas/tune-1.json", of::<tune::TuneDocument<'_>>;
    "fathom.study/1": "study.schema.json", study;
}

/// What `--json` prints without a name.
#[derive(serde::Serialize, JsonSchema)]
struct SchemaList {
    /// `fathom.schemas/1`
    schema: &'static str,
    /// Names of the documents, as their field `schema` has them.
    documents: Vec<&'static str>,
}

fn names() -> Vec<&'static str> {
    DOCUMENTS.iter().map(|document| document.name).collect()
}

/// Lists the documents, or prints one's schema.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.name {
        Some(name) => {
            let found = DOCUMENTS.iter().find(|document| document.name == name);
            let mut packed: BTreeMap<String, String> =
                serde_json::from_reader(GzDecoder::new(PACKED))
                    .context("the schemas in this program are damaged")?;
            let text = found.and_then(|document| packed.remove(document.file));
            out::line(text.unwrap_or_default().trim_end());
        }
        None if global.json => out::json(&SchemaList {
            schema: "fathom.schemas/1",
            documents: names(),
        })?,
        None => names().iter().for_each(out::line),
    }
    Ok(Exit::Success)
}

/// The schema of the document of this name.
#[cfg(test)]
fn schema(name: &str) -> serde_json::Value {
    let found = DOCUMENTS.iter().find(|document| document.name == name);
    let mut schema = found.map_or(serde_json::Value::Null, |document| {
        (document.of)().to_value()
    });
    schema["title"] = name.into();
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        *field = serde_json::json!({ "const": name });
    }
    schema
}

/// As the type is written: what may be absent is not required.
#[cfg(test)]
fn of<T: JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// That of plan files, which is made of the table of their keys.
#[cfg(test)]
fn study() -> schemars::Schema {
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
    fn the_program_has_every_schema() {
        let packed: BTreeMap<String, String> =
            serde_json::from_reader(GzDecoder::new(PACKED)).unwrap();
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for document in DOCUMENTS {
            let text = std::fs::read_to_string(docs.join(document.file)).unwrap();
            assert_eq!(packed.get(document.file), Some(&text), "{}", document.name);
        }
    }

    #[test]
    fn every_schema_names_its_document() {
        for name in names().into_iter().filter(|it| *it != "fathom.study/1") {
            let schema = schema(name);
            assert_eq!(schema["properties"]["schema"]["const"], name, "{name}");
        }
    }

    /// Forms of files, and of what is inside a page: `--json` prints none of them.
    const OF_FILES: [&str; 11] = [
        "fathom.generated/1",
        "fathom.ledger/1",
        "fathom.node-stats/1",
        "fathom.profile/1",
        "fathom.remarks/1",
        "fathom.report/1",
        "fathom.settings/1",
        "fathom.study/2",
        "fathom.switches/1",
        "fathom.test/1",
        "fathom.undo-command/1",
    ];

    fn sources(dir: &Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None if path.is_dir() => sources(&path, texts),
                Some(it) if it == "rs" => texts.push(std::fs::read_to_string(path).unwrap()),
                _ => {}
            }
        }
    }

    #[test]
    fn every_document_has_a_schema() {
        let mut texts = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for of_crate in std::fs::read_dir(crates).unwrap() {
            sources(&of_crate.unwrap().path().join("src"), &mut texts);
        }
        let known = names();
        for text in &texts {
            // In quotes: the name of a document where it is written, and not words about it.
            for part in text.split('"').filter(|it| it.starts_with("fathom.")) {
                let Some((name, version)) = part.split_once('/') else {
                    continue;
                };
                let is_name = name["fathom.".len()..]
                    .bytes()
                    .all(|it| it == b'-' || it.is_ascii_lowercase());
                if is_name && version.parse::<u32>().is_ok() {
                    let is_known = known.contains(&part) || OF_FILES.contains(&part);
                    assert!(is_known, "{part} has no schema");
                }
            }
        }
    }
}
