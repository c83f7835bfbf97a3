"""Every knowledge tool with one version of the public SDK, against local peers only.

Usage: knowledge.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK. The file also has `key`, the private key of a
wallet with money; `calls`, a list of {name, older, newer, input}: what the method is called in 0.37 and in 0.50, and its
arguments; and `lookups`, a list of {name, path, input}, of
which those are called that the SDK's own manifest has.
Prints a line of JSON for each call: its name, and either the result or the error, as the SDK gives them to its user.
"""

import asyncio
import json
import sys

import httpx

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot._errors import JobError, ToolError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())
client = OneShotClient(private_key=stack["key"], base_url=stack["base_url"])
NEWER = tuple(int(part) for part in version.split(".")) >= (0, 50)


def told(name, call):
    try:
        line = {"name": name, "result": call()}
    except JobError as error:
        line = {"name": name, "failed": {"code": error.code, "text": str(error)}}
    except ToolError as error:
        line = {"name": name, "refused": {"status": error.status_code, "body": error.response_body}}
    except httpx.HTTPStatusError as error:  # What 0.37 makes of a refusal before any price.
        line = {"name": name, "refused": {"status": error.response.status_code, "body": error.response.text}}
    print(json.dumps(line), flush=True)


for call in stack["calls"]:
    method = getattr(client, call["newer" if NEWER else "older"])
    told(call["name"], lambda: method(**call["input"]))
if NEWER:
    from oneshot.lookup import lookup_tools

    known = {entry["path"]: entry["name"] for entry in lookup_tools()}
    for lookup in stack["lookups"]:
        if name := known.get(lookup["path"]):
            told(lookup["name"], lambda: client.call_lookup(name, **lookup["input"]))
