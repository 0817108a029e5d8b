curl -sS --fail-with-body https://relay.example/api/canary/echo \
  -H 'content-type: application/json' \
  -d '{"event": "order.paid", "order": 17}'
