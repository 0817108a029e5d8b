// Events and receipts of every released version stay readable and verifiable. Entries of the fixtures are never
// edited; a new type or version is added, and the digest in FROZEN renewed.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compactVerify, importJWK } from 'jose';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { decisionHash as hashOfDecision } from '#src/domain/decision/approval.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { EVENT_TYPES, EVENTS, type JobEvent } from '#src/domain/events.ts';
import { absentJob, evolveJob } from '#src/domain/job/state.ts';
import { eventChain, isReceiptPayload, parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { verifyConsistencyProof } from '#src/domain/transparency/merkle.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { factsOfJob } from '#test/support/given/given-receipt.ts';
import { primitives } from '#test/support/given/primitives.ts';

const FROZEN = {
  'events-v1.json': 'e4da6d5f028dcf3ddc5c519468ccded8367fb48905fc1c7091dbc2ba2cb27162',
  'events-v3.json': '18c6581e7d52ea040a5788969aa57a6acf4f8c490adfb9dee6bed7a2a340dc9d',
  'events-v2.json': '6417406058be49d8907abed8e7b12255bfdceae6f699d90d8fa409feb949fbb1',
  'receipts-v1.json': '980929dc0cff7c6e2d967e9c4bd36281b56f0cc04040c2a1af2c2024a58629ee',
  'receipts-v2.json': '16f379a02c8f32c49c96d68a336a936047ad96288b2556ca4e4d9580c86ff260',
  'receipts-v3.json': 'aea008eccec44e6f85d468e5b2c08563e9f090366f4f9e39b1fa34ce3a4c9fdd',
  'receipts-v4.json': '2bf3ca843b980da7c1f6c74fd78e0a5963b269cf41d84af5dccd79649f38948e',
};
const bytesOf = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url));

type Line = Omit<RecordedEvent, 'revision'> & { readonly revision: string };
const eventsOf = (version: number) =>
  (JSON.parse(bytesOf(`events-v${version}.json`).toString()) as { events: readonly Line[] }).events;
type ReceiptFixture = {
  readonly receiptId: string;
  readonly jobId: string;
  readonly jws: string;
  readonly jwks: { readonly keys: readonly { readonly kid: string }[] };
  readonly disclosures: readonly string[];
  readonly events: readonly Line[];
};
const receipt = JSON.parse(bytesOf('receipts-v1.json').toString()) as ReceiptFixture;
const logged = JSON.parse(bytesOf('receipts-v2.json').toString()) as ReceiptFixture & {
  readonly proof: string;
  readonly consistency: { readonly checkpoint: string; readonly proof: readonly string[] };
};

const cut = JSON.parse(bytesOf('receipts-v3.json').toString()) as ReceiptFixture;
const scheduled = JSON.parse(bytesOf('receipts-v4.json').toString()) as ReceiptFixture;

for (const [name, digest] of Object.entries(FROZEN)) {
  test(`${name} is frozen`, () => {
    assert.equal(createHash('sha256').update(bytesOf(name)).digest('hex'), digest);
  });
}

test('there is one event of every version of every type', () => {
  const declared = (version: number) => EVENT_TYPES.filter((type) => version in EVENTS[type].versions);
  for (const version of [1, 2, 3])
    assert.deepEqual(
      eventsOf(version).map(({ type }) => type),
      declared(version),
    );
  assert.deepEqual(declared(4), []);
});

/** What version 2 adds to the data of version 1. */
const UPCAST: Readonly<Record<string, object>> = {
  JobStarted: { schedule: null },
  AttemptMade: { reason: null },
  JobCompleted: {},
  PaymentReleased: { reason: 'key_lost' },
  PaymentSettled: { statement: null },
  PaymentRejected: { statement: null },
  SettlementUnknown: { transaction: null },
  PaymentRefunded: { sender: null },
  ChainReconciled: { corrected: 0 },
  RefundBegun: { statement: null },
  RunFunded: { client: null },
};
for (const [type, added] of Object.entries(UPCAST))
  test(`version 1 of ${type} is upcast`, () => {
    const recorded = eventsOf(1).find((event) => event.type === type);
    assert.ok(recorded !== undefined);
    assert.deepEqual(decodeEvent(recorded), { type, data: { ...recorded.data, ...added, v: 2 } });
  });

test('version 1 of PaymentSettled by a used nonce alone was by the facilitator’s answer', () => {
  const recorded = eventsOf(1).find(({ type }) => type === 'PaymentSettled');
  assert.ok(recorded !== undefined);
  const data = { ...recorded.data, evidence: 'nonce_consumed', transaction: null };
  const upcast = { ...data, v: 2, evidence: 'facilitator', statement: null };
  assert.deepEqual(decodeEvent({ ...recorded, data }), { type: 'PaymentSettled', data: upcast });
});

for (const event of [1, 2, 3].flatMap(eventsOf)) {
  if (event.type === 'DecisionRecorded' ? event.data.v !== 3 : event.data.v === 1 && event.type in UPCAST)
    continue;
  test(`version ${event.data.v} of ${event.type} is decoded as it was written`, () => {
    assert.deepEqual(decodeEvent(event), { type: event.type, data: event.data });
  });
}

/** What version 3 adds to the facts of each version before. */
const DECISION_FACTS = {
  1: { measured: true, contentTypeDiffers: false },
  2: { contentTypeDiffers: false },
};
for (const [version, added] of Object.entries(DECISION_FACTS))
  test(`version ${version} of DecisionRecorded is upcast, and stays as recorded`, () => {
    const recorded = eventsOf(Number(version)).find(({ type }) => type === 'DecisionRecorded');
    assert.ok(recorded !== undefined);
    const { facts, ...data } = recorded.data as { facts: object };
    const frozen = structuredClone(recorded);
    assert.deepEqual(decodeEvent(recorded), {
      type: 'DecisionRecorded',
      data: { ...data, v: 3, facts: { ...facts, ...added } },
    });
    assert.deepEqual(recorded, frozen);
  });

test('the hash of a decision is of the event as recorded', () => {
  const recorded = eventsOf(1).find(({ type }) => type === 'DecisionRecorded');
  assert.ok(recorded !== undefined);
  const payload = parseJws(receipt.jws)?.payload as ReceiptPayload;
  assert.equal(hashOfDecision(recorded.data), payload.decisionHash);
});

const recordedOf = ({ events }: ReceiptFixture) =>
  events.map((line) => ({ ...line, revision: BigInt(line.revision) }));

for (const [version, fixture, checks] of [
  [1, receipt, 17],
  [2, logged, 18],
  [3, cut, 17],
  [4, scheduled, 18],
] as const) {
  test(`a receipt of version ${version} verifies in every check`, async () => {
    const keys = fromJwkSet(fixture.jwks) ?? [];
    const recorded = recordedOf(fixture);
    const decoded = recorded.map((event) => decodeEvent(event)) as JobEvent[];
    const job = decoded.reduce(evolveJob, absentJob);
    assert.ok(job.status === 'completed');
    const { jws, receiptId, jobId } = fixture;
    assert.equal(job.receipt?.jws, jws);
    const facts = factsOfJob(
      job,
      recorded.filter(({ type }) => type !== 'ReceiptSigned'),
    );
    const log = 'proof' in fixture ? { proof: fixture.proof, now: 0 } : null;
    const report = await verifySignedReceipt({ jws, receiptId, jobId, keys, job: facts, log }, primitives);
    const failed = report.checks.filter(({ ok }) => !ok);
    assert.deepEqual([failed, report.checks.length], [[], checks]);
    assert.deepEqual([report.ok, report.receiptId, report.jobId], [true, receiptId, jobId]);
    assert.deepEqual(report.checks.find(({ name }) => name === 'payload_version_supported')?.details, {
      supported: [1, 2, 3, 4],
      receipt: version,
    });
    if (log === null) return;
    const details = { pending: false, origin: 'relay.example/receipts', index: 258, size: 300 };
    assert.deepEqual(report.checks.at(-1), { name: 'receipt_logged', ok: true, details });
  });
}

test('version 1 names no transparency log, version 2 always does, 3 is of unknown completeness, 4 of a schedule, and there is no 5', () => {
  const v1 = parseJws(receipt.jws)?.payload as ReceiptPayload;
  const v2 = parseJws(logged.jws)?.payload as ReceiptPayload & { readonly v: 2 };
  const v3 = parseJws(cut.jws)?.payload as ReceiptPayload & { readonly v: 3 };
  const v4 = parseJws(scheduled.jws)?.payload as ReceiptPayload & { readonly v: 4 };
  const known = [v1, v2, v3, { ...v3, log: null }, v4, { ...v4, schedule: null }];
  assert.deepEqual(known.map(isReceiptPayload), Array(6).fill(true));
  const others = [
    { ...v1, log: v2.log },
    { ...v1, v: 2 },
    { ...v2, v: 1 },
    { ...v2, v: 3 },
    { ...v3, v: 2 },
    { ...v3, v: 4 },
    { ...v4, v: 3 },
    { ...v4, v: 5 },
    { ...v3, outcome: { ...v3.outcome, truncated: false } },
    { ...v2, outcome: { ...v2.outcome, truncated: 'unknown' } },
  ];
  assert.deepEqual(others.map(isReceiptPayload), Array(10).fill(false));
});

test('a checkpoint of version 1 that a buyer kept is consistent with a later one', async () => {
  const keys = fromJwkSet(logged.jwks) ?? [];
  const kept = await verifySignedCheckpoint(logged.consistency.checkpoint, keys, primitives);
  const later = await verifySignedCheckpoint(
    parseTlogProof(logged.proof)?.checkpoint ?? '',
    keys,
    primitives,
  );
  assert.ok(kept !== null && later !== null);
  const proof = logged.consistency.proof.map((hash) => new Uint8Array(Buffer.from(hash, 'base64')));
  const claim = { from: kept.size, to: later.size, fromRoot: kept.root, toRoot: later.root, proof };
  assert.deepEqual([claim.from, claim.to], [257, 300]);
  assert.equal(verifyConsistencyProof(claim), true);
});

test('a receipt of version 1 verifies with jose, and its payload is canonical', async () => {
  const [jwk] = receipt.jwks.keys;
  const { payload, protectedHeader } = await compactVerify(receipt.jws, await importJWK({ ...jwk }, 'EdDSA'));
  const text = new TextDecoder().decode(payload);
  assert.equal(canonicalJson(JSON.parse(text)), text);
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', kid: jwk?.kid, typ: 'relay-receipt+jws' });
});

test('the events of version 1 have the chain that the receipt states', async () => {
  const payload = parseJws(receipt.jws)?.payload as ReceiptPayload;
  const upTo = recordedOf(receipt).filter(({ type }) => type !== 'ReceiptSigned');
  assert.deepEqual(payload.stream, {
    id: `job-${receipt.jobId}`,
    revision: String(upTo.length - 1),
    chain: eventChain(upTo),
  });
});

test('the disclosures of version 1 open every commitment of the receipt', () => {
  const payload = parseJws(receipt.jws)?.payload as ReceiptPayload;
  const held = [payload.request, payload.outcome, ...payload.attempts].flatMap(({ _sd }) => _sd);
  const opened = receipt.disclosures.map((text) => createHash('sha256').update(text).digest('base64url'));
  assert.deepEqual([...opened].sort(), [...held].sort());
  const names = receipt.disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString())[1]);
  assert.deepEqual(names.slice(0, 5), [
    'target_url',
    'target_origin',
    'header_names',
    'request_body_sha256',
    'idempotency_key',
  ]);
});
