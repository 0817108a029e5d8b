#!/bin/sh
# @hey-api/openapi-ts 0.99.0 and swagger-typescript-api 13.13.0, OpenAPI 3.1 to TypeScript, found 2026-11-28.
#
# The good guess: a map written as `patternProperties: {"^(.*)$": X}`, as TypeBox writes its Record of String, gives the type that
# `additionalProperties: X` gives. With openapi-typescript 7.13.0 it does.
# What happens: the type of the values is lost: `{ [key: string]: unknown | string }` and `object`. Nothing warns.
# Why it matters: the client's compiler accepts values that the service refuses, such as a list as the value of a header.
# Publish `additionalProperties`.
#
# Needs Node 20. Runs without the product, on a description of its own. Exits 0 if the generators behave as stated, 1 if one no
# longer does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '{"private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @hey-api/openapi-ts@0.99.0 swagger-typescript-api@13.13.0 typescript@5.9.3

cat > openapi.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "maps", "version": "1" },
  "paths": { "/": { "get": { "operationId": "read", "responses": { "200": { "description": "Read.",
    "content": { "application/json": { "schema": { "type": "object", "required": ["a", "b"], "properties": {
      "a": { "$ref": "#/components/schemas/ByPattern" }, "b": { "$ref": "#/components/schemas/ByName" } } } } } } } } } },
  "components": { "schemas": {
    "ByPattern": { "type": "object", "patternProperties": { "^(.*)$": { "type": "string" } } },
    "ByName": { "type": "object", "additionalProperties": { "type": "string" } }
  } }
}
JSON
node node_modules/@hey-api/openapi-ts/bin/run.js --input openapi.json --output hey >hey.log 2>&1 || { cat hey.log; exit 2; }
node node_modules/swagger-typescript-api/dist/cli.mjs generate -p openapi.json -o swagger -n api.ts >swagger.log 2>&1 ||
  { cat swagger.log; exit 2; }

# `export type ByName = …;` on one line, without the `export type`.
types() { tr '\n' ' ' < "$2" | grep -o "export type By[A-Za-z]* = [^;]*;[ }]*" | sed "s/^export type/$1:/; s/  */ /g; s/[; ]*$//"; }
{ types hey hey/types.gen.ts; types swagger swagger/api.ts; } > seen.txt
cat seen.txt
cat > expected.txt <<'TXT'
hey: ByPattern = { [key: string]: unknown | string; }
hey: ByName = { [key: string]: string; }
swagger: ByPattern = object
swagger: ByName = Record<string, string>
TXT
diff expected.txt seen.txt
echo 'as stated'
