"""Makes test cases for the decoder straight from the source database.

The decoder here is slow, reads SQL rows and regular expressions, and shares no
code with import.py or the Rust decoder: where all agree, all are likely right.
A case is (number, given model year or null, expected members or null where the
member is null). The numbers are made from the database's own patterns with a
fixed seed, so the file is the same at every run.
"""

import collections
import functools
import json
import random
import re
import zlib

SEED = 20260217
CURRENT_YEAR = 2026
PLAIN_CASES, GIVEN_YEAR_CASES, DAMAGED_CASES = 1200, 150, 250

ALPHABET = "0123456789ABCDEFGHJKLMNPRSTUVWXYZ"
YEAR_CODES = "ABCDEFGHJKLMNPRSTVWXY123456789"
VALUES = dict(zip("0123456789ABCDEFGHJKLMNPRSTUVWXYZ", [*range(10), *range(1, 9), *range(1, 6), 7, 9, *range(2, 10)]))
WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)

MEMBERS = {
    28: "model",
    38: "trim",
    34: "series",
    5: "body_class",
    15: "drive_type",
    24: "fuel_type",
    37: "transmission",
    25: "gross_vehicle_weight_rating",
    31: "plant_city",
    77: "plant_state",
    75: "plant_country",
    14: "doors",
    9: "engine_cylinders",
    71: "engine_horsepower",
}
LOOKUPS = {
    28: "Model",
    5: "BodyStyle",
    15: "DriveType",
    24: "FuelType",
    37: "Transmission",
    25: "GrossVehicleWeightRating",
    75: "Country",
}
INTEGERS = ("doors", "engine_cylinders")


def write(connection, path):
    decoder = Decoder(connection)
    cases = [[vin, given, decoder.decode(vin, given)] for vin, given in numbers(decoder)]
    packed = zlib.compress(json.dumps(cases, separators=(",", ":"), ensure_ascii=False).encode(), 9)
    path.write_bytes(packed)
    print(f"{path}: {len(cases)} cases, {len(packed)} bytes")


# --- Numbers to try --------------------------------------------------------


def numbers(decoder):
    chance = random.Random(SEED)
    links = decoder.sql("SELECT WmiId, VinSchemaId, YearFrom, YearTo FROM Wmi_VinSchema ORDER BY Id")
    # Most links are trailer makers'; every second number is for a larger schema.
    large = [link for link in links if len(decoder.patterns(link[1])) > 60]
    codes = dict(decoder.sql("SELECT Id, Wmi FROM Wmi"))
    seen = set()
    while len(seen) < PLAIN_CASES + GIVEN_YEAR_CASES + DAMAGED_CASES:
        wmi, schema, first, last = chance.choice(large if len(seen) % 2 else links)
        year = chance.randint(first, max(first, min(last or 2039, CURRENT_YEAR + 1)))
        vin = number_for(decoder, chance, codes[wmi], schema, year)
        if vin is None or vin in seen:
            continue
        given = None
        if len(seen) >= PLAIN_CASES + GIVEN_YEAR_CASES:
            place = chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16))
            vin = vin[:place] + chance.choice(ALPHABET) + vin[place + 1 :]
        elif len(seen) >= PLAIN_CASES:
            given = chance.choice((year, year - 30, year + 30, year + 1))
        if vin not in seen:
            seen.add(vin)
            yield vin, given


def number_for(decoder, chance, wmi, schema, year):
    """A number that as many of a schema's patterns as possible match."""
    rows = decoder.patterns(schema)
    if not rows or any(c not in ALPHABET for c in wmi):
        return None
    allowed = [set(ALPHABET) for _ in range(13)]
    allowed[5] = {YEAR_CODES[(year - 1980) % 30]}
    for place, character in enumerate(wmi[3:]):
        allowed[7 + place] = {character}
    models_first = sorted(chance.sample(rows, len(rows)), key=lambda row: row.element != 28)
    for row in models_first:
        narrowed = [a & key_set(row.key, place) for place, a in enumerate(allowed)]
        if all(narrowed):
            allowed = narrowed
    body = [chance.choice(sorted(a)) for a in allowed]
    for place in range(8, 13):
        if len(allowed[place]) == len(ALPHABET):
            body[place] = chance.choice("0123456789")
    vin = wmi[:3] + "".join(body[:5]) + "0" + "".join(body[5:])
    return vin[:8] + check_digit(vin) + vin[9:]


@functools.cache
def key_set(key, place):
    """The characters a key admits at one of the positions 4-8 and 10-17, from 0."""
    parts = [part for part in re.findall(r"\[[^\]]*\]|.", mended(key)) if part != "|"]
    if place >= len(parts) or (place >= 5 and "|" not in key):
        return frozenset(ALPHABET)
    part = {"*": ".", "#": "[0-9]"}.get(parts[place], parts[place])
    return frozenset(c for c in ALPHABET if re.fullmatch(part, c))


def mended(key):
    """One class in the data is no valid regular expression."""
    return key.replace("[1-A-JT]", "[1-9AJT]")


# --- The slow decoder ------------------------------------------------------

Pattern = collections.namedtuple("Pattern", "key element attribute changed id")


@functools.cache
def key_pattern(key):
    """A key as a regular expression over positions 4-8, `|`, 10-17."""
    return re.compile(mended(key).replace("|", "[|]").replace("*", ".").replace("#", "[0-9]"))


def check_digit(vin):
    return "0123456789X"[sum(VALUES[c] * w for c, w in zip(vin, WEIGHTS)) % 11]


class Decoder:
    def __init__(self, connection):
        self.connection = connection
        connection.execute("CREATE INDEX IF NOT EXISTS by_schema ON Pattern (VinSchemaId)")
        connection.execute("CREATE INDEX IF NOT EXISTS by_wmi ON Wmi_VinSchema (WmiId)")
        connection.execute("CREATE INDEX IF NOT EXISTS wmi_code ON Wmi (Wmi)")
        self.lookups = {e: dict(self.sql(f"SELECT CAST(Id AS TEXT), trim(Name) FROM {t}")) for e, t in LOOKUPS.items()}
        self.cached_patterns = {}

    def sql(self, query, *arguments):
        return self.connection.execute(query, arguments).fetchall()

    def patterns(self, schema):
        if schema not in self.cached_patterns:
            query = """SELECT upper(Keys), ElementId, trim(AttributeId), coalesce(UpdatedOn, CreatedOn), Id
                       FROM Pattern WHERE VinSchemaId = ?"""
            self.cached_patterns[schema] = [Pattern(*row) for row in self.sql(query, schema)]
        return self.cached_patterns[schema]

    def decode(self, vin, given):
        found = self.resolve(vin, given)
        result = {name: value for name, value in found["members"].items() if value is not None}
        result["decoded"] = found["make"] is not None and found["year"] is not None
        result["check_digit_valid"] = vin[8] == check_digit(vin)
        for name, value in (("make", found["make"]), ("model_year", found["year"])):
            if value is not None:
                result[name] = value
        suggested = self.suggest(vin, given, found)
        if suggested:
            result["suggested_vin"] = suggested
        return result

    def suggest(self, vin, given, found):
        if vin[8] == check_digit(vin):
            return None
        survivors = []
        for place in found["unknown"] if decoded(found) else range(17):
            for character in ALPHABET:
                candidate = vin[:place] + character + vin[place + 1 :]
                if candidate != vin and candidate[8] == check_digit(candidate):
                    if complete(self.resolve(candidate, given)):
                        survivors.append(candidate)
        return survivors[0] if len(survivors) == 1 else None

    def resolve(self, vin, given):
        code = vin[:3] + (vin[11:14] if vin[2] == "9" else "")
        query = """SELECT Id, ManufacturerId, VehicleTypeId, TruckTypeId FROM Wmi WHERE Wmi = ?"""
        wmi = (self.sql(query, code) or [None])[0]
        is_car = wmi is not None and (wmi[2] in (2, 7) or (wmi[2] == 3 and wmi[3] == 1))
        links = self.links(wmi[0]) if wmi else []
        year, found = self.year_and_facts(vin, given, is_car, links)
        return {
            "year": year,
            "make": self.make(wmi, found),
            "members": self.members(wmi, found),
            "unknown": self.unknown(vin, links, year),
        }

    def links(self, wmi):
        query = "SELECT VinSchemaId, YearFrom, coalesce(YearTo, 9999) FROM Wmi_VinSchema WHERE WmiId = ?"
        return self.sql(query, wmi)

    def year_and_facts(self, vin, given, is_car, links):
        def facts(year):
            return self.facts(vin, links, year)

        years = []
        if vin[9] in YEAR_CODES:
            early = 1980 + YEAR_CODES.index(vin[9])
            years = [y for y in (early, early + 30) if y <= CURRENT_YEAR + 1]
        if given in years or (vin[9] not in YEAR_CODES and given and 1980 <= given <= CURRENT_YEAR + 1):
            years = [given]
        if not years:
            return None, facts(None)
        if len(years) == 1:
            return years[0], facts(years[0])
        if is_car:
            usual, unusual = years if vin[6].isdigit() else years[::-1]
            covered = [any(a <= y <= b for _, a, b in links) for y in (usual, unusual)]
            year = unusual if covered == [False, True] else usual
            return year, facts(year)
        found = [facts(y) for y in years]
        worth = [(28 in f, len(f)) for f in found]
        return (years[0], found[0]) if worth[0] > worth[1] else (years[1], found[1])

    def facts(self, vin, links, year):
        """The best pattern per element: {element: (text, attribute)}."""
        text = f"{vin[3:8]}|{vin[9:]}"
        matching = collections.defaultdict(list)
        for schema, first, last in links:
            if year is not None and not first <= year <= last:
                continue
            newest = max((p.changed for p in self.patterns(schema) if self.value(p, text) is not None), default="")
            for pattern in self.patterns(schema):
                if key_pattern(pattern.key).match(text):
                    value = self.value(pattern, text)
                    if value is not None:
                        place = [first, newest, pattern.changed]
                        matching[pattern.element].append((place, pattern, value))
        best = {element: self.best(rows) for element, rows in matching.items()}
        return self.with_engine(best)

    def best(self, rows):
        rows.sort(key=lambda r: (len(r[1].key.replace("*", "")), re.sub(r"[\[\]]", "", r[1].key), r[1].id))
        rows.sort(key=lambda r: r[0], reverse=True)
        _, pattern, value = rows[0]
        return value, pattern.attribute

    def with_engine(self, found):
        if 18 in found:
            for element, value in self.engine(found[18][1]).items():
                found.setdefault(element, (value, None))
        return found

    @functools.cache
    def engine(self, name):
        query = """SELECT ElementId, trim(p.AttributeId) FROM EngineModelPattern p
                   JOIN EngineModel m ON m.Id = EngineModelId
                   WHERE lower(trim(m.Name)) = lower(trim(?)) AND ElementId IN (9, 11, 12, 13, 24, 71)
                   ORDER BY coalesce(p.UpdatedOn, p.CreatedOn), p.Id DESC"""
        return {e: self.lookups[e][a] if e in self.lookups else a for e, a in self.sql(query, name)}

    def value(self, pattern, text):
        element, attribute = pattern.element, pattern.attribute
        if element in self.lookups:
            return self.lookups[element].get(attribute)
        if element in (9, 11, 12, 13, 14, 71) and not re.fullmatch(r"[0-9.]+", attribute):
            place = pattern.key.find("#")
            return text[place] if element == 9 and place >= 0 else None
        if element in (9, 11, 12, 13, 14, 18, 31, 34, 38, 71, 77):
            return attribute or None
        return None

    def members(self, wmi, found):
        members = {name: found[element][0] for element, name in MEMBERS.items() if element in found}
        for name in INTEGERS:
            if name in members:
                members[name] = int(members[name])
        if "engine_horsepower" in members:
            members["engine_horsepower"] = float(members["engine_horsepower"])
        if 13 in found:
            members["engine_displacement_l"] = float(found[13][0])
        elif 11 in found:
            members["engine_displacement_l"] = round(float(found[11][0]) / 1000, 3)
        elif 12 in found:
            members["engine_displacement_l"] = round(float(found[12][0]) * 0.016387064, 3)
        if wmi:
            members["manufacturer"] = self.name("Manufacturer", wmi[1])
            members["vehicle_type"] = self.name("VehicleType", wmi[2])
        return members

    def name(self, table, number):
        found = self.sql(f"SELECT Name FROM {table} WHERE Id = ?", number)
        return found[0][0].strip() if found else None

    def make(self, wmi, found):
        if 28 in found:
            query = "SELECT Make.Name FROM Make_Model JOIN Make ON Make.Id = MakeId WHERE ModelId = ?"
            makes = self.sql(query, found[28][1])
        else:
            query = "SELECT DISTINCT Make.Name FROM Wmi_Make JOIN Make ON Make.Id = MakeId WHERE WmiId = ?"
            makes = self.sql(query, wmi[0]) if wmi else []
        return makes[0][0].strip() if len(makes) == 1 else None

    def unknown(self, vin, links, year):
        unknown = []
        keys = {p.key for s, a, b in links if year is None or a <= year <= b for p in self.patterns(s)}
        for place in (0, 1, 2, 3, 4, 6):
            named = [k for k in keys if len(key_set(k, place)) < len(ALPHABET)]
            character = vin[3 + place] if place < 5 else vin[4 + place]
            if named and not any(character in key_set(k, place) for k in named):
                unknown.append(place + 3 if place < 5 else place + 4)
        return unknown


def decoded(found):
    return bool(found["make"] and "model" in found["members"] and found["year"])


def complete(found):
    return decoded(found) and not found["unknown"]
