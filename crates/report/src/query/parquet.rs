//! Rows as a file of Apache Parquet, as others read it: every column may lack values, a
//! value stands as it is (PLAIN), pages are packed by Zstandard.
//!
//! Format: <https://github.com/apache/parquet-format>, README.md (layout), Encodings.md,
//! parquet.thrift (numbers of fields and enums, which stand here as in that file).

mod thrift;

use std::io;

use thrift::Compact;

use super::{Datum, DatumKind};

/// The mark at both ends of a file.
const MAGIC: &[u8] = b"PAR1";
/// Rows are written in groups of so many, where columns have a kind from the start.
const GROUP_ROWS: usize = 1 << 16;
/// A page ends behind so many rows or bytes: who reads unpacks one at a time.
const PAGE_ROWS: usize = 1 << 13;
const PAGE_BYTES: usize = 1 << 20;
/// Zstandard's own choice between time and size.
const ZSTD_LEVEL: i32 = 3;
/// `CompressionCodec.ZSTD`.
const ZSTD: i64 = 6;
/// `Encoding.PLAIN` and `Encoding.RLE`.
const PLAIN: i64 = 0;
const RLE: i64 = 3;
/// `FieldRepetitionType.OPTIONAL`: a value may be missing.
const OPTIONAL: i64 = 1;

impl DatumKind {
    /// The `Type` in Parquet: INT64, DOUBLE, BYTE_ARRAY.
    fn parquet(self) -> i64 {
        match self {
            Self::Integer => 2,
            Self::Real => 5,
            Self::Text => 6,
        }
    }
}

/// Values of one column that wait for their group, without those that are missing.
#[derive(Debug)]
enum Values {
    /// None is known so far.
    None,
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Words(Vec<String>),
}

impl Values {
    fn of(kind: Option<DatumKind>) -> Self {
        match kind {
            None => Self::None,
            Some(DatumKind::Integer) => Self::Whole(Vec::new()),
            Some(DatumKind::Real) => Self::Number(Vec::new()),
            Some(DatumKind::Text) => Self::Words(Vec::new()),
        }
    }

    /// Of what nobody knows any kind will do; numbers are what is missing most.
    fn kind(&self) -> DatumKind {
        match self {
            Self::None | Self::Whole(_) => DatumKind::Integer,
            Self::Number(_) => DatumKind::Real,
            Self::Words(_) => DatumKind::Text,
        }
    }

    /// Adds a value. One of another kind makes all of them numbers, or words.
    fn push(&mut self, value: &Datum) {
        match (&mut *self, value) {
            (_, Datum::Missing) => {}
            (Self::Whole(all), Datum::Whole(value)) => all.push(*value),
            (Self::Number(all), Datum::Number(value)) => all.push(*value),
            (Self::Number(all), Datum::Whole(value)) => all.push(*value as f64),
            (Self::Words(all), Datum::Words(words)) => all.push(words.as_ref().to_owned()),
            (Self::Words(all), Datum::Whole(value)) => all.push(value.to_string()),
            (Self::Words(all), Datum::Number(value)) => all.push(value.to_string()),
            (_, value) => {
                self.widen(value);
                self.push(value);
            }
        }
    }

    fn widen(&mut self, to: &Datum) {
        *self = match (std::mem::replace(self, Self::None), to) {
            (Self::None, Datum::Whole(_)) => Self::Whole(Vec::new()),
            (Self::None, Datum::Number(_)) => Self::Number(Vec::new()),
            (Self::Whole(all), Datum::Number(_)) => {
                Self::Number(all.into_iter().map(|value| value as f64).collect())
            }
            (Self::Whole(all), _) => Self::Words(all.iter().map(ToString::to_string).collect()),
            (Self::Number(all), _) => Self::Words(all.iter().map(ToString::to_string).collect()),
            (as_it_is, _) => as_it_is,
        };
        if matches!(self, Self::None) {
            *self = Self::Words(Vec::new());
        }
    }

    /// Whether a value fits without another kind.
    fn takes(&self, value: &Datum) -> bool {
        matches!(
            (self, value),
            (Self::Whole(_), Datum::Whole(_))
                | (Self::Number(_), Datum::Whole(_) | Datum::Number(_))
                | (Self::Words(_), Datum::Words(_))
        )
    }

    fn clear(&mut self) {
        match self {
            Self::None => {}
            Self::Whole(all) => all.clear(),
            Self::Number(all) => all.clear(),
            Self::Words(all) => all.clear(),
        }
    }

    /// Appends one as it stands in a file.
    fn put(&self, at: usize, to: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Whole(all) => to.extend(all[at].to_le_bytes()),
            Self::Number(all) => to.extend(all[at].to_le_bytes()),
            Self::Words(all) => {
                to.extend((all[at].len() as u32).to_le_bytes());
                to.extend(all[at].as_bytes());
            }
        }
    }
}

/// A column: which rows have a value, and the values.
#[derive(Debug)]
struct Column {
    name: String,
    is_there: Vec<bool>,
    values: Values,
}

/// Where a column of a group stands.
#[derive(Debug)]
struct Chunk {
    at: u64,
    packed: u64,
    plain: u64,
}

/// A group of rows that is written.
#[derive(Debug)]
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// Makes a file, row by row; who writes it takes [`ParquetFile::take`] from time to time.
#[derive(Debug)]
pub struct ParquetFile {
    columns: Vec<Column>,
    /// Whether rows need not wait for the last one, which may be of another kind.
    is_settled: bool,
    rows: usize,
    groups: Vec<Group>,
    /// What is written, but for what was taken.
    bytes: Vec<u8>,
    taken: u64,
}

impl ParquetFile {
    /// Begins one with these columns. Without a kind a column gets that of its values, and
    /// all rows wait in memory until the end.
    pub fn new(columns: impl IntoIterator<Item = (String, Option<DatumKind>)>) -> Self {
        let mut is_settled = true;
        let columns = columns.into_iter().map(|(name, kind)| {
            is_settled &= kind.is_some();
            Column {
                name,
                is_there: Vec::new(),
                values: Values::of(kind),
            }
        });
        Self {
            columns: columns.collect(),
            is_settled,
            rows: 0,
            groups: Vec::new(),
            bytes: MAGIC.to_vec(),
            taken: 0,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When pages cannot be packed: there is no memory.
    pub fn row(&mut self, row: &[Datum]) -> io::Result<()> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            // A kind that stands in written groups stays: what is beyond it, as a number
            // above 2⁶³, is not told.
            let is_told =
                *value != Datum::Missing && (!self.is_settled || column.values.takes(value));
            column.is_there.push(is_told);
            if is_told {
                column.values.push(value);
            }
        }
        self.rows += 1;
        match self.is_settled && self.rows >= GROUP_ROWS {
            true => self.end_group(),
            false => Ok(()),
        }
    }

    /// The bytes that follow those taken before.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }

    /// Ends it; the rest of its bytes.
    ///
    /// # Errors
    /// As for a row.
    pub fn end(mut self) -> io::Result<Vec<u8>> {
        self.end_group()?;
        let footer = self.footer();
        self.bytes.extend(&footer);
        self.bytes.extend((footer.len() as u32).to_le_bytes());
        self.bytes.extend(MAGIC);
        Ok(self.bytes)
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for column in &mut self.columns {
            let at = self.taken + self.bytes.len() as u64;
            let plain = column.write(&mut self.bytes)?;
            let packed = self.taken + self.bytes.len() as u64 - at;
            chunks.push(Chunk { at, packed, plain });
            column.is_there.clear();
            column.values.clear();
        }
        let rows = std::mem::take(&mut self.rows);
        self.groups.push(Group { rows, chunks });
        Ok(())
    }

    /// `FileMetaData`.
    fn footer(&self) -> Vec<u8> {
        let mut meta = Compact::default();
        meta.number(1, 1);
        meta.list(2, self.columns.len() + 1, |meta| {
            meta.item(|root| {
                root.words(4, "rows");
                root.number(5, self.columns.len() as i64);
            });
            for column in &self.columns {
                meta.item(|schema| column.schema(schema));
            }
        });
        let rows: usize = self.groups.iter().map(|group| group.rows).sum();
        meta.long(3, rows as i64);
        meta.list(4, self.groups.len(), |meta| {
            for group in &self.groups {
                meta.item(|meta| self.group(group, meta));
            }
        });
        meta.words(6, concat!("fathom ", env!("CARGO_PKG_VERSION")));
        meta.end()
    }

    /// `RowGroup`.
    fn group(&self, group: &Group, meta: &mut Compact) {
        meta.list(1, group.chunks.len(), |meta| {
            for (column, chunk) in self.columns.iter().zip(&group.chunks) {
                // `ColumnChunk`, and `ColumnMetaData` within.
                meta.item(|meta| {
                    meta.long(2, chunk.at as i64);
                    meta.within(3, |meta| {
                        meta.number(1, column.values.kind().parquet());
                        meta.numbers(2, &[PLAIN, RLE]);
                        meta.texts(3, &[&column.name]);
                        meta.number(4, ZSTD);
                        meta.long(5, group.rows as i64);
                        meta.long(6, chunk.plain as i64);
                        meta.long(7, chunk.packed as i64);
                        meta.long(9, chunk.at as i64);
                    });
                });
            }
        });
        let plain: u64 = group.chunks.iter().map(|chunk| chunk.plain).sum();
        meta.long(2, plain as i64);
        meta.long(3, group.rows as i64);
    }
}

impl Column {
    /// `SchemaElement`.
    fn schema(&self, schema: &mut Compact) {
        let kind = self.values.kind();
        schema.number(1, kind.parquet());
        schema.number(3, OPTIONAL);
        schema.words(4, &self.name);
        if kind == DatumKind::Text {
            // Words, for old readers (`ConvertedType.UTF8`) and new ones (`STRING`).
            schema.number(6, 0);
            schema.within(10, |logical| logical.within(1, |_| {}));
        }
    }

    /// Writes all rows as pages; how many bytes these are unpacked, heads included.
    fn write(&self, to: &mut Vec<u8>) -> io::Result<u64> {
        let mut plain = 0;
        let (mut from, mut value) = (0, 0);
        while from < self.is_there.len() {
            let mut body = Vec::new();
            let mut until = from;
            let is_full =
                |rows: usize, bytes: &Vec<u8>| rows >= PAGE_ROWS || bytes.len() >= PAGE_BYTES;
            while until < self.is_there.len() && !is_full(until - from, &body) {
                if self.is_there[until] {
                    self.values.put(value, &mut body);
                    value += 1;
                }
                until += 1;
            }
            let mut page = levels(&self.is_there[from..until]);
            page.append(&mut body);
            let packed = zstd::bulk::compress(&page, ZSTD_LEVEL)?;
            let head = head(until - from, page.len(), packed.len());
            plain += (head.len() + page.len()) as u64;
            to.extend(head);
            to.extend(packed);
            from = until;
        }
        Ok(plain)
    }
}

/// Which rows have a value: definition levels of 0 and 1, one run of bits behind the
/// length of all of it.
fn levels(is_there: &[bool]) -> Vec<u8> {
    let bits = is_there.chunks(8).map(|eight| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (at, is_there)| byte | u8::from(*is_there) << at)
    });
    let mut run = Vec::new();
    thrift::varint(&mut run, (is_there.len().div_ceil(8) as u64) << 1 | 1);
    run.extend(bits);
    let mut levels = (run.len() as u32).to_le_bytes().to_vec();
    levels.append(&mut run);
    levels
}

/// `PageHeader` of a `DATA_PAGE`, with its `DataPageHeader`.
fn head(rows: usize, plain: usize, packed: usize) -> Vec<u8> {
    let mut head = Compact::default();
    head.number(1, 0);
    head.number(2, plain as i64);
    head.number(3, packed as i64);
    head.within(5, |head| {
        head.number(1, rows as i64);
        head.number(2, PLAIN);
        head.number(3, RLE);
        head.number(4, RLE);
    });
    head.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_value() {
        let mut values = Values::None;
        values.push(&Datum::Missing);
        assert_eq!(values.kind(), DatumKind::Integer);
        values.push(&Datum::Whole(7));
        values.push(&Datum::Number(0.5));
        assert!(matches!(&values, Values::Number(all) if all[..] == [7.0, 0.5]));
        values.push(&Datum::from("x"));
        values.push(&Datum::Whole(-1));
        assert!(matches!(&values, Values::Words(all) if all[..] == ["7", "0.5", "x", "-1"]));
        let mut words = Values::None;
        words.push(&Datum::from(""));
        assert_eq!(words.kind(), DatumKind::Text);
    }

    #[test]
    fn what_is_there_is_told_in_bits() {
        // One group of 8 (1 << 1 | 1), lowest bit first.
        assert_eq!(levels(&[true, false, true]), [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(levels(&[true; 9]), [3, 0, 0, 0, 5, 0xff, 1]);
    }

    #[test]
    fn a_file_has_its_mark_at_both_ends_and_the_length_of_its_footer() {
        let file = ParquetFile::new([("a".to_owned(), Some(DatumKind::Integer))]);
        let bytes = file.end().unwrap();
        assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (MAGIC, MAGIC));
        let length = bytes[bytes.len() - 8..].first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, bytes.len() - 12);
    }
}
