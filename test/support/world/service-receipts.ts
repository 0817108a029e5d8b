// What a caller does with its receipt when it does not trust the service: verifies it from saved files, opens it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { isReceiptPayload, parseJws, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { fromJwkSet } from '#src/domain/signing-keys/keys.ts';
import { primitives } from '#test/support/given/primitives.ts';

/** Names of the checks on a receipt alone, in the order of the report. */
export const RECEIPT_CHECKS = [
  'receipt_present',
  'signature_valid',
  'key_valid_at_issue',
  'payload_version_supported',
  'payload_job_id',
  'request_commitment_present',
  'response_commitment_present',
] as const;

/** Names of all checks, where the job is retained. */
export const ALL_CHECKS = [
  ...RECEIPT_CHECKS,
  'job_present',
  'receipt_links_job',
  'job_links_receipt',
  'status_matches',
  'method_matches',
  'target_matches',
  'attempts_match',
  'decision_matches',
  'payment_matches',
  'event_chain_matches',
] as const;

/** With a transparency log, as every service begins one. */
export const SERVED_CHECKS = [...ALL_CHECKS, 'receipt_logged'] as const;

export function payloadOf(jws: string): ReceiptPayload {
  const payload = parseJws(jws)?.payload;
  assert.ok(isReceiptPayload(payload), 'the JWS carries a receipt');
  return payload;
}

/** The sends of one attempt of which nothing is known. */
export const UNKNOWN_SENDS = { least: 0, most: 1 };

/** How often the target can have got the requests of a call, by its receipt: at least, and at most. */
export function sendsRecorded(jws: string): typeof UNKNOWN_SENDS {
  const sends = payloadOf(jws).attempts.map(({ sent }) => sent);
  const yes = sends.filter((sent) => sent === 'yes').length;
  return { least: yes, most: yes + sends.filter((sent) => sent === 'maybe').length };
}

/** By the one verifier, and by jose, which knows nothing of this project. */
export async function assertVerifiesOffline(jws: string, jwks: unknown): Promise<void> {
  const keys = fromJwkSet(jwks);
  assert.ok(keys);
  const facts = { jws, receiptId: null, jobId: null, keys, job: null, log: null };
  const { ok, signatureVerified, checks } = await verifySignedReceipt(facts, primitives);
  assert.deepEqual(
    checks.map((check) => [check.name, check.ok]),
    RECEIPT_CHECKS.map((name) => [name, true]),
  );
  assert.deepEqual([ok, signatureVerified], [true, true]);
  const { protectedHeader } = await compactVerify(jws, createLocalJWKSet(jwks as JSONWebKeySet), {
    algorithms: ['EdDSA'],
  });
  assert.equal(protectedHeader.typ, 'relay-receipt+jws');
}

/** Name to value of every disclosure, where each opens one commitment of the receipt and all are opened. */
export function openAll(payload: ReceiptPayload, disclosures: readonly string[]): Map<string, unknown> {
  const committed = [
    ...payload.request._sd,
    ...payload.attempts.flatMap((attempt) => attempt._sd),
    ...payload.outcome._sd,
  ];
  assert.deepEqual(disclosures.map(commitmentOf).sort(), committed.sort());
  return opened(disclosures);
}

export const commitmentOf = (disclosure: string): string =>
  createHash('sha256').update(disclosure).digest('base64url');

export function opened(disclosures: readonly string[]): Map<string, unknown> {
  return new Map(
    disclosures.map((text) => {
      const [salt, name, value] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      assert.equal(Buffer.from(salt, 'base64url').length, 16);
      return [name, value];
    }),
  );
}
