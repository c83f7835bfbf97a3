"""Writes the configuration of a pass: python configure.py OPENAPI_JSON HOOKS > st.toml

What a schema cannot say of an operation's input is in the description itself (`x-also-checked`); there, and nowhere else, good
data may be answered 400.
"""

import json
import sys

document = json.load(open(sys.argv[1]))
accepted = ["2xx", "3xx", "401", "402", "403", "404", "409", "429"]
# Not 402: whatever is wrong with the input is said before any price.
rejected = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "431"]


def allow(operation, checks, why):
    print(f"\n# {why}\n[[operations]]\ninclude-operation-id = {json.dumps(operation)}")
    for check, statuses in checks.items():
        print(f"[operations.checks.{check}]\nexpected-statuses = {json.dumps(statuses)}")


# One worker: two parse at once what this version of Python can only parse one at a time.
print("workers = 1")
print(f"hooks = {json.dumps(sys.argv[2])}")
print(f"\n[checks.positive_data_acceptance]\nexpected-statuses = {json.dumps(accepted)}")
print(f"[checks.negative_data_rejection]\nexpected-statuses = {json.dumps(rejected)}")
# JSON-RPC: what is wrong with a message is said inside an answer of 200, so that no check here can tell good from bad. The
# protocol's own conformance suite judges it (make conformance).
print('\n[[operations]]\ninclude-path = "/mcp"\nenabled = false')
known = {f"#/components/parameters/{name}": parameter for name, parameter in document["components"]["parameters"].items()}
for path in document["paths"].values():
    for operation in path.values():
        more, reasons = [], []
        if why := operation.get("x-also-checked"):
            more.append("400")
            reasons.append(why)
        if "405" in operation["responses"]:
            more.append("405")
            reasons.append("it cannot be done any more")
        parameters = [known.get(parameter.get("$ref"), parameter) for parameter in operation.get("parameters", [])]
        if any(parameter["name"] == "Idempotency-Key" for parameter in parameters):
            more.append("422")
            reasons.append("a name that was used for another body is refused, and generated names repeat")
        checks = {}
        # What is bought may be done by somebody else, who may not answer: then nothing is charged, or it is paid back. That a
        # 503 says so, and that there is no other, is judged by `unavailable_as_described` in the hooks.
        if {"x-payment-info", "x-unavailable"} & operation.keys():
            more += ["431", "503"]
            reasons.append("headers may each be within their limit and too long together")
            reasons.append("its source or provider does not answer here")
            checks["not_a_server_error"] = ["2xx", "3xx", "4xx", "503"]
        if more:
            checks["positive_data_acceptance"] = accepted + more
            allow(operation["operationId"], checks, "; ".join(reasons))
