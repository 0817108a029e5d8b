#!/bin/sh
# openapi-to-postmanv2 6.3.3, the importer of Postman, with its default options, found 2026-11-28.
#
# The good guess: the `example` of a request's media type, or of its schema, is the body of the imported request.
# What happens: by default (`parametersResolution: Schema`) all of them are ignored and the body is invented (`"<string>"`); only
# `default` is read, which states something else. With `parametersResolution: Example` each of them is read.
# Why it matters: a user imports the description, presses Send and gets a refusal. Users of Postman have to choose
# "Parameter generation: Example"; there is no place for the example that helps the others.
#
# Needs Node 20. Runs without the product, on descriptions of its own. Exits 0 if the importer behaves as stated, 1 if it no longer
# does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '{"private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts openapi-to-postmanv2@6.3.3

cat > imported.mjs <<'JS'
import assert from 'node:assert/strict';
import converter from 'openapi-to-postmanv2';

const EXAMPLE = { url: 'https://example.com/hook' };
const schema = { type: 'object', required: ['url'], properties: { url: { type: 'string' } } };
const PLACES = {
  'example of the media type': { schema, example: EXAMPLE },
  'examples of the media type': { schema, examples: { one: { value: EXAMPLE } } },
  'example of the schema': { schema: { ...schema, example: EXAMPLE } },
  'examples of the schema': { schema: { ...schema, examples: [EXAMPLE] } },
  'default of the schema': { schema: { ...schema, default: EXAMPLE } },
};

function imported(media, options) {
  const responses = { 200: { description: 'Read.' } };
  const post = { requestBody: { content: { 'application/json': media } }, responses };
  const data = { openapi: '3.1.0', info: { title: 'bodies', version: '1' }, paths: { '/': { post } } };
  return new Promise((resolve, reject) => {
    converter.convertV2({ type: 'string', data: JSON.stringify(data) }, options, (error, { result, reason, output } = {}) => {
      if (error || !result) return reject(error ?? new Error(reason));
      const requests = (items) => items.flatMap((item) => (item.item ? requests(item.item) : [item.request]));
      resolve(JSON.parse(requests(output[0].data.item)[0].body.raw));
    });
  });
}

const seen = [];
for (const [place, media] of Object.entries(PLACES)) {
  const byDefault = (await imported(media, {})).url === EXAMPLE.url;
  const byChoice = (await imported(media, { parametersResolution: 'Example' })).url === EXAMPLE.url;
  seen.push([byDefault, byChoice]);
  console.log(`${place}: ${byDefault ? 'read' : 'ignored'} by default, ${byChoice ? 'read' : 'ignored'} with Example`);
}
assert.deepEqual(seen, [[false, true], [false, true], [false, true], [false, true], [true, true]]);
console.log('as stated');
JS
node imported.mjs
