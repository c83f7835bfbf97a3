"""Accounts of the professional network with one version of the public SDK, by the methods it has for them.

Usage: network_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: private keys of `ann` and
`bob`, who have money, and of `eve`, who has none. Prints a line of JSON for each step, and one for everything the version does
not have.
"""

import asyncio
import json
import sys

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import httpx  # noqa: E402
import oneshot.client  # noqa: E402
from oneshot._errors import JobError, LinkedInConnectRequiredError, ToolError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import TIME, Legs, raised, refusal, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

ROOT = "/v1/tools/linkedin"
RELEASE = tuple(int(part) for part in version.split("."))
ACTIONS = ["read", "reply", "view_profile", "react", "invite"]
DONE = "https://example.com/done"
legs = Legs()


class Member:
    """An agent and its account at the network."""

    def __init__(self, name):
        self.name = name
        self.client = OneShotClient(private_key=stack["wallets"][name.lower()], base_url=stack["base_url"])
        self.account = self.member = None

    def logs_in(self, issued):
        """Does what a person does at the login page; what came of the link."""
        shape(issued, intent_id=str, url=str, expires_at=TIME, status="pending", requested_actions=list)
        shape(self.client.get_linkedin_connection(issued["intent_id"]), intent_id=issued["intent_id"], status="pending")
        # No version has methods for the local network: its members would do by hand what these routes do.
        code = self.client.call_free_post(f"{ROOT}/local/code", {"name": self.name}, scope="write")
        shape(code, code=str, expires_at=TIME, network="Local network of this service")
        page = httpx.get(issued["url"])
        assert page.status_code == 200 and "name=code" in page.text and "<script" not in page.text, page.text
        assert httpx.post(issued["url"], data={"code": "WRONG"}).status_code == 400
        entered = httpx.post(issued["url"], data={"code": code["code"]})
        assert entered.status_code == 200 and "You are logged in" in entered.text and DONE in entered.text, entered.text
        assert httpx.post(issued["url"], data={"code": code["code"]}).status_code == 410, "a link logs in once"
        return shape(self.client.get_linkedin_connection(issued["intent_id"]), status="completed", account=dict)

    def local(self):
        """What the member sees at the network itself."""
        return shape(self.client.call_free_get(f"{ROOT}/local"), member=dict, invitations=list, connections=list, posts=list)

    def messages(self, **query):
        return shape(self.client.linkedin_messages(self.account, **query), messages=list, has_more=bool, coverage=dict,
                     sync_state=str)


ann, bob, eve = Member("Ann"), Member("Bob"), Member("Eve")


def has(what, method):
    """Whether this version has a method; says so if not."""
    there = hasattr(ann.client, method)
    if not there:
        told(not_in_this_version=what)
    return there


def refused(call):
    """Status and code of a refusal. Versions that prove themselves are refused before a price, others when they pay."""
    try:
        answer = call()
    except ToolError as error:
        return refusal(error)
    except httpx.HTTPStatusError as error:
        return error.response.status_code, error.response.json()["error"]
    raise AssertionError(f"not refused: {answer!r}")


def message(one, other, text, key):
    if MESSAGES:
        return one.client.linkedin_message(one.account, other.member, text, idempotency_key=key)
    # Older versions buy it with their helper for any tool.
    body = {"account_id": one.account, "profile": other.member, "text": text}
    return one.client.call_tool(f"{ROOT}/message", body, idempotency_key=key)


def invitation(one, invitation_id):
    if INVITATIONS:
        return one.client.linkedin_invitation(one.account, invitation_id)
    return one.client.call_free_get(f"{ROOT}/accounts/{one.account}/invitations/{invitation_id}")


def invitations(one, **query):
    if INVITATIONS:
        return one.client.linkedin_invitations(one.account, **query)["invitations"]
    return one.client.call_free_get(f"{ROOT}/accounts/{one.account}/invitations", query)["invitations"]


def three_logins():
    for one in (ann, bob, eve):
        assert one.client.list_linkedin_accounts() == {"accounts": []}
        legs.take("GET 200")
        issued = one.client.linkedin_connect([*ACTIONS, "comment"], success_redirect_url=DONE)
        legs.take("POST 201")
        account = one.logs_in(issued)["account"]
        shape(account, id=str, status="connected", display_name=one.name, member_urn=str, allowed_actions=ACTIONS,
              grant_version=1, reconnect_required=False, connected_at=TIME, idle_revoke_at=TIME, sync=dict, limits=dict)
        shape(account["limits"]["messages"], limit=50, used=0, pending=0, remaining=50, resets_at=TIME)
        one.account, one.member = account["id"], account["member_urn"]
        [listed] = one.client.list_linkedin_accounts()["accounts"]
        assert listed["id"] == one.client.get_linkedin_account(one.account)["id"] == one.account, listed
        legs.take()
    unknown = raised(ToolError, lambda: ann.client.get_linkedin_account(bob.account))
    assert refusal(unknown) == (404, "account_not_found"), unknown
    legs.take()


def an_invitation():
    sent = ann.client.linkedin_invite(ann.account, bob.member, note="We met in Lyon.", idempotency_key="invite Bob")
    [_, (paid, accepted)] = legs.take("POST 402", "POST 202")
    assert paid.headers["idempotency-key"] == "invite Bob"
    shape(accepted.json()["linkedin"], action="invite", account_id=ann.account, invitation_id=sent["invitation_id"])
    shape(accepted.json()["linkedin"]["headroom"], limit=25, remaining=24)
    shape(sent, status="sent", action_request_id=str, request_id=str, invitation_id=str, provider_invitation_id=str, tracked=True)
    # One that is open is not bought again: the SDK waits for the first.
    again = ann.client.linkedin_invite(ann.account, bob.member)
    [*_, (_, answer)] = legs.take()
    assert (answer.status_code, answer.json()["error"]) == (409, "duplicate_request"), answer.text
    shape(again, status="sent", invitation_id=sent["invitation_id"])
    shape(invitation(ann, sent["invitation_id"]), status="sent", profile=bob.member, note="We met in Lyon.", accepted_at=None)
    return sent["invitation_id"]


def an_acceptance(invitation_id):
    [waiting] = bob.local()["invitations"]
    shape(waiting, **{"from": ann.member, "name": "Ann", "note": "We met in Lyon."})
    path = f"{ROOT}/local/invitations/{ann.member}/accept"
    shape(bob.client.call_free_post(path, scope="write"), member_id=ann.member, status="connected")
    shape(invitation(ann, invitation_id), status="accepted", accepted_at=TIME)
    assert [one["invitation_id"] for one in invitations(ann, status="accepted")] == [invitation_id]
    assert invitations(ann, status="sent") == [] and [one["name"] for one in ann.local()["connections"]] == ["Bob"]
    legs.take()


def a_message():
    """Under one key it is sent once."""
    sent = message(ann, bob, "Shall we talk on Thursday?", "hello")
    legs.take("POST 402", "POST 202")
    shape(sent, status="sent", action_request_id=str, message_id=str, provider_message_id=str, conversation_id=str, sent_at=TIME)
    again = message(ann, bob, "Shall we talk on Thursday?", "hello")
    shape(again.get("result", again), status="sent", message_id=sent["message_id"])
    [received] = bob.messages()["messages"]
    shape(received, id=str, conversation_id=str, direction="inbound", sender_provider_id=ann.member, sender_name="Ann",
          text="Shall we talk on Thursday?", sent_at=TIME, seen=False, deleted=False, attachments=[])
    legs.take()
    stranger = raised(JobError, lambda: message(ann, eve, "Hello?", "a stranger"))
    assert "connection" in str(stranger), stranger
    legs.take("POST 402", "POST 202")
    return received["conversation_id"]


def an_answer(conversation):
    sent = bob.client.linkedin_reply(bob.account, conversation, "Thursday at ten suits me.")
    [_, (paid, _)] = legs.take("POST 402", "POST 202")
    assert len(paid.headers["idempotency-key"]) == 32, "the SDK's own"
    shape(sent, status="sent", message_id=str, conversation_id=conversation, sent_at=TIME)


def a_sync():
    shape(ann.client.get_linkedin_sync(ann.account), sync_state="never_synced", runs=[])
    read = ann.client.linkedin_sync(ann.account, mode="continue", max_pages=2)
    shape(read, run_id=str, kind="initial", outcome="exhausted", needs_continuation=False, pages=1, messages_seen=2,
          messages_inserted=0, provider_history="done")
    about = shape(ann.client.get_linkedin_sync(ann.account), account_id=ann.account, sync_state="complete", last_run=dict)
    shape(about["coverage"], complete=True, message_count=2, conversation_count=1)
    if RELEASE >= (0, 38):
        run = ann.client.call_lookup("linkedin_sync_run", run_id=read["run_id"])
    else:
        told(not_in_this_version="a lookup for syncs")
        run = ann.client.call_free_get(f"{ROOT}/sync/{read['run_id']}")
    shape(run, run_id=read["run_id"], status="succeeded", max_pages=2, trigger="paid")
    legs.take()


def what_was_read():
    [conversation] = ann.client.linkedin_conversations(ann.account, limit=10)["conversations"]
    shape(conversation, id=str, name="Bob", attendees_synced=True, unread_count=int, last_message_at=TIME)
    page = ann.messages(conversation_id=conversation["id"], limit=1)
    shape(page, has_more=True, next_cursor=str, sync_state="complete")
    rest = ann.messages(conversation_id=conversation["id"], limit=1, cursor=page["next_cursor"])
    shape(rest, has_more=False)
    both = [*page["messages"], *rest["messages"]]
    assert [one["text"] for one in both] == ["Thursday at ten suits me.", "Shall we talk on Thursday?"], both
    assert ann.messages(direction="inbound", include_deleted=True)["messages"] == both[:1]
    legs.take()


def a_profile():
    seen = ann.client.linkedin_view_profile(ann.account, bob.member, notify=True)
    legs.take("POST 402", "POST 202")
    shape(seen, status="sent", profile=dict)
    shape(seen["profile"], provider_id=bob.member, name="Bob", headline=str, network_distance="FIRST_DEGREE")


def a_reaction():
    post = bob.client.call_free_post(f"{ROOT}/local/posts", {"text": "The lamp turns against the sun."}, scope="write")
    legs.take("POST 201")
    shape(ann.client.linkedin_react(ann.account, post["post_id"], reaction_type="insightful"), status="sent", sent_at=TIME)
    legs.take("POST 402", "POST 202")
    [shown] = bob.local()["posts"]
    shape(shown, post_id=post["post_id"], reactions={"insightful": 1})


def a_withdrawal():
    # Who does not wait gets all that the service says of an invitation.
    accepted = ann.client.linkedin_invite(ann.account, eve.member, wait=False)
    shape(accepted, request_id=str, status="processing", tool="linkedin", linkedin=dict)
    invited = accepted["linkedin"]["invitation_id"]
    shape(ann.client.wait_for_result(accepted["request_id"]), status="sent", invitation_id=invited)
    assert [one["from"] for one in eve.local()["invitations"]] == [ann.member]
    for status in ("withdrawn", "already_withdrawn"):
        shape(ann.client.linkedin_withdraw_invitation(ann.account, invited), status=status, invitation_id=invited)
    assert eve.local()["invitations"] == []
    shape(invitation(ann, invited), status="withdrawn")
    legs.take()


def a_token_session():
    """A token pays from credits, at once."""
    ann.client.top_up_credits(0.1)
    minted = ann.client.create_access_token("network")
    token = OneShotClient.create(access_token=minted["token"], base_url=stack["base_url"])
    before = float(ann.client.get_balance()["credits_balance"])
    legs.take()
    shape(token.linkedin_view_profile(ann.account, eve.member)["profile"], network_distance="OUT_OF_NETWORK")
    legs.take("POST 202")
    after = float(ann.client.get_balance()["credits_balance"])
    assert abs(before - after - 0.01) < 1e-9, (before, after)
    assert len(token.linkedin_messages(ann.account)["messages"]) == 2
    legs.take()


def a_smaller_grant():
    """The owner logs in again, and allows less."""
    issued = ann.client.reconnect_linkedin_account(ann.account, requested_actions=["read", "reply"], success_redirect_url=DONE)
    shape(issued, type="reconnect")
    account = ann.logs_in(issued)["account"]
    shape(account, id=ann.account, allowed_actions=["read", "reply"], grant_version=2, reconnected_at=TIME)
    legs.take()
    assert refused(lambda: ann.client.linkedin_view_profile(ann.account, bob.member)) == (403, "grant_missing")
    shape(message(ann, bob, "Good.", "good"), status="sent")
    legs.take()


def an_end():
    gone = ann.client.revoke_linkedin_account(ann.account)
    legs.take("DELETE 200")
    shape(gone, id=ann.account, status="revoked", revoked_at=TIME, cancelled_sends=0, upstream_deleted=True)
    assert ann.client.list_linkedin_accounts() == {"accounts": []}
    [account] = ann.client.list_linkedin_accounts(include_revoked=True)["accounts"]
    shape(account, id=ann.account, status="revoked", allowed_actions=[], grant_version=3)
    assert len(ann.messages()["messages"]) == 3, "they stay readable"
    connect = raised(LinkedInConnectRequiredError, lambda: ann.client.reconnect_linkedin_account(ann.account))
    assert (connect.code, connect.next_action) == ("connect_required", "connect")
    assert refused(lambda: message(ann, bob, "Hello?", "late")) == (403, "grant_missing")
    legs.take()


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


MESSAGES = has("a method for messages", "linkedin_message")
INVITATIONS = has("methods for invitations", "linkedin_invitations")
step(three_logins)
invited = step(an_invitation)
step(an_acceptance, invited)
conversation = step(a_message)
step(an_answer, conversation)
for run in (a_sync, what_was_read, a_profile, a_reaction, a_withdrawal, a_token_session, a_smaller_grant, an_end):
    step(run)
