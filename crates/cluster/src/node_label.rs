//! Labels of nodes, as parameters name them.

/// `key=value`; the value may stand in quotes and may be empty, as in
/// `node-role.kubernetes.io/worker=''`.
pub(super) fn parse(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('\'').or_else(|| quoted('"')).unwrap_or(value);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_key = !key.is_empty() && key.chars().all(|c| plain(c) || c == '/');
    match is_key && value.chars().all(plain) {
        true => Ok((key.to_owned(), value.to_owned())),
        false => Err(format!("'{text}' is no label; it is KEY=VALUE")),
    }
}
