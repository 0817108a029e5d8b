# Check the terms of a 402 with Python
# Exits with 1 if the buyer does not accept the terms. In demo mode there are no terms: the call needs no payment. Standard library only: it does not pay; to pay from Python, use any x402 client.
# Run: python3 python-buyer-policy.py
import base64
import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

RESOURCE = "https://relay.example/api/execute/webhook"
# What this buyer accepts. Keep it in your own configuration.
NETWORK = "eip155:8453"
ASSET = "0x1111111111111111111111111111111111111111"
PAY_TO = "0x2222222222222222222222222222222222222222"
MAX_AMOUNT = 3000  # atomic units of the asset: $0.003


def challenge(url):
    """The terms of an unpaid call; None in demo mode. A call without a body executes nothing."""
    try:
        urlopen(Request(url, method="POST"), timeout=30)
    except HTTPError as error:
        if error.code == 402:
            return json.loads(base64.b64decode(error.headers["PAYMENT-REQUIRED"]))
        if error.code not in (400, 415):
            sys.exit(f"{error.code} {error.read().decode()}")
    return None


asked = challenge(RESOURCE)
if asked is None:
    print("demo mode: no payment is required")
    sys.exit(0)

for terms in asked["accepts"]:
    checks = {
        "price": int(terms["amount"]) <= MAX_AMOUNT,
        "asset": terms["asset"].lower() == ASSET.lower(),
        "network": terms["network"] == NETWORK,
        "payTo": terms["payTo"].lower() == PAY_TO.lower(),
        "resource": asked["resource"]["url"] == RESOURCE,
    }
    wrong = [name for name, fits in checks.items() if not fits]
    if not wrong:
        print("fits:", json.dumps(terms))
        sys.exit(0)
    print("not what this buyer accepts:", ", ".join(wrong))
sys.exit(1)
