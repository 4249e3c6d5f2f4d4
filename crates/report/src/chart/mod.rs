//! Charts: a small grammar, drawn as SVG whose text is text, and as PNG.

pub mod palette;
pub mod quantity;
