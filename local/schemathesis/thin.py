"""Leaves out what other operations cover: python thin.py OPENAPI_JSON, which is rewritten.

The headers of a paid call, and the members of its body that go to the receipt, are read in one place for all tools. Yet they make
up five of six cases that are generated for a tool. So only one of eight tools of a family keeps them, always the same ones. The
nightly run (EXAMPLES=6) leaves out nothing.
"""

import json
import sys
from collections import Counter

EVERY = 8


def body(operation):
    """The members of an operation's JSON body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content.get("schema", {}).get("properties", {})


path = sys.argv[1]
document = json.load(open(path))
sold = {name: operations["post"] for name, operations in sorted(document["paths"].items())
        if "x-payment-info" in operations.get("post", {})}
common = Counter(member for operation in sold.values() for member in body(operation))
shared = {member for member, count in common.items() if count > len(sold) / 2}
seen = Counter()
for name, operation in sold.items():
    # /v1/tools/lookup/…, /v1/tools/find/…
    family = tuple(name.split("/")[:4])
    seen[family] += 1
    if seen[family] % EVERY == 1:
        continue
    operation["parameters"] = [one for one in operation.get("parameters", []) if "$ref" not in one]
    for member in shared:
        body(operation).pop(member, None)
print(f"left out for all but one of {EVERY} tools of a family: headers, {', '.join(sorted(shared))}", file=sys.stderr)
json.dump(document, open(path, "w"))
