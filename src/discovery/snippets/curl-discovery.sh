set -e
curl -sS --fail-with-body https://relay.example/llms.txt
curl -sS --fail-with-body https://relay.example/api/actions
curl -sS --fail-with-body https://relay.example/openapi.json
