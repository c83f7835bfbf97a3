"""The account features with one version of the public SDK, which knows nothing of us but the address.

Usage: sdk.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK. The file also has `wallets`: private keys of new
wallets by name, `rich` with 10 USDC, `capped` with 1 USDC, `poor` with nothing; and `outbox`, where mails to approvers lie.
Prints a line of JSON for each step, and one for everything the version does not have.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import httpx  # noqa: E402
import oneshot.client  # noqa: E402
from oneshot._errors import (  # noqa: E402
    ActionDeniedError, ApprovalRequiredError, BudgetExceededError, BudgetSyncError, InsufficientCreditsError, JobError,
    PaymentError, ToolError, ValidationError,
)
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import TIME, USDC, Legs, eventually, payment, proof_scope, raised, refusal, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

BASE = stack["base_url"]
VIN_PATH, VIN = "/v1/tools/lookup/vehicle-identification", "1HGCM82633A004352"
RELEASE = tuple(int(part) for part in version.split("."))
legs = Legs()


def has(what, since):
    """Whether this version has it; says so if not."""
    there = RELEASE >= since
    if not there:
        told(not_in_this_version=what)
    return there


def wallet(name, **options):
    return OneShotClient(private_key=stack["wallets"][name], base_url=BASE, **options)


def vin(client, **options):
    return client.call_tool(VIN_PATH, {"vin": VIN, "memo": "a car"}, **options)


def is_honda(answer):
    shape(answer, request_id=str, receipt_id=re.compile("^rcpt_"), status="completed", tool=str)
    return shape(answer["result"], make="Honda", decoded=True)


rich, poor = wallet("rich"), wallet("poor")


def money():
    """What the rich wallet has, in micro-USDC: on chain, and as credits."""
    about = shape(rich.get_balance(), on_chain_balance=USDC, credits_balance=USDC, currency="USDC", address=rich.address,
                  chain_id=stack["chain"]["chain_id"])
    legs.take("GET 200")
    return tuple(int(about[name].replace(".", "")) for name in ("on_chain_balance", "credits_balance"))


def a_direct_call():
    assert money() == (10_000_000, 0)
    bought = vin(rich, max_cost=0.01, idempotency_key="first")
    is_honda(bought)
    asked, paid = (request for request, _ in legs.take("POST 402", "POST 200"))
    assert payment(paid)["accepted"]["network"] == f"eip155:{stack['chain']['chain_id']}", "the SDK's own fallback"
    assert proof_scope(asked) == ("write" if has("proofs on paid legs", (0, 37)) else None)
    assert money() == (9_995_000, 0)
    again = vin(rich, max_cost=0.01, idempotency_key="first")
    # The stored answer at once to those who prove who they are, and to the others after a payment that is not taken.
    legs.take(*["POST 200"] if RELEASE >= (0, 37) else ["POST 402", "POST 200"])
    assert again["request_id"] == bought["request_id"] and money() == (9_995_000, 0)
    refused = raised(ValidationError, lambda: vin(rich, max_cost=1e-05))
    [(request, answer)] = legs.take("POST 400")
    assert request.headers["x-max-cost-usdc"] == "1e-05" and answer.json()["error"] == "exceeds_caller_budget"
    assert str(refused) == answer.json()["message"]


def a_queued_call():
    page = rich.web_read(f"{stack['site_url']}/article", memo="the light")
    assert "two white flashes every eleven seconds" in page["markdown"] and page["metadata"]["statusCode"] == 200
    legs.take("POST 402", "POST 202")
    queued = rich.call_tool("/v1/tools/web-read", {"url": f"{stack['site_url']}/plain"}, wait=False)
    shape(queued, request_id=str, status="processing")
    shape(rich.wait_for_result(queued["request_id"]), markdown=str, request_id=queued["request_id"])
    failed = raised(JobError, lambda: rich.web_read("http://no-such-host.invalid/"))
    assert failed.code == "provider_unavailable" and failed.job_error, failed
    legs.take()
    assert money() == (9_989_000, 2_000)


def a_top_up():
    bought = rich.top_up_credits(0.01)
    shape(bought, topped_up="0.010000", credits_balance="0.012000", transaction_id=str,
          settlement_tx=re.compile("^0x[0-9a-f]{64}$"), already_credited=False)
    legs.take("POST 402", "POST 200")
    assert money() == (9_979_000, 12_000)


def credits_of_a_wallet():
    """Versions that send no proof pay on chain and keep the credits."""
    whole = RELEASE >= (0, 37)
    for index, (signed, left) in enumerate([("0", 7_000), ("0", 2_000), ("3000", 0)]):
        is_honda(vin(rich))
        [_, (paid, _)] = legs.take("POST 402", "POST 200")
        value = payment(paid)["payload"]["authorization"]["value"]
        chain, credits = money()
        if whole:
            assert (value, credits) == (signed, left), (value, credits)
            assert proof_scope(paid) == ("write" if value == "0" else None)
        else:
            assert (value, chain, credits) == ("5000", 9_979_000 - 5_000 * (index + 1), 12_000)
    if has("lookups by name", (0, 38)):
        is_honda(rich.call_lookup("vehicle_identification", vin=VIN))
        legs.take("POST 402", "POST 200")


def a_wallet_without_money():
    short = raised(PaymentError, lambda: vin(poor))
    legs.take("POST 402", "POST 402")
    assert short.reason == "insufficient_funds" and short.stage and short.diagnostics and short.payment_attempt_id
    shape(short.expected, amount="0.005000", asset=stack["chain"]["token"], network="eip155:84532",
          pay_to=stack["chain"]["pay_to"])
    assert short.received == {"amount": "0.005000"} and short.quote_id.startswith("quote_")


def budgets():
    """The budget is the first that the service hears of this wallet.

    Who has not proven to hold the wallet is not told what it spent: versions without proofs are stopped when they pay.
    """
    stopped = ["POST 403"] if RELEASE >= (0, 37) else ["POST 402", "POST 403"]
    capped = wallet("capped", budgets={"daily": 0.012, "perTransaction": 0.004}, alert_email="owner@example.com")
    over = raised(BudgetExceededError, lambda: vin(capped))
    legs.take("PUT 200", *stopped[:1])
    assert (over.reason, over.cap, over.charge) == ("per_transaction", 0.004, 0.005), vars(over)
    # The service's answer, and not only the SDK's own check, which another session of this wallet does not make.
    over = raised(BudgetExceededError, lambda: vin(wallet("capped")))
    legs.take(*stopped)
    assert (over.reason, over.cap, over.spent, over.charge) == ("per_transaction", 0.004, 0.0, 0.005), vars(over)
    assert over.resets_at is None, "no day resets a cap per call"
    capped = wallet("capped", budgets={"daily": 0.012, "per_transaction": 1, "alert_at": 0.5, "pause_at": 1})
    is_honda(vin(capped))
    legs.take("PUT 200", "POST 402", "POST 200")
    is_honda(vin(capped))
    legs.take("POST 402", "POST 200")
    over = raised(BudgetExceededError, lambda: vin(capped))
    legs.take(*stopped)
    assert (over.reason, over.cap, over.spent, over.charge) == ("daily", 0.012, 0.01, 0.005), vars(over)
    assert TIME.match(over.resets_at) and capped.get_balance()["on_chain_balance"] == "0.990000"
    legs.take("GET 200")
    about = shape(capped.get_budgets(), daily_usdc=0.012, alert_at=0.5, spent_today_usdc="0.010000",
                  remaining_usdc="0.002000", resets_at=TIME)
    assert (about["per_transaction_usdc"], about["pause_at"]) == (1, 1) and abs(about["pct_used"] - 83.3) < 0.1, about
    unset = shape(poor.get_budgets(), spent_today_usdc="0.000000", resets_at=TIME)
    assert [unset[name] for name in ("daily_usdc", "per_transaction_usdc", "remaining_usdc", "pct_used")] == [None] * 4
    legs.take("GET 200", "GET 200")
    tiny = wallet("poor", budgets={"per_transaction": 1e-05})
    assert raised(BudgetExceededError, lambda: vin(tiny)).cap == 1e-05 == tiny.get_budgets()["per_transaction_usdc"]
    legs.take("PUT 200", *stopped[:1], "GET 200")
    bad = raised(BudgetSyncError, lambda: vin(wallet("capped", alert_email="nobody")))
    assert bad.status == 400 and json.loads(bad.body)["details"][0]["path"] == "alert_email"
    legs.take("PUT 400")


def access_tokens():
    minted = shape(rich.create_access_token("runner"), id=str, token=re.compile("^oneshot_[0-9a-f]{64}$"), name="runner",
                   created_at=TIME, expires_at=None)
    assert minted["token_prefix"] == minted["token"][:16]
    [listed] = rich.list_access_tokens()
    shape(listed, id=minted["id"], token_prefix=minted["token_prefix"], name="runner", source="wallet",
          last_used_at=None, created_at=minted["created_at"], revoked_at=None, expires_at=None,
          spent_today_usdc="0.000000")
    assert minted["token"] not in json.dumps(listed)
    if has("expiry of tokens", (0, 50)):
        short = shape(rich.create_access_token(expires_in_days=1), token=str, name=None, expires_at=TIME)
        rich.revoke_access_token(short["id"])
        assert [token["id"] for token in rich.list_access_tokens(active_only=True)] == [minted["id"]]
    legs.take()
    return minted


def a_token_session(minted):
    token = OneShotClient.create(access_token=minted["token"], base_url=BASE)
    assert token.is_access_token_session and token.address == rich.address
    legs.take("GET 200")
    rich.top_up_credits(0.02)
    legs.take()
    chain, before = money()
    is_honda(vin(token, max_cost=0.01, idempotency_key="by token"))
    [(request, _)] = legs.take("POST 200")
    assert request.headers["authorization"] == f"Bearer {minted['token']}" and not proof_scope(request)
    assert "payment-signature" not in request.headers
    assert "lighthouse" in token.web_read(f"{stack['site_url']}/article")["markdown"].lower()
    legs.take("POST 202")
    assert money() == (chain, before - 7_000)
    assert token.get_balance() == rich.get_balance()
    seen = token.get_budgets()
    assert seen.pop("token")["id"] == minted["id"]
    assert seen == rich.get_budgets()
    [listed] = rich.list_access_tokens(active_only=True)
    shape(listed, spent_today_usdc="0.007000", last_used_at=TIME)
    return token


def a_token_short_of_credits(token):
    legs.take()
    [_, credits] = money()
    while credits >= 5_000:
        is_honda(vin(token))
        credits -= 5_000
    legs.take()
    short = raised(InsufficientCreditsError, lambda: vin(token))
    [(_, answer)] = legs.take("POST 402")
    assert str(short) == answer.json()["message"], "the service's words, not the SDK's"
    assert (short.required, short.balance, short.shortfall) == (0.005, credits / 1e6, (5_000 - credits) / 1e6)


def a_token_and_the_owners_rules(token):
    rich.top_up_credits(0.02)
    rich.call_free_put("/v1/agents/me/budgets", {"per_transaction": 0.001})
    legs.take()
    over = raised(BudgetExceededError, lambda: vin(token))
    legs.take("POST 403")
    assert (over.reason, over.cap, over.charge) == ("per_transaction", 0.001, 0.005)
    rich.call_free_put("/v1/agents/me/budgets", {"per_transaction": None})
    denied = [
        (403, "budgets_read_only_for_access_tokens", lambda: token.call_free_put("/v1/agents/me/budgets", {"daily": 9})),
        (403, "access_tokens_wallet_only", lambda: token.call_free_post("/v1/agents/me/access-tokens", {})),
        (403, "access_tokens_wallet_only", lambda: token.call_free_get("/v1/agents/me/access-tokens")),
        (403, "access_tokens_wallet_only", lambda: token.call_free_delete("/v1/agents/me/access-tokens/x")),
        (403, "access_tokens_wallet_only", lambda: token.set_action_policy({"rules": []})),
        (403, "access_tokens_wallet_only", lambda: token.create_approval("?", approver_email="a@example.com")),
    ]
    for status, code, call in denied:
        assert refusal(raised(ToolError, call)) == (status, code), code
    for call in (token.create_access_token, token.list_access_tokens, lambda: token.top_up_credits(1)):
        raised(ValidationError, call)
    # Past the SDK's own check; it knows no word for this one.
    closed = raised(httpx.HTTPStatusError, lambda: token.call_tool("/v1/credits/top-up", {"amount": 1}))
    assert (closed.response.status_code, closed.response.json()["error"]) == (503, "route_unavailable_for_access_tokens")


def approvals(token):
    policy = {"approver": {"email": "owner@example.com"}, "timeout_seconds": 600,
              "rules": [{"tool": "*", "action": "require_approval", "when": {"always": True}}]}
    shape(rich.set_action_policy(policy), enabled=True, timeout_seconds=600)
    assert rich.get_action_policy()["rules"][0]["action"] == "require_approval"
    legs.take()
    held = raised(ApprovalRequiredError, lambda: vin(token))
    legs.take("POST 403")
    assert held.approval["approval_id"] == held.approval_id and held.rule == held.approval["policy_rule"] and held.rule
    shape(rich.get_approval(held.approval_id), status="pending", source="policy", expires_at=TIME, created_at=TIME)
    mail = (Path(stack["outbox"]) / f"{held.approval_id}.eml").read_text()
    [link] = re.findall(r"^http\S+/approve/\S+", mail, re.MULTILINE)
    assert httpx.post(link, data={"decision": "approve"}).status_code == 200
    shape(token.get_approval(held.approval_id), status="approved", decided_via="link", use_by=TIME)
    is_honda(vin(token, approval_id=held.approval_id))
    shape(rich.get_approval(held.approval_id), status="consumed", consumed_at=TIME)
    asked = shape(rich.create_approval("Buy a boat", approver_email="owner@example.com", preview={"feet": 40}),
                  status="pending", source="api")
    shape(rich.cancel_approval(asked["approval_id"]), status="cancelled")
    assert [one["status"] for one in rich.list_approvals(limit=2)] == ["cancelled", "consumed"]
    rich.set_action_policy({**policy, "rules": [{"id": "no-cars", "tool": "*", "action": "deny", "when": {"always": True}}]})
    denied = raised(ActionDeniedError, lambda: vin(token))
    assert denied.rule == "no-cars"
    rich.delete_action_policy()
    assert rich.get_action_policy() is None
    legs.take()


def notifications():
    """Jobs end and budgets warn in the agent's inbox, a moment later."""
    capped = wallet("capped")
    there = has("notifications", (0, 38))
    if there:
        ask = lambda client, **params: client.notifications(**params)  # noqa: E731
    else:
        # Older versions reach it with their helper for any route, and sign a read proof for a change.
        ask = lambda client, **params: client.call_free_get("/v1/tools/notifications", params and {"unread": "true"})  # noqa: E731
    wanted = {"job_completed", "job_failed", "credit_issued"}

    def all_told():
        answer = ask(rich)
        return wanted <= {note["type"] for note in answer["notifications"]} and answer

    found = eventually(all_told)
    assert found["count"] == len(found["notifications"])
    for note in found["notifications"]:
        shape(note, id=str, title=str, read=False, created_at=TIME, createdAt=note["created_at"], agentId=str, metadata=dict)
    eventually(lambda: "budget_warning" in {note["type"] for note in ask(capped)["notifications"]})
    first = found["notifications"][-1]["id"]
    if there:
        shape(rich.mark_notification_read(first), success=True)
    else:
        shape(rich.call_free_patch(f"/v1/tools/notifications/{first}/read"), success=True)
    unread = ask(rich, unread=True)["notifications"]
    assert unread and first not in {note["id"] for note in unread}
    shape(rich.mark_all_notifications_read() if there else rich.call_free_patch("/v1/tools/notifications/read-all"), success=True)
    missing = f"/v1/tools/notifications/{first[:-1]}/read"
    assert refusal(raised(ToolError, lambda: rich.call_free_patch(missing, scope="write"))) == (404, "notification_not_found")
    legs.take()


def receipts():
    """No version has a method that lists receipts; all have the helper for any free route, and tag their value."""
    told(not_in_this_version="a method that lists receipts")
    page = rich.call_free_get("/v1/analytics/receipts", {"limit": "100"})
    assert page["has_more"] is False and page["count"] == len(page["receipts"]) > 5
    for one in page["receipts"]:
        shape(one, receipt_id=re.compile("^rcpt_"), agent_id=str, category=str, subcategory=str, amount_usdc=USDC,
              status=re.compile("^(settled|failed)$"), execution_status=re.compile("^(completed|failed)$"), created_at=TIME,
              settled_at=TIME, revision=int, digest=re.compile("^[0-9a-f]{64}$"), signature=str, key_id=str, alg="Ed25519")
    settled = next(one for one in page["receipts"] if one["subcategory"] == "vin_decode" and one["memo"] == "a car")
    tag = {"type": "revenue", "amount": 12.5, "label": "sold"}
    answer = shape(rich.tag_receipt_value(settled["receipt_id"], tag), success=True, receipt_id=settled["receipt_id"])
    shape(answer["value_tag"], type="revenue", label="sold", status="pending")
    shape(rich.tag_receipt_value(value_tag=tag, request_id=settled["job_id"]), receipt_id=settled["receipt_id"])
    shape(rich.tag_receipt_value(value_tag=tag, goal_id="goal-7"), success=True, outcome_id=str)
    nobody = raised(ToolError, lambda: rich.tag_receipt_value("rcpt_01ARZ3NDEKTSV4RRFFQ69G5FAV", tag))
    assert refusal(nobody) == (404, "receipt_not_found")
    legs.take()


def a_revoked_token(minted, token):
    rich.revoke_access_token(minted["id"])
    assert refusal(raised(ToolError, token.get_balance)) == (401, "access_token_revoked")
    unknown = "oneshot_" + "0" * 64
    gone = raised(ToolError, lambda: OneShotClient.create(access_token=unknown, base_url=BASE))
    assert refusal(gone) == (401, "access_token_invalid")
    [listed] = [one for one in rich.list_access_tokens() if one["id"] == minted["id"]]
    shape(listed, revoked_at=TIME)
    assert rich.list_access_tokens(active_only=True) == []


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


for run in (a_direct_call, a_queued_call, a_top_up, credits_of_a_wallet, a_wallet_without_money, budgets):
    step(run)
minted = step(access_tokens)
token = step(a_token_session, minted)
for run in (a_token_short_of_credits, a_token_and_the_owners_rules, approvals):
    step(run, token)
step(notifications)
step(receipts)
step(a_revoked_token, minted, token)
