// Names: a type or function that is exported has a name of its own, a name that outlives its line says what it is, and
// unions have one discriminator.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rootPath } from '#test/support/process/runtime.ts';
import { discriminators, exportedNames, namesBeyondOneLine } from './parse-names.ts';

const SOURCES = globSync(['deploy/**/*.ts', 'src/**/*.ts', 'projections/**/*.ts'], { cwd: rootPath })
  .filter((file) => !file.startsWith('src/verify/built/') && !file.startsWith('src/discovery/snippets/'))
  .sort()
  .map((file) => ({ file, source: readFileSync(`${rootPath}/${file}`, 'utf8') }));

test('names: under 20 exported names are declared in two or more files', () => {
  const files = new Map<string, string[]>();
  for (const { file, source } of SOURCES)
    for (const name of new Set(exportedNames(source))) files.set(name, [...(files.get(name) ?? []), file]);
  assert.ok(files.size >= 1500, `${files.size} exported names`);
  const shared = [...files]
    .filter(([, of]) => of.length > 1)
    .map(([name, of]) => `${name}: ${of.join(', ')}`);
  assert.ok(shared.length < 20, `rename some of these ${shared.length}:\n${shared.join('\n')}`);
  assert.deepEqual(
    [
      'Record',
      'Partial',
      'Promise',
      'Map',
      'Set',
      'Error',
      'Request',
      'Response',
      'Document',
      'Window',
    ].filter((name) => files.has(name)),
    [],
  );
});

test('names: `it`, `its`, `one`, `of` and `by` name nothing beyond one line', () => {
  const short = new Set(['it', 'its', 'one', 'of', 'by']);
  const found = SOURCES.flatMap(({ file, source }) =>
    namesBeyondOneLine(source)
      .filter(({ name }) => short.has(name))
      .map(({ name, line }) => `${file}:${line} ${name}`),
  );
  assert.deepEqual(found, []);
});

/** `status`: of a state. `outcome`: of an action. */
const DISCRIMINATORS = new Set(['kind', 'status', 'outcome']);
/** By file and type: the member is a recorded, a published or a standard's one, or it is the key of a table. */
const OTHERS: Readonly<Record<string, string>> = {
  'projections/receipt/project.ts ReceiptChange': 'table',
  'src/config-login.ts LoginKey': 'algorithm',
  'src/domain/monitoring/health.ts ComparisonHealth': 'problem',
  'src/domain/receipt/report.ts Check': 'name',
  'src/usecases/execution/execute-webhook.ts State': 'step',
};

test('names: the discriminator of a union is `kind`, or one of a few others', () => {
  const found = SOURCES.flatMap(({ file, source }) =>
    discriminators(source).map(({ type, members }) => ({ type: `${file} ${type}`, members })),
  );
  assert.ok(found.length >= 40, `${found.length} unions`);
  assert.deepEqual(
    found.filter(({ type, members }) => {
      const other = OTHERS[type];
      return !members.some((member) => DISCRIMINATORS.has(member) || member === other);
    }),
    [],
  );
});

test('names: what the rules read in a source is found', () => {
  const source = `export const one = 1, { two, three: [four] } = given;
export function five(by: number) { return by; }
export class Six {}
export type Seven = { readonly is: 'a' } | ({ readonly is: 'b' } & Six) | { readonly is: 'c' | 'd' };
const eight = (its: number) =>
  its + 1;
for (const of of [1]) {
  eight(of);
}
const same = [1].map((it) => it);
export { same };`;
  assert.deepEqual(exportedNames(source), ['one', 'two', 'four', 'five', 'Six', 'Seven']);
  assert.deepEqual(
    namesBeyondOneLine(source).map(({ name, line }) => `${name} ${line}`),
    ['one 1', 'two 1', 'four 1', 'eight 1', 'its 5', 'of 7', 'same 1'],
  );
  assert.deepEqual(discriminators(source), [{ type: 'Seven', members: ['is'] }]);
});
