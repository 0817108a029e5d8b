// The headers that the service adds to the caller's, and how the target can verify them.
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import {
  buildOutboundHeaders,
  type CallFacts,
  isOwnLoop,
  judgeHeaders,
} from '#src/domain/destination/headers.ts';

const keys = generateKeyPairSync('ed25519');
const signBytes = (message: Uint8Array) =>
  Promise.resolve(new Uint8Array(sign(null, message, keys.privateKey)));

const call: CallFacts = {
  jobId: 'job_1',
  baseUrl: 'https://relay.example.com',
  pseudonym: 'relay.example.com',
  timestampSeconds: 1_700_000_000,
  body: new TextEncoder().encode('{"é":1}'),
};

async function build(headers: Record<string, string>, over: Partial<CallFacts> = {}) {
  const judged = judgeHeaders(headers);
  assert.ok(!('refused' in judged));
  const pairs = await buildOutboundHeaders(judged, { ...call, ...over }, signBytes);
  assert.equal(new Set(pairs.map(([name]) => name)).size, pairs.length);
  return pairs;
}

test('a request without headers gets the service’s headers, in order', async () => {
  const pairs = await build({ 'X-A': '1' });
  assert.deepEqual(pairs.slice(0, -1), [
    ['x-a', '1'],
    ['content-type', 'application/json'],
    ['idempotency-key', 'job_1'],
    ['user-agent', 'webhook-relay/0.1.0 (+https://relay.example.com)'],
    ['via', '1.1 relay.example.com'],
    ['accept-encoding', 'identity'],
    ['webhook-id', 'job_1'],
    ['webhook-timestamp', '1700000000'],
  ]);
});

test('webhook-signature is Ed25519 over id, timestamp and the exact body (Standard Webhooks)', async () => {
  for (const body of [call.body, null]) {
    const [name, value] = (await build({}, { body })).at(-1) ?? [];
    assert.equal(name, 'webhook-signature');
    const [version, text = ''] = (value ?? '').split(',');
    assert.equal(version, 'v1a');
    assert.match(text, /^[A-Za-z0-9+/]{86}==$/);
    const signed = Buffer.concat([Buffer.from('job_1.1700000000.'), body ?? Buffer.alloc(0)]);
    assert.ok(verify(null, signed, keys.publicKey, Buffer.from(text, 'base64')));
  }
});

test('the caller’s content type and idempotency key are kept, and not repeated', async () => {
  const pairs = new Map(await build({ 'Content-Type': 'text/plain', 'Idempotency-Key': 'mine' }));
  assert.equal(pairs.get('content-type'), 'text/plain');
  assert.equal(pairs.get('idempotency-key'), 'mine');
});

test('a complete signature of the caller is forwarded, an incomplete one is replaced', async () => {
  const trio = { 'webhook-id': 'i', 'webhook-timestamp': '1', 'webhook-signature': 'v1,s' };
  const theirs = new Map(await build(trio));
  assert.deepEqual([theirs.get('webhook-id'), theirs.get('webhook-signature')], ['i', 'v1,s']);
  const ours = new Map(await build({ 'webhook-id': 'i', 'webhook-signature': 'v1,s' }));
  assert.equal(ours.get('webhook-id'), 'job_1');
  assert.match(ours.get('webhook-signature') ?? '', /^v1a,/);
});

test('without a body no content type is added', async () => {
  assert.equal(new Map(await build({}, { body: null })).has('content-type'), false);
});

test('user-agent, via and accept-encoding are always the service’s', async () => {
  const pairs = new Map(await build({ 'User-Agent': 'curl', Via: '1.1 x', 'Accept-Encoding': 'gzip' }));
  assert.match(pairs.get('user-agent') ?? '', /^webhook-relay\//);
  assert.equal(pairs.get('via'), '1.1 relay.example.com');
  assert.equal(pairs.get('accept-encoding'), 'identity');
});

test('relay_loop: the relay’s own Via entry is found among others, and nothing else matches', () => {
  const own = 'relay.example.com';
  for (const via of [
    '1.1 relay.example.com',
    '1.1 RELAY.example.com',
    '2 cdn.example, 1.1 relay.example.com (webhook-relay), 1.0 fred',
    'HTTP/1.1 relay.example.com',
    '1.1\trelay.example.com',
  ]) {
    assert.equal(isOwnLoop(via, own), true, via);
  }
  for (const via of [
    null,
    '',
    '1.1 other.example.com',
    '1.1 relay.example.com:8443',
    '1.1 fred (relay.example.com)',
  ]) {
    assert.equal(isOwnLoop(via, own), false, String(via));
  }
});

test('the Via that is sent is recognised as own', async () => {
  const via = new Map(await build({})).get('via') ?? null;
  assert.equal(isOwnLoop(via, call.pseudonym), true);
});
