# Check a request before paying for it, with Python
# Exits with 1 if the target is refused. Standard library only: it does not pay; to pay from Python, use any x402 client.
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


checked = post("https://relay.example/api/policy/check", {
    "url": "https://example.com/hook",
    "method": "POST",
    "body": {"event": "order.paid", "order": 17},
    "idempotencyKey": "order-17",
})
if not checked["allowed"]:
    sys.exit(f"refused: {checked['error']['code']} {checked['error']['message']}")
print("allowed:", checked["target"]["hostname"], json.dumps(checked["normalized"]))
for warning in checked["warnings"]:
    print("-", warning["code"], warning["message"])
