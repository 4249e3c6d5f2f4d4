//! The JSON Schema of plan files, for editors, from the tables of keys.

use fathom_device::purge::PurgeMethod;
use serde_json::{Map, Value, json};

use super::keys::{self, HOST_TARGET, KINDS, KeyForm, STEP, STEPS, StudyKey, TARGET, of_kind};

/// The JSON Schema of a plan file.
pub fn schema() -> Value {
    let mut top = object(keys::top());
    top.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    top.insert("title".to_owned(), json!("fathom.study/1"));
    let about = "A plan file: what is measured, in steps, and what must come out.";
    top.insert("description".to_owned(), json!(about));
    top.insert("required".to_owned(), json!(["step"]));
    top.insert("$defs".to_owned(), definitions());
    Value::Object(top)
}

fn definitions() -> Value {
    let mut steps: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            let mut step = object(of_kind(kind));
            step.insert("required".to_owned(), json!([kind.key.name]));
            Value::Object(step)
        })
        .collect();
    let of_loop = STEP.iter().filter(|key| key.name == "for").chain([&STEPS]);
    let mut of_loop = object(of_loop);
    of_loop.insert("required".to_owned(), json!(["for", "step"]));
    steps.push(Value::Object(of_loop));
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    json!({
        "target": object(TARGET.iter()),
        "hosts": { "type": "object", "additionalProperties": object(HOST_TARGET.iter()) },
        "step": { "oneOf": steps },
        "loops": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": { "type": "array", "minItems": 1, "items": scalar },
        },
        "settings": { "type": "object", "additionalProperties": scalar },
        "split": {
            "type": "object",
            "minProperties": 1,
            "patternProperties": { "^[1-7]$": or_variable(json!({ "type": "integer", "minimum": 1, "maximum": 100 })) },
            "additionalProperties": false,
        },
        "variable": { "type": "string", "pattern": "^\\$\\{[A-Za-z_][A-Za-z0-9_-]*\\}$" },
    })
}

/// A table with these keys and no others.
fn object<'k>(keys: impl Iterator<Item = &'k StudyKey>) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys {
        let mut said = form(key.form);
        said["description"] = json!(key.about);
        properties.insert(key.name.to_owned(), said);
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

/// A value that is not a text can be that of a loop's variable.
fn or_variable(form: Value) -> Value {
    json!({ "anyOf": [form, { "$ref": "#/$defs/variable" }] })
}

fn form(form: KeyForm) -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let whole =
        |least, most| or_variable(json!({ "type": "integer", "minimum": least, "maximum": most }));
    let list = |items: Value| json!({ "type": "array", "minItems": 1, "items": items });
    match form {
        KeyForm::Text | KeyForm::Script | KeyForm::File | KeyForm::Folder => text,
        KeyForm::Flag => or_variable(json!({ "type": "boolean" })),
        KeyForm::Whole(least, most) => whole(least, most),
        KeyForm::Number => or_variable(json!({ "type": "number", "minimum": 0 })),
        KeyForm::Time => {
            or_variable(json!({ "type": "string", "pattern": "^[0-9]+(us|usec|ms|msec|s|m|h|d)$" }))
        }
        KeyForm::Size => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^ *[0-9]+([kKmMgGtT]([iI]?[bB])?|[bB])? *$" },
            { "$ref": "#/$defs/variable" },
        ] }),
        KeyForm::Word(words) => or_variable(json!({ "enum": words })),
        KeyForm::Words(words) => {
            let one = or_variable(json!({ "enum": words }));
            json!({ "anyOf": [one, list(one.clone())] })
        }
        KeyForm::Purge => {
            let mut methods: Vec<String> = PurgeMethod::all()
                .map(|method| method.to_string())
                .collect();
            methods.insert(0, "auto".to_owned());
            let families = ["nvme", "ata", "scsi"].map(|family| format!("{family}-sanitize"));
            methods.extend(families);
            json!({ "anyOf": [{ "const": true }, { "enum": methods }, { "$ref": "#/$defs/variable" }] })
        }
        KeyForm::FolderOrTarget => json!({ "anyOf": [{ "const": true }, text] }),
        KeyForm::Texts | KeyForm::List => list(text),
        KeyForm::Wholes(least, most) => list(whole(least, most)),
        KeyForm::Table(name) => json!({ "$ref": format!("#/$defs/{name}") }),
        KeyForm::Tables(name) => list(json!({ "$ref": format!("#/$defs/{name}") })),
    }
}
