"""Calls with one version of the public SDK, by the methods it has for them.

Usage: voice_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: private keys of `ada` and
`bob`, who have 20 USDC each. Prints a line of JSON for each step.
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

from sdk_checks import TIME, USDC, Legs, eventually, raised, refusal, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

SECRET = re.compile(r"^whsec_.+")
# What a caller can learn from the settings.
FACT = re.compile(r"4\.50 euros|7 to 18 on weekdays")
SETTINGS = {
    "prompt": "You answer for the bakery Ann. Our opening hours are 7 to 18 on weekdays. A loaf of rye costs 4.50 euros.",
    "first_message": "Bakery Ann, this is an automated assistant.",
    "max_minutes": 3,
}
legs = Legs()
ada, bob = (OneShotClient(private_key=stack["wallets"][name], base_url=stack["base_url"]) for name in ("ada", "bob"))


def a_number():
    """It can be called, and answers nobody before it has settings."""
    bob.top_up_credits(10)
    bought = shape(bob.provision_voice_number(), id=str, voice_capable=True, inbound_configured=False, inbound_enabled=False,
                   is_new=True, charged="5.000000")
    [listed] = bob.voice_numbers()["numbers"]
    shape(listed, id=bought["id"], phone_number=bought["phone_number"], voice_capable=True, inbound_enabled=False)
    assert refusal(raised(ToolError, lambda: bob.get_inbound_voice(bought["id"]))) == (404, "inbound_not_configured")
    legs.take()
    return bought["id"], bought["phone_number"]


def its_settings(number, bobs):
    """A new configuration replaces the whole; the secret of a webhook is shown once."""
    wanted = {**SETTINGS, "webhook_url": "https://example.com/calls"}
    first = shape(bob.set_inbound_voice(number, wanted), phone_number=bobs, phone_number_id=number, enabled=True,
                  webhook_url=wanted["webhook_url"], updated_at=TIME, webhook_secret=SECRET, allowed_tools=["end_call"],
                  after_hours="take_message", language="en", business_hours=None, **SETTINGS)
    again = bob.set_inbound_voice(number, wanted)
    assert "webhook_secret" not in again and again["webhook_url"] == wanted["webhook_url"], again
    # What was answered can be put again.
    assert "webhook_secret" not in bob.set_inbound_voice(number, first)
    plain = shape(bob.set_inbound_voice(number, SETTINGS), webhook_url=None, enabled=True)
    assert bob.get_inbound_voice(number) == plain
    assert bob.voice_numbers()["numbers"][0]["inbound_enabled"] is True
    for wrong, code in [
        ({"allowed_tools": ["transfer_call"]}, "invalid_request"),
        ({"webhook_url": "http://example.com/calls"}, "invalid_request"),
        ({"after_hours": "transfer", "transfer_number": "911"}, "emergency_number_blocked"),
    ]:
        refused = raised(ToolError, lambda: bob.set_inbound_voice(number, {**SETTINGS, **wrong}))
        assert refusal(refused) == (400, code), wrong
    assert refusal(raised(ToolError, lambda: ada.set_inbound_voice(number, SETTINGS))) == (404, "number_not_found")
    assert bob.get_inbound_voice(number) == plain, "what was refused changed nothing"
    legs.take()


def a_call(bobs):
    """The first call buys the caller's number. Unused minutes come back as credits."""
    called = ada.voice("Ask how much a loaf of rye costs. Ask for the opening hours.", bobs, caller_name="Ada",
                       max_duration_minutes=2)
    [(asked, answer), (paid, accepted)] = legs.take("POST 402", "POST 202")
    shape(answer.json()["context"], tool="voice", target_numbers=[bobs], conference_mode=False, success_criteria=list,
          estimated_duration_minutes=int, complexity_score=int, pipeline_fee="0.000000", estimated_call_cost="0.700000",
          phone_registration_fee="5.000000", needs_phone_registration=True, total="5.700000")
    assert asked.content == paid.content
    shape(accepted.json(), tool="voice", status="processing", call=dict)
    shape(accepted.json()["call"], target_numbers=[bobs], from_number=None, conference_mode=False)
    shape(called, status="completed", transcript=str, summary=str, duration_seconds=int, outcome="reached_person", cost=USDC)
    assert SETTINGS["first_message"] in called["transcript"] and FACT.search(called["transcript"]), called
    assert called["success_evaluation"] in ("pass", "fail"), called
    return called


def the_callee_reads(number, bobs):
    def ended():
        [call] = bob.inbound_calls()["calls"]
        return call if call["summary"] else None

    call = shape(eventually(ended), id=str, phone_number_id=number, to=bobs, status="ended", mode="in_hours",
                 started_at=TIME, ended_at=TIME, duration_seconds=int, summary=str, charge_usdc="0.350000", receipt_id=str,
                 created_at=TIME)
    assert call["from"] == ada.voice_numbers()["numbers"][0]["phone_number"]
    assert not call.get("transcript"), "only if asked"
    [told_all] = bob.inbound_calls(limit=1, phone_number_id=number, include_transcript=True)["calls"]
    one = bob.inbound_call(call["id"])
    assert FACT.search(one["transcript"]) and told_all["transcript"] == one["transcript"], (one, told_all)
    assert bob.inbound_calls(before=call["created_at"]) == {"calls": []}
    assert refusal(raised(ToolError, lambda: ada.inbound_call(call["id"]))) == (404, "call_not_found")
    assert ada.inbound_calls() == {"calls": []}, "a call is its callee's"
    legs.take()
    return call


def an_emergency_number():
    blocked = raised(EmergencyNumberError, lambda: ada.voice("Say that there is a fire.", "911"))
    assert blocked.blocked_number == "911"
    legs.take("POST 400")


def a_token_session(number, call):
    """It reads, and sets nothing."""
    minted = bob.create_access_token("calls")
    token = OneShotClient.create(access_token=minted["token"], base_url=stack["base_url"])
    assert token.get_inbound_voice(number)["prompt"] == SETTINGS["prompt"]
    assert token.inbound_call(call["id"])["id"] == call["id"]
    for change in (lambda: token.set_inbound_voice(number, SETTINGS), lambda: token.disable_inbound_voice(number)):
        assert refusal(raised(ToolError, change)) == (403, "access_tokens_wallet_only")
    legs.take()


def a_number_that_answers_no_more(number, bobs):
    shape(bob.disable_inbound_voice(number), enabled=False, **SETTINGS)
    shape(bob.get_inbound_voice(number), enabled=False)
    dial = lambda: ada.call_free_post("/v1/tools/voice/exchange", {"to": bobs}, scope="write")  # noqa: E731
    assert refusal(raised(ToolError, dial)) == (404, "number_not_in_service")
    shape(bob.set_inbound_voice(number, SETTINGS), enabled=True)
    shape(dial()["data"], said=SETTINGS["first_message"])
    legs.take()


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


number, bobs = step(a_number)
step(its_settings, number, bobs)
step(a_call, bobs)
call = step(the_callee_reads, number, bobs)
step(an_emergency_number)
step(a_token_session, number, call)
step(a_number_that_answers_no_more, number, bobs)
