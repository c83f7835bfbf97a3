"""Waits for a job with the stock `websockets` client, in a thread and beside nothing: the push alone.

Usage: follow.py STACK_JSON, with `wallet` (a private key with USDC) in the file. Prints one line of JSON.
"""

import base64
import json
import secrets
import sys
import time
import urllib.parse

from eth_account import Account
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

stack = json.load(open(sys.argv[1]))
account = Account.from_key(stack["wallet"])
TYPES = {"AgentReadAuth": [{"name": "agent", "type": "address"}, {"name": "scope", "type": "string"},
                           {"name": "issuedAt", "type": "uint256"}, {"name": "nonce", "type": "bytes32"}]}


def proof():
    message = {"agent": account.address, "scope": "read", "issuedAt": int(time.time()), "nonce": secrets.token_bytes(32)}
    domain = {"name": f"{stack['service_name']} Agent Auth", "version": "1"}
    signature = Account.sign_typed_data(account.key, domain, TYPES, message).signature
    wire = {**message, "nonce": "0x" + message["nonce"].hex(), "signature": "0x" + bytes(signature).hex()}
    return base64.b64encode(json.dumps(wire).encode()).decode()


address = stack["ws_url"] + "/v1/requests/subscribe"
try:
    connect(f"{address}?wallet={account.address}")
    refused = None
except InvalidStatus as error:
    refused = error.response.status_code

# In headers, which this client can set; compressed if it can be (it cannot: no extension is agreed on).
with connect(address, additional_headers={"X-Agent-ID": account.address, "x-agent-proof": proof()}) as by_header:
    by_header.send(json.dumps({"type": "ping"}))
    pong = json.loads(by_header.recv(10))

query = urllib.parse.urlencode({"wallet": account.address, "proof": proof()})
with connect(f"{address}?{query}") as by_query:
    by_query.send(json.dumps({"subscribe": [stack["request_id"]]}))
    ack, told = json.loads(by_query.recv(10)), []
    while not told or told[-1]["status"] not in ("completed", "failed"):
        told.append(json.loads(by_query.recv(60)))
print(json.dumps({"refused": refused, "pong": pong, "ack": ack, "last": told[-1]}))
