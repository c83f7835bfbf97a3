"""A purchase by Rye's official SDK at our contract server. Strict: every answer must have exactly the documented shape.

Usage: rye_sdk.py URL KEY. Prints a line of JSON for each state that was read.
"""

import json
import sys

from checkout_intents import CheckoutIntents

url, key = sys.argv[1], sys.argv[2]
rye = CheckoutIntents(api_key=key, base_url=url, max_retries=0, _strict_response_validation=True)


def told(intent):
    print(json.dumps({"state": intent.state}), flush=True)
    return intent


buyer = {
    "first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com", "phone": "+14155550100",
    "address1": "1 Market Street", "city": "San Francisco", "province": "CA", "country": "US", "postal_code": "94105",
}
intent = told(rye.checkout_intents.create(
    buyer=buyer, product_url="https://shop.example.com/products/lamp", quantity=1,
    constraints={"max_total_price": 50_000},
))
while intent.state == "retrieving_offer":
    intent = told(rye.checkout_intents.retrieve(intent.id))
intent = told(rye.checkout_intents.confirm(intent.id, payment_method={"type": "drawdown"}))
while intent.state == "placing_order":
    intent = told(rye.checkout_intents.retrieve(intent.id))
shipments = list(rye.checkout_intents.shipments.list(intent.id))
order = rye.get(f"/api/v1/checkout-intents/{intent.id}/order", cast_to=object)
balance = rye.billing.get_balance()
product = rye.products.lookup(url="https://shop.example.com/products/lamp")
print(json.dumps({
    "shipments": [shipment.status for shipment in shipments], "order": order["checkoutIntentId"] == intent.id,
    "balance": balance.balance.amount_subunits, "product": product.name,
}), flush=True)
