"""E-mail with one version of the public SDK, by the methods it has for it.

Usage: email_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: private keys of `ada`,
who has money, and `bob`, who has some, and `domain`: the operator's. Prints a line of JSON for each step, and one for
everything the version does not have. (The file must not be called email.py: Python has a module of that name.)
"""

import asyncio
import base64
import json
import sys

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot._errors import ToolError, ValidationError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import TIME, Legs, raised, refusal, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

DOMAIN = stack["domain"]
RELEASE = tuple(int(part) for part in version.split("."))
NAME = "ada-" + version.replace(".", "-")
legs = Legs()
ada, bob = (OneShotClient(private_key=stack["wallets"][name], base_url=stack["base_url"]) for name in ("ada", "bob"))


def has(what, since):
    """Whether this version has it; says so if not."""
    there = RELEASE >= since
    if not there:
        told(not_in_this_version=what)
    return there


def body_of(request):
    return json.loads(request.content)


def address(client):
    """The address that an agent has from the start."""
    listed = shape(client.list_domains(), agent_id=client.address, domains=list)
    [domain] = [one for one in listed["domains"] if one["domain"] == DOMAIN]
    shape(domain, default_from=str, addresses=list, pool_status="active", warmup_state="warming",
          provisioning_status="verified", daily_send_limit=int, daily_sent_count=int)
    shape(domain["addresses"][0], address=domain["default_from"], status="active")
    legs.take("GET 200")
    return domain["default_from"]


def inbox(client, with_bodies=False):
    if INBOX_METHODS:
        page = client.inbox(limit=10, include_body=with_bodies)
    else:
        # Older versions read it with their helper for any free route.
        page = client.call_free_get("/v1/tools/inbox", {"limit": "10", "include_body": str(with_bodies).lower()})
    legs.take("GET 200")
    shape(page, count=len(page["emails"]), has_more=False, agent_id=str)
    return page["emails"]


def a_quote():
    """No version has a method that only asks for the price; this is what `email` does first."""
    told(not_in_this_version="a method for quotes")
    body = {"to_address": [bobs, adas], "subject": "Prices", "body": "How much?"}
    quote = shape(ada.call_tool("/v1/tools/email/quote", body), domain=DOMAIN, is_new=False, available=True,
                  currency="USD", quote_id=str, status="verified", from_address=adas)
    assert float(quote["total_cost"]) == float(quote["service_fee"]) == 0.01, quote
    legs.take("POST 200")
    dear = raised(ValidationError, lambda: ada.email(bobs, "Hello", "Hi", max_cost=0.001))
    [(_, answer)] = legs.take("POST 400")
    assert answer.json()["error"] == "exceeds_caller_budget" and str(dear) == answer.json()["message"]


def a_mail():
    file = {"filename": "hello.txt", "content": base64.b64encode(b"hello\n").decode(), "content_type": "text/plain"}
    sent = ada.email(bobs, "Hello", "How are you?", from_name="Ada", memo="a greeting", attachments=[file], max_cost=0.01)
    [(quoted, answer), (asked, _), (paid, _)] = legs.take("POST 200", "POST 402", "POST 202")
    assert answer.json()["from_address"] == body_of(paid)["from_address"] == adas, "the SDK repeats the chosen sender"
    assert "from_name" not in body_of(quoted) and body_of(asked) == body_of(paid)
    shape(sent, status=str, email=dict, domain=dict, request_id=str)
    shape(sent["email"], id=str, status=str)
    shape(sent["domain"], domain=DOMAIN, was_provisioned=False)
    [listed] = inbox(bob)
    shape(listed, id=str, subject="Hello", received_at=TIME, thread_id=str)
    assert adas in listed["from"] and not listed.get("body"), listed
    [read] = inbox(bob, with_bodies=True)
    assert read["body"].strip() == "How are you?" and read["attachments"][0]["content"] == file["content"], read
    path = f"/v1/tools/inbox/{listed['id']}"
    one = bob.inbox_get(listed["id"]) if INBOX_METHODS else bob.call_free_get(path)
    assert one["body"] == read["body"] and one["id"] == listed["id"]
    assert refusal(raised(ToolError, lambda: ada.call_free_get(path))) == (404, "email_not_found")
    legs.take("GET 200", "GET 404")
    return listed


def a_reply(received):
    bob.email(body="Well.", reply_to_email_id=received["id"])
    [(quoted, _), *_] = legs.take("POST 200", "POST 402", "POST 202")
    assert set(body_of(quoted)) == {"body", "reply_to_email_id"}, "the recipient and the subject follow from the mail"
    [reply] = inbox(ada, with_bodies=True)
    shape(reply, subject="Re: Hello")
    assert bobs in reply["from"] and reply["body"].strip() == "Well."
    ada.email(body="Good.", reply_to_email_id=reply["id"])
    legs.take()
    assert {mail["thread_id"] for mail in inbox(bob)} == {received["thread_id"]}
    unknown = "01890a5d-ac96-774b-bcce-b302099a8057"
    # A refused quote that is neither 400 nor 402 nor 403 is an HTTP error to every version.
    try:
        ada.email(body="?", reply_to_email_id=unknown)
    except Exception as error:  # noqa: BLE001 - its class differs between versions
        assert "404" in str(error) or getattr(error, "status_code", None) == 404, error
    else:
        raise AssertionError("an answer to a mail that does not exist")
    [(_, answer)] = legs.take("POST 404")
    assert answer.json()["error"] == "email_not_found"


def a_named_sender():
    ada.email(bobs, "From the shop", "Hi", from_domain=DOMAIN, from_mailbox=NAME)
    [(_, answer), *_] = legs.take("POST 200", "POST 402", "POST 202")
    shape(answer.json(), is_new=True, available=True, from_address=f"{NAME}@{DOMAIN}")
    assert f"{NAME}@{DOMAIN}" in inbox(bob)[0]["from"]
    taken = raised(ValidationError, lambda: bob.email(adas, "From the shop", "Hi", from_domain=DOMAIN, from_mailbox=NAME))
    [(_, answer)] = legs.take("POST 400")
    assert answer.json()["error"] == "address_taken" and str(taken) == answer.json()["message"]
    raised(ValidationError, lambda: ada.email(bobs, "Hi", "Hi", from_domain="not-ours.test"))
    [(_, quoted), (_, answer)] = legs.take("POST 200", "POST 400")
    shape(quoted.json(), available=False, status="unprovisioned")
    assert answer.json()["error"] == "domain_not_owned"


def pausing():
    """Version 0.34 signs a read proof for these changes."""
    shape(ada.pause_domain(DOMAIN), domain=DOMAIN, pool_status="paused", warmup_state=str, pause_reason="manual")
    legs.take()
    raised(ValidationError, lambda: ada.email(bobs, "Hello", "Hi"))
    [(_, answer)] = legs.take("POST 400")
    assert answer.json()["error"] == "no_sending_domain"
    shape(ada.resume_domain(DOMAIN), domain=DOMAIN, pool_status="active", warmup_state=str)
    missing = lambda: ada.call_free_post("/v1/tools/email/domains/not-ours.test/pause", scope="write")  # noqa: E731
    assert refusal(raised(ToolError, missing)) == (404, "domain_not_found")
    legs.take()


def a_token_session():
    ada.top_up_credits(0.02)
    minted = ada.create_access_token("mail")
    token = OneShotClient.create(access_token=minted["token"], base_url=stack["base_url"])
    legs.take()
    before = ada.get_balance()
    token.email(bobs, "From a token", "Hi")
    after = ada.get_balance()
    assert before["on_chain_balance"] == after["on_chain_balance"], (before, after)
    spent = float(before["credits_balance"]) - float(after["credits_balance"])
    assert abs(spent - 0.005) < 1e-9, (before, after)
    legs.take()
    assert inbox(bob)[0]["subject"] == "From a token"


def analytics():
    told(not_in_this_version="a method for analytics of mail")
    counts = shape(ada.call_free_get(f"/v1/tools/email/analytics/{DOMAIN}"), domain=DOMAIN, period_days=30, sent=int,
                   delivered=int, bounced=0, complained=0, replied=1, by_day=list)
    assert counts["sent"] >= 4, counts
    legs.take("GET 200")


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


INBOX_METHODS = has("a method for the inbox", (0, 38))
adas, bobs = address(ada), address(bob)
step(a_quote)
received = step(a_mail)
step(a_reply, received)
for run in (a_named_sender, pausing, a_token_session, analytics):
    step(run)
