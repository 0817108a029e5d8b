# Read the terms with curl
# A call without body and payment executes nothing. Prints the challenge of x402 version 2, which is base64 in a header; in demo mode there is none, and it prints nothing.
# Run: sh curl-terms.sh
curl -sS -o /dev/null -D - -X POST https://relay.example/api/execute/webhook |
  grep -i '^payment-required:' | cut -d ' ' -f 2 | tr -d '\r' | base64 -d
