"""Browser tasks with one version of the public SDK.

Usage: browser_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: the private key of `ada`,
who has 20 USDC, and `shop`: the host of a shop where she may log in and order tea. Prints a line of JSON for each step.
"""

import asyncio
import json
import sys

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot._errors import ValidationError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import raised, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

ada = OneShotClient(private_key=stack["wallets"]["ada"], base_url=stack["base_url"])
SHOP = f"http://{stack['shop']}"
SCHEMA = {
    "type": "object",
    "required": ["order_number"],
    "properties": {"order_number": {"type": "integer"}},
}


def a_task():
    """It orders, and its output has the form that was asked for."""
    done = ada.browser(
        f'Open {SHOP}/login. Log in with user name "ann" and password "sesame". Enter "Ada" in the Name field. '
        'Choose "Sencha" from Tea. Click "Place order". Read the order number.',
        output_schema=SCHEMA, max_steps=30, max_cost=1.0,
    )
    shape(done, success=True, steps=list, step_count=int, steps_incomplete=False, final_url=f"{SHOP}/order", cost=None,
          total_cost_usd=None, billed_cost=float, session_id=str)
    shape(done["output"], order_number=int)
    for number, step in enumerate(done["steps"], 1):
        shape(step, number=number, goal=str, url=str)
    return done["session_id"]


def the_next_task(session):
    """It is still logged in."""
    body = {"task": "Read the heading of it", "start_url": f"{SHOP}/", "session_id": session}
    done = ada.call_tool("/v1/tools/browser", body)
    shape(done, session_id=session, final_url=f"{SHOP}/")
    assert "New order" in json.dumps(done["output"]), done


def a_refused_task():
    refused = raised(ValidationError, lambda: ada.browser("Ponder the nature of commerce until you are content"))
    assert "not understood" in str(refused) and "the nature of commerce" in str(refused), refused


def step(run, *given):
    answer = run(*given)
    told(step=run.__name__)
    return answer


session = step(a_task)
step(the_next_task, session)
step(a_refused_task)
