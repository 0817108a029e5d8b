// Old events and receipts verify forever: what was released once is read as it stands, and nobody edits it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compactVerify, importJWK } from 'jose';
import { canonicalJson } from '#src/domain/canonical-json.ts';
import { decodeEvent, type RecordedEvent } from '#src/domain/event-codec.ts';
import { EVENT_SCHEMAS, type JobEvent } from '#src/domain/events.ts';
import { absentJob, evolveJob } from '#src/domain/job/state.ts';
import { eventChain } from '#src/domain/receipt/chain.ts';
import { parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { verifyReceipt } from '#src/domain/receipt/verify.ts';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { verifyCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { verifyConsistency } from '#src/domain/transparency/merkle.ts';
import { parseTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { primitives } from '#test/support/primitives.ts';

const FROZEN = {
  'events-v1.json': '39b063fdf8e820d4767de06a132a0fff1db189ee4e9587c2b20adfa513b5bba4',
  'logged-receipt-v1.json': 'f51a79cb3ba224d167335a59025154cd829884163ae6f55bfa6ec3d2974b6da8',
  'receipts-v1.json': '980929dc0cff7c6e2d967e9c4bd36281b56f0cc04040c2a1af2c2024a58629ee',
};
const bytesOf = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url));

type Line = Omit<RecordedEvent, 'revision'> & { readonly revision: string };
const { events } = JSON.parse(bytesOf('events-v1.json').toString()) as { events: readonly Line[] };
type ReceiptFixture = {
  readonly receiptId: string;
  readonly jobId: string;
  readonly jws: string;
  readonly jwks: { readonly keys: readonly { readonly kid: string }[] };
  readonly disclosures: readonly string[];
  readonly events: readonly Line[];
};
const receipt = JSON.parse(bytesOf('receipts-v1.json').toString()) as ReceiptFixture;
const logged = JSON.parse(bytesOf('logged-receipt-v1.json').toString()) as ReceiptFixture & {
  readonly proof: string;
  readonly consistency: { readonly checkpoint: string; readonly proof: readonly string[] };
};
const recorded = receipt.events.map((line) => ({ ...line, revision: BigInt(line.revision) }));

for (const [name, digest] of Object.entries(FROZEN)) {
  test(`${name} is frozen`, () => {
    assert.equal(createHash('sha256').update(bytesOf(name)).digest('hex'), digest);
  });
}

test('version 1: one event of every type, and no type is missing', () => {
  assert.deepEqual(
    events.map(({ type }) => type),
    Object.keys(EVENT_SCHEMAS),
  );
});

for (const event of events) {
  test(`version 1 of ${event.type} is read as it was written`, () => {
    assert.deepEqual(decodeEvent(event), { type: event.type, data: event.data });
  });
}

test('a receipt of version 1 verifies in every check', async () => {
  const keys = fromJwkSet(receipt.jwks);
  assert.ok(keys !== null && keys.length === 1);
  const decoded = recorded.map((event) => decodeEvent(event)) as JobEvent[];
  const job = decoded.reduce(evolveJob, absentJob);
  assert.ok(job.status === 'completed');
  const { jws, receiptId, jobId } = receipt;
  const { started, completed } = job;
  assert.equal(job.receipt?.jws, jws);
  const facts = {
    jobId: started.jobId,
    receiptId: job.receipt?.receiptId ?? null,
    status: completed.status,
    responseStatus: completed.responseStatus,
    method: started.method,
    attempts: completed.attempts,
    decisionId: started.decisionId,
    targetCommitment: started.commitments.target_url,
    payment: started.payment,
    events: recorded.filter(({ type }) => type !== 'ReceiptSigned'),
  };
  const report = await verifyReceipt({ jws, receiptId, jobId, keys, job: facts, log: null }, primitives);
  assert.deepEqual(
    report.checks.filter(({ ok }) => !ok),
    [],
  );
  assert.equal(report.checks.length, 17);
  assert.deepEqual([report.ok, report.receiptId, report.jobId], [true, receiptId, jobId]);
});

test('a receipt that names the transparency log verifies by its proof of version 1', async () => {
  const keys = fromJwkSet(logged.jwks);
  assert.ok(keys !== null && keys.length === 2);
  const { jws, receiptId, jobId, proof } = logged;
  const log = { proof, now: 0 };
  const report = await verifyReceipt({ jws, receiptId, jobId, keys, job: null, log }, primitives);
  assert.equal(report.ok, true);
  assert.deepEqual(report.checks.at(-1), {
    name: 'receipt_logged',
    ok: true,
    details: { pending: false, origin: 'relay.example/receipts', index: 258, size: 300 },
  });
});

test('a checkpoint of version 1 that a buyer kept is consistent with a later one', async () => {
  const keys = fromJwkSet(logged.jwks) ?? [];
  const kept = await verifyCheckpoint(logged.consistency.checkpoint, keys, primitives);
  const later = await verifyCheckpoint(parseTlogProof(logged.proof)?.checkpoint ?? '', keys, primitives);
  assert.ok(kept !== null && later !== null);
  const proof = logged.consistency.proof.map((hash) => new Uint8Array(Buffer.from(hash, 'base64')));
  const claim = { from: kept.size, to: later.size, fromRoot: kept.root, toRoot: later.root, proof };
  assert.deepEqual([claim.from, claim.to], [257, 300]);
  assert.equal(verifyConsistency(claim), true);
});

test('a receipt of version 1 verifies with jose, and its payload is canonical', async () => {
  const [jwk] = receipt.jwks.keys;
  const { payload, protectedHeader } = await compactVerify(receipt.jws, await importJWK({ ...jwk }, 'EdDSA'));
  const text = new TextDecoder().decode(payload);
  assert.equal(canonicalJson(JSON.parse(text)), text);
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', kid: jwk?.kid, typ: 'relay-receipt+jws' });
});

test('the events of version 1 chain to what the receipt says', async () => {
  const payload = parseJws(receipt.jws)?.payload as ReceiptPayload;
  const upTo = recorded.filter(({ type }) => type !== 'ReceiptSigned');
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
