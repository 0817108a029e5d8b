// The npm package of the verifier, as the service publishes it: installed in an empty folder, it verifies in Node, Bun and
// Deno, with its types, and nothing else of the project is there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { publishedLibrary } from '#src/app/library.ts';
import { toBase64 } from '#src/domain/encoding.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { PACKAGED } from '#src/verify/package.ts';
import { needsNode } from '#test/support/chain/requirements.ts';
import * as given from '#test/support/log/logged-receipt.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { PROOF } from '#test/support/witness/rfc6962.ts';

const needs = needsNode(20);
const folder = testFolder('verify-package');

const SCRIPT = `
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { verifyCheckpoint, verifyConsistency, verifyProof, verifyReceipt } from 'webhook-relay/verify';
const { keys, proof, disclosures, subjects, older, newer, between } = JSON.parse(readFileSync('given.json', 'utf8'));
const results = [];
for (const [receipt, proofText] of subjects) {
  const report = await verifyReceipt(receipt, { keys, proof: proofText, disclosures });
  const found = await verifyProof(proofText, { receipt, keys });
  results.push([report.ok, report.checks.filter(({ ok }) => !ok).map(({ name }) => name), report.opened.length, found.ok]);
}
const { size } = await verifyCheckpoint(older, { keys });
const continued = await verifyConsistency({ older, newer, proof: between }, { keys });
const reversed = await verifyConsistency({ older: newer, newer: older, proof: between }, { keys });
const { bun, deno } = process.versions;
console.log(JSON.stringify({ runtime: bun ? 'bun' : deno ? 'deno' : 'node', results, size, log: [continued.ok, reversed.problem] }));
`;

const TYPED = `
import { type ConsistencyReport, type ReceiptReport, verifyConsistency, verifyReceipt } from 'webhook-relay/verify';
const report: ReceiptReport = await verifyReceipt('', { keys: { keys: [] }, proof: null });
const id: string | null = report.receiptId;
const method: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined = report.payload?.request.method;
const continued: ConsistencyReport = await verifyConsistency({ older: '', newer: '' }, { keys: '{}' });
// @ts-expect-error: keys are required
await verifyReceipt('', {});
export const results = [id, method, continued.ok];
`;

const run = (command: string, ...args: readonly string[]) =>
  spawnSync(command, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } });

describe('the npm package of the verifier', needs, () => {
  test('it is installed from the published archive, with nothing else', () => {
    writeFileSync(join(folder, 'webhook-relay.tgz'), publishedLibrary.archive());
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const { status, stderr } = run(
      'npm',
      'install',
      '--offline',
      '--no-audit',
      '--no-fund',
      './webhook-relay.tgz',
    );
    assert.equal(status, 0, stderr);
    const installed = join(folder, 'node_modules/webhook-relay');
    assert.deepEqual(
      readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['webhook-relay'],
    );
    assert.deepEqual(readdirSync(installed).sort(), ['package.json', ...PACKAGED].sort());
    for (const name of ['package.json', ...PACKAGED])
      assert.equal(
        readFileSync(join(installed, name), 'utf8'),
        readFileSync(join(rootPath, 'src/verify/built', name), 'utf8'),
      );
    const { version, dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    assert.deepEqual([version, dependencies], [SERVICE.version, undefined]);
  });

  test('npm packs the same files, and the archive is the same bytes each time', () => {
    const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json'], {
      cwd: join(rootPath, 'src/verify/built'),
      encoding: 'utf8',
    });
    const [{ files, version }] = JSON.parse(stdout);
    assert.deepEqual(
      files.map(({ path }: { path: string }) => path).sort(),
      ['package.json', ...PACKAGED].sort(),
    );
    assert.equal(version, JSON.parse(readFileSync(join(rootPath, 'package.json'), 'utf8')).version);
    assert.deepEqual(publishedLibrary.archive(), publishedLibrary.archive());
    assert.ok(publishedLibrary.archive().length < 64_000);
  });

  test('Node, Bun and Deno verify receipts, proofs and consistency with it, and refuse changed ones', async () => {
    const { jws, keys, proof, disclosures, payload, receiptAnswer, withPayload, LEAVES, checkpointOf } =
      given;
    const more = [...LEAVES, ...LEAVES];
    const between = { from: LEAVES.length, to: more.length, proof: PROOF(LEAVES.length, more).map(toBase64) };
    const subjects = [
      [jws, proof],
      [receiptAnswer(), proof],
      [withPayload({ ...payload, mode: 'demo' }), proof],
      [jws, proof.replace('index 2', 'index 1')],
      [receiptAnswer({ payload: { ...payload, mode: 'demo' } }), proof],
    ];
    const log = { older: given.checkpoint, newer: await checkpointOf(more), between };
    writeFileSync(join(folder, 'given.json'), JSON.stringify({ keys, proof, disclosures, subjects, ...log }));
    writeFileSync(join(folder, 'script.mjs'), SCRIPT);
    for (const [runtime, command, ...args] of [
      ['node', 'node'],
      ['bun', join(rootPath, 'node_modules/bun/bin/bun.exe')],
      [
        'deno',
        'node',
        join(rootPath, 'node_modules/deno/bin.cjs'),
        'run',
        '--no-lock',
        '--allow-read',
        '--allow-env',
      ],
    ] as const) {
      const { stdout, stderr } = run(command, ...args, 'script.mjs');
      assert.equal(stderr, '', runtime);
      assert.deepEqual(JSON.parse(stdout), {
        runtime,
        results: [
          [true, [], 1, true],
          [true, [], 1, true],
          [false, ['signature_valid', 'receipt_logged'], 0, false],
          [false, ['receipt_logged'], 0, false],
          [false, [], 1, true],
        ],
        size: 5,
        log: [true, 'smaller'],
      });
    }
  });

  for (const [module, resolution] of [
    ['NodeNext', 'NodeNext'],
    ['ESNext', 'Bundler'],
  ] as const) {
    test(`its types are found and strict, with module resolution ${resolution}`, () => {
      writeFileSync(join(folder, 'typed.ts'), TYPED);
      const tsc = join(rootPath, 'node_modules/typescript/lib/tsc.js');
      const { status, stdout } = run(
        'node',
        ...[tsc, '--noEmit', '--strict', '--target', 'ES2023', '--lib', 'ES2023,DOM', '--types', ''],
        ...['--module', module, '--moduleResolution', resolution, 'typed.ts'],
      );
      assert.equal(status, 0, stdout);
    });
  }
});

test('npm pack of the whole project carries every file that its README links', needs, () => {
  const readme = readFileSync(join(rootPath, 'README.md'), 'utf8');
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: rootPath,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const [packed = { files: [] }]: readonly { readonly files: readonly { readonly path: string }[] }[] =
    JSON.parse(stdout);
  const carried = new Set(packed.files.map(({ path }) => path));
  const links = [...readme.matchAll(/\]\((?!https?:|#)([^)\s#]+)/g)].map(([, link = '']) => link);
  assert.ok(links.length >= 10, `${links.length} links`);
  assert.deepEqual(
    links.filter((link) => !carried.has(link)),
    [],
  );
});
