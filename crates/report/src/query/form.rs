//! A row of values as a line of text, in forms that other programs read.

use fathom_model::text;
use serde::{Serialize, Serializer};

use super::Datum;

/// A value as a person reads it, in one line; empty where it is not known.
pub fn shown(value: &Datum) -> String {
    match value {
        Datum::Missing => String::new(),
        Datum::Whole(value) => value.to_string(),
        Datum::Number(value) => value.to_string(),
        Datum::Words(words) => text::line(words).into_owned(),
    }
}

/// A line of CSV (RFC 4180) without its end. Words that a spreadsheet would take for a
/// formula stand behind an apostrophe, numbers never.
pub fn csv_line(row: &[Datum]) -> String {
    let field = |value: &Datum| match value {
        Datum::Words(words) => text::csv_field(words),
        other => shown(other),
    };
    row.iter().map(field).collect::<Vec<_>>().join(",")
}

/// A line of a table in Markdown, without its end. Nothing in a field is obeyed: no
/// link, no HTML, no end of the field.
pub fn markdown_line(row: &[Datum]) -> String {
    let mut line = "|".to_owned();
    for value in row {
        line.push(' ');
        match value {
            Datum::Words(_) => line += &text::markdown(&shown(value)),
            _ => line += &shown(value),
        }
        line.push_str(" |");
    }
    line
}

/// A row as an object of JSON, in the order of its columns, with null for what is not
/// known.
#[derive(Debug)]
pub struct JsonRow<'r, N> {
    /// Names of the columns.
    pub names: &'r [N],
    /// Their values.
    pub row: &'r [Datum<'r>],
}

impl<N: AsRef<str>> Serialize for JsonRow<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.names.iter().map(AsRef::as_ref);
        serializer.collect_map(names.zip(self.row))
    }
}

impl Serialize for Datum<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_none(),
            Self::Whole(value) => serializer.serialize_i64(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Words(words) => serializer.serialize_str(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_within_their_field() {
        let row: Vec<Datum> = [
            "=1+1",
            "a,\"b\"\nc",
            "|x| <b>[y](z)",
            "\u{1b}[31m",
            "-5",
            "@x",
        ]
        .map(Datum::from)
        .to_vec();
        assert_eq!(
            csv_line(&row),
            "'=1+1,\"a,\"\"b\"\" c\",|x| <b>[y](z),\u{fffd}[31m,-5,'@x"
        );
        let line = markdown_line(&row[2..3]);
        assert_eq!(line, "| \\|x\\| \\<b\\>\\[y\\]\\(z\\) |");
        let names = ["_a_ job_name a__b".into()];
        assert_eq!(markdown_line(&names), "| \\_a\\_ job_name a\\_\\_b |");
        let numbers = [Datum::Missing, Datum::Whole(-3), Datum::Number(0.5)];
        assert_eq!(csv_line(&numbers), ",-3,0.5");
        let object = JsonRow {
            names: &["b", "a", "c"],
            row: &numbers,
        };
        let text = serde_json::to_string(&object).unwrap();
        assert_eq!(text, r#"{"b":null,"a":-3,"c":0.5}"#);
    }
}
