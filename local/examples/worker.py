#!/usr/bin/env python3
"""A seller's own worker, whole, with Python's standard library only. It counts the words of a text and picks out the
sentences that say most; put your own work into `do`.

    SOUL_KEY=soul_... python3 local/examples/worker.py http://127.0.0.1:8402
    SOUL_KEY=soul_... WEBHOOK_SECRET=whsec_... python3 local/examples/worker.py http://127.0.0.1:8402 --webhook 9000

It asks for jobs every second; with --webhook it is told of them and asks once a minute, in case a call was lost."""
import argparse, base64, hashlib, hmac, json, os, queue, re, sys, threading, time, urllib.error, urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = os.environ["SOUL_KEY"]


class Refused(Exception):
    """An answer that is an error: its status, and the body's `error` and `message`."""


def ask(method, path, body=None, content_type="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {KEY}", "content-type": content_type}
    request = urllib.request.Request(f"{OPTIONS.url}/v1/soul/me{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        told = json.loads(error.read() or b"{}")
        raise Refused(error.code, told.get("error"), told.get("message")) from None


def do(text, sentences):
    """The work itself."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = Counter(words)
    weights = Counter(word for word in words if len(word) > 3)
    parts = [part.strip() for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()]

    def weight(part):
        found = re.findall(r"[^\W\d_]+", part.lower())
        return sum(weights[word] for word in found) / max(len(found), 1)

    best = sorted(range(len(parts)), key=lambda at: -weight(parts[at]))[:sentences]
    summary = " ".join(parts[at] for at in sorted(best))
    return {"words": len(words), "different_words": len(counts), "sentences": len(parts), "summary": summary}, counts


def serve(job_id):
    """One job, from claim to result. A claim is good for five minutes; every progress renews it."""
    job = ask("POST", f"/jobs/{job_id}/claim", {})["job"]
    try:
        given = job["input"]
        ask("POST", f"/jobs/{job_id}/progress", {"message": "reading", "percent": 10})
        result, counts = do(given["text"], given.get("sentences", 2))
        rows = "word,count\n" + "".join(f"{word},{count}\n" for word, count in counts.most_common())
        ask("PUT", f"/jobs/{job_id}/files/words.csv", rows.encode(), "text/csv")
    except Refused:
        raise
    except Exception as error:  # the buyer reads why, and is paid back at once instead of at the deadline
        ask("POST", f"/jobs/{job_id}/fail", {"reason": f"the work failed: {error!r}"[:1000]})
        return print(f"{job_id} failed: {error!r}", flush=True)
    ask("POST", f"/jobs/{job_id}/complete", {"result": json.dumps(result)})
    print(f"{job_id} done: {result['words']} words", flush=True)


def work_off():
    jobs = ask("GET", "/jobs?status=pending&limit=100")["jobs"]
    for job in sorted(jobs, key=lambda job: job["created_at"]):  # the list is newest first; who waits longest is first here
        try:
            serve(job["id"])
        except Refused as refused:
            # Another worker has it, its payment is not settled yet, or it is over: the next list knows.
            print(f"{job['id']} left alone: {refused}", flush=True)


class Webhook(BaseHTTPRequestHandler):
    """Takes what Standard Webhooks signed, and nothing else."""

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length <= 65536 else b""
        good = is_signed(self.headers, body)
        self.send_response(204 if good else 401)
        self.end_headers()
        if good:
            WAKE.put(json.loads(body)["data"]["id"])

    def log_message(self, *_):
        pass


def is_signed(headers, body):
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        return False
    secret = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
    mac = hmac.new(secret, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(one.encode(), b"v1," + base64.b64encode(mac)) for one in given)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("url")
parser.add_argument("--webhook", type=int, metavar="PORT")
OPTIONS = parser.parse_args()
WAKE = queue.Queue()
if OPTIONS.webhook:
    server = ThreadingHTTPServer(("127.0.0.1", OPTIONS.webhook), Webhook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("waiting for jobs", flush=True)
while True:
    try:
        work_off()
    except Refused as refused:
        if refused.args[0] == 401:
            sys.exit("the soul key opens nothing")
        print(f"asking failed: {refused}", flush=True)
    except OSError as error:
        print(f"asking failed: {error}", flush=True)
    try:
        told = WAKE.get(timeout=60 if OPTIONS.webhook else 1)
        print(f"{told}: told by webhook", flush=True)
    except queue.Empty:
        pass
