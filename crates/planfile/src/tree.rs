//! A plan file as a tree in which everything has its place.

use std::ops::Range;
use std::sync::Arc;

use fathom_campaign::error::{Fault, FilePosition};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Syntax errors that are told: what follows the first ones often follows from them.
const SYNTAX_ERRORS: usize = 10;

/// A value, and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct TomlNode {
    pub(super) value: TomlValue,
    /// In bytes.
    pub(super) span: Range<usize>,
    /// Whether it is the value of a loop's variable: a text that may be a number.
    pub(super) is_filled: bool,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum TomlValue {
    Text(String),
    Whole(i64),
    Number(f64),
    Flag(bool),
    List(Vec<TomlNode>),
    Table(Vec<TomlField>),
    /// A date: no plan file has a use for one.
    Date,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct TomlField {
    pub(super) name: String,
    /// Where the key stands, in bytes.
    pub(super) at: usize,
    pub(super) node: TomlNode,
}

impl TomlNode {
    /// A value as it is written.
    pub(super) fn new(value: TomlValue, span: Range<usize>) -> Self {
        Self {
            value,
            span,
            is_filled: false,
        }
    }

    /// The fields of a table; none of anything else.
    pub(super) fn fields(&self) -> &[TomlField] {
        match &self.value {
            TomlValue::Table(fields) => fields,
            _ => &[],
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, name: &str) -> Option<&TomlNode> {
        let field = self.fields().iter().find(|field| field.name == name);
        field.map(|field| &field.node)
    }

    /// A text.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            TomlValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it holds: a list's items, or itself alone.
    pub(super) fn items(&self) -> &[TomlNode] {
        match &self.value {
            TomlValue::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// A number, a text or a flag as it stands in a job file or a name.
    pub(super) fn scalar(&self) -> Option<String> {
        match &self.value {
            TomlValue::Text(text) => Some(text.clone()),
            TomlValue::Whole(number) => Some(number.to_string()),
            TomlValue::Number(number) => Some(number.to_string()),
            TomlValue::Flag(flag) => Some(u8::from(*flag).to_string()),
            TomlValue::List(_) | TomlValue::Table(_) | TomlValue::Date => None,
        }
    }

    /// Calls `look` with every text in it, and its place.
    pub(super) fn each_text(&self, look: &mut dyn FnMut(&str, &Range<usize>)) {
        match &self.value {
            TomlValue::Text(text) => look(text, &self.span),
            TomlValue::List(items) => items.iter().for_each(|item| item.each_text(look)),
            TomlValue::Table(fields) => fields.iter().for_each(|field| field.node.each_text(look)),
            _ => {}
        }
    }
}

/// The text of a plan file, and what messages call it.
pub(super) struct PlanText<'a> {
    pub(super) file: Arc<str>,
    pub(super) text: &'a str,
}

impl PlanText<'_> {
    /// Line and column of a byte.
    pub(super) fn place(&self, at: usize) -> FilePosition {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[start..].chars().count() + 1;
        FilePosition {
            file: Arc::clone(&self.file),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// The byte at which a byte of a value's text stands, as far as the text stands
    /// there as it is; else where the value begins.
    pub(super) fn within(&self, span: &Range<usize>, value: &str, offset: usize) -> usize {
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let verbatim = raw.find(value).filter(|_| !value.is_empty());
        verbatim.map_or(span.start, |begin| span.start + begin + offset)
    }

    /// Its tree.
    pub(super) fn parse(&self) -> Result<TomlNode, Vec<Fault>> {
        let (root, errors) = DeTable::parse_recoverable(self.text);
        let told = errors.iter().take(SYNTAX_ERRORS);
        let mut faults: Vec<Fault> = told
            .map(|error| {
                let at = error.span().map_or(0, |span| span.start);
                Fault::new(&self.place(at), error.message().replace('\n', ", "))
            })
            .collect();
        if faults.is_empty() {
            let root = self.table(root.span(), root.get_ref(), &mut faults);
            if faults.is_empty() {
                return Ok(root);
            }
        }
        Err(faults)
    }

    fn table(&self, span: Range<usize>, table: &DeTable, faults: &mut Vec<Fault>) -> TomlNode {
        let mut fields: Vec<TomlField> = table
            .iter()
            .map(|(name, value)| TomlField {
                name: name.get_ref().clone().into_owned(),
                at: name.span().start,
                node: self.node(value, faults),
            })
            .collect();
        // In the order in which they are written.
        fields.sort_by_key(|field| field.at);
        TomlNode::new(TomlValue::Table(fields), span)
    }

    fn node(&self, value: &Spanned<DeValue>, faults: &mut Vec<Fault>) -> TomlNode {
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(text) => TomlValue::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                let read = i64::from_str_radix(number.as_str(), number.radix());
                TomlValue::Whole(read.unwrap_or_else(|_| {
                    faults.push(Fault::new(&self.place(span.start), "too large a number"));
                    0
                }))
            }
            DeValue::Float(number) => {
                TomlValue::Number(number.as_str().parse().unwrap_or(f64::NAN))
            }
            DeValue::Boolean(flag) => TomlValue::Flag(*flag),
            DeValue::Datetime(_) => TomlValue::Date,
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.node(item, faults));
                TomlValue::List(items.collect())
            }
            DeValue::Table(table) => return self.table(span, table, faults),
        };
        TomlNode::new(value, span)
    }
}
