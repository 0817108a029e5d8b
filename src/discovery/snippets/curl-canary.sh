# Send a request to the canary
# Free when called directly, as here: it answers with method, size and body hash of the request.
# Run: sh curl-canary.sh
curl -sS --fail-with-body https://relay.example/api/canary/echo \
  -H 'content-type: application/json' \
  -d '{"event": "order.paid", "order": 17}'
