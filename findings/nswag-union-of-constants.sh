#!/bin/sh
# NSwag.ConsoleCore 14.7.1 (NJsonSchema 11.6.1), OpenAPI 3.1 to C#, found 2026-11-28.
#
# The good guess: three ways to write the same JSON Schema give the same type: `anyOf` of constants and `enum`; `anyOf [X, null]`
# and `type: [X, "null"]`; `anyOf` and `oneOf` of simple types.
# What happens: `anyOf` of constants, and `anyOf` of a type and null, become empty classes that no JSON text or number can be read
# into; the `enum` and the list of types become an enum and a nullable type. `type: ["string", "number", "boolean"]` becomes
# `double`, `oneOf` of the same types becomes the first of them, `string`. Nothing warns.
# Why it matters: TypeBox, Zod and other builders write the first forms. The client compiles, and then fails to read every answer
# that has such a member. Publish `enum`, `type: [X, "null"]`, and `oneOf` with the text first.
#
# Needs the .NET SDK 10. Runs without the product, on a description of its own. Exits 0 if NSwag behaves as stated, 1 if it no
# longer does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1
dotnet tool install NSwag.ConsoleCore --version 14.7.1 --tool-path tools >install.log 2>&1 || { cat install.log; exit 2; }

cat > openapi.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "unions", "version": "1" },
  "paths": { "/": { "get": { "operationId": "read", "responses": { "200": { "description": "Read.",
    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Answer" } } } } } } } },
  "components": { "schemas": { "Answer": { "type": "object", "properties": {
    "constants": { "anyOf": [{ "type": "string", "const": "a" }, { "type": "string", "const": "b" }] },
    "enumeration": { "type": "string", "enum": ["a", "b"] },
    "anyOfNull": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
    "typeNull": { "type": ["integer", "null"] },
    "types": { "type": ["string", "number", "boolean"] },
    "oneOfTypes": { "oneOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }] }
  } } } }
}
JSON
tools/nswag openapi2csclient /input:openapi.json /output:client.cs /classname:Client /namespace:Unions >nswag.log 2>&1 ||
  { cat nswag.log; exit 2; }

# The type of each member of Answer, without its namespace: `constants Constants`.
sed -n '/public partial class Answer/,/^    }/s/^ *public \(.*\) \([A-Za-z]*\) { get; set; }.*/\2 \1/p' client.cs | grep -v AdditionalProperties > seen.txt
cat seen.txt
cat > expected.txt <<'TXT'
Constants Constants
Enumeration AnswerEnumeration
AnyOfNull AnyOfNull
TypeNull int?
Types double
OneOfTypes string
TXT
diff expected.txt seen.txt
# Both are classes without a member but the one for unknown names.
for class in Constants AnyOfNull; do
  members=$(sed -n "/public partial class $class\$/,/^    }/p" client.cs | grep -c '{ get; set; }' || true)
  [ "$members" = 0 ] || { echo "$class has $members members"; exit 1; }
done
grep -q 'public enum AnswerEnumeration' client.cs
echo 'as stated'
