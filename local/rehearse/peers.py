"""What a deployment talks to outside, and this machine has not: a mail relay, and the vendors that the rehearsal configures. On
addresses of this machine, which functions may reach where an operator names them."""

import http.server
import json
import socketserver
import threading
import urllib.parse

PROVIDER_KEY = "key-of-the-rehearsal"
CARD_KEY = "sk_test_rehearsal"


class Relay(socketserver.ThreadingTCPServer):
    """A mail relay of few words, which keeps what it is given."""

    allow_reuse_address = daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Letter)
        self.mails = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"


class Letter(socketserver.StreamRequestHandler):
    def handle(self):
        self.say("220 relay")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.append(b"".join(lines).decode("utf-8", "replace"))
            elif word == b"QUIT":
                return self.say("221 bye")
            self.say("250 fine")

    def say(self, text):
        self.wfile.write(f"{text}\r\n".encode())


class Vendors(http.server.ThreadingHTTPServer):
    """Answers as the documents of each vendor say, and hands out the relay's mails."""

    daemon_threads = True

    def __init__(self, relay):
        super().__init__(("127.0.0.1", 0), Vendor)
        self.relay, self.asked = relay, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Vendor(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        path = urllib.parse.urlsplit(self.path).path
        if path == "/mails":
            self.answer(200, self.server.relay.mails)
        elif path == "/v2/email-finder":
            if PROVIDER_KEY not in f"{self.headers} {self.path}":
                return self.answer(401, {"errors": [{"id": "authentication_failed", "code": 401}]})
            found = {"first_name": "Jane", "last_name": "Doe", "email": "jane@example.com", "domain": "example.com"}
            verified = {"score": 97, "accept_all": False, "verification": {"date": "2026-01-01", "status": "valid"}}
            self.answer(200, {"data": {**found, **verified}, "meta": {}})
        elif path == "/submissions/CIK0000320193.json":
            numbers = range(60)
            recent = {
                "accessionNumber": [f"0000320193-26-{number:06}" for number in numbers], "form": ["8-K" for _ in numbers],
                "filingDate": ["2026-10-30" for _ in numbers], "reportDate": ["2026-10-29" for _ in numbers],
                "primaryDocDescription": ["A report of a current event of the company" for _ in numbers],
                "primaryDocument": [f"aapl-202610{number:02}.htm" for number in numbers],
            }
            filer = {"cik": "0000320193", "name": "Apple Inc.", "tickers": ["AAPL"], "exchanges": ["Nasdaq"]}
            self.answer(200, {**filer, "filings": {"recent": recent, "files": []}})
        else:
            self.answer(404, {"error": f"no vendor answers {self.path}"})

    def do_POST(self):
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if self.path != "/v1/checkout/sessions":
            return self.answer(404, {"error": f"no vendor answers {self.path}"})
        if self.headers.get("authorization") != f"Bearer {CARD_KEY}":
            return self.answer(401, {"error": {"message": "Invalid API Key provided"}})
        amount = urllib.parse.parse_qs(body)["line_items[0][price_data][unit_amount]"][0]
        # A processor declines with a body that says why.
        if amount == "1300":
            return self.answer(400, {"error": {"type": "invalid_request_error", "message": "Amount not allowed"}})
        made = f"cs_test_{amount}"
        self.answer(200, {"id": made, "object": "checkout.session", "url": f"https://checkout.test/{made}"})

    def answer(self, status, told):
        content = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass
