# Check a request before paying for it, with curl
# Whether the target may be called, and what would be sent.
# Run: sh curl-policy-check.sh
curl -sS --fail-with-body https://relay.example/api/policy/check \
  -H 'content-type: application/json' \
  -d '{
  "url": "https://example.com/hook",
  "method": "POST",
  "body": {"event": "order.paid", "order": 17},
  "idempotencyKey": "order-17"
}'
