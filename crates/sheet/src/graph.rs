//! A chart that is to be a file.

use fathom_model::text::is_hidden;

use crate::chart::{Chart, Size};

/// A chart and where it belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Path below the folder of graphs, without ending:
    /// `0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30-bww`.
    pub path: String,
    /// What is drawn.
    pub chart: Chart,
    /// How large it is meant to be.
    pub size: Size,
}

/// A path that stays below the folder it is put into, whatever a record says.
pub fn safe_path(name: &str) -> String {
    let part = |part: &str| {
        let clean: String = part
            .chars()
            .map(|c| if is_hidden(c) || c == '\\' { '-' } else { c })
            .collect();
        match clean.as_str() {
            "." | ".." => "-".to_owned(),
            // A file's name has at most 255 bytes (NAME_MAX), and an ending follows.
            long if long.len() > 180 => {
                let end = (0..=180).rev().find(|&end| long.is_char_boundary(end));
                long[..end.unwrap_or(0)].to_owned()
            }
            _ => clean,
        }
    };
    let parts: Vec<String> = name
        .split('/')
        .filter(|p| !p.is_empty())
        .map(part)
        .collect();
    if parts.is_empty() {
        return "series".to_owned();
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_folder() {
        assert_eq!(safe_path("a/b"), "a/b");
        assert_eq!(safe_path("../../etc/passwd"), "-/-/etc/passwd");
        assert_eq!(safe_path("/abs//x/."), "abs/x/-");
        assert_eq!(safe_path(""), "series");
        assert!(safe_path(&"µ".repeat(400)).len() <= 180);
    }
}
