curl -sS -o /dev/null -D - -X POST https://relay.example/api/execute/webhook |
  grep -i '^payment-required:' | cut -d ' ' -f 2 | tr -d '\r' | base64 -d
