# Package steps for a browser agent
# No step is executed here, and there is no receipt.
# Run: sh curl-handoff.sh
curl -sS --fail-with-body https://relay.example/api/handoff/browser \
  -H 'content-type: application/json' \
  -d '{
  "targetUrl": "https://example.com/orders",
  "actions": [
    {"type": "navigate", "description": "Open the list of orders"},
    {
      "type": "click",
      "selector": "a[href=\"/orders/17\"]",
      "description": "Open order 17"
    },
    {"type": "wait_for_text", "text": "Order 17"},
    {"type": "extract", "description": "The delivery date"},
    {"type": "verify", "text": "Paid"}
  ],
  "returnUrl": "https://example.com/done",
  "idempotencyKey": "handoff-17"
}'
