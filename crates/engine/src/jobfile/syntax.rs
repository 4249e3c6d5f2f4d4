//! Lines of a job file into sections and options.

use std::path::Path;

use fathom_model::{JobOption, Origin};

use super::{Checked, Entry, JobFile, Section, Sources};

/// Parses a job file.
pub(super) fn parse(bytes: &[u8], path: &Path, _sources: &dyn Sources) -> Checked {
    let text = String::from_utf8_lossy(bytes);
    let mut file = JobFile {
        path: path.to_owned(),
        preamble: Vec::new(),
        sections: Vec::new(),
    };
    for (number, line) in (1u32..).zip(text.lines()) {
        let line = line.trim();
        let origin = |column| Origin::File {
            path: path.to_owned(),
            line: number,
            column,
        };
        if let Some(name) = line.strip_prefix('[') {
            file.sections.push(Section {
                name: name.trim_end_matches(']').to_owned(),
                origin: origin(1),
                entries: Vec::new(),
            });
            continue;
        }
        let comment = line.is_empty() || line.starts_with([';', '#']);
        match file.sections.last_mut() {
            None => file.preamble.push(line.to_owned()),
            Some(section) if comment => section.entries.push(Entry::Comment(line.to_owned())),
            Some(section) => {
                let (name, value) = match line.split_once('=') {
                    Some((name, value)) => (name.trim_end(), Some(value.to_owned())),
                    None => (line, None),
                };
                section.entries.push(Entry::Option {
                    option: JobOption {
                        name: name.to_owned(),
                        value,
                        origin: origin(1),
                    },
                    text: line.to_owned(),
                });
            }
        }
    }
    Checked {
        file,
        diagnostics: Vec::new(),
    }
}
