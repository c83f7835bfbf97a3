# Reads {"url", "html"} a line (the HTML as base64), writes the text that trafilatura makes of it.
import base64, json, sys
import trafilatura

for line in sys.stdin:
    page = json.loads(line)
    text = trafilatura.extract(base64.b64decode(page["html"]), url=page["url"], include_comments=False, include_tables=True)
    print(json.dumps({"url": page["url"], "text": text or ""}))
