"""What sdk.py checks with: what the SDK really sent, the forms of answers, and its steps as lines of JSON."""

import base64
import json
import re
import time

import httpx

USDC = re.compile(r"^\d+\.\d{6}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Legs:
    """Every request since the last look, as the SDK sent it: a fallback would be one too many."""

    def __init__(self):
        self.seen = []
        send = httpx.AsyncClient.send

        async def recorded(http, request, **options):
            answer = await send(http, request, **options)
            self.seen.append((request, answer))
            return answer

        httpx.AsyncClient.send = recorded

    def take(self, *expected):
        """The requests, which must be these: method and status, `GET`s of jobs left out."""
        seen = [leg for leg in self.seen if not (leg[0].method == "GET" and "/v1/requests/" in leg[0].url.path)]
        self.seen.clear()
        told = [f"{request.method} {answer.status_code}" for request, answer in seen]
        assert not expected or told == list(expected), (told, [answer.text for _, answer in seen])
        return seen


def payment(request):
    """The payment of a request, as the SDK made it."""
    return json.loads(base64.b64decode(request.headers["payment-signature"]))


def proof_scope(request):
    header = request.headers.get("x-agent-proof")
    return json.loads(base64.b64decode(header))["scope"] if header else None


def shape(value, **members):
    """Every named member is there and of its type, or equal to its value."""
    assert isinstance(value, dict), value
    for name, wanted in members.items():
        assert name in value, f"{name} is missing in {value}"
        found = value[name]
        if isinstance(wanted, re.Pattern):
            fits = isinstance(found, str) and wanted.search(found)
        elif isinstance(wanted, type):
            fits = isinstance(found, wanted) and (wanted is bool or not isinstance(found, bool))
        else:
            fits = found == wanted and type(found) is type(wanted)
        assert fits, f"{name}: {found!r} is not {wanted!r}"
    return value


def raised(error, call):
    """The error a call ends with, which must be exactly of this class."""
    try:
        answer = call()
    except Exception as found:  # noqa: BLE001 - which one is the question
        assert type(found) is error, f"{type(found).__name__}: {found}"
        return found
    raise AssertionError(f"no {error.__name__}: {answer!r}")


def refusal(error):
    """Status and code of a ToolError."""
    return error.status_code, json.loads(error.response_body)["error"]


def eventually(ask):
    """What the service tells a moment later, off the path of the call."""
    deadline = time.monotonic() + 20
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def told(**line):
    print(json.dumps(line), flush=True)
