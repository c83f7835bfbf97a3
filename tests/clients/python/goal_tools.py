"""Goals with one version of the public SDK.

Usage: goal_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`: the private key of `ada`, who has
20 USDC. Prints a line of JSON for each step.
"""

import asyncio
import json
import sys
import time

version, folder, stack = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, folder)

import oneshot.client  # noqa: E402
from oneshot._errors import ValidationError  # noqa: E402
from oneshot.client import OneShotClient  # noqa: E402

from sdk_checks import raised, shape, told  # noqa: E402

assert oneshot.client.SDK_VERSION == version and oneshot.client.__file__.startswith(folder), oneshot.client.__file__
asyncio.set_event_loop(asyncio.new_event_loop())

ada = OneShotClient(private_key=stack["wallets"]["ada"], base_url=stack["base_url"])
TWO = "Decode the VIN 1HGCM82633A004352. Then verify ada@example.com."


def bought(objective, **members):
    goal = ada.compute(objective, max_cost=10.0, **members)
    shape(goal, goal_id=str, request_id=str, status="active", tool="compute")
    return goal["goal_id"]


def until(goal_id, found):
    for _ in range(600):
        answer = found(goal_id)
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(ada.get_compute_goal(goal_id))


def ended(goal_id):
    def look(goal_id):
        goal = ada.get_compute_goal(goal_id)
        return goal if goal["status"] != "active" and goal["phase_status"] != "settling" else None
    return until(goal_id, look)


def a_goal():
    goal_id = bought(TWO, budget_usdc=2.0)
    goal = ended(goal_id)
    shape(goal, id=goal_id, status="completed", end_reason="completed")
    shape(goal["result"], status="completed", spent_usdc=str)
    tasks = ada.get_compute_tasks(goal_id)
    assert [task["tool"] for task in tasks] == ["vin_decode", "verify_email"], tasks
    assert all(task["status"] == "completed" and task["actual_usdc"] > 0 for task in tasks), tasks
    budget = ada.get_compute_budget(goal_id)
    shape(budget, goalId=goal_id)
    assert budget["totalBudgetUsdc"] == 2 and budget["reservedUsdc"] == 0, budget
    spent = sum(entry["amount_usdc"] for entry in budget["spend_entries"] if entry["category"] != "platform_fee")
    assert abs(spent - budget["spentUsdc"]) < 1e-9 and 0 < spent < 1, budget
    if hasattr(ada, "get_compute_outputs"):
        outputs = ada.get_compute_outputs(goal_id)["outputs"]
        shape(outputs[0], key=str, kind="result", readable=True)
        assert "HONDA" in json.dumps(ada.get_compute_output(goal_id, outputs[0]["key"])).upper()


def a_goal_that_asks():
    goal_id = bought(TWO, approvals={"tools": ["verify_email"]})

    def waiting(goal_id):
        asks = [task for task in ada.get_compute_tasks(goal_id) if task["task_type"] == "human_approval"]
        return next((task for task in asks if task["status"] == "waiting"), None)
    task = until(goal_id, waiting)
    answered = ada.respond_to_compute_task(goal_id, task["id"], approved=True)
    shape(answered, task_id=task["id"], goal_id=goal_id, task_status="completed", orchestrator_action="continue_execution")
    shape(ended(goal_id), status="completed")


def a_cancelled_goal():
    goal_id = bought(TWO, approvals={"tools": ["vin_decode", "verify_email"]})
    cancelled = ada.cancel_compute_goal(goal_id, reason="changed my mind")
    shape(cancelled, goal_id=goal_id)
    assert cancelled["status"] in ("cancelled", "pending_settlement"), cancelled
    shape(ended(goal_id), status="cancelled", end_reason="cancelled")


def a_refused_goal():
    refused = raised(ValidationError, lambda: ada.compute("Sing me a song about the sea"))
    assert "not understood" in str(refused), refused


for step in (a_goal, a_goal_that_asks, a_cancelled_goal, a_refused_goal):
    step()
    told(step=step.__name__)
