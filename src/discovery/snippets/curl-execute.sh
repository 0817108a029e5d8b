curl -sS -i https://relay.example/api/execute/webhook \
  -H 'content-type: application/json' \
  -d '{
  "url": "https://example.com/hook",
  "method": "POST",
  "body": {"event": "order.paid", "order": 17},
  "idempotencyKey": "order-17"
}'
