//! YAML in block style, for people to read and `kubectl` to apply.

use serde_json::Value;

/// One document.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

/// A value that begins on a line of its own.
fn block(out: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("{pad}{}:", scalar(key)));
                behind(out, value, indent, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&pad);
                out.push('-');
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        // The first key stands on the line of the dash.
                        let mut inner = String::new();
                        block(&mut inner, item, indent + 2);
                        out.push(' ');
                        out.push_str(&inner[indent + 2..]);
                    }
                    _ => behind(out, item, indent, indent + 2),
                }
            }
        }
        _ => {
            out.push_str(&pad);
            out.push_str(&flow(value));
            out.push('\n');
        }
    }
}

/// A value behind a key or a dash: on the same line, or below it.
fn behind(out: &mut String, value: &Value, indent: usize, deeper: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(out, value, deeper);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, indent);
        }
        Value::String(text) if is_literal(text) => {
            out.push_str(if text.ends_with('\n') {
                " |\n"
            } else {
                " |-\n"
            });
            for line in text.lines() {
                if !line.is_empty() {
                    out.push_str(&" ".repeat(deeper));
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        _ => {
            out.push(' ');
            out.push_str(&flow(value));
            out.push('\n');
        }
    }
}

/// Whether a text of several lines can stand as it is: without white space that
/// the block form would lose, and without control characters.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && !text.chars().any(|c| c.is_control() && c != '\n')
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// A text, in quotes (JSON's, which YAML has too) where it would else be read
/// as something different.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let begins = |c: char| c.is_ascii_alphabetic() || c == '/';
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = text.starts_with(begins)
        && text.chars().all(plain)
        && !words.contains(&text.to_ascii_lowercase().as_str());
    match is_plain {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_in_block_style() {
        let value = serde_json::json!({
            "kind": "Pod",
            "metadata": {"labels": {}, "name": "a-1", "version": "1.0"},
            "spec": {"on": true, "items": [{"a": 1, "b": ["x", "yes"]}, "z"], "script": "one\n two\n"},
        });
        let told = "kind: Pod\nmetadata:\n  labels: {}\n  name: a-1\n  version: \"1.0\"\nspec:\n  items:\n  - a: 1\n    b:\n    - x\n    - \"yes\"\n  - z\n  \"on\": true\n  script: |\n    one\n     two\n";
        assert_eq!(to_yaml(&value), told);
    }
}
