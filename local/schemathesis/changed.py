"""The paths whose code or description a change touches, as one regular expression: python changed.py FILE...

Prints nothing if the change touches none. A change of what all paid calls share counts as one tool of each kind, because
Schemathesis over all of them takes a quarter of an hour.
"""

import re
import sys
from pathlib import Path

SAMPLE = [
    "/v1/tools/search", "/v1/tools/web-read", "/v1/tools/email/send", "/v1/tools/sms/inbox",
    "/v1/tools/lookup/identifier-check", "/v1/requests", "/v1/agents/me/budgets",
]
# A route of the table, and the paths of a tool's entry.
ROUTE = re.compile(r'Route \{ group: "(\w+)", method: "\w+", path: "([^"]+)" \}')
ENTRY = re.compile(r'(?:paths: &\[|quote_path: Some\()"(/v1/[^"]+)"')

free = ROUTE.findall(Path("common/api/src/routes.rs").read_text())
chosen = set()
for name in sys.argv[1:]:
    file = Path(name)
    if file.suffix != ".rs" or not file.exists():
        continue
    parts = file.parts
    if parts[0] == "functions" and "src" in parts:
        chosen.update(path for group, path in free if group == parts[1])
    elif parts[:4] == ("common", "api", "src", "operations"):
        described = {path for group, path in free if group == {"sms": "messaging"}.get(file.stem, file.stem)}
        chosen.update(described or SAMPLE)
    elif parts[0] == "common" and parts[1].startswith("tools-"):
        own = ENTRY.findall(file.read_text())
        crate = Path(*parts[:2]).glob("src/**/*.rs")
        entries = own or [path for other in sorted(crate) for path in ENTRY.findall(other.read_text())]
        # The rows of a table share their code.
        chosen.update(entries[:8])
        # Free routes of the family have the tool's prefix: /v1/tools/email/…
        chosen.update(path for _, path in free for entry in entries[:8] if path.startswith(entry.rsplit("/", 1)[0] + "/"))
    elif parts[0] == "common" and parts[1] in {"api", "base", "gate", "platform", "tools"}:
        chosen.update(SAMPLE)
    elif parts[0] == "common" and parts[1] == "market":
        chosen.update(path for group, path in free if group in {"souls", "seller", "checkout"})
if chosen:
    print("^(" + "|".join(re.escape(path) for path in sorted(chosen)) + ")$")
