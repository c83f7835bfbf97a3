#!/usr/bin/env python3
"""Prints the libraries that the commands of the Makefile would compile twice, and the features that local/features/Cargo.toml
lacks. Compiles nothing: it compares Cargo's plans. Exit code 1 if there are any."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTIONS = [word for path in sorted((ROOT / "functions").iterdir()) for word in ("--package", path.name)]
TESTS = ["--workspace", "--tests", "--bins"]
OTHERS = {
    "make run": ["--package", "local"],
    "one test binary": ["--package", "tests", "--tests"],
    "rehearsal": [*FUNCTIONS, "--package", "build-features", "--package", "devchain", "--bins", "--example", "chain_run"],
}


def plan(arguments):
    """The units that a build compiles, each under a name that holds all of its features and those below it."""
    command = ["cargo", "build", *arguments, "--unit-graph", "-Zunstable-options"]
    # The flag that prints a plan is not stable; nothing is compiled with it.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    graph = json.loads(subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE).stdout)
    units, names = graph["units"], {}

    def name(index):
        if index not in names:
            unit = units[index]
            below = sorted(name(dependency["index"]) for dependency in unit["dependencies"])
            own = [unit["pkg_id"], unit["target"]["name"], unit["target"]["kind"], unit["mode"], unit["features"]]
            names[index] = hash(json.dumps([own, unit["platform"], unit["profile"], below]))
        return names[index]

    return {name(index): unit for index, unit in enumerate(units)}


def place(unit):
    return unit["pkg_id"], unit["target"]["name"], tuple(unit["target"]["kind"]), unit["platform"]


tests = plan(TESTS)
known = {}
for unit in tests.values():
    known.setdefault(place(unit), []).append(set(unit["features"]))
twice = 0
for command, arguments in OTHERS.items():
    for name, unit in plan(arguments).items():
        if name in tests or not unit["pkg_id"].startswith("registry"):
            continue
        twice += 1
        features = known.get(place(unit), [set()])
        if set(unit["features"]) not in features:
            lacks = sorted(features[0] - set(unit["features"]))
            more = sorted(set(unit["features"]) - features[0])
            print(f"{command}: {unit['pkg_id'].split('#')[-1]} lacks {lacks}" + (f", has {more}" if more else ""))
print(f"{twice} libraries are compiled twice")
sys.exit(twice > 0)
