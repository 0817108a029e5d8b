# Verify a receipt offline with Python
# One file: verifies a receipt, its inclusion in the transparency log, and that the log continues a checkpoint that you kept, from saved files and without a network. Needs the package cryptography.
# Save:  curl -sfO https://relay.example/verifier/verify.py && pip install cryptography
# Run:   python3 verify.py receipt receipt.json --keys jwks.json [--proof receipt.tlog-proof] [--disclose execution.json] [--payment payment.json]
#        python3 verify.py consistency old.checkpoint new.checkpoint --keys jwks.json [--proof consistency.json]
# Files: /api/receipts/{id}, an execution response or a bare JWS; /.well-known/jwks.json, from a source that you trust;
#        /log/proof/{id}; /log/checkpoint or an execution response; /log/consistency?from=&to= with both sizes.
#        payment.json: the signed payment that the receipt states, an x402 payload or its {authorization, signature}.
# Exits with 0 if every check holds, 1 if one does not, 2 if a file cannot be read.
import argparse
import base64
import hashlib
import json
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MEMBERS = {
    "": "v receiptId jobId decisionId decisionHash iat mode payment request attempts outcome stream",
    "request": "method _sd",
    "outcome": "status responseStatus errorCategory responseBytes truncated _sd",
    "stream": "id revision chain",
}
MORE_MEMBERS = {1: set(), 2: {"log"}, 3: {"log"}, 4: {"log", "schedule"}}


class Unreadable(Exception):
    """A file is not what it must be: nothing was verified."""


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def from_base64(text, alphabet=b"+/"):
    """The bytes; None unless the text is their only encoding."""
    try:
        data = base64.b64decode(text.encode("ascii"), altchars=alphabet, validate=True)
    except (ValueError, AttributeError):
        return None
    return data if base64.b64encode(data, altchars=alphabet).decode() == text else None


def from_base64url(text):
    if not isinstance(text, str) or "=" in text:
        return None
    return from_base64(text + "=" * (-len(text) % 4), b"-_")


def to_base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def object_once(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def parse_json(text):
    """The value; None if the text is no JSON, or has a name twice in an object."""
    try:
        return json.loads(text, object_pairs_hook=object_once)
    except (ValueError, RecursionError):
        return None


def signed_by(public, message, signature):
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def keys_of(jwks):
    """The Ed25519 keys of a JWK set (RFC 7517), each with its public key in bytes."""
    found = []
    for key in jwks["keys"]:
        public = from_base64url(key.get("x")) if isinstance(key, dict) else None
        if public is not None and len(public) == 32 and key.get("crv") == "Ed25519":
            found.append({"purpose": "receipt", **key, "public": public})
    return found


# Receipts: compact JWS (RFC 7515) over canonical JSON (RFC 8785).

def jws_of(text):
    """The JWS in the answer of /api/receipts/{id} or in an execution response, or the text itself."""
    value = parse_json(text)
    if isinstance(value, dict) and isinstance(value.get("receipt"), dict):
        value = value["receipt"]
    jws = value.get("jws") if isinstance(value, dict) else text.strip()
    if not isinstance(jws, str) or not re.fullmatch(r"[^\s.]+\.[^\s.]+\.[^\s.]+", jws):
        raise Unreadable("it contains no receipt")
    return jws


def json_part(part):
    data = from_base64url(part)
    try:
        return "" if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def is_payload(payload, text):
    """Whether it has one form and the members of a known version. Types of most members are not checked."""
    version = payload.get("v") if isinstance(payload, dict) else None
    if type(version) is not int or version not in MORE_MEMBERS:
        return False
    if json.dumps(payload, separators=(",", ":"), ensure_ascii=False) != text:
        return False
    for path, names in MEMBERS.items():
        part = payload[path] if path else payload
        expected = set(names.split()) | (MORE_MEMBERS[version] if path == "" else set())
        if not isinstance(part, dict) or set(part) != expected:
            return False
    unknown = payload["outcome"]["truncated"] == "unknown"
    if (version < 3 and unknown) or (version == 3 and not unknown):
        return False
    sd = [payload["request"]["_sd"], payload["outcome"]["_sd"]]
    return all(isinstance(one, list) for one in sd) and type(payload["iat"]) is int


def verify_receipt(jws, jwks, proof=None):
    """Returns (checks, payload): a list of (name, ok), and the payload if the signature verifies, else None."""
    head, body, tail = jws.split(".")
    header, signature = parse_json(json_part(head)), from_base64url(tail)
    text = json_part(body)
    payload = parse_json(text)
    readable = isinstance(header, dict) and signature is not None
    supported = readable and is_payload(payload, text)
    header = header if readable else {}
    known = [key for key in keys_of(jwks) if key.get("kid") == header.get("kid")]
    key = known[0] if known else None
    typed = header.get("alg") == "EdDSA" and header.get("typ") == "relay-receipt+jws" and "crit" not in header
    signed = bool(key and typed and signed_by(key["public"], f"{head}.{body}".encode(), signature))
    checks = [("signature_valid", signed)]
    checks.append(("key_valid_at_issue", bool(key and supported and is_open(key, payload["iat"]))))
    checks.append(("payload_version_supported", supported))
    request = payload["request"]["_sd"] if supported else []
    checks.append(("request_commitment_present", len(request) in (4, 5) and len(set(request)) == len(request)))
    outcome = payload["outcome"] if supported else None
    wanted = 0 if outcome and outcome["responseBytes"] is None else 1
    checks.append(("response_commitment_present", bool(outcome) and len(outcome["_sd"]) == wanted))
    if proof is not None:
        log = payload.get("log") if supported else None
        checks.append(("receipt_logged", supported and is_logged(jws, proof, log, jwks)))
    return checks, payload if signed and supported else None


def is_open(key, at):
    """Whether the key may sign a receipt at that time (Unix seconds)."""
    ends = at <= key.get("exp", at) and at < key.get("revokedAt", at + 1)
    return key["purpose"] == "receipt" and key.get("nbf", 0) <= at and ends


REQUEST_NAMES = "target_url target_origin header_names request_body_sha256 idempotency_key".split()


def open_disclosures(texts, payload):
    """Yields (name, value, problem) of each: problem is None if the receipt commits to it where its name belongs."""
    names = set()
    for text in texts:
        name, value, problem = open_one(text, payload)
        if problem is None and name in names:
            problem = "repeated"
        elif problem is None:
            names.add(name)
        yield name, value, problem


def open_one(text, payload):
    data = from_base64url(text)
    parts = None if data is None else parse_json(data.decode("utf-8", "replace"))
    if not isinstance(parts, list) or len(parts) != 3 or not isinstance(parts[1], str):
        return "a text", None, "malformed"
    salt, name, value = parts
    if len(from_base64url(salt) or b"") != 16:
        return name, value, "malformed"
    lists = {one: payload["request"] for one in REQUEST_NAMES}
    lists["response_body_sha256"] = payload["outcome"]
    for attempt in payload["attempts"]:
        for kind in ("leaf_sha256", "address"):
            lists[f"attempt_{attempt['n']}_{kind}"] = attempt
    commitment = to_base64url(sha256(text.encode()))
    if name in lists and commitment in lists[name]["_sd"]:
        return name, value, None
    everywhere = [payload["request"], payload["outcome"], *payload["attempts"]]
    return name, value, "misplaced" if any(commitment in one["_sd"] for one in everywhere) else "not_committed"


def payment_matches(authorization, signature, payload):
    """Whether the receipt states the hash of this signed payment: SHA-256 of the JCS of both, in lower case."""
    lower = {name: str(value).lower() for name, value in authorization.items()}
    signed = {"authorization": lower, "signature": str(signature).lower()}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    stated = payload["payment"] if payload is not None else None
    return stated is not None and stated["payloadHash"] == sha256(text.encode()).hex()


# The transparency log: RFC 6962, C2SP tlog-checkpoint and tlog-proof.

def verify_checkpoint(note, jwks):
    """(origin, size, root) of a note that a checkpoint key signed which is not compromised; None for any other."""
    border = note.rfind("\n\n")
    if border < 0 or not note.endswith("\n") or any(ord(char) < 32 and char != "\n" for char in note):
        return None
    text, lines = note[:border + 1], note[border + 2:-1].split("\n")
    parts = text[:-1].split("\n")
    root = from_base64(parts[2]) if len(parts) > 2 else None
    good = root is not None and len(root) == 32 and parts[0] != "" and "" not in parts
    if not good or not re.fullmatch(r"0|[1-9]\d{0,15}", parts[1], re.ASCII):
        return None
    signers = {}
    for key in keys_of(jwks):
        if key["purpose"] == "checkpoint" and "revokedAt" not in key:
            signers[sha256(parts[0].encode(), b"\n\x01", key["public"])[:4]] = key["public"]
    signed = False
    for line in lines:
        found = re.fullmatch(r"— ([^\s+]+) (\S+)", line)
        data = from_base64(found[2]) if found else None
        if data is None or len(data) < 5:
            return None
        public = signers.get(data[:4]) if found[1] == parts[0] else None
        if public is not None:
            if not signed_by(public, text.encode(), data[4:]):
                return None
            signed = True
    return (parts[0], int(parts[1]), root) if signed else None


def is_logged(jws, proof, log, jwks):
    """Whether the receipt is a leaf of the tree of the proof's checkpoint."""
    head, _, note = proof.partition("\n\n")
    lines = head.split("\n")
    if len(lines) > 1 and lines[1].startswith("extra "):
        del lines[1]
    index = re.fullmatch(r"index (0|[1-9]\d{0,15})", lines[1], re.ASCII) if len(lines) > 1 else None
    path = [from_base64(line) for line in lines[2:]]
    checkpoint = verify_checkpoint(note, jwks)
    if lines[0] != "c2sp.org/tlog-proof@v1" or index is None or not are_hashes(path) or checkpoint is None:
        return False
    origin, size, root = checkpoint
    if log is not None and log["origin"] != origin:
        return False
    leaf = sha256(b"\x00", sha256(jws.encode()))
    return includes(int(index[1]), size, leaf, path, root)


def are_hashes(path):
    return len(path) <= 64 and all(one is not None and len(one) == 32 for one in path)


def node(left, right):
    return sha256(b"\x01", left, right)


def includes(index, size, leaf, path, root):
    """RFC 9162 §2.1.3.2."""
    if index >= size:
        return False
    at, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if at % 2 == 1 or at == last:
            found = node(sibling, found)
            while at % 2 == 0 and at != 0:
                at, last = at // 2, last // 2
        else:
            found = node(found, sibling)
        at, last = at // 2, last // 2
    return last == 0 and found == root


def extends(older, newer, path):
    """RFC 9162 §2.1.4.2: whether the tree of the older (size, root) is a prefix of the newer one."""
    (size, old_root), (new_size, new_root) = older, newer
    if size > new_size:
        return False
    if size == new_size:
        return not path and old_root == new_root
    if size == 0:
        return not path and old_root == sha256()
    at, last = size - 1, new_size - 1
    while at % 2 == 1:
        at, last = at // 2, last // 2
    path = [old_root, *path] if at == 0 else list(path)
    if not path:
        return False
    small = large = path.pop(0)
    for sibling in path:
        if last == 0:
            return False
        if at % 2 == 1 or at == last:
            small, large = node(sibling, small), node(sibling, large)
            while at % 2 == 0 and at != 0:
                at, last = at // 2, last // 2
        else:
            large = node(large, sibling)
        at, last = at // 2, last // 2
    return last == 0 and small == old_root and large == new_root


def verify_consistency(old_note, new_note, answer, jwks):
    """Returns a list of (name, ok). answer: the parsed answer of /log/consistency; None where the sizes are equal."""
    older, newer = verify_checkpoint(old_note, jwks), verify_checkpoint(new_note, jwks)
    checks = [("old_checkpoint_signed", older is not None), ("new_checkpoint_signed", newer is not None)]
    if older is None or newer is None:
        return checks
    checks.append(("same_log", older[0] == newer[0]))
    path = []
    if 0 < older[1] < newer[1]:
        fits = isinstance(answer, dict) and (answer.get("from"), answer.get("to")) == (older[1], newer[1])
        proof = answer.get("proof") if fits else None
        path = [from_base64(one) for one in proof] if isinstance(proof, list) else [None]
    continued = are_hashes(path) and extends(older[1:], newer[1:], path)
    return [*checks, ("new_continues_old", continued)]


# The command line.

def read(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from error


def read_json(path, name, kind):
    """The JSON object in the file, whose member of that name is of that kind."""
    value = parse_json(read(path))
    if not isinstance(value, dict) or not isinstance(value.get(name), kind):
        raise Unreadable(f"{path} has no {name}")
    return value


def note_in(path):
    text = read(path)
    if not text.lstrip().startswith("{"):
        return text
    return read_json(path, "checkpoint", str)["checkpoint"]


def payment_in(path):
    """The authorization and the signature in the file: an x402 payload, or its inner payload."""
    value = parse_json(read(path))
    value = value.get("payload", value) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(value.get("authorization"), dict) or "signature" not in value:
        raise Unreadable(f"{path} has no authorization and signature")
    return value["authorization"], value["signature"]


def run_receipt(options):
    jwks = read_json(options.keys, "keys", list)
    proof = None if options.proof is None else read(options.proof)
    checks, payload = verify_receipt(jws_of(read(options.file)), jwks, proof)
    if payload is not None:
        outcome = payload["outcome"]
        print(payload["receiptId"], payload["jobId"], payload["mode"], outcome["status"], outcome["responseStatus"])
    if options.disclose is not None and payload is not None:
        texts = read_json(options.disclose, "disclosures", list)["disclosures"]
        for name, value, problem in open_disclosures(texts, payload):
            reason = "" if problem is None else f" ({problem})"
            checks.append((f"disclosure {name}: {json.dumps(value)}{reason}", problem is None))
    if options.payment is not None:
        checks.append(("payment_hash", payment_matches(*payment_in(options.payment), payload)))
    return checks


def run_consistency(options):
    jwks = read_json(options.keys, "keys", list)
    answer = None if options.proof is None else read_json(options.proof, "proof", list)
    return verify_consistency(note_in(options.old), note_in(options.new), answer, jwks)


def main():
    parser = argparse.ArgumentParser(description="Verify a receipt, or two checkpoints, offline.")
    commands = parser.add_subparsers(required=True)
    receipt = commands.add_parser("receipt")
    receipt.add_argument("file")
    receipt.add_argument("--disclose")
    receipt.add_argument("--payment")
    receipt.set_defaults(run=run_receipt)
    consistency = commands.add_parser("consistency")
    consistency.add_argument("old")
    consistency.add_argument("new")
    consistency.set_defaults(run=run_consistency)
    for command in (receipt, consistency):
        command.add_argument("--keys", required=True)
        command.add_argument("--proof")
    options = parser.parse_args()
    try:
        checks = options.run(options)
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    for name, ok in checks:
        print("ok  " if ok else "FAIL", name)
    verified = all(ok for _, ok in checks)
    print("verified" if verified else "NOT verified")
    return 0 if verified else 1


if __name__ == "__main__":
    sys.exit(main())
