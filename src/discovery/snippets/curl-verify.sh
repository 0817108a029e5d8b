# Read the report of a receipt with curl
# Free. Takes the receipt id from RECEIPT_ID; prints the report, and fails if the action is not done.
# Run: RECEIPT_ID=rcpt_… sh curl-verify.sh
get() { curl -sS --fail-with-body "$1"; }
stop() { printf '%s\n' "$1" >&2; exit 1; }

if [ -z "$RECEIPT_ID" ]; then
  proofs=$(get 'https://relay.example/api/proofs/recent') || stop "$proofs"
  RECEIPT_ID=$(printf '%s' "$proofs" | grep -o 'rcpt_[0-9a-z]*' | head -n 1)
fi
[ -n "$RECEIPT_ID" ] || stop 'nothing was executed yet'

report=$(get "https://relay.example/api/verify/receipts/$RECEIPT_ID") || stop "$report"
receipt=$(get "https://relay.example/api/receipts/$RECEIPT_ID") || stop "$receipt"
printf '%s\n' "$report"
# Done: no check failed, the signature verified, and the job of the receipt succeeded.
case $report in *'"ok":false'*) stop 'NOT verified' ;; esac
case $report in *'"signatureVerified":true'*) ;; *) stop 'NOT verified' ;; esac
case $receipt in *'"status":"succeeded"'*) ;; *) stop 'the job failed: verified, but not done' ;; esac
