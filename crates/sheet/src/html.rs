//! Text as HTML.

use fathom_model::text::{REPLACEMENT, is_hidden};

/// Text as HTML, between tags and in quoted attributes alike. Hidden characters,
/// among them the controls that HTML forbids, become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(c),
            // A newline is a line's end already.
            '\r' => {}
            c if is_hidden(c) => escaped.push(REPLACEMENT),
            c => escaped.push(c),
        }
    }
    escaped
}
