// What a decision is bound to: the whole action under a secret, and its own data as anyone can hash it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { actionHash, decisionHash, policyHash } from '#src/domain/decision/approval.ts';
import { type BuyerPolicyRequest, normalisePolicy } from '#src/domain/decision/requests.ts';
import { normaliseRequest, type WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { plainAction } from '#test/support/given/given-decision.ts';
import { decisionRecorded } from '#test/support/given/given-events.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const keyed = hashWith('a secret');
const hashOf = (action: WebhookRequest, by = keyed) => actionHash(normaliseRequest(action, action.url), by);

test('an absent body, null, false, 0 and "" are five actions', () => {
  const bodies = [undefined, null, false, 0, ''];
  const hashes = bodies.map((body) => {
    const { body: _, ...rest } = plainAction();
    return hashOf(body === undefined ? rest : { ...rest, body });
  });
  assert.equal(new Set(hashes).size, bodies.length);
  for (const hash of hashes) assert.match(hash, /^[0-9a-f]{64}$/);
});

test('every field of an action counts in its hash', () => {
  const action = plainAction();
  const hashes = [
    {},
    { url: `${action.url}2` },
    { method: 'PATCH' } as const,
    { headers: { ...action.headers, host: 'stripped' } },
    { body: { text: 1 } },
    { idempotencyKey: 'k2' },
    { idempotencyKey: undefined },
    { retry: { attempts: 2 } },
    { retry: { backoffMs: 0 } },
    { timeoutMs: 5000 },
  ].map((changes) => hashOf(plainAction({ ...action, ...changes })));
  assert.equal(new Set(hashes).size, hashes.length);
});

test('an action hash is keyed: who has not the secret cannot guess the action from it', () => {
  assert.notEqual(hashOf(plainAction()), hashOf(plainAction(), hashWith('another secret')));
});

test('an action hash is no fingerprint: under the same secret its label keeps the two apart', () => {
  const labels: string[] = [];
  const noting = {
    mac(label: string, text: string) {
      labels.push(label);
      return keyed.mac(label, text);
    },
  };
  hashOf(plainAction(), noting);
  assert.deepEqual(labels, ['action']);
});

test('the policy is hashed in its normal form: defaults spelled out or not', () => {
  const spelled = {
    requireReceipt: true,
    requirePolicyPass: true,
    requireIdempotencyKey: true,
    minTrustScore: 55,
  };
  const hash = policyHash(normalisePolicy({}));
  assert.equal(policyHash(normalisePolicy(spelled)), hash);
  const text =
    '{"allowedNetworks":null,"maxPriceUsd":null,"minTrustScore":55,"requireIdempotencyKey":true,"requirePolicyPass":true,"requireReceipt":true}';
  assert.equal(hash, createHash('sha256').update(text).digest('hex'));
});

for (const [field, changes] of [
  ['maxPriceUsd', { maxPriceUsd: '1' }],
  ['requireReceipt', { requireReceipt: false }],
  ['requirePolicyPass', { requirePolicyPass: false }],
  ['requireIdempotencyKey', { requireIdempotencyKey: false }],
  ['minTrustScore', { minTrustScore: 0 }],
  ['allowedNetworks', { allowedNetworks: [] }],
] as [string, BuyerPolicyRequest][]) {
  test(`another ${field} is another policy`, () => {
    assert.notEqual(policyHash(normalisePolicy(changes)), policyHash(normalisePolicy({})));
  });
}

test('the hash of the released decision never changes', () => {
  const { events } = JSON.parse(readFileSync(`${rootPath}/test/fixtures/events-v1.json`, 'utf8'));
  const [released] = events.filter(({ type }: { type: string }) => type === 'DecisionRecorded');
  // By another implementation: Python's json.dumps with sort_keys and no white space.
  const hash = '607ca937b3bfa4a33ca89905b6c27f59ac99b6c3edae1eb0c4b598be655f86fe';
  assert.equal(decisionHash(released.data), hash);
});

test('every field of a decision counts in its hash; the order of its names does not', () => {
  const { data } = decisionRecorded();
  const hash = decisionHash(data);
  assert.equal(decisionHash(Object.fromEntries(Object.entries(data).reverse())), hash);
  for (const name of Object.keys(data))
    assert.notEqual(decisionHash({ ...data, [name]: 'other' }), hash, name);
});
