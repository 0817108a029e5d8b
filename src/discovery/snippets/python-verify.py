# Check a receipt with Python
# Free, standard library only. Takes the receipt id as its argument; exits with 1 if a check or the job failed.
# Run: python3 python-verify.py rcpt_…
import json
import sys
from urllib.request import urlopen


def get(url):
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


def newest():
    proofs = get("https://relay.example/api/proofs/recent")["proofs"]
    return next((proof["receiptId"] for proof in proofs if proof["receiptId"]), None)


receipt_id = sys.argv[1] if len(sys.argv) > 1 else newest()
if receipt_id is None:
    sys.exit("nothing was executed yet")

report = get("https://relay.example/api/verify/receipts/" + receipt_id)
for check in report["checks"]:
    print("ok  " if check["ok"] else "FAIL", check["name"])
proven = report["ok"] and report["signatureVerified"] and all(check["ok"] for check in report["checks"])
# A failed job has a valid receipt, too.
status = get("https://relay.example/api/receipts/" + receipt_id)["payload"]["outcome"]["status"]
print(receipt_id, "verified" if proven else "NOT verified", status)
sys.exit(0 if proven and status == "succeeded" else 1)
