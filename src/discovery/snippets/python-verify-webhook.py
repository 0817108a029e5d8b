# Verify a delivery at the target with Python
# For the owner of a target: a function that verifies webhook-signature (Standard Webhooks, v1a) with the published keys, and that webhook-timestamp is at most 5 minutes from now. Needs the package cryptography.
# Needs: pip install cryptography
# `body` is the bytes as they arrived. A delivery that is repeated has the same `webhook-id`: store it to drop repeats.
import base64
import json
import time
from urllib.request import urlopen

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_webhook(headers, body):
    name, at, signatures = (headers.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:  # 5 minutes
        return False
    with urlopen("https://relay.example/.well-known/jwks.json", timeout=30) as answer:  # may be cached for a minute
        keys = json.load(answer)["keys"]
    usable = [key for key in keys if key["purpose"] == "receipt" and "revokedAt" not in key]
    usable = [key for key in usable if int(at) <= key.get("exp", int(at))]
    signed = f"{name}.{at}.".encode() + body
    given = [signature[4:] for signature in signatures.split() if signature.startswith("v1a,")]
    return any(is_valid(key, signed, signature) for signature in given for key in usable)


def is_valid(key, signed, signature):
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
        public.verify(base64.b64decode(signature), signed)
        return True
    except (InvalidSignature, ValueError):
        return False
