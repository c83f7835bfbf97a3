"""A card processor that opens every session it is asked for; nothing is ever paid there. Prints its port."""

import http.server


class Processor(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b'{"id": "cs_1", "url": "https://pay.example.com/cs_1"}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Processor)
print(server.server_port, flush=True)
server.serve_forever()
