"""Reads a page with the public SDK, which knows nothing of us but the address. Usage: sdk.py STACK_JSON"""

import json
import sys

from oneshot.client import OneShotClient

stack = json.load(open(sys.argv[1]))
client = OneShotClient(private_key=stack["payers"][3]["private_key"], base_url=stack["base_url"])
print(json.dumps(client.web_read(stack["site_url"] + "/article")))
