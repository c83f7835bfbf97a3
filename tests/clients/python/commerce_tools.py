"""Product searches and purchases with one version of the public SDK.

Usage: commerce_tools.py VERSION FOLDER STACK_JSON, where FOLDER holds the SDK and the file has `wallets`, with the private key of `ada`,
and `product`, the address of a product's page. Prints a line of JSON for each step.
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
ADDRESS = {
    "first_name": "Ada", "last_name": "Lovelace", "street": "1 Market Street", "city": "San Francisco", "state": "CA",
    "zip_code": "94105", "phone": "+14155550100", "email": "ada@example.com",
}


def search():
    find = getattr(ada, "product_find", None) or ada.commerce_search
    return find(stack["product"])


def a_search():
    found = search()
    shape(found, status="completed", count=1)
    shape(found["products"][0], title="Desk lamp", price=1299.5, currency="EUR", in_stock=True)


def a_purchase():
    bought = ada.commerce_buy("https://shop.example.com/products/lamp", ADDRESS, quantity=1)
    shape(bought, status="completed", order_status="placed", order_id=str, cost=28.06)


def a_refused_purchase():
    refused = raised(ValidationError, lambda: ada.commerce_buy("https://shop.example.com/lamp", {**ADDRESS, "state": "NY"}))
    assert "ZIP" in str(refused), refused


for step in (a_search, a_purchase, a_refused_purchase):
    step()
    told(step=step.__name__)
