//! Pages without a script, in the style of the reports: lists, comparisons, histories.

use super::{STYLES, nonce};
use fathom_sheet::chart::{Chart, Size, Theme};
use fathom_sheet::html::escape;

/// A page of a title, what stands below it as HTML, and its body.
pub fn plain_page(title: &str, lead: &str, body: &str) -> String {
    let nonce = nonce();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-{nonce}'; \
         base-uri 'none'; form-action 'self'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} – Fathom</title>\n\
         <style nonce=\"{nonce}\">\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         {lead}</header>\n<main>\n{body}</main>\n</body>\n</html>\n",
        STYLES.concat(),
        title = escape(title),
    )
}

/// A chart that no script draws; `key` as for [`svg_within`].
pub fn drawn(chart: &Chart, size: Size, key: &str) -> String {
    let svg = svg_within(chart, size, key);
    format!("<figure class=\"drawn\">{svg}</figure>\n")
}

/// A chart within a page: `key` makes its ids unique there.
pub fn svg_within(chart: &Chart, size: Size, key: &str) -> String {
    let svg = chart.svg(&Theme::LIGHT, size);
    // The ids of chart::svg: a title, a description, a gradient.
    let own: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    svg.replace(
        "aria-labelledby=\"t d\"",
        &format!("aria-labelledby=\"t-{own} d-{own}\""),
    )
    .replace("<title id=\"t\">", &format!("<title id=\"t-{own}\">"))
    .replace("<desc id=\"d\">", &format!("<desc id=\"d-{own}\">"))
    .replace("id=\"v\"", &format!("id=\"v-{own}\""))
    .replace("url(#v)", &format!("url(#v-{own})"))
}
