# Decide before paying, with curl
# Free: evaluates the action against a buyer policy and recommends whether to pay.
# Run: sh curl-decide.sh
curl -sS --fail-with-body https://relay.example/api/decide/webhook \
  -H 'content-type: application/json' \
  -d '{
  "action": {
    "url": "https://example.com/hook",
    "method": "POST",
    "body": {"event": "order.paid", "order": 17},
    "idempotencyKey": "order-17"
  },
  "buyerPolicy": {"maxPriceUsd": "0.003", "allowedNetworks": ["eip155:8453"]}
}'
