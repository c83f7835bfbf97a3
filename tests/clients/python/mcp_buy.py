"""Lists the tools and buys with the official MCP client: with an access token, and by x402 with a wallet that signs.

Usage: mcp_buy.py STACK_JSON. The file also has `wallet`, a private key, and `token`, an access token. Prints one line of
JSON for each step, the same as buy.mjs.
"""

import asyncio
import json
import sys

import httpx2
from eth_account import Account
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from x402 import x402ClientSync
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.schemas import PaymentRequired

stack = json.load(open(sys.argv[1]))
VIN = ("agora_vin_decode", {"vin": "1HGCM82633A004352"})
READ = ("agora_web_read", {"url": stack["site_url"] + "/article"})


def say(step, **what):
    print(json.dumps({"step": step, **what}))


# The address names the tools that are listed: all of them, or the usual few.
def connection(address="/mcp?tools=all", **headers):
    http = httpx2.AsyncClient(headers=headers, timeout=30)
    return Client(streamable_http_client(stack["base_url"] + address, http_client=http))


async def polled(client, handle):
    while True:
        job = (await client.call_tool(handle["poll"]["tool"], handle["poll"]["arguments"])).structured_content
        if job["status"] not in ("pending", "processing"):
            return job
        await asyncio.sleep(0.2)


async def pay(client, wallet, call):
    unpaid = await client.call_tool(*call)
    terms = unpaid.structured_content
    assert unpaid.is_error and terms == json.loads(unpaid.content[0].text), unpaid
    payment = wallet.create_payment_payload(PaymentRequired.model_validate(terms))
    meta = {"x402/payment": payment.model_dump(by_alias=True, exclude_none=True, mode="json")}
    return terms, await client.call_tool(*call, meta=meta), await client.call_tool(*call, meta=meta)


async def main():
    # The short list: two of its tools find and call all others.
    async with connection("/mcp", authorization=stack["token"]) as finder:
        few = (await finder.list_tools()).tools
        found = (await finder.call_tool("agora_find_tools", {"query": "decode a vin"})).structured_content["tools"][0]
        rehearsal = {"name": found["name"], "input": VIN[1], "dry_run": True}
        rehearsed = (await finder.call_tool("agora_use_tool", rehearsal)).structured_content
        say("short", names=[tool.name for tool in few], found=found["name"], rehearsed=rehearsed)
    async with connection(authorization=stack["token"]) as spender:
        tools = (await spender.list_tools()).tools
        say("tools", names=[tool.name for tool in tools])
        bought = await spender.call_tool(VIN[0], {**VIN[1], "idempotency_key": "python"})
        say("token", isError=bool(bought.is_error), body=bought.structured_content)
        handle = (await spender.call_tool(*READ)).structured_content
        say("token-read", job=await polled(spender, handle))
    wallet = x402ClientSync()
    register_exact_evm_client(wallet, EthAccountSigner(Account.from_key(stack["wallet"])))
    async with connection() as payer:
        terms, paid, again = await pay(payer, wallet, VIN)
        say(
            "x402",
            resource=terms["resource"]["url"],
            isError=bool(paid.is_error),
            body=paid.structured_content,
            settlement=paid.meta["x402/payment-response"],
            again=again.structured_content,
        )
        _, accepted, _ = await pay(payer, wallet, READ)
        say("x402-read", job=await polled(payer, accepted.structured_content))


asyncio.run(main())
