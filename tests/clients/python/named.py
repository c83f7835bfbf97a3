"""Buys everything twice under one name, the payment-identifier of the stock x402 client. Usage: named.py STACK_JSON

The file also has `wallet`, a private key. Prints one line of JSON for each call: status, body.
"""

import json
import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.extensions.payment_identifier import append_payment_identifier_to_extensions
from x402.http.clients import x402_requests
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

stack = json.load(open(sys.argv[1]))


def buy(name, path, body):
    client = x402ClientSync()
    register_exact_evm_client(client, EthAccountSigner(Account.from_key(stack["wallet"])))
    client.on_before_payment_creation(
        lambda asked: append_payment_identifier_to_extensions(asked.payment_required.extensions, name) and None
    )
    with x402_requests(client) as session:
        answer = session.post(stack["base_url"] + path, json=body)
    print(json.dumps({"status": answer.status_code, "body": answer.json()}))


for name, path, body in [
    ("top-up_of_november", "/v1/credits/top-up", {"amount": "0.50"}),
    ("the_car_of_my_aunt", "/v1/tools/lookup/vehicle-identification", {"vin": "1HGCM82633A004352"}),
]:
    buy(name, path, body)
    buy(name, path, body)
