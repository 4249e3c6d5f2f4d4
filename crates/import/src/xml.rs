//! What the readers of XML share.

use roxmltree::{Document, Node};

use super::{ForeignError, ForeignTool};

/// Parses it, without DTDs, which are what makes XML grow.
pub(super) fn parse(text: &str, tool: ForeignTool) -> Result<Document<'_>, ForeignError> {
    Document::parse(text).map_err(|error| {
        let place = error.pos();
        ForeignError::At {
            tool,
            line: place.row as usize,
            column: place.col as usize,
            what: error.to_string(),
        }
    })
}

/// What is wrong where an element begins.
pub(super) fn at(node: Node, tool: ForeignTool, what: &str) -> ForeignError {
    let place = node.document().text_pos_at(node.range().start);
    ForeignError::At {
        tool,
        line: place.row as usize,
        column: place.col as usize,
        what: what.to_owned(),
    }
}

pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

pub(super) fn path<'a, 'i>(node: Node<'a, 'i>, names: &[&'static str]) -> Option<Node<'a, 'i>> {
    names
        .iter()
        .try_fold(node, |node, name| children(node, name).next())
}

pub(super) fn text_below<'a>(node: Node<'a, '_>, names: &[&'static str]) -> Option<&'a str> {
    path(node, names)?.text().map(str::trim)
}
