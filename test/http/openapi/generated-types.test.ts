// What openapi-typescript makes of the interface description: types that have the names of components.schemas, with which a
// program of the agent's developer type-checks.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { needsNode } from '#test/support/chain/requirements.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const folder = testFolder('generated-types');
const installed = join(rootPath, 'node_modules');

const PROGRAM = `
import type { components, paths } from './relay.d.ts';
type Named = components['schemas'];
declare const job: Named['Job'];
declare const failed: Named['ErrorBody'];
type Answer = paths['/api/jobs/{id}']['get']['responses'][200]['content']['application/json'];
const answer: Answer = job;
type Call = NonNullable<paths['/api/execute/webhook']['post']['requestBody']>['content']['application/json'];
const call: Call = { url: 'https://target.example/hook', idempotencyKey: 'order-17' };
const code: 'idempotency_conflict' extends Named['ErrorBody']['error']['code'] ? true : false = true;
// @ts-expect-error: no code of the relay
const unknown: Named['ErrorBody']['error']['code'] = 'no_such_code';
// @ts-expect-error: the URL is required
const incomplete: Call = { idempotencyKey: 'order-17' };
export const all = [answer, call, code, failed, unknown, incomplete];
`;

/** openapi-typescript beside the TypeScript that it is made for: the project's own has no programming interface. */
function generator(): string {
  const modules = join(folder, 'node_modules');
  const link = (name: string, from = name) => {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(installed, from), join(modules, name), 'dir');
  };
  cpSync(join(installed, 'openapi-typescript'), join(modules, 'openapi-typescript'), { recursive: true });
  const { dependencies } = JSON.parse(
    readFileSync(join(modules, 'openapi-typescript/package.json'), 'utf8'),
  ) as { readonly dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) link(name);
  link('typescript', 'typescript-5');
  return join(modules, 'openapi-typescript/bin/cli.js');
}

const run = (...args: readonly string[]) => spawnSync('node', args, { cwd: folder, encoding: 'utf8' });

test('openapi-typescript makes named types of it, which a program uses', needsNode(20), async () => {
  const document = await clientOf(fakeWorld()).document();
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
  const made = run(generator(), 'openapi.json', '--output', 'relay.d.ts', '--default-non-nullable', 'false');
  assert.equal(made.status, 0, made.stdout + made.stderr);
  const types = readFileSync(join(folder, 'relay.d.ts'), 'utf8');
  const [, schemas = ''] = types.split(/\n {4}schemas: \{\n/);
  const names = [...(schemas.split('\n    };')[0] ?? '').matchAll(/^ {8}(\w+): /gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(document.components.schemas).sort());
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  const checked = run(
    join(installed, 'typescript/bin/tsc'),
    ...['--noEmit', '--strict', '--target', 'es2022', '--module', 'preserve'],
    ...['--allowImportingTsExtensions', 'program.ts'],
  );
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});
