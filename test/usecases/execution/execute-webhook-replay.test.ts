// What a repeat gets: the stored result, and the disclosures of the request that it has just sent again.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Execution } from '#src/usecases/execution/execution-call.ts';
import { type CallChanges, DEMO, execute, lookupOf } from '#test/support/given/given-call.ts';
import {
  attemptSucceeded,
  JOB_ID,
  jobCompleted,
  jobStarted,
  keyClaimed,
} from '#test/support/given/given-events.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { given, world } from '#test/support/world/fakes-world.ts';

async function executed(it: ReturnType<typeof world>, changes: CallChanges = {}): Promise<Execution> {
  const answer = await execute(it, changes);
  assert.ok(answer.kind !== 'refused');
  return answer.execution;
}
const namesOf = ({ disclosures }: Execution) =>
  disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString())[1]);

/** Every disclosure opens a commitment of the receipt. */
function assertOpens({ disclosures, receipt }: Execution): void {
  const payload = parseJws(receipt.jws)?.payload as ReceiptPayload;
  const committed = [
    ...payload.request._sd,
    ...payload.attempts.flatMap(({ _sd }) => _sd),
    ...payload.outcome._sd,
  ];
  for (const text of disclosures)
    assert.ok(committed.includes(createHash('sha256').update(text).digest('base64url')));
}

const REQUEST = ['target_url', 'target_origin', 'header_names', 'request_body_sha256', 'idempotency_key'];
const RESPONSE = ['attempt_1_leaf_sha256', 'attempt_1_address', 'response_body_sha256'];

test('the first answer opens request and response; a replay repeats those of the request only, and both open the receipt', async () => {
  const it = world();
  const first = await executed(it);
  assert.deepEqual([first.replay, namesOf(first)], [false, [...REQUEST, ...RESPONSE]]);
  assertOpens(first);
  const again = await executed(it);
  assert.deepEqual([again.replay, namesOf(again)], [true, REQUEST]);
  assert.deepEqual(again.disclosures, first.disclosures.slice(0, REQUEST.length));
  assertOpens(again);
});

test('a replay is the stored result in every field but its own mark and what only the first could see', async () => {
  const it = world();
  const { replay, disclosures, ...first } = await executed(it);
  const { replay: replayed, disclosures: repeated, ...again } = await executed(world(it.common));
  assert.deepEqual(again, first);
  assert.deepEqual([replay, replayed], [false, true]);
  assert.ok(disclosures.length > repeated.length);
});

test('the body’s keys in another order are the same request, yet other bytes: the replay opens no body that was not sent', async () => {
  const it = world();
  await executed(it, { request: { body: { a: 1, b: 2 } } });
  const again = await executed(it, { request: { body: { b: 2, a: 1 } } });
  assert.equal(again.replay, true);
  assert.deepEqual(
    namesOf(again),
    REQUEST.filter((name) => name !== 'request_body_sha256'),
  );
  assertOpens(again);
});

test('without body and key: the absent body is opened, a key is not', async () => {
  const it = world();
  const request = { body: undefined };
  const first = await executed(it, { key: null, request });
  assert.equal(it.outbound.sent[0]?.body, null);
  assertOpens(first);
  const again = await executed(it, { key: null, request });
  assert.deepEqual(namesOf(again), REQUEST.slice(0, 4));
  assertOpens(again);
});

test('a completed job without its receipt, which no log allows, is a fault of ours and not an answer', async () => {
  const it = world();
  const { claimStream, fingerprint } = lookupOf(DEMO);
  await given(it, claimStream ?? '', keyClaimed({ paymentStream: null, fingerprint }));
  await given(it, `job-${JOB_ID}`, jobStarted(), attemptSucceeded(), jobCompleted());
  await assert.rejects(execute(it, DEMO), /has its receipt in the same append/);
});

test('a message signature is added to each request, and changes neither receipt nor disclosures', async () => {
  const key = testKey();
  const plain = world();
  const signing = world(undefined, { agentSigner: { current: () => key } });
  const [before, after] = [await executed(plain), await executed(signing)];
  const [sent] = signing.outbound.sent;
  const names = sent?.headers.map(([name]) => name) ?? [];
  const own = ['content-digest', 'signature-agent', 'signature-input', 'signature'];
  assert.deepEqual(names.slice(-4), own);
  assert.deepEqual(
    names.slice(0, -4),
    plain.outbound.sent[0]?.headers.map(([name]) => name),
  );
  assert.match(
    sent?.headers.at(-2)?.[1] ?? '',
    new RegExp(`;keyid="${key.keyId}";alg="ed25519";nonce="[^"]{88}";`),
  );
  assert.deepEqual(namesOf(after), namesOf(before));
  assert.ok(
    after.disclosures.every((text) => !own.some((name) => Buffer.from(text, 'base64url').includes(name))),
  );
});
