//! Structures of Thrift in its compact protocol, as far as Parquet's need it:
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// Types of fields.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Writes one structure; fields come in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Compact {
    bytes: Vec<u8>,
    /// Number of the field before.
    last: i16,
}

impl Compact {
    /// A field of 32 bits, or of an enum.
    pub(super) fn number(&mut self, field: i16, value: i64) {
        self.field(field, I32);
        zigzag(&mut self.bytes, value);
    }

    /// A field of 64 bits.
    pub(super) fn long(&mut self, field: i16, value: i64) {
        self.field(field, I64);
        zigzag(&mut self.bytes, value);
    }

    /// A field of words.
    pub(super) fn words(&mut self, field: i16, words: &str) {
        self.field(field, BINARY);
        self.text(words);
    }

    /// A list of numbers of 32 bits.
    pub(super) fn numbers(&mut self, field: i16, all: &[i64]) {
        self.field(field, LIST);
        self.begin_list(all.len(), I32);
        all.iter().for_each(|&value| zigzag(&mut self.bytes, value));
    }

    /// A list of words.
    pub(super) fn texts(&mut self, field: i16, all: &[&str]) {
        self.field(field, LIST);
        self.begin_list(all.len(), BINARY);
        all.iter().for_each(|words| self.text(words));
    }

    /// A list of so many structures, each of which `fill` writes by [`Compact::item`].
    pub(super) fn list(&mut self, field: i16, n: usize, fill: impl FnOnce(&mut Self)) {
        self.field(field, LIST);
        self.begin_list(n, STRUCT);
        fill(self);
    }

    /// A structure as a field.
    pub(super) fn within(&mut self, field: i16, fill: impl FnOnce(&mut Self)) {
        self.field(field, STRUCT);
        self.item(fill);
    }

    /// A structure of a list.
    pub(super) fn item(&mut self, fill: impl FnOnce(&mut Self)) {
        let last = std::mem::take(&mut self.last);
        fill(self);
        self.bytes.push(0);
        self.last = last;
    }

    /// Ends it.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// Numbers of fields are at most 15 apart here: the short form of a head.
    fn field(&mut self, field: i16, kind: u8) {
        let step = (field - self.last) as u8;
        debug_assert!((1..16).contains(&step), "field {field}");
        self.bytes.push(step << 4 | kind);
        self.last = field;
    }

    fn begin_list(&mut self, n: usize, kind: u8) {
        match n {
            0..15 => self.bytes.push((n as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, n as u64);
            }
        }
    }

    fn text(&mut self, words: &str) {
        varint(&mut self.bytes, words.len() as u64);
        self.bytes.extend(words.as_bytes());
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
pub(super) fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A number with a sign: 0, -1, 1, -2 … are 0, 1, 2, 3 ….
fn zigzag(to: &mut Vec<u8>, value: i64) {
    varint(to, (value << 1 ^ value >> 63) as u64);
}
