"""A seller's service in Python: adds two numbers for whoever paid, by the check of docs/SELLING.md. Its first line is its
port. A line of standard input names the module with the check."""

import importlib.util
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        token = self.headers.get("x-paid-call", "")
        try:
            claims = check.paid_call(token, "POST", f"http://{self.headers['host']}{self.path}", body)
            status, answer = 200, {"sum": sum(json.loads(body)["numbers"]), "claims": claims, "token": token}
        except Exception as error:
            status, answer = 401, {"error": repr(error)}
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Service)
print(json.dumps({"port": server.server_port}), flush=True)
spec = importlib.util.spec_from_file_location("paid_call", sys.stdin.readline().strip())
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
server.serve_forever()
