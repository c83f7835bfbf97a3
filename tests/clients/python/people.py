"""Every tool about people and companies with one version of the public SDK, by the methods it has for them.

Usage: people.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: the private key of `rich`.
Prints a line of JSON for each call.
"""

import asyncio
import json
import sys

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

client = OneShotClient(private_key=stack["wallets"]["rich"], base_url=stack["base_url"])
new = tuple(int(part) for part in version.split(".")) >= (0, 38)
calls = [
    ("research_people", "person_find" if new else "people_search", {"job_titles": ["Head of Sales"], "limit": 2}),
    ("research_company", "company_find" if new else "company_search", {"name": "Example", "limit": 5}),
    ("research_person", "person_dossier" if new else "deep_research_person", {"email": "jane.doe@gmail.com"}),
    ("enrich_profile", "person_profile" if new else "enrich_profile", {"linkedin_url": "https://www.linkedin.com/in/janedoe"}),
    ("enrich_email", "person_email" if new else "find_email", {"company_domain": "example.com", "full_name": "Jane Doe"}),
    ("enrich_company", "company_profile" if new else "enrich_company", {"domain": "example.com"}),
]
for tool, method, arguments in calls:
    result = getattr(client, method)(**arguments)
    print(json.dumps({"tool": tool, "method": method, "result": result}))
