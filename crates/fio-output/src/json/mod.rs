//! fio's JSON and JSON+ of any age, also with other text around it.
//!
//! [`scan`] finds the documents in a file, [`parse_document`] reads one. A
//! root object of fio begins with `"fio version"` in every version, and that
//! is what is looked for: everything between two such beginnings is gone over
//! at most twice, so that the time is linear whatever the input is.

use std::ops::Range;

use fathom_model::Results;
use memchr::memmem;
use serde::Deserialize;

mod convert;
mod raw;
mod repair;

/// What a file holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// The whole documents, in order.
    pub documents: Vec<Document>,
    /// Lines outside of documents that are not blank.
    pub text: Vec<String>,
    /// Whether a document is cut off: fio was killed while it wrote.
    pub truncated: bool,
    /// What looked like a document of fio and could not be read.
    pub malformed: Vec<JsonError>,
}

/// One document of a file.
#[derive(Debug)]
pub struct Document {
    /// Its figures.
    pub results: Results,
    /// Where it stands in the input, in bytes.
    pub raw: Range<usize>,
    /// What is doubtful in it, a sentence each.
    pub warnings: Vec<String>,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It ends before its last bracket.
    #[error("the JSON document is cut off after {bytes} bytes: fio was killed while it wrote")]
    Cut {
        /// Length of what is there.
        bytes: usize,
    },
    /// It is JSON, but not of fio.
    #[error("JSON, but not of fio: there is neither \"jobs\" nor \"client_stats\" in it")]
    NotFio,
    /// There are more jobs in the file than its size can hold.
    #[error("more jobs than fio can have written in {bytes} bytes")]
    TooManyJobs {
        /// Length of the file.
        bytes: usize,
    },
    /// It is no JSON.
    #[error("the JSON document cannot be read: {reason}")]
    Syntax {
        /// Line within the document, from 1.
        line: usize,
        /// Column, in bytes, from 1.
        column: usize,
        /// What was found.
        reason: String,
    },
}

/// Finds and reads every document of fio in `input`.
pub fn scan(input: &[u8]) -> Scan {
    let starts = document_starts(input);
    let mut scan = Scan::default();
    let first = starts.first().copied().unwrap_or(input.len());
    scan.add_text(&input[..first]);
    let mut jobs = 0;
    for (nth, &start) in starts.iter().enumerate() {
        let end = starts.get(nth + 1).copied().unwrap_or(input.len());
        scan.add_segment(input, start..end);
        jobs += scan
            .documents
            .last()
            .map_or(0, |last| last.results.jobs.len());
        if jobs > most_jobs(input.len()) {
            scan.documents.pop();
            let bytes = input.len();
            scan.malformed.push(JsonError::TooManyJobs { bytes });
            break;
        }
    }
    scan
}

/// Most jobs that an output of so many bytes can tell of: one takes hundreds of
/// bytes in each of fio's formats. Keeps hostile input from filling the memory.
pub fn most_jobs(bytes: usize) -> usize {
    64 + bytes / 100
}

/// Reads one document; text around it is not allowed.
///
/// # Errors
/// When it is cut off, no JSON, or not fio's.
pub fn parse_document(bytes: &[u8]) -> Result<Results, JsonError> {
    let parsed = parse_prefix(bytes)?;
    let rest = bytes.get(parsed.end..).unwrap_or_default();
    match rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
        None => Ok(parsed.results),
        Some(at) => {
            let before = &bytes[..parsed.end + at];
            let line = 1 + memchr::memchr_iter(b'\n', before).count();
            Err(JsonError::Syntax {
                line,
                column: before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1) + 1,
                reason: format!("text after it, in line {line}"),
            })
        }
    }
}

impl Scan {
    /// One beginning of a document, up to the next one.
    fn add_segment(&mut self, input: &[u8], segment: Range<usize>) {
        let bytes = &input[segment.clone()];
        match parse_prefix(bytes) {
            Ok(parsed) => {
                self.text.extend(parsed.text);
                self.documents.push(Document {
                    results: parsed.results,
                    raw: segment.start..segment.start + parsed.end,
                    warnings: parsed.warnings,
                });
                self.add_text(&bytes[parsed.end..]);
            }
            Err(JsonError::Cut { .. }) => self.truncated = true,
            // A document that a later one interrupts was cut off as well.
            Err(JsonError::Syntax { .. }) if segment.end < input.len() => self.truncated = true,
            Err(error) => self.malformed.push(error),
        }
    }

    fn add_text(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let lines = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.trim().is_empty());
        self.text.extend(lines.map(str::to_owned));
    }
}

/// Where documents begin: a bracket before fio's first name; without any, the
/// first bracket in front of a name (a document that another tool wrote anew).
fn document_starts(input: &[u8]) -> Vec<usize> {
    let mut starts: Vec<usize> = memmem::find_iter(input, b"\"fio version\"")
        .filter_map(|at| {
            let blank = input[..at]
                .iter()
                .rev()
                .take_while(|b| b.is_ascii_whitespace());
            let bracket = at.checked_sub(blank.count() + 1)?;
            (input[bracket] == b'{').then_some(bracket)
        })
        .collect();
    if starts.is_empty() {
        let names_jobs = [&b"\"jobs\""[..], b"\"client_stats\""]
            .iter()
            .any(|name| memmem::find(input, name).is_some());
        let first = memchr::memchr_iter(b'{', input).find(|&at| {
            let next = input[at + 1..].iter().find(|b| !b.is_ascii_whitespace());
            next == Some(&b'"')
        });
        starts.extend(first.filter(|_| names_jobs));
    }
    starts
}

/// A document read from the beginning of some bytes.
struct Parsed {
    results: Results,
    end: usize,
    warnings: Vec<String>,
    text: Vec<String>,
}

fn parse_prefix(bytes: &[u8]) -> Result<Parsed, JsonError> {
    let mut warnings = Vec::new();
    let mut text = Vec::new();
    let (document, end) = match read_strict(bytes) {
        Ok(read) => read,
        Err(_) => {
            let cut = JsonError::Cut { bytes: bytes.len() };
            let (repaired, repairs) = repair::repair(bytes).ok_or(cut)?;
            if repairs.not_numbers > 0 {
                warnings.push(format!(
                    "{} figures are not numbers (nan); they are left out",
                    repairs.not_numbers
                ));
            }
            text = repairs.foreign_lines;
            (read_tolerant(&repaired)?, repairs.consumed)
        }
    };
    if document.jobs.is_none() && document.client_stats.is_none() {
        return Err(JsonError::NotFio);
    }
    let results = convert::results(document, &mut warnings);
    Ok(Parsed {
        results,
        end,
        warnings,
        text,
    })
}

/// Reads the value at the beginning and says where it ends.
fn read_strict(bytes: &[u8]) -> Result<(raw::Document, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<raw::Document>();
    match stream.next() {
        Some(document) => document.map(|document| (document, stream.byte_offset())),
        None => Ok((raw::Document::default(), bytes.len())),
    }
}

/// Reads a whole document in which a name may stand twice; the last one holds.
fn read_tolerant(bytes: &[u8]) -> Result<raw::Document, JsonError> {
    let once = |first: serde_json::Error| {
        let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
        value
            .and_then(|value| raw::Document::deserialize(value).ok())
            .ok_or(first)
    };
    serde_json::from_slice(bytes)
        .or_else(once)
        .map_err(|error| JsonError::Syntax {
            line: error.line(),
            column: error.column(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::histogram::{bucket_of, middle_of};

    const SMALL: &str = r#"{
  "fio version" : "fio-3.33",
  "timestamp_ms" : 1700000000000,
  "jobs" : [
    {
      "jobname" : "a",
      "groupid" : 0,
      "error" : 0,
      "read" : {
        "io_bytes" : 8192, "io_kbytes" : 8, "bw_bytes" : 8192, "bw" : 8,
        "iops" : 2.000000, "runtime" : 1000, "total_ios" : 2,
        "clat_ns" : {
          "min" : 1000, "max" : 2000, "mean" : 1500.000000, "stddev" : 707.1, "N" : 2,
          "percentile" : { "50.000000" : 1004, "99.000000" : 2008 },
          "bins" : { "1004" : 1, "2008" : 1 }
        }
      },
      "usr_cpu" : 0.5, "sys_cpu" : 1.5
    }
  ]
}"#;

    #[test]
    fn documents_are_found_between_text() {
        let input = format!("fio: note\n\n{SMALL}\nbetween {{braces}}\n{SMALL}\nafter\n");
        let scan = scan(input.as_bytes());
        assert_eq!(scan.documents.len(), 2);
        assert_eq!(scan.text, ["fio: note", "between {braces}", "after"]);
        assert!(!scan.truncated);
        for document in &scan.documents {
            assert_eq!(&input[document.raw.clone()], SMALL);
            assert_eq!(document.results.jobs[0].read.as_ref().unwrap().total_ios, 2);
        }
    }

    #[test]
    fn a_cut_document_is_told_from_the_whole_ones() {
        for cut in 20..SMALL.len() - 1 {
            let input = format!("{SMALL}\n{}", &SMALL[..cut]);
            let scan = scan(input.as_bytes());
            assert_eq!(
                (scan.documents.len(), scan.truncated),
                (1, true),
                "cut at {cut}"
            );
            let input = format!("{}{SMALL}\n", &SMALL[..cut]);
            let scan = super::scan(input.as_bytes());
            assert_eq!(
                (scan.documents.len(), scan.truncated),
                (1, true),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn numbers_that_are_none_are_missing_with_a_warning() {
        for not in [
            "-nan",
            "nan",
            "inf",
            "-inf",
            "NaN",
            "-nan(ind)",
            "-1.#IND00",
        ] {
            let input = SMALL
                .replace("1500.000000", not)
                .replace("0.5,", &format!("{not},"));
            let document = scan(input.as_bytes()).documents.remove(0);
            let job = &document.results.jobs[0];
            assert_eq!(job.read.as_ref().unwrap().clat, None, "{not}");
            assert_eq!(job.cpu, None, "{not}");
            assert_eq!(document.warnings.len(), 2, "{:?}", document.warnings);
            assert_eq!(document.raw, 0..input.len());
        }
    }

    #[test]
    fn names_that_stand_twice_and_bad_strings_are_read() {
        let input = SMALL
            .replace("\"groupid\" : 0", "\"groupid\" : 7, \"groupid\" : 3")
            .replace("\"a\"", "\"C:\\dir\t\"");
        let mut input = input.into_bytes();
        let at = memmem::find(&input, b":\\dir").unwrap();
        input[at] = 0xff;
        let results = &scan(&input).documents[0].results;
        assert_eq!(results.jobs[0].group, 3);
        assert_eq!(results.jobs[0].name, "C\u{fffd}\\dir ");
    }

    #[test]
    fn a_message_inside_a_document_is_text() {
        let input = SMALL.replace(
            "      \"groupid\"",
            "fio: pid=1, err=5/file:x\n      \"groupid\"",
        );
        let scan = scan(input.as_bytes());
        assert_eq!(scan.documents.len(), 1);
        assert_eq!(scan.text, ["fio: pid=1, err=5/file:x"]);
    }

    #[test]
    fn what_is_not_fio_is_refused_with_the_reason() {
        let parse = |text: &str| parse_document(text.as_bytes()).unwrap_err();
        assert_eq!(parse("{\"a\": 1}"), JsonError::NotFio);
        assert_eq!(parse("{\"a\": 1"), JsonError::Cut { bytes: 7 });
        assert!(matches!(
            parse("{\"a\" 1}"),
            JsonError::Syntax {
                line: 1,
                column: 6,
                ..
            }
        ));
        let after = SMALL.lines().count() + 1;
        assert!(matches!(
            parse(&format!("{SMALL}\n x")),
            JsonError::Syntax { line, column: 2, .. } if line == after
        ));
        assert!(parse_document(SMALL.as_bytes()).is_ok());
    }

    /// fio's `plat_idx_to_val` (stat.c): the value that stands for a bucket.
    fn fio_value_of(bucket: u64) -> u64 {
        if bucket < 128 {
            return bucket;
        }
        let error_bits = (bucket >> 6) - 1;
        let base = 1u64 << (error_bits + 6);
        (base as f64 + ((bucket % 64) as f64 + 0.5) * (1u64 << error_bits) as f64) as u64
    }

    #[test]
    fn every_bin_of_fio_lands_in_its_own_bucket() {
        for bucket in 0..1856u64 {
            let value = fio_value_of(bucket);
            assert_eq!(bucket_of(value) as u64, bucket, "value {value}");
            assert_eq!(middle_of(bucket as usize), value, "bucket {bucket}");
        }
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        let many = format!(
            "{{\"fio version\":\"x\",\"jobs\":[{}{{}}]}}",
            "{},".repeat(70_000)
        );
        assert!(matches!(
            parse_document(many.as_bytes()),
            Err(JsonError::Syntax { .. })
        ));
        let few = "{\"fio version\":\"x\",\"jobs\":[{}]}".repeat(10_000);
        let scan = scan(few.as_bytes());
        assert!(scan.documents.len() < 5_000);
        assert!(matches!(
            scan.malformed[..],
            [JsonError::TooManyJobs { .. }]
        ));
    }

    #[test]
    fn the_time_to_scan_hostile_text_is_linear() {
        // Each of these makes a scanner that starts anew at every bracket quadratic.
        for hostile in [
            "{\"a\":[",
            "{",
            "{\"fio version\"",
            "\"{",
            "{\"fio version\":[[",
            "-nan",
        ] {
            let input = hostile.repeat(200_000);
            assert!(scan(input.as_bytes()).documents.is_empty());
        }
    }
}
