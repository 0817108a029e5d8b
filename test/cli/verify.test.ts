// relay verify: good receipts in all their forms, and every kind of tampering.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { signed } from '#test/support/given/given-receipt.ts';
import { runCli } from '#test/support/process/cli.ts';
import {
  executionAnswer,
  jws,
  key,
  keySet,
  payload,
  receiptAnswer,
  receiptFolder,
  stranger,
} from '#test/support/process/cli-receipts.ts';
import { RECEIPT_CHECKS } from '#test/support/world/service-receipts.ts';

const { keys: KEYS, file, remove } = receiptFolder();
after(remove);

async function report(content: string, ...more: readonly string[]) {
  const path = file('subject', content);
  const { code, stdout, stderr } = await runCli(['verify', path, '--keys', KEYS, '--json', ...more]);
  assert.equal(stderr, '');
  return { code, ...JSON.parse(stdout) };
}

const failed = (found: { checks: { name: string; ok: boolean }[] }) =>
  found.checks.filter(({ ok }) => !ok).map(({ name }) => name);

describe('a good receipt verifies', () => {
  test('with a time of issue beyond the range of a date, which is printed in seconds', async () => {
    const late = file('late.json', await signed({ ...payload, iat: 9e12 }, key));
    const { code, stdout, stderr } = await runCli(['verify', late, '--keys', KEYS]);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /\n {2}issued +9000000000000 seconds after 1970-01-01T00:00:00Z\n/);
    assert.match(stdout, /\nVerified: /);
  });

  const forms = {
    'as the answer of GET /api/receipts/{id}': JSON.stringify(receiptAnswer(jws)),
    'as an execution response': JSON.stringify(executionAnswer(jws)),
    'as a bare JWS': jws,
    'as a bare JWS with a line end': `${jws}\r\n`,
    'as JSON behind a byte order mark': `\ufeff${JSON.stringify(receiptAnswer(jws))}`,
  };
  for (const [form, content] of Object.entries(forms)) {
    test(form, async () => {
      const found = await report(content);
      assert.equal(found.code, 0);
      assert.deepEqual(
        { ...found, checks: found.checks.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]) },
        {
          code: 0,
          ok: true,
          receiptId: payload.receiptId,
          jobId: payload.jobId,
          keyId: key.keyId,
          signatureVerified: true,
          checks: RECEIPT_CHECKS.map((name) => [name, true]),
          differences: [],
          keysFrom: KEYS,
        },
      );
    });
  }

  test('from standard input', async () => {
    const { code } = await runCli(['verify', '-', '--keys', KEYS], { stdin: jws });
    assert.equal(code, 0);
  });

  test('as text: the outcome, every check with its mark, no colour, and the verdict', async () => {
    const { code, stdout } = await runCli(['verify', file('good.json', jws), '--keys', KEYS]);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^Receipt ${payload.receiptId}\n`));
    assert.match(stdout, /outcome +POST succeeded, answer 200, attempts: 2/);
    assert.equal(stdout.match(/^ {2}✓ /gm)?.length, 7);
    assert.match(stdout, /\nVerified: (\d+) of \1 checks hold\.\nNot checked: [^\n]+ \(--proof\)\.\n$/);
    assert.doesNotMatch(stdout, /\u001b/);
  });

  test('no colour in a pipe, also with FORCE_COLOR', async () => {
    const args = ['verify', file('good.json', jws), '--keys', KEYS];
    const { stdout } = await runCli(args, { env: { FORCE_COLOR: '1' } });
    assert.doesNotMatch(stdout, /\u001b/);
  });
});

describe('a bad receipt is found: exit 1', () => {
  test('a key set of another relay: the missing key is named', async () => {
    const keys = file('strangers.json', keySet(stranger));
    const { code, stdout } = await runCli(['verify', file('good.json', jws), '--keys', keys]);
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`does not contain the key .*\n  ${stranger.keyId}\n`));
    assert.doesNotMatch(stdout, /outcome +POST/);
    assert.match(stdout, /\nNOT verified: see above\.\n$/);
  });

  test('a key that was retired before, with both times', async () => {
    const retired = { ...key, record: { ...key.record, notAfter: payload.iat - 1 } };
    const keys = file('retired.json', keySet(retired));
    const { code, stdout } = await runCli(['verify', file('good.json', jws), '--keys', keys]);
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`✗ [^\n]*key_valid_at_issue\\)\n +iat: ${payload.iat}\n`));
    assert.match(stdout, new RegExp(`notAfter: ${payload.iat - 1}\n`));
  });
});

describe('readable text that the signature does not cover is compared with what it covers', () => {
  const answer = receiptAnswer(jws);
  const execution = executionAnswer(jws);
  const edits: Readonly<Record<string, object>> = {
    payload: {
      ...answer,
      payload: { ...payload, outcome: { ...payload.outcome, status: 'failed' } },
    },
    signature: { ...answer, signature: 'ed25519:AAAA' },
    keyId: { ...answer, keyId: stranger.keyId },
    'job.status': { ...execution, job: { ...execution.job, status: 'failed' } },
    'job.responseStatus': { ...execution, job: { ...execution.job, responseStatus: 201 } },
    'job.attempts': { ...execution, job: { ...execution.job, attempts: 1 } },
    'payment.payer': { ...execution, payment: { ...execution.payment, payer: '0xsomebody' } },
    payment: { ...execution, payment: null },
    mode: { ...execution, mode: 'demo' },
  };
  for (const [field, content] of Object.entries(edits)) {
    test(`${field} edited beside an intact JWS`, async () => {
      const found = await report(JSON.stringify(content));
      assert.deepEqual(
        { code: found.code, ok: found.ok, signatureVerified: found.signatureVerified, failed: failed(found) },
        { code: 1, ok: false, signatureVerified: true, failed: [] },
      );
      assert.deepEqual(found.differences, [field]);
    });
  }

  test('values that cannot be compared count as different: deep nesting, a lone surrogate', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    for (const value of [deep, '"\\ud800"']) {
      const text = JSON.stringify(answer).replace('"mode":"x402"', `"mode":${value}`);
      const found = await report(text);
      assert.equal(found.code, 1);
      assert.deepEqual(found.differences, ['payload']);
    }
  });
});
