// The catalogue of errors, and the codes in the interface description: all from the tables that answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownCodeOr } from '#src/adapters/payments/facilitator.ts';
import { FAILURE_REASON_NAMES } from '#src/domain/failure-reasons.ts';
import { PAYMENT_REASONS } from '#src/domain/payment/reasons.ts';
import { STATUS } from '#src/http/response/errors.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

type Catalogue = {
  readonly errors: readonly { readonly code: string; readonly status: number; readonly charged: string }[];
  readonly attemptReasons: readonly Readonly<Record<'reason' | 'meaning' | 'action', string>>[];
  readonly paymentReasons: readonly { readonly reason: string; readonly from: string }[];
};

const client = clientOf(fakeWorld());
const catalogue = async () => (await client.get('/api/errors')).body as Catalogue;

test('every code is listed once, with the status of its answers', async () => {
  const { errors } = await catalogue();
  assert.deepEqual(Object.fromEntries(errors.map(({ code, status }) => [code, status])), STATUS);
  assert.equal(new Set(errors.map(({ code }) => code)).size, errors.length);
});

test('what is charged agrees with the pricing', async () => {
  const { errors } = await catalogue();
  const { charges } = (await client.get('/api/pricing')).body as {
    charges: { statuses: number[]; codes: string[]; charged: string }[];
  };
  for (const { code, status, charged } of errors) {
    const priced = charges.find(
      ({ statuses, codes }) => statuses.includes(status) && (codes.length === 0 || codes.includes(code)),
    );
    // Statuses of reads only are not priced.
    if (priced !== undefined) assert.equal(charged, priced.charged, code);
  }
});

test('every reason of a 402 is listed once: of this relay, and what it passes on from facilitators', async () => {
  const { paymentReasons } = await catalogue();
  const names = paymentReasons.map(({ reason }) => reason);
  assert.equal(new Set(names).size, names.length);
  for (const reason of Object.keys(PAYMENT_REASONS)) assert.ok(names.includes(reason), reason);
  for (const { reason, from } of paymentReasons)
    if (from === 'facilitator') assert.equal(knownCodeOr(reason, 'invalid'), reason);
});

test('every reason of a failed attempt is listed, with a category and what mends it', async () => {
  const { attemptReasons } = await catalogue();
  assert.deepEqual(
    attemptReasons.map(({ reason }) => reason),
    FAILURE_REASON_NAMES,
  );
  for (const { meaning, action } of attemptReasons) assert.ok(meaning.length > 0 && action.length > 0);
});

test('the interface description lists the codes as an enum', async () => {
  const text = JSON.stringify(await client.document());
  assert.ok(text.includes(`"enum":${JSON.stringify(Object.keys(STATUS))}`));
});
