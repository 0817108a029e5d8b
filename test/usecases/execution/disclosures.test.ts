import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import { normaliseRequest } from '#src/domain/job/webhook-request.ts';
import { discloseAttempt, discloseRequest, discloseResponse } from '#src/usecases/execution/disclosures.ts';
import { JOB_ID } from '#test/support/given/given-events.ts';
import { hashWith } from '#test/support/given/primitives.ts';
import { succeeding } from '#test/support/world/fakes.ts';

const deps = { keyedHash: hashWith('s') };
const target = { href: 'https://hook.example/secret', origin: 'https://hook.example' };
const request = normaliseRequest(
  { url: target.href, headers: { 'X-B': '1', a: '2' }, idempotencyKey: 'k1' },
  target.href,
);
const opened = ({ text }: { readonly text: string }) => JSON.parse(Buffer.from(text, 'base64url').toString());
const sha256 = (text: string) => createHash('sha256').update(text);

test('a request opens to its fixed names: url, origin, sorted header names, body hash, key', async () => {
  const { disclosures } = discloseRequest(deps, JOB_ID, request, target, Buffer.from('{"a":1}'));
  assert.deepEqual(
    disclosures.map((disclosure) => opened(disclosure).slice(1)),
    [
      ['target_url', target.href],
      ['target_origin', target.origin],
      ['header_names', ['a', 'x-b']],
      ['request_body_sha256', sha256('{"a":1}').digest('hex')],
      ['idempotency_key', 'k1'],
    ],
  );
});

test('the commitments are the digests of the disclosures; without a key there is none', async () => {
  const { commitments, disclosures } = discloseRequest(
    deps,
    JOB_ID,
    { ...request, idempotencyKey: null },
    target,
    null,
  );
  const digests = disclosures.map(({ text }) => sha256(text).digest('base64url'));
  assert.deepEqual(Object.values(commitments), [...digests, null]);
  assert.equal(opened(disclosures[3] ?? { text: '' })[2], sha256('').digest('hex'));
});

test('each salt is 128 bits of the keyed hash of job and name: a replay discloses the same, no one can guess it', async () => {
  const { disclosures } = discloseRequest(deps, JOB_ID, request, target, null);
  for (const disclosure of disclosures) {
    const [salt, name] = opened(disclosure);
    const mac = createHmac('sha256', 's').update(`commitment-salt\0${JOB_ID}\0${name}`).digest();
    assert.equal(salt, mac.subarray(0, 16).toString('base64url'));
  }
  assert.deepEqual(discloseRequest(deps, JOB_ID, request, target, null).disclosures, disclosures);
  const others = [
    discloseRequest({ ...deps, keyedHash: hashWith('t') }, JOB_ID, request, target, null),
    discloseRequest(deps, 'job_other', request, target, null),
  ];
  const all = [disclosures, ...others.map((other) => other.disclosures)]
    .flat()
    .map(({ commitment }) => commitment);
  assert.equal(new Set(all).size, 15);
});

test('an attempt and a response open to what was seen, and to nothing that was not', async () => {
  const report = succeeding();
  const seen = discloseAttempt(deps, JOB_ID, 2, report);
  assert.deepEqual(
    seen.disclosures.map((disclosure) => opened(disclosure).slice(1)),
    [
      ['attempt_2_leaf_sha256', report.leafSha256],
      ['attempt_2_address', report.address],
    ],
  );
  assert.deepEqual(
    Object.values(seen.commitments),
    seen.disclosures.map(({ commitment }) => commitment),
  );
  const blind = discloseAttempt(deps, JOB_ID, 1, succeeding({ leafSha256: null, address: null }));
  assert.deepEqual(blind, {
    commitments: { leafCommitment: null, addressCommitment: null },
    disclosures: [],
  });
  const response = discloseResponse(deps, JOB_ID, report);
  assert.deepEqual(
    response.disclosures.map((disclosure) => opened(disclosure).slice(1)),
    [['response_body_sha256', report.responseBodySha256]],
  );
  assert.equal(response.facts.responseCommitment, response.disclosures[0]?.commitment);
  const none = discloseResponse(deps, JOB_ID, succeeding({ responseBytes: null, responseBodySha256: null }));
  assert.deepEqual(none, {
    facts: { responseBytes: null, truncated: false, responseCommitment: null },
    disclosures: [],
  });
});
