// Node imports the verifier by the name of the package; nothing else of the project runs under Node.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as given from '#test/support/logged-receipt.ts';
import { needsNode } from '#test/support/requirements.ts';
import { rootPath } from '#test/support/runtime.ts';
import { testFolder } from '#test/support/test-folder.ts';

const needs = needsNode(20);
const folder = testFolder('verify-node');

const SCRIPT = `
import { readFileSync } from 'node:fs';
import { verifyProof, verifyReceipt } from 'webhook-relay/verify';
const { keys, proof, disclosures, subjects } = JSON.parse(readFileSync('given.json', 'utf8'));
const results = [];
for (const [receipt, proofText] of subjects) {
  const report = await verifyReceipt(receipt, { keys, proof: proofText, disclosures });
  const found = await verifyProof(proofText, { receipt, keys });
  results.push([report.ok, report.checks.filter(({ ok }) => !ok).map(({ name }) => name), report.opened.length, found.ok]);
}
console.log(JSON.stringify({ node: !process.versions.bun && !process.versions.deno, results }));
`;

test('Node 20 verifies a receipt and its proof, and refuses changed ones', needs, () => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(rootPath, join(folder, 'node_modules/webhook-relay'));
  const { jws, keys, proof, disclosures, payload, receiptAnswer, withPayload } = given;
  const changed = withPayload({ ...payload, mode: 'demo' });
  const subjects = [
    [jws, proof],
    [receiptAnswer(), proof],
    [changed, proof],
    [jws, proof.replace('index 2', 'index 1')],
    [receiptAnswer({ payload: { ...payload, mode: 'demo' } }), proof],
  ];
  writeFileSync(join(folder, 'given.json'), JSON.stringify({ keys, proof, disclosures, subjects }));
  const { stdout, stderr } = spawnSync('node', ['--input-type=module'], {
    cwd: folder,
    input: SCRIPT,
    encoding: 'utf8',
  });
  assert.equal(stderr, '');
  const { node, results } = JSON.parse(stdout);
  assert.equal(node, true);
  assert.deepEqual(results, [
    [true, [], 1, true],
    [true, [], 1, true],
    [false, ['signature_valid', 'receipt_logged'], 0, false],
    [false, ['receipt_logged'], 0, false],
    [false, [], 1, true],
  ]);
});
