"""A receiver as its maker would write it: checks each post with the reference library and says what it found, a line of
JSON each. The first line is its port; secrets come in by lines of standard input, the latest counts."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook

secrets = []


def listen():
    for line in sys.stdin:
        secrets.append(line.strip())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        try:
            headers = {name.lower(): value for name, value in self.headers.items()}
            event = Webhook(secrets[-1]).verify(body, headers)
            found = {"verified": True, "type": event["type"], "id": headers["webhook-id"]}
        except Exception as error:
            found = {"verified": False, "why": repr(error)}
        print(json.dumps(found), flush=True)
        self.send_response(204 if found["verified"] else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


threading.Thread(target=listen, daemon=True).start()
server = HTTPServer(("127.0.0.1", 0), Receiver)
print(json.dumps({"port": server.server_port}), flush=True)
server.serve_forever()
