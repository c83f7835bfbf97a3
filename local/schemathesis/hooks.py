"""What Schemathesis cannot know: how to sign, and which headers no generator can fill."""

import base64
import json
import os
import secrets
import time

import schemathesis

CREDENTIALS = json.loads(os.environ.get("CREDENTIALS") or "null")

# A payment has to be signed, a quote and an approval have to have been given: made up, each is refused (400, 402 or 403)
# before anything else is looked at, and the rest of the call would never be tried. The caller's own cap is left out for the
# same reason: most numbers are below the price.
UNKNOWABLE = {"payment-signature", "x-quote-id", "x-approval-id", "x-max-cost-usdc"}


@schemathesis.hook
def map_headers(context, headers):
    if context.operation.method.upper() == "POST" and headers:
        return {name: value for name, value in headers.items() if name.lower() not in UNKNOWABLE}
    return headers


# Why a provider is of no use (`Unavailable` in common/base/src/tool_result.rs).
REASONS = {"destination_not_reachable", "source_unavailable", "provider_not_configured", "not_in_local_index", "needs_browser"}


@schemathesis.check
def unavailable_as_described(context, response, case):
    """A call that was sold and could not be done, or that is not sold here, says what is missing, and where the money is."""
    if response.status_code < 500 or not {"x-payment-info", "x-unavailable"} & case.operation.definition.raw.keys():
        return
    body = response.json()
    assert response.status_code == 503 and body["error"] == "provider_unavailable", body
    assert body.get("reason") in REASONS and body["message"], body
    assert "Retry-After" in {name.title() for name in response.headers}, "no Retry-After"
    # Before a price, or with the price credited back to the whole.
    credited = body.get("credited_usdc")
    assert credited is not None or "nothing was charged" in body["message"], body
    assert credited is None or float(credited) > 0, body


if CREDENTIALS:
    from eth_account import Account
    from eth_account.messages import encode_typed_data

    TYPES = {
        "AgentReadAuth": [
            {"name": "agent", "type": "address"},
            {"name": "scope", "type": "string"},
            {"name": "issuedAt", "type": "uint256"},
            {"name": "nonce", "type": "bytes32"},
        ]
    }

    def proof(scope):
        nonce = secrets.token_bytes(32)
        message = {"agent": CREDENTIALS["address"], "scope": scope, "issuedAt": int(time.time()), "nonce": nonce}
        domain = {"name": CREDENTIALS["service_name"] + " Agent Auth", "version": "1"}
        signable = encode_typed_data(domain_data=domain, message_types=TYPES, message_data=message)
        signature = Account.sign_message(signable, CREDENTIALS["private_key"]).signature
        sent = {**message, "nonce": "0x" + nonce.hex(), "signature": "0x" + bytes(signature).hex()}
        return base64.b64encode(json.dumps(sent).encode()).decode()

    @schemathesis.auth(refresh_interval=None)
    class Credentials:
        """Of what an operation takes: a token where it takes one, else the soul's key, else a proof, good for one request."""

        def get(self, case, context):
            security = case.operation.definition.raw.get("security") or []
            schemes = {name for one in security for name in one}
            if "accessToken" in schemes:
                return "Authorization", "Bearer " + CREDENTIALS["access_token"]
            if "platformToken" in schemes:
                return "Authorization", "Bearer local-acp-token"
            if "soulKey" in schemes:
                return "Authorization", "Bearer " + CREDENTIALS["soul_key"]
            if "walletProof" in schemes:
                return "x-agent-proof", proof("read" if case.method.upper() == "GET" else "write")
            return None

        def set(self, case, data, context):
            if data:
                case.headers[data[0]] = data[1]
                # Whoever is named beside a credential has to be the same.
                for name in [name for name in case.headers if name.lower() == "x-agent-id"]:
                    del case.headers[name]

    @schemathesis.hook
    def after_call(context, case, response):
        # A rotated key replaces the one this pass calls with.
        if case.path.endswith("/rotate-key") and response.status_code == 200:
            CREDENTIALS["soul_key"] = response.json()["soul_key"]
