//! Reads `assets/vpic/vpic.bin`; its format is described in `import.py` beside it.
//!
//! Opening a [`Vpic`] costs nothing. Blocks of a few kilobytes are inflated when they are needed, and some are kept. Every
//! offset and length is checked: a damaged file gives "unknown", never a panic.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use miniz_oxide::inflate::decompress_slice_iter_to_slice;

use crate::number::FIRST_YEAR;

static FILE: &[u8] = include_bytes!("../assets/vpic/vpic.bin");

const MAGIC: &[u8] = b"VPICDATA";
const FORMAT: u16 = 1;
const SOURCE_HASH_BYTES: usize = 32;

/// Most bytes of an inflated block.
const MAX_BLOCK_BYTES: usize = 1 << 17;
/// Inflated blocks kept per list. A decode that looks for a mistyped character opens many; with this limit it stays below
/// 1.5 MB.
const MAX_KEPT_BLOCKS: usize = 24;

const RANK_FOLLOWS: u8 = 128;
const OPEN_YEAR: u8 = 255;

/// A kind of fact about a vehicle. The numbers are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Model,
    Trim,
    Series,
    BodyClass,
    DriveType,
    FuelType,
    Transmission,
    WeightRating,
    PlantCity,
    PlantState,
    PlantCountry,
    Doors,
    Cylinders,
    Litres,
    CubicCentimetres,
    CubicInches,
    Horsepower,
    Engine,
}

impl Element {
    pub const ALL: [Element; 18] = [
        Element::Model,
        Element::Trim,
        Element::Series,
        Element::BodyClass,
        Element::DriveType,
        Element::FuelType,
        Element::Transmission,
        Element::WeightRating,
        Element::PlantCity,
        Element::PlantState,
        Element::PlantCountry,
        Element::Doors,
        Element::Cylinders,
        Element::Litres,
        Element::CubicCentimetres,
        Element::CubicInches,
        Element::Horsepower,
        Element::Engine,
    ];

    fn from_number(number: u8) -> Option<Element> {
        Element::ALL.get(usize::from(number)).copied()
    }
}

/// A manufacturer registered under a maker's code.
pub struct Maker {
    /// A passenger car or light truck, whose position 7 indicates the year cycle.
    pub is_car: bool,
    pub vehicle_type: Option<String>,
    pub manufacturer: Option<String>,
    /// The make of all its vehicles, if there is only one.
    pub only_make: Option<String>,
    /// Its schemas, the most important first.
    pub links: Vec<Link>,
}

/// A schema and the model years for which it describes one maker's vehicles.
#[derive(Clone, Copy)]
pub struct Link {
    schema: u32,
    first_year: u16,
    last_year: u16,
}

impl Link {
    pub fn covers(&self, year: u16) -> bool {
        (self.first_year..=self.last_year).contains(&year)
    }
}

/// The patterns of one group of vehicles.
pub struct Schema {
    block: Rc<Block>,
    record: Range<usize>,
}

/// One fact of a schema, stored under a key.
pub struct Row {
    pub element: Element,
    /// If two rows match a number, the one with the higher rank applies.
    pub rank: u32,
    /// Number of the value's string or, for an engine, of the engine.
    pub value: u32,
    /// For a model, the number of its make's string.
    pub make: u32,
}

/// The date of the newest fact in the data, as `YYYY-MM-DD`.
pub fn data_date() -> &'static str {
    Header::read(FILE).unwrap_or_default().date
}

#[derive(Default)]
struct Header {
    date: &'static str,
    sections: [&'static [u8]; 5],
}

impl Header {
    fn read(file: &'static [u8]) -> Option<Header> {
        let mut reader = Reader(file);
        if reader.bytes(MAGIC.len())? != MAGIC || reader.u16()? != FORMAT {
            return None;
        }
        reader.bytes(SOURCE_HASH_BYTES)?;
        let _source = reader.text()?;
        let date = std::str::from_utf8(reader.text()?).ok()?;
        let _counts = reader.bytes(12)?;
        let mut sections = [&file[..0]; 5];
        for section in &mut sections {
            let offset = reader.u32()? as usize;
            let length = reader.u32()? as usize;
            *section = file.get(offset..)?.get(..length)?;
        }
        Some(Header { date, sections })
    }
}

/// The compiled-in data.
pub struct Vpic {
    common: &'static [u8],
    first_codes: &'static [u8],
    makers: BlockList,
    schemas: BlockList,
    engines: BlockList,
}

impl Vpic {
    pub fn open() -> Vpic {
        Vpic::read(FILE)
    }

    fn read(file: &'static [u8]) -> Vpic {
        let header = Header::read(file).unwrap_or_default();
        let [common, first_codes, makers, schemas, engines] = header.sections;
        Vpic {
            common,
            first_codes,
            makers: BlockList::new(makers),
            schemas: BlockList::new(schemas),
            engines: BlockList::new(engines),
        }
    }

    /// All makers' codes.
    #[cfg(test)]
    pub fn codes(&mut self) -> Vec<Vec<u8>> {
        let blocks = (0..).map_while(|index| self.makers.open(index));
        blocks
            .flat_map(|block| {
                let codes = block.records().filter_map(|record| Some(Reader(&block.bytes[record]).text()?.to_vec()));
                codes.collect::<Vec<_>>()
            })
            .collect()
    }

    /// The manufacturer with this code (three or six characters).
    pub fn maker(&mut self, code: &[u8]) -> Option<Maker> {
        let index = self.maker_block(code)?;
        let block = self.makers.open(index)?;
        let record = block.records().find(|record| Reader(&block.bytes[record.clone()]).text() == Some(code))?;
        self.read_maker(&block, record)
    }

    /// The index of the only block that can contain a maker's code.
    fn maker_block(&self, code: &[u8]) -> Option<usize> {
        let (first_codes, _) = self.first_codes.as_chunks::<6>();
        let mut padded = [b' '; 6];
        padded.get_mut(..code.len())?.copy_from_slice(code);
        first_codes.partition_point(|first| *first <= padded).checked_sub(1)
    }

    fn read_maker(&self, block: &Block, record: Range<usize>) -> Option<Maker> {
        let mut reader = Reader(block.bytes.get(record)?);
        reader.text()?;
        let is_car = reader.byte()? != 0;
        let mut optional = || {
            let number = reader.varint()?.checked_sub(1);
            Some(number.and_then(|number| self.string(block, number)))
        };
        let (vehicle_type, manufacturer, only_make) = (optional()?, optional()?, optional()?);
        let mut links = Vec::new();
        let mut schema = 0u32;
        while !reader.0.is_empty() {
            schema = schema.checked_add_signed(reader.signed()?)?;
            let first_year = FIRST_YEAR + u16::from(reader.byte()?);
            let last_year = match reader.byte()? {
                OPEN_YEAR => u16::MAX,
                years => FIRST_YEAR + u16::from(years),
            };
            links.push(Link { schema, first_year, last_year });
        }
        Some(Maker { is_car, vehicle_type, manufacturer, only_make, links })
    }

    pub fn schema(&mut self, link: Link) -> Option<Schema> {
        let (block, record) = self.schemas.record(link.schema)?;
        Some(Schema { block, record })
    }

    /// The text of a row's value or make.
    pub fn text(&self, schema: &Schema, number: u32) -> Option<String> {
        self.string(&schema.block, number)
    }

    /// The facts of an engine model, by its number in the data.
    pub fn engine_facts(&mut self, number: u32) -> Vec<(Element, String)> {
        let mut facts = Vec::new();
        let found = number.checked_sub(1).and_then(|index| self.engines.record(index));
        if let Some((block, record)) = found {
            let mut reader = Reader(&block.bytes[record]);
            while let Some((element, value)) = reader.byte().zip(reader.varint()) {
                facts.extend(Element::from_number(element).zip(self.string(&block, value)));
            }
        }
        facts
    }

    fn string(&self, block: &Block, number: u32) -> Option<String> {
        let number = number as usize;
        let count = usize::from(Reader(self.common).u16()?);
        let bytes = if number < count {
            self.common_string(count, number)?
        } else {
            block.bytes.get(block.strings.get(number - count)?.clone())?
        };
        let text = std::str::from_utf8(bytes).ok()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn common_string(&self, count: usize, number: usize) -> Option<&'static [u8]> {
        let mut ends = Reader(self.common.get(2 + 2 * number..)?);
        let (start, end) = (usize::from(ends.u16()?), usize::from(ends.u16()?));
        self.common.get(2 + 2 * (count + 1)..)?.get(start..end)
    }
}

impl Schema {
    /// Calls `visit` with each key and its rows.
    pub fn visit_keys(&self, mut visit: impl FnMut(&[u8], &[Row])) {
        let mut reader = Reader(&self.block.bytes[self.record.clone()]);
        let mut rows = Vec::new();
        while let Some(key) = read_key(&mut reader, &mut rows) {
            visit(key, &rows);
        }
    }
}

/// Reads the next key of a schema; its rows go into `rows`.
fn read_key<'a>(reader: &mut Reader<'a>, rows: &mut Vec<Row>) -> Option<&'a [u8]> {
    let key = reader.text()?;
    let count = reader.byte()?;
    rows.clear();
    for _ in 0..count {
        rows.push(read_row(reader)?);
    }
    Some(key)
}

fn read_row(reader: &mut Reader<'_>) -> Option<Row> {
    let tag = reader.byte()?;
    let element = Element::from_number(tag & !RANK_FOLLOWS)?;
    let value = reader.varint()?;
    let make = match element {
        Element::Model => reader.varint()?,
        _ => 0,
    };
    let rank = match tag & RANK_FOLLOWS {
        0 => 0,
        _ => reader.varint()?,
    };
    Some(Row { element, rank, value, make })
}

/// Records in compressed blocks, found by number.
struct BlockList {
    entries: &'static [[u8; 12]],
    packed: &'static [u8],
    kept: HashMap<usize, Rc<Block>>,
}

/// An inflated block: strings, then records.
struct Block {
    bytes: Vec<u8>,
    strings: Vec<Range<usize>>,
    records_start: usize,
}

struct BlockEntry {
    first_record: u32,
    offset: usize,
    inflated: usize,
}

impl BlockList {
    fn new(section: &'static [u8]) -> BlockList {
        let (table, packed) = split_block_list(section).unwrap_or_default();
        BlockList { entries: table.as_chunks().0, packed, kept: HashMap::new() }
    }

    fn entry(&self, index: usize) -> Option<BlockEntry> {
        let mut reader = Reader(self.entries.get(index)?);
        Some(BlockEntry {
            first_record: reader.u32()?,
            offset: reader.u32()? as usize,
            inflated: reader.u32()? as usize,
        })
    }

    /// The block of a record, and its range there.
    fn record(&mut self, number: u32) -> Option<(Rc<Block>, Range<usize>)> {
        let index = self
            .entries
            .partition_point(|entry| Reader(entry).u32().is_some_and(|first| first <= number))
            .checked_sub(1)?;
        let place = number.checked_sub(self.entry(index)?.first_record)?;
        let block = self.open(index)?;
        let record = block.records().nth(place as usize)?;
        Some((block, record))
    }

    fn open(&mut self, index: usize) -> Option<Rc<Block>> {
        if let Some(block) = self.kept.get(&index) {
            return Some(block.clone());
        }
        let block = Rc::new(Block::inflate(self.packed(index)?, self.entry(index)?.inflated)?);
        if self.kept.len() == MAX_KEPT_BLOCKS {
            self.kept.clear();
        }
        self.kept.insert(index, block.clone());
        Some(block)
    }

    fn packed(&self, index: usize) -> Option<&'static [u8]> {
        let (start, end) = (self.entry(index)?.offset, self.entry(index + 1)?.offset);
        self.packed.get(start..end)
    }
}

/// Splits a block list into its table (one entry per block and one for the end) and its compressed blocks.
fn split_block_list(section: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(section);
    let count = reader.u32()? as usize;
    let table = reader.bytes(count.checked_add(1)?.checked_mul(12)?)?;
    Some((table, reader.0))
}

impl Block {
    fn inflate(packed: &[u8], length: usize) -> Option<Block> {
        if length > MAX_BLOCK_BYTES {
            return None;
        }
        let mut bytes = vec![0; length];
        let written = decompress_slice_iter_to_slice(&mut bytes, std::iter::once(packed), false, true).ok()?;
        bytes.truncate(written);
        let mut reader = Reader(&bytes);
        let count = reader.varint()?;
        let strings = (0..count).map(|_| reader.text_place(bytes.len())).collect::<Option<Vec<_>>>()?;
        let records_start = bytes.len() - reader.0.len();
        Some(Block { bytes, strings, records_start })
    }

    /// The ranges of the records, in order.
    fn records(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut reader = Reader(&self.bytes[self.records_start..]);
        std::iter::from_fn(move || reader.text_place(self.bytes.len()))
    }
}

/// Reads values from the front of a byte slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn varint(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    /// A zigzag-encoded number: 0, -1, 1, -2, 2 and so on.
    fn signed(&mut self) -> Option<i32> {
        let number = self.varint()?;
        let half = (number >> 1) as i32;
        Some(if number & 1 == 0 { half } else { !half })
    }

    /// A length and that many bytes.
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.bytes(length as usize)
    }

    /// The range of the next text in the `total` bytes that end with these.
    fn text_place(&mut self, total: usize) -> Option<Range<usize>> {
        let length = self.text()?.len();
        let end = total - self.0.len();
        Some(end - length..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_can_be_read_to_its_end() {
        let mut vpic = Vpic::open();
        let mut links = Vec::new();
        for index in 0..vpic.makers.entries.len() - 1 {
            let block = vpic.makers.open(index).unwrap();
            for record in block.records() {
                let maker = vpic.read_maker(&block, record.clone()).unwrap();
                links.extend(maker.links);
                let code = Reader(&block.bytes[record]).text().unwrap();
                assert!(vpic.maker(code).is_some());
            }
        }
        assert!(links.len() > 40_000);
        links.sort_by_key(|link| link.schema);
        links.dedup_by_key(|link| link.schema);
        let mut rows_seen = 0;
        for link in links {
            let schema = vpic.schema(link).unwrap();
            schema.visit_keys(|_, rows| {
                for row in rows.iter().filter(|row| row.element != Element::Engine) {
                    assert!(vpic.text(&schema, row.value).is_some());
                }
                rows_seen += rows.len();
            });
        }
        assert!(rows_seen > 600_000);
    }

    #[test]
    fn unassigned_codes_are_not_found() {
        let mut vpic = Vpic::open();
        for code in [&b"000"[..], b"ZZZ", b"1A9", b"", b"1234567", b"1HG000"] {
            assert!(vpic.maker(code).is_none());
        }
    }

    #[test]
    fn a_truncated_file_does_not_panic() {
        for cut in (0..400).chain([10_000, 100_000, 1_000_000]) {
            assert!(Header::read(&FILE[..cut]).is_none());
        }
        for length in [0, 1, 5, 100, 1000] {
            assert!(Block::inflate(&[0xff; 50], length).is_none());
            assert!(Block::inflate(&FILE[2000..2500], length).is_none());
        }
        assert!(Block::inflate(&[], usize::MAX).is_none());
    }

    #[test]
    fn a_file_with_wrong_bytes_does_not_panic() {
        // Wrong bytes where they do most harm: in every third byte of the header, and in some of every block table.
        for start in [10, 60, 100, 10_500, 12_000, 455_000, 458_000] {
            let mut damaged = FILE.to_vec();
            for place in (start..start + 900).step_by(3) {
                damaged[place] ^= place as u8 | 1;
            }
            let mut vpic = Vpic::read(damaged.leak());
            for code in [b"1HG", b"KM8", b"1FT", b"WP0", b"5YJ"] {
                let links = vpic.maker(code).map_or(Vec::new(), |maker| maker.links);
                for link in links {
                    let Some(schema) = vpic.schema(link) else {
                        continue;
                    };
                    schema.visit_keys(|_, rows| {
                        for row in rows {
                            vpic.text(&schema, row.value);
                        }
                    });
                }
            }
            vpic.engine_facts(1);
        }
    }

    #[test]
    fn numbers_that_end_early_are_refused() {
        assert_eq!(Reader(&[0x7f]).varint(), Some(127));
        assert_eq!(Reader(&[0x80, 0x01]).varint(), Some(128));
        assert_eq!(Reader(&[0x80]).varint(), None);
        assert_eq!(Reader(&[0xff; 6]).varint(), None);
        assert_eq!(Reader(&[3]).signed(), Some(-2));
        assert_eq!(Reader(&[4]).signed(), Some(2));
        assert_eq!(Reader(&[5, b'a']).text(), None);
    }
}
