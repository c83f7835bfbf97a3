"""Pays both tools, and for credits, with the stock x402 client. Usage: pay.py STACK_JSON"""

import base64
import json
import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

stack = json.load(open(sys.argv[1]))
client = x402ClientSync()
register_exact_evm_client(client, EthAccountSigner(Account.from_key(stack["payers"][2]["private_key"])))
calls = [
    ("/v1/tools/lookup/vehicle-identification", {"vin": "1HGCM82633A004352"}),
    ("/v1/tools/web-read", {"url": stack["site_url"] + "/article"}),
    ("/v1/credits/top-up", {"amount": 0.05}),
]
with x402_requests(client) as session:
    for path, body in calls:
        answer = session.post(stack["base_url"] + path, json=body)
        settlement = json.loads(base64.b64decode(answer.headers["payment-response"]))
        print(json.dumps({"status": answer.status_code, "body": answer.json(), "settlement": settlement}))
