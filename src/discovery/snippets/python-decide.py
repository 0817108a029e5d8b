# Decide before paying, with Python
# Free. Standard library only: it does not pay; to pay from Python, use any x402 client.
# Run: python3 python-decide.py
import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def post(url, body):
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except HTTPError as error:
        sys.exit(f"{error.code} {error.read().decode()}")


decision = post("https://relay.example/api/decide/webhook", {
    "action": {
        "url": "https://example.com/hook",
        "method": "POST",
        "body": {"event": "order.paid", "order": 17},
        "idempotencyKey": "order-17",
    },
    "buyerPolicy": {"maxPriceUsd": "0.003", "allowedNetworks": ["eip155:8453"]},
})
print(decision["decisionId"], decision["recommendation"], decision["confidence"])
for found in decision["blockingIssues"] + decision["warnings"]:
    print("-", found["code"], found["message"])
if decision["recommendation"] != "pay_and_execute":
    sys.exit(1)
