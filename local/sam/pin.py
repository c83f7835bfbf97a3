#!/usr/bin/env python3
"""Writes into the built template which architecture it was built for, as the only one it can be deployed with. Without
this, functions compiled on an ordinary laptop would be deployed under the template's default, arm64, and not start.

    pin.py arm64|x86_64
"""

import pathlib
import sys

from samcli.yamlhelper import yaml_dump, yaml_parse

built = pathlib.Path(__file__).resolve().parents[2] / ".aws-sam" / "build" / "template.yaml"
template = yaml_parse(built.read_text())
template["Parameters"]["Architecture"] |= {"Default": sys.argv[1], "AllowedValues": [sys.argv[1]]}
built.write_text(yaml_dump(template))
