# Read the price and the order of calls with Python
# Standard library only.
import json
from urllib.request import urlopen

with urlopen("https://relay.example/api/quickstart", timeout=30) as answer:
    quickstart = json.load(answer)

payment = quickstart["payment"]
print(payment["price"], "on", payment["network"], "by", payment["scheme"], "at", payment["route"])
print("payment is", "enforced" if payment["required"] else "not enforced (demo mode)")
for number, step in enumerate(quickstart["callFlow"], 1):
    print(f"{number}. {step}")
