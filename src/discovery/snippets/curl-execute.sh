# Execute one webhook with curl
# Where payment is enforced it answers 402 with the terms ($0.003), and nothing is sent to the target; an x402 client pays and repeats the call. In demo mode the call is executed without payment and answered with a receipt; all callers are one payer there: use an idempotencyKey of your own.
# Run: sh curl-execute.sh
curl -sS -i https://relay.example/api/execute/webhook \
  -H 'content-type: application/json' \
  -d '{
  "url": "https://example.com/hook",
  "method": "POST",
  "body": {"event": "order.paid", "order": 17},
  "idempotencyKey": "order-17"
}'
