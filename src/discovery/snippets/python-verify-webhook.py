# Verify a delivery at the target with Python
# For the owner of a target: a function that verifies webhook-signature (Standard Webhooks, v1a) with the published keys, and that webhook-timestamp is at most 5 minutes from now. Needs the package cryptography.
# Needs: pip install cryptography
# `headers`: a mapping, names in any case. `body`: the bytes as they arrived, before any parser. A delivery that is repeated has the same `webhook-id`: store it to drop repeats.
import base64
import json
import time
from urllib.request import urlopen

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

loaded = {"keys": [], "at": float("-inf")}


def load_keys():  # at most once in 10 seconds; False: not yet again
    if time.monotonic() - loaded["at"] < 10:
        return False
    with urlopen("https://relay.example/.well-known/jwks.json", timeout=30) as answer:
        loaded.update(keys=json.load(answer)["keys"], at=time.monotonic())
    return True


def verify_webhook(headers, body):
    lower = {name.lower(): value for name, value in headers.items()}
    name, at, signatures = (lower.get("webhook-" + part, "") for part in ("id", "timestamp", "signature"))
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:  # 5 minutes
        return False
    signed = f"{name}.{at}.".encode() + body
    given = [signature[4:] for signature in signatures.split() if signature.startswith("v1a,")]
    if time.monotonic() - loaded["at"] > 60:
        load_keys()
    # A key that is not known yet may be newer than what was loaded.
    return is_genuine(int(at), signed, given) or (load_keys() and is_genuine(int(at), signed, given))


def is_genuine(at, signed, given):
    usable = [key for key in loaded["keys"] if key["purpose"] == "receipt" and "revokedAt" not in key]
    usable = [key for key in usable if at <= key.get("exp", at)]
    return any(is_valid(key, signed, signature) for signature in given for key in usable)


def is_valid(key, signed, signature):
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
        public.verify(base64.b64decode(signature), signed)
        return True
    except (InvalidSignature, ValueError):
        return False
