#!/usr/bin/env python3
"""Makes plans.txt, the numbering plans that `number.rs` reads, from libphonenumber's metadata.

    cargo info phonenumber@0.3.10               # downloads the crate that carries the metadata
    import.py FOLDER                            # its assets: ~/.cargo/registry/src/*/phonenumber-0.3.10*/assets
    import.py FOLDER --check                    # compares with the committed plans.txt

FOLDER has PhoneNumberMetadata.xml and ShortNumberMetadata.xml; both hashes are checked. Only the Python standard library is
needed. To renew: a newer release of the crate, its two hashes and its version below, and in NOTICE.md.

File format
-----------
Lines of fields with tabs between. Patterns match a national number from its first to its last digit.

    areas      the area codes of the United States in which 555-0100 to 555-0199 are fictitious
    emergency  every emergency number of every country, as it is dialled
    <code>     one line for each region: calling code, region, pattern of ordinary numbers, pattern of numbers at a special
               rate (premium, shared cost, personal), emergency numbers of the region. Of regions with one calling code,
               the main one comes first; a number is of the first that fits

A number at a special rate is not ordinary, even if both patterns match: libphonenumber asks in this order, too. Two things
are left out: the pattern of all numbers of a region, with which one number in 60,000 would not be valid; and the leading
digits of regions that share a calling code, which change no answer (both found with the Python port of libphonenumber and
half a million numbers).
"""

import hashlib
import pathlib
import re
import re._parser as parser
import sys
import xml.etree.ElementTree as xml

HASHES = {
    "PhoneNumberMetadata.xml": "8235fe573e09770c6cea25b351ea5866999f147051e84c8973c07df87e17fb73",
    "ShortNumberMetadata.xml": "375d706a2eef0d0ee76e99ab838806835d33b326a70edcc4465a37484bdee14c",
}
VERSION = "9.0.33"
ORDINARY = ["fixedLine", "mobile", "tollFree", "voip", "pager", "uan", "voicemail"]
SPECIAL = ["premiumRate", "sharedCost", "personalNumber"]
PLANS = pathlib.Path(__file__).with_name("plans.txt")


def territories(folder, name):
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != HASHES[name]:
        sys.exit(f"{name} is not the one of libphonenumber {VERSION}")
    return list(xml.fromstring(data).find("territories"))


def pattern(territory, kind):
    """The pattern of a kind of numbers without its white space; empty if the territory has none."""
    found = territory.find(f"{kind}/nationalNumberPattern")
    return re.sub(r"\s", "", found.text) if found is not None else ""


def joined(territory, kinds):
    """One pattern for several kinds. Mobile numbers often have the pattern of fixed lines."""
    return "|".join(dict.fromkeys(filter(None, (pattern(territory, kind) for kind in kinds))))


def expanded(text):
    """Every text that a pattern without unlimited repetition matches."""

    def sequence(items):
        texts = [""]
        for item in items:
            texts = [begin + end for begin in texts for end in one(*item)]
        return texts

    def one(kind, value):
        match str(kind):
            case "LITERAL":
                return [chr(value)]
            case "IN":
                return [letter for item in value for letter in letters(*item)]
            case "BRANCH":
                return [text for branch in value[1] for text in sequence(branch)]
            case "SUBPATTERN":
                return sequence(value[3])
            case "MAX_REPEAT":
                least, most, items = value
                return [text for times in range(least, most + 1) for text in sequence(list(items) * times)]
        raise ValueError(kind)

    def letters(kind, value):
        match str(kind):
            case "LITERAL":
                return [chr(value)]
            case "RANGE":
                return [chr(code) for code in range(value[0], value[1] + 1)]
            case "CATEGORY":
                return list("0123456789")
        raise ValueError(kind)

    return sorted(set(sequence(parser.parse(text))), key=lambda number: (len(number), number))


def plans(folder):
    plans = territories(folder, "PhoneNumberMetadata.xml")
    emergency = {}
    for territory in territories(folder, "ShortNumberMetadata.xml"):
        if text := pattern(territory, "emergency"):
            emergency[territory.get("id")] = expanded(text)
    # Main regions first; the order of the file otherwise.
    plans.sort(key=lambda plan: (int(plan.get("countryCode")), plan.get("mainCountryForCode") != "true"))

    us = next(plan for plan in plans if plan.get("id") == "US")
    is_area = re.compile(pattern(us, "fixedLine"))
    areas = [str(area) for area in range(200, 1000) if is_area.fullmatch(f"{area}5550100")]
    dialled = sorted({number for numbers in emergency.values() for number in numbers}, key=lambda number: (len(number), number))
    lines = [f"areas\t{' '.join(areas)}", f"emergency\t{' '.join(dialled)}"]
    for plan in plans:
        region, ordinary, special = plan.get("id"), joined(plan, ORDINARY), joined(plan, SPECIAL)
        own = emergency.get(region, [])
        # Behind the calling code, an emergency number must not be somebody's number.
        for number in own:
            assert not re.fullmatch(ordinary, number), (region, number)
        fields = [plan.get("countryCode"), region, ordinary, special, " ".join(own)]
        assert not any(mark in field for field in fields for mark in "\t\n")
        lines.append("\t".join(fields))
    # None is as long as the shortest number with its calling code.
    assert max(map(len, dialled)) <= 6
    return "\n".join(lines) + "\n"


def main():
    text = plans(pathlib.Path(sys.argv[1]))
    if "--check" in sys.argv:
        sys.exit(0 if PLANS.read_text() == text else "plans.txt is not what the metadata gives")
    PLANS.write_text(text)
    print(f"{len(text)} bytes, {text.count(chr(10)) - 2} regions")


main()
