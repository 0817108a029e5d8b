# Read the documents with curl
# The guide for language models, the catalog of actions, and the interface description.
# Run: sh curl-discovery.sh
set -e
curl -sS --fail-with-body https://relay.example/llms.txt
curl -sS --fail-with-body https://relay.example/api/actions
curl -sS --fail-with-body https://relay.example/openapi.json
