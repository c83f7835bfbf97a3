"""Texts with one version of the public SDK, by the methods it has for them.

Usage: sms_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: private keys of `ada` and
`bob`, who have 20 USDC each. Prints a line of JSON for each step, and one for everything the version does not have.
"""

import asyncio
import json
import re
import sys

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot._errors import EmergencyNumberError, ToolError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import TIME, Legs, raised, refusal, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

NUMBER = re.compile(r"^\+1\d{3}55501\d\d$")
INBOX_METHODS = tuple(int(part) for part in version.split(".")) >= (0, 38)
legs = Legs()
ada, bob = (OneShotClient(private_key=stack["wallets"][name], base_url=stack["base_url"]) for name in ("ada", "bob"))


def inbox(client, **query):
    if INBOX_METHODS:
        page = client.sms_inbox(limit=10, **query)
    else:
        # Older versions read it with their helper for any free route.
        wanted = {"from": query["from_number"]} if query else {}
        page = client.call_free_get("/v1/tools/sms/inbox", {"limit": "10", **wanted})
    legs.take("GET 200")
    shape(page, count=len(page["messages"]))
    return page["messages"]


def numbers():
    """A number is paid from credits, once."""
    assert bob.voice_numbers() == {"numbers": []}
    assert refusal(raised(ToolError, bob.provision_voice_number)) == (402, "insufficient_credits")
    bob.top_up_credits(5)
    bought = shape(bob.provision_voice_number(), id=str, phone_number=NUMBER, voice_capable=bool, sms_capable=True,
                   inbound_configured=bool, inbound_enabled=bool, is_new=True, charged="5.000000", receipt_id=str)
    again = shape(bob.provision_voice_number(), phone_number=bought["phone_number"], is_new=False, charged="0.000000")
    assert again["receipt_id"] is None, again
    [listed] = bob.voice_numbers()["numbers"]
    shape(listed, id=bought["id"], phone_number=bought["phone_number"], status="active", sms_capable=True)
    legs.take()
    return bought["phone_number"]


def a_text(bobs):
    """The first text buys the sender's number."""
    sent = ada.sms("How are you? 😀", bobs)
    [(asked, answer), (paid, accepted)] = legs.take("POST 402", "POST 202")
    shape(answer.json()["context"], recipient_count=1, segment_count=1, needs_phone_registration=True)
    assert answer.json()["amount_usdc"] == "5.003500" and asked.content == paid.content
    assert accepted.json()["sms"] == {"to_numbers": [bobs], "segment_count": 1}, accepted.text
    shape(sent, status="all_delivered", total=1, segment_count=1, details=list)
    shape(sent["details"][0], to=bobs, status=str)
    [received] = inbox(bob)
    shape(received, id=str, to=bobs, body="How are you? 😀", received_at=TIME, created_at=TIME, num_media=0, media_urls=list,
          thread_id=str)
    return received


def an_answer(bobs, received):
    adas = received["from"]
    bob.sms("Well.", adas)
    [(_, asked), _] = legs.take("POST 402", "POST 202")
    assert asked.json()["context"]["total"] == "0.003500", "the number is paid for"
    [answer] = inbox(ada, from_number=bobs)
    shape(answer, body="Well.", to=adas, related_outbound_id=str)
    assert answer["from"] == bobs
    path = f"/v1/tools/sms/inbox/{answer['id']}"
    one = ada.sms_inbox_get(answer["id"]) if INBOX_METHODS else ada.call_free_get(path)
    assert one == answer
    assert refusal(raised(ToolError, lambda: bob.call_free_get(path))) == (404, "message_not_found")
    legs.take("GET 200", "GET 404")


def an_emergency_number():
    blocked = raised(EmergencyNumberError, lambda: ada.sms("Help", "911"))
    assert blocked.blocked_number == "911"
    legs.take("POST 400")


def a_token_session(bobs):
    ada.top_up_credits(0.02)
    minted = ada.create_access_token("texts")
    token = OneShotClient.create(access_token=minted["token"], base_url=stack["base_url"])
    before = ada.get_balance()
    token.sms("From a token", bobs)
    after = ada.get_balance()
    spent = float(before["credits_balance"]) - float(after["credits_balance"])
    assert before["on_chain_balance"] == after["on_chain_balance"] and abs(spent - 0.0035) < 1e-9, (before, after)
    legs.take()
    assert inbox(bob)[0]["body"] == "From a token"


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


if not INBOX_METHODS:
    told(not_in_this_version="a method for received texts")
bobs = step(numbers)
received = step(a_text, bobs)
step(an_answer, bobs, received)
step(an_emergency_number)
step(a_token_session, bobs)
