// relay verify: good receipts in all their forms, every kind of tampering, and everything that is no receipt.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { toJwk } from '#src/domain/receipt/keys.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { shownSignature } from '#src/domain/receipt/payload.ts';
import { runCli } from '#test/support/cli.ts';
import { forged, payloadOf, signed } from '#test/support/given-receipt.ts';
import { type TestKey, testKey } from '#test/support/primitives.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-verify-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const key = testKey();
const stranger = testKey();
const payload = await payloadOf();
const jws = await signed(payload, key);
const keySet = (...keys: readonly TestKey[]) =>
  JSON.stringify({ keys: keys.map(({ record }) => toJwk(record)) });
const KEYS = file('jwks.json', keySet(key));

/** Its path in the test's folder. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** As GET /api/receipts/{id} answers. */
function receiptAnswer(of: string, said: ReceiptPayload = payload) {
  const { receiptId: id } = said;
  return {
    id,
    keyId: key.keyId,
    payload: said,
    jws: of,
    signature: shownSignature(of),
    verified: true,
    links: {},
  };
}

/** As POST /api/execute/webhook answers. */
function executionAnswer(of: string) {
  const { jobId, receiptId, outcome, attempts, decisionId, payment } = payload;
  if (payment === null) throw new Error('the receipt at hand is a paid one');
  const { network, asset, amount, payTo, payer, transaction } = payment;
  const { status, responseStatus, errorCategory } = outcome;
  return {
    mode: payload.mode,
    idempotentReplay: false,
    job: {
      id: jobId,
      status,
      attempts: attempts.length,
      decisionId,
      responseStatus,
      errorCategory,
      createdAt: 'x',
    },
    receipt: { id: receiptId, signature: shownSignature(of), replay: false, jws: of, keyId: key.keyId },
    payment: { network, asset, amount, payTo, payer, transaction },
    disclosures: [],
    links: {},
  };
}

/** The same JWS with another payload under the old signature. */
function withPayload(changed: unknown): string {
  const [head, , signature] = jws.split('.');
  return `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${signature}`;
}

async function report(content: string, ...more: readonly string[]) {
  const path = file('subject', content);
  const { code, stdout, stderr } = await runCli(['verify', path, '--keys', KEYS, '--json', ...more]);
  assert.equal(stderr, '');
  return { code, ...JSON.parse(stdout) };
}

const failed = (found: { checks: { name: string; ok: boolean }[] }) =>
  found.checks.filter(({ ok }) => !ok).map(({ name }) => name);

describe('a good receipt verifies', () => {
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
          checks: [
            ['receipt_present', true],
            ['signature_valid', true],
            ['key_valid_at_issue', true],
            ['payload_version_supported', true],
            ['payload_job_id', true],
            ['request_commitment_present', true],
            ['response_commitment_present', true],
          ],
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

  test('for people: what it says, every check with its mark and no colour, and a last word', async () => {
    const { code, stdout } = await runCli(['verify', file('good.json', jws), '--keys', KEYS]);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^Receipt ${payload.receiptId}\n`));
    assert.match(stdout, /says +POST succeeded, answer 200, attempts: 2/);
    assert.equal(stdout.match(/^ {2}✓ /gm)?.length, 7);
    assert.match(stdout, /\nVerified: every check holds\.\n$/);
    assert.doesNotMatch(stdout, /\u001b/);
  });
});

describe('a bad receipt is found: exit 1', () => {
  test('another word under the old signature', async () => {
    const found = await report(withPayload({ ...payload, mode: 'demo' }));
    assert.deepEqual([found.code, found.ok, failed(found)], [1, false, ['signature_valid']]);
  });

  test('a damaged signature', async () => {
    const at = jws.lastIndexOf('.') + 5;
    const found = await report(`${jws.slice(0, at)}${jws[at] === 'A' ? 'B' : 'A'}${jws.slice(at + 1)}`);
    assert.deepEqual([found.code, failed(found)], [1, ['signature_valid']]);
  });

  test('signed by another key under the name of ours', async () => {
    const header = { alg: 'EdDSA', kid: key.keyId, typ: 'relay-receipt+jws' };
    const found = await report(await forged(header, payload, stranger));
    assert.deepEqual([found.code, failed(found)], [1, ['signature_valid']]);
  });

  test('a key in the header is not used', async () => {
    const { x } = stranger;
    const header = {
      alg: 'EdDSA',
      kid: stranger.keyId,
      typ: 'relay-receipt+jws',
      jwk: { kty: 'OKP', crv: 'Ed25519', x },
    };
    const found = await report(await forged(header, payload, stranger));
    assert.deepEqual([found.code, failed(found)], [1, ['signature_valid', 'key_valid_at_issue']]);
  });

  test('the keys of somebody else, and it says which key is missing', async () => {
    const keys = file('strangers.json', keySet(stranger));
    const { code, stdout } = await runCli(['verify', file('good.json', jws), '--keys', keys]);
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`does not hold the key .*\n  ${stranger.keyId}\n`));
    assert.doesNotMatch(stdout, /says +POST/);
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

  test('a version from the future', async () => {
    const header = { alg: 'EdDSA', kid: key.keyId, typ: 'relay-receipt+jws' };
    const found = await report(await forged(header, { ...payload, v: 2 }, key));
    assert.equal(found.code, 1);
    assert.ok(failed(found).includes('payload_version_supported'));
  });

  test('a receipt filed under the id of another', async () => {
    const found = await report(JSON.stringify({ ...receiptAnswer(jws), id: 'rcpt_other' }));
    assert.deepEqual([found.code, failed(found)], [1, ['receipt_present']]);
  });

  test('an execution response about another job', async () => {
    const answer = executionAnswer(jws);
    const found = await report(JSON.stringify({ ...answer, job: { ...answer.job, id: 'job_other' } }));
    assert.deepEqual([found.code, failed(found)], [1, ['payload_job_id']]);
  });

  test('a JWS that is none', async () => {
    for (const broken of [
      'a.b.c',
      'eyJ.!!!.x',
      jws.replace('.', '..').slice(0, -90),
      `${jws.slice(0, 30)}..`,
    ]) {
      const found = await report(JSON.stringify({ jws: broken }));
      assert.equal(found.code, 1);
      assert.equal(found.signatureVerified, false);
    }
  });
});

describe('readable text that the signature does not cover is compared with what it covers', () => {
  const said = receiptAnswer(jws);
  const told = executionAnswer(jws);
  const edits: Readonly<Record<string, object>> = {
    'payload.outcome.status': {
      ...said,
      payload: { ...payload, outcome: { ...payload.outcome, status: 'failed' } },
    },
    'payload.payment': { ...said, payload: { ...payload, payment: null } },
    'payload.bonus': { ...said, payload: { ...payload, bonus: 'never signed' } },
    payload: { ...said, payload: null },
    signature: { ...said, signature: 'ed25519:AAAA' },
    keyId: { ...said, keyId: stranger.keyId },
    'job.status': { ...told, job: { ...told.job, status: 'failed' } },
    'job.responseStatus': { ...told, job: { ...told.job, responseStatus: 201 } },
    'job.attempts': { ...told, job: { ...told.job, attempts: 1 } },
    'payment.payer': { ...told, payment: { ...told.payment, payer: '0xsomebody' } },
    payment: { ...told, payment: null },
    mode: { ...told, mode: 'demo' },
  };
  for (const [field, content] of Object.entries(edits)) {
    test(`${field} edited beside an intact JWS`, async () => {
      const found = await report(JSON.stringify(content));
      assert.deepEqual(
        { code: found.code, ok: found.ok, signatureVerified: found.signatureVerified, failed: failed(found) },
        { code: 1, ok: false, signatureVerified: true, failed: [] },
      );
      assert.deepEqual(
        found.differences.map((difference: { field: string }) => difference.field),
        [field],
      );
    });
  }

  test('what it cannot compare counts as different: nested without end, half a surrogate pair', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    for (const value of [deep, '"\\ud800"']) {
      const text = JSON.stringify(said).replace('"mode":"x402"', `"mode":${value}`);
      const found = await report(text);
      assert.equal(found.code, 1);
      assert.deepEqual(
        found.differences.map((difference: { field: string }) => difference.field),
        ['payload.mode'],
      );
    }
  });

  test('it cannot steer the terminal', async () => {
    const mode = '\u001b]0;owned\u0007\u009b31m\u202edemo';
    const path = file('steering.json', JSON.stringify({ ...told, mode }));
    const { code, stdout } = await runCli(['verify', path, '--keys', KEYS]);
    assert.equal(code, 1);
    assert.ok(stdout.includes('text: \\u001b]0;owned\\u0007\\u009b31m\\u202edemo\n'));
    assert.doesNotMatch(stdout, /[\u001b\u0007\u009b\u202e]/);
  });
});

describe('what is no receipt cannot be verified: exit 2, one line, no stack', () => {
  const no = async (args: readonly string[], line: RegExp, stdin = '') => {
    const { code, stdout, stderr } = await runCli(['verify', ...args], { stdin });
    assert.equal(stdout, '');
    assert.match(stderr, /^relay: [^\n]+\n$/);
    assert.match(stderr, line);
    assert.equal(code, 2);
  };

  test('a file without --keys says how to get them', () =>
    no([file('good.json', jws)], /--keys.*\/\.well-known\/jwks\.json/));
  test('a file that is not there', () =>
    no([join(folder, 'nowhere'), '--keys', KEYS], /nowhere is not there/));
  test('a folder', () => no([folder, '--keys', KEYS], /is a folder/));
  test('nothing at all', () => no(['-', '--keys', KEYS], /standard input is neither JSON nor a JWS/));
  test('bytes that are no text', () =>
    no([file('bytes', Buffer.from([0xff, 0xfe, 0])), '--keys', KEYS], /is not text/));
  test('text', () => no([file('text', 'Dear Sir or Madam,'), '--keys', KEYS], /neither JSON nor a JWS/));
  test('cut JSON', () => no([file('cut', '{"jws":"e'), '--keys', KEYS], /neither JSON nor a JWS/));
  test('JSON without a receipt', () => no([file('list', '[1]'), '--keys', KEYS], /JSON without a receipt/));
  test('nested without end', () =>
    no([file('deep', `${'['.repeat(200_000)}${']'.repeat(200_000)}`), '--keys', KEYS], /receipt/));
  test('an error answer of the service', () =>
    no(
      [file('error', '{"error":{"code":"receipt_not_found","message":"x"}}'), '--keys', KEYS],
      /receipt_not_found/,
    ));
  test('a file of over 1 MiB', () =>
    no([file('huge', ' '.repeat(1024 * 1024 + 1)), '--keys', KEYS], /over 1 MiB/));
  test('an endless file', () => no(['/dev/zero', '--keys', KEYS], /over 1 MiB/));
  test('keys that are not there', () =>
    no([file('good.json', jws), '--keys', join(folder, 'none')], /none is not there/));
  test('keys that are no JSON', () => no([file('good.json', jws), '--keys', file('k', 'x')], /is not JSON/));
  test('keys that are no JWK set', () =>
    no([file('good.json', jws), '--keys', file('k', '{}')], /no JWK set/));
  test('a JWK set without a key of ours', () =>
    no([file('good.json', jws), '--keys', file('k', '{"keys":[{"kty":"RSA"}]}')], /no Ed25519 key/));
  test('a URL where nobody listens', () => no(['http://127.0.0.1:1/r', '--keys', KEYS], /cannot be reached/));
});

describe('over HTTP', () => {
  const serve = async (routes: Readonly<Record<string, string>>, use: (origin: string) => Promise<void>) => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      const body = routes[request.url ?? ''];
      response
        .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
        .end(body ?? '{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
    return asked;
  };
  const answer = JSON.stringify(receiptAnswer(jws));

  test('a receipt by its URL is verified with the keys of the same origin', async () => {
    const routes = { '/api/receipts/r': answer, '/.well-known/jwks.json': keySet(key) };
    const asked = await serve(routes, async (origin) => {
      const { code, stdout } = await runCli(['verify', `${origin}/api/receipts/r`, '--json']);
      assert.equal(code, 0);
      assert.equal(JSON.parse(stdout).keysFrom, `${origin}/.well-known/jwks.json`);
    });
    assert.deepEqual(asked.sort(), ['/.well-known/jwks.json', '/api/receipts/r']);
  });

  test('with --keys the origin is not asked for its keys', async () => {
    const asked = await serve(
      { '/r': answer, '/.well-known/jwks.json': keySet(stranger) },
      async (origin) => {
        assert.equal((await runCli(['verify', `${origin}/r`, '--keys', KEYS])).code, 0);
      },
    );
    assert.deepEqual(asked, ['/r']);
  });

  test('a file with the keys of a URL', async () => {
    await serve({ '/keys': keySet(key) }, async (origin) => {
      assert.equal((await runCli(['verify', file('good.json', jws), '--keys', `${origin}/keys`])).code, 0);
    });
  });

  test('a miss and an endless answer cannot be verified', async () => {
    await serve({ '/huge': ' '.repeat(2 * 1024 * 1024) }, async (origin) => {
      const miss = await runCli(['verify', `${origin}/r`, '--keys', KEYS]);
      assert.deepEqual([miss.code, miss.stderr], [2, `relay: ${origin}/r answered 404\n`]);
      const huge = await runCli(['verify', `${origin}/huge`, '--keys', KEYS]);
      assert.equal(huge.code, 2);
      assert.match(huge.stderr, /over 1 MiB/);
    });
  });
});
