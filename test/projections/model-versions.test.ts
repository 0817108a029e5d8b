// A change to the content of a model's rows requires a higher model version; without it an existing deployment would
// mix rows of both kinds without an error.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { READ_MODELS } from '#projections/registry.ts';

const FIXTURE = new URL('../fixtures/model-versions.json', import.meta.url);

type Known = Record<string, { readonly version: number; readonly sources: string }>;

/** A text, a comment, or white space. */
const TOKEN = /('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\/|\s+/g;

const TYPE_IMPORT = /^import type [^;]+;/gm;

/** What is left is what is done: neither comments, layout nor the place of a type change a row. */
const bare = (source: string) =>
  source
    .replace(TYPE_IMPORT, '')
    .replace(TOKEN, (_, text?: string) => text ?? '')
    // A formatter writes a comma before a closing bracket where it breaks the line.
    .replace(/,(?=[)\]}])/g, '');

function sourcesOf(model: string): string {
  const hash = createHash('sha256');
  for (const file of ['table.ts', 'project.ts']) {
    hash.update(bare(readFileSync(new URL(`../../projections/${model}/${file}`, import.meta.url), 'utf8')));
  }
  return hash.digest('hex');
}

test('read models: whose table or projection changes, its version is counted up where the rows differ', () => {
  const now: Known = Object.fromEntries(
    READ_MODELS.map(({ name, version }) => [name, { version, sources: sourcesOf(name) }]),
  );
  if (process.env.RELAY_TEST_UPDATE === '1') writeFileSync(FIXTURE, `${JSON.stringify(now, null, 2)}\n`);
  const known = JSON.parse(readFileSync(FIXTURE, 'utf8')) as Known;
  const changed = READ_MODELS.filter(
    ({ name, version }) =>
      known[name]?.version === version &&
      known[name]?.sources !== undefined &&
      known[name].sources !== now[name]?.sources,
  ).map(({ name }) => name);
  const advice = `table.ts or project.ts of these models changed: ${changed.join(', ') || 'none'}.
If their rows say something else now, count up \`version\`.
In any case \`bun run test --update\` writes test/fixtures/model-versions.json again.
`;
  assert.deepEqual(known, now, advice);
});

test('read models: a comment, the layout or the place of a type is no change; a text is', () => {
  assert.equal(bare("import type {\n  A,\n} from 'a';\nimport { b } from 'b';"), "import{b}from'b';");
  const source = "const a = 'b // c'; // d\n/* e */ const f =\n  `g  h`;";
  assert.equal(bare(source), "consta='b // c';constf=`g  h`;");
  assert.equal(bare('f(\n  a,\n  [b,],\n);'), bare('f(a, [b]);'));
  assert.notEqual(bare(source.replace('b //', 'b  //')), bare(source));
});
