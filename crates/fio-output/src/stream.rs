//! fio's standard output, cut while it arrives.
//!
//! fio is started with [`OUTPUT_FORMAT`], so that each status (one an interval,
//! one at the end) is written as a *set*: the terse lines, the JSON document,
//! the normal text, in this order (`__show_run_stats` in stat.c flushes its
//! outputs so). Only the last set is kept: a run of days needs no more memory
//! and no more disk than a short one.

/// What fio is asked to write: everything a person may want to have at the end.
pub const OUTPUT_FORMAT: &str = "normal,terse,json+";

/// Most bytes of text outside of sets that are kept; a job that goes on after
/// errors may write a line for each.
const TEXT_MAX: usize = 1 << 20;
/// Longest line: terse, of a job with disks and a description.
const LINE_MAX: usize = 16 << 20;
/// Longest set: 4096 jobs (fio's usual limit) of json+ take about 120 MB.
const SET_MAX: usize = 512 << 20;

/// One status of fio in its three formats, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusSet {
    /// Terse lines.
    pub terse: Vec<u8>,
    /// The JSON document, format json+.
    pub json: Vec<u8>,
    /// Text for people.
    pub normal: Vec<u8>,
}

/// Something whole that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'s> {
    /// A line outside of the sets: a message.
    Message(&'s str),
    /// A JSON document is whole.
    Document(&'s [u8]),
}

/// Cuts fio's standard output.
#[derive(Debug, Default)]
pub struct OutputCutter {
    /// The line that is not whole yet.
    line: Vec<u8>,
    place: StreamPosition,
    /// What stands before the first set, and messages between sets.
    text: Vec<u8>,
    set: StatusSet,
    /// Whether bytes had to be left out.
    overflowed: bool,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum StreamPosition {
    /// Before the first set.
    #[default]
    Preamble,
    /// In the terse lines of a set whose document has not begun.
    Terse,
    /// In the JSON document.
    Json,
    /// After the document.
    Normal,
}

impl OutputCutter {
    /// Takes what was read and tells each thing that became whole by it.
    pub fn push(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(Piece)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(end + 1);
            append(&mut self.line, head, LINE_MAX, &mut self.overflowed);
            bytes = tail;
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, take);
            if self.line.is_empty() {
                // Keep the allocation for the next line.
                self.line = line;
                self.line.clear();
            }
        }
        append(&mut self.line, bytes, LINE_MAX, &mut self.overflowed);
    }

    /// The output has ended: what is left counts as a line.
    pub fn finish(&mut self, take: &mut dyn FnMut(Piece)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, take);
        }
    }

    /// Whether the last document has begun and not ended.
    pub fn is_cut(&self) -> bool {
        self.place == StreamPosition::Json
    }

    /// Text before the first set and messages between sets.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The last set, whole or not.
    pub fn last_set(&self) -> &StatusSet {
        &self.set
    }

    /// Whether something was left out because it was too much to keep.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    fn take_line(&mut self, line: &[u8], take: &mut dyn FnMut(Piece)) {
        match self.place {
            StreamPosition::Json => self.json_line(line, take),
            _ if line.trim_ascii_end() == b"{" => {
                self.begin_set(StreamPosition::Terse);
                self.place = StreamPosition::Json;
                append(&mut self.set.json, line, SET_MAX, &mut self.overflowed);
            }
            _ if is_terse(line) => {
                self.begin_set(StreamPosition::Terse);
                append(&mut self.set.terse, line, SET_MAX, &mut self.overflowed);
            }
            // Terse version 2 puts a job's description on a line of its own.
            StreamPosition::Terse if !is_message(line) => {
                append(&mut self.set.terse, line, SET_MAX, &mut self.overflowed);
            }
            StreamPosition::Normal if !is_message(line) && is_normal(line) => {
                append(
                    &mut self.set.normal,
                    line,
                    TEXT_MAX.max(self.set.json.len()),
                    &mut self.overflowed,
                );
            }
            StreamPosition::Preamble | StreamPosition::Terse | StreamPosition::Normal => {
                self.message(line, take)
            }
        }
    }

    /// Forgets the last set when another one begins.
    fn begin_set(&mut self, place: StreamPosition) {
        if self.place != place {
            self.set.terse.clear();
            self.set.json.clear();
            self.set.normal.clear();
            self.place = place;
        }
    }

    fn json_line(&mut self, line: &[u8], take: &mut dyn FnMut(Piece)) {
        // A job process shares this pipe; its message can fall between two
        // blocks of the document, in the middle of a line.
        if let Some(at) = memchr::memmem::find(line, b"fio: pid=") {
            self.message(&line[at..], take);
            self.line.extend_from_slice(&line[..at]);
            return;
        }
        append(&mut self.set.json, line, SET_MAX, &mut self.overflowed);
        if line.trim_ascii_end() == b"}" {
            self.place = StreamPosition::Normal;
            take(Piece::Document(&self.set.json));
        }
    }

    fn message(&mut self, line: &[u8], take: &mut dyn FnMut(Piece)) {
        // fio puts an empty line before some messages; it is the message's.
        if self.place == StreamPosition::Normal && self.set.normal.ends_with(b"\n\n") {
            self.set.normal.pop();
            append(&mut self.text, b"\n", TEXT_MAX, &mut self.overflowed);
        }
        append(&mut self.text, line, TEXT_MAX, &mut self.overflowed);
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if !text.is_empty() {
            take(Piece::Message(text));
        }
    }
}

fn append(to: &mut Vec<u8>, bytes: &[u8], most: usize, overflowed: &mut bool) {
    if to.len() + bytes.len() <= most {
        to.extend_from_slice(bytes);
    } else {
        *overflowed = true;
    }
}

/// Terse versions 3 to 5 begin with their number and fio's version, version 2
/// with its number alone.
fn is_terse(line: &[u8]) -> bool {
    matches!(line, [b'3'..=b'5', b';', rest @ ..] if rest.starts_with(b"fio-"))
        || line.starts_with(b"2;")
}

/// Lines that fio or a job writes whenever it happens, not as a part of a status.
fn is_message(line: &[u8]) -> bool {
    line.starts_with(b"fio: ")
        || memchr::memmem::find(line, b": Laying out IO file").is_some()
        || line.starts_with(b"note: ")
        || line.starts_with(b"verify: ")
}

/// Whether a line can be a part of the normal text: a block's head, which tells
/// its group, the head of one of the closing parts (`show_thread_status_normal`
/// in stat.c, `show_disk_util` in diskutil.c, `show_idle_prof_stats` in
/// idletime.c), or what is indented below one. Everything else was written by
/// somebody who shares fio's output: a trigger's command, an engine's library.
fn is_normal(line: &[u8]) -> bool {
    const PARTS: [&[u8]; 3] = [b"Run status group ", b"Disk stats", b"CPU idleness:"];
    line.trim_ascii().is_empty()
        || line.starts_with(b" ")
        || memchr::memmem::find(line, b": (groupid=").is_some()
        || PARTS.iter().any(|part| line.starts_with(part))
}

/// What `--output-format` may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text for people.
    Normal,
    /// Semicolons.
    Terse,
    /// JSON without histograms.
    Json,
    /// JSON with histograms.
    JsonPlus,
}

/// The parts of a kept output that fio itself would have written in `formats`, in its
/// order (stat.c, __show_run_stats).
pub fn select(kept: &[u8], formats: &[OutputFormat]) -> Vec<u8> {
    let mut stream = OutputCutter::default();
    stream.push(kept, &mut |_| ());
    stream.finish(&mut |_| ());
    let set = stream.set;
    let part = |format, part| match formats.contains(&format) {
        true => part,
        false => Vec::new(),
    };
    let json = match formats.contains(&OutputFormat::JsonPlus) {
        true => set.json,
        false => part(OutputFormat::Json, without_bins(&set.json)),
    };
    [
        part(OutputFormat::Normal, stream.text),
        part(OutputFormat::Terse, set.terse),
        json,
        part(OutputFormat::Normal, set.normal),
    ]
    .concat()
}

/// json+ without its `bins` members: byte for byte what fio writes as json.
fn without_bins(json: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(json.len());
    let mut inside = false;
    for line in json.split_inclusive(|&byte| byte == b'\n') {
        let text = line.trim_ascii();
        if inside {
            inside = text != b"}" && text != b"},";
            // The last member of an object has no comma behind it.
            if text == b"}" && kept.ends_with(b",\n") {
                kept.truncate(kept.len() - 2);
                kept.push(b'\n');
            }
        } else if text.starts_with(b"\"bins\" : {") {
            inside = true;
        } else {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "a: (g=0): rw=read\nStarting 1 process\n\
        3;fio-3.33;a;0;0;4\n{\n  \"jobs\" : [\n  ]\n}\n\na: (groupid=0, jobs=1): err= 0\n\nDisk stats\n\
        \nfio: terminating on signal 2\n\
        3;fio-3.33;a;0;0;8\n{\n  \"jobs\" : 2\n}\n\na: (groupid=0, jobs=1): err= 0 last\n";

    fn cut(input: &[u8], step: usize) -> (OutputCutter, Vec<String>) {
        let mut stream = OutputCutter::default();
        let mut pieces = Vec::new();
        let mut take = |piece: Piece| {
            pieces.push(match piece {
                Piece::Message(text) => text.to_owned(),
                Piece::Document(json) => format!("document {}", json.len()),
            });
        };
        for chunk in input.chunks(step) {
            stream.push(chunk, &mut take);
        }
        stream.finish(&mut take);
        (stream, pieces)
    }

    #[test]
    fn sets_are_cut_wherever_the_reads_end() {
        for step in 1..40 {
            let (stream, pieces) = cut(KEPT.as_bytes(), step);
            assert_eq!(
                pieces,
                [
                    "a: (g=0): rw=read",
                    "Starting 1 process",
                    "document 21",
                    "fio: terminating on signal 2",
                    "document 17",
                ]
            );
            assert!(!stream.is_cut());
        }
    }

    #[test]
    fn each_format_gets_its_part() {
        let text = |format| String::from_utf8(select(KEPT.as_bytes(), format)).unwrap();
        assert_eq!(text(&[OutputFormat::Terse]), "3;fio-3.33;a;0;0;8\n");
        // As many as are wanted, in fio's order.
        let two = text(&[OutputFormat::Json, OutputFormat::Terse]);
        assert_eq!(two, "3;fio-3.33;a;0;0;8\n{\n  \"jobs\" : 2\n}\n");
        assert_eq!(text(&[OutputFormat::JsonPlus]), "{\n  \"jobs\" : 2\n}\n");
        assert_eq!(
            text(&[OutputFormat::Normal]),
            "a: (g=0): rw=read\nStarting 1 process\n\nfio: terminating on signal 2\n\
             \na: (groupid=0, jobs=1): err= 0 last\n"
        );
    }

    #[test]
    fn what_a_trigger_prints_between_two_statuses_is_kept() {
        let input = "Starting 1 process\n{\n}\n\na: (groupid=0, jobs=1): err= 0 first\n\n\
                     Run status group 0 (all jobs):\n   READ: bw=1\nTRIGGERED\n{\n}\n\n\
                     a: (groupid=0, jobs=1): err= 0 last\n";
        let normal = String::from_utf8(select(input.as_bytes(), &[OutputFormat::Normal])).unwrap();
        assert_eq!(
            normal,
            "Starting 1 process\nTRIGGERED\n\na: (groupid=0, jobs=1): err= 0 last\n"
        );
    }

    #[test]
    fn a_message_of_a_job_inside_a_document_is_taken_out() {
        let input = "{\n  \"a\" : 1fio: pid=7, err=28/file:x\n2,\n  \"b\" : 3\n}\n";
        let (stream, pieces) = cut(input.as_bytes(), 5);
        assert_eq!(pieces, ["fio: pid=7, err=28/file:x", "document 26"]);
        assert_eq!(
            stream.last_set().json,
            b"{\n  \"a\" : 12,\n  \"b\" : 3\n}\n"
        );
    }

    #[test]
    fn a_document_that_never_ends_is_told() {
        let (stream, pieces) = cut(b"{\n  \"jobs\" : [\n", 4);
        assert!(stream.is_cut() && pieces.is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let mut stream = OutputCutter::default();
        let chunk = vec![b'x'; 1 << 20];
        (0..40).for_each(|_| stream.push(&chunk, &mut |_| ()));
        assert!(stream.overflowed() && stream.line.len() <= LINE_MAX);
    }

    #[test]
    fn text_that_floods_is_bounded() {
        let flood = "fio: io_u error\n".repeat(100_000);
        let (stream, _) = cut(flood.as_bytes(), 8192);
        assert!(stream.overflowed() && stream.text().len() <= TEXT_MAX);
    }
}
