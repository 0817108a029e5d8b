import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReceiptPayload, parseJws, receiptAttempt } from '#src/domain/receipt/payload.ts';
import { attemptSucceeded, commitment, jobCompleted, jobStarted } from '#test/support/given/given-events.ts';
import { JOB_EVENTS, payloadOf } from '#test/support/given/given-receipt.ts';

test('the receipt of a job states exactly what its events state', async () => {
  const payload = await payloadOf([jobStarted(), attemptSucceeded(), jobCompleted()]);
  assert.deepEqual(payload, {
    v: 1,
    receiptId: 'rcpt_0000000000000000000000000c',
    jobId: 'job_0000000000000000000000000a',
    decisionId: null,
    decisionHash: null,
    iat: 1767323045,
    mode: 'demo',
    payment: null,
    request: { method: 'POST', _sd: ['B', 'H', 'K', 'O', 'U'].map(commitment) },
    attempts: [
      {
        n: 1,
        startedAt: '2026-01-02T03:04:05.030Z',
        endedAt: '2026-01-02T03:04:05.040Z',
        phase: 'body',
        sent: 'yes',
        outcome: 'succeeded',
        status: 200,
        errorCategory: null,
        tlsVersion: 'TLSv1.3',
        _sd: ['A', 'L'].map(commitment),
      },
    ],
    outcome: {
      status: 'succeeded',
      responseStatus: 200,
      errorCategory: null,
      responseBytes: 2,
      truncated: false,
      _sd: [commitment('R')],
    },
    stream: payload.stream,
  });
  assert.deepEqual([payload.stream.id, payload.stream.revision], ['job-job_0000000000000000000000000a', '2']);
});

test('commitments are sorted, so that their order reveals nothing', () => {
  const swapped = attemptSucceeded({ leafCommitment: commitment('A'), addressCommitment: commitment('L') });
  assert.deepEqual(receiptAttempt(swapped.data), receiptAttempt(attemptSucceeded().data));
});

test('no commitment for a missing key, response or address', async () => {
  const [started] = [jobStarted()];
  const commitments = { ...started.data.commitments, idempotency_key: null };
  const blind = attemptSucceeded({ leafCommitment: null, addressCommitment: null });
  const payload = await payloadOf([
    jobStarted({ commitments }),
    blind,
    jobCompleted({ responseCommitment: null, responseBytes: null }),
  ]);
  assert.deepEqual([payload.request._sd.length, payload.attempts[0]?._sd, payload.outcome._sd], [4, [], []]);
});

test('an exemption is named where there was one, and only there', async () => {
  const [first, second] = (await payloadOf()).attempts;
  assert.deepEqual([first && 'exempted' in first, second?.exempted], [false, true]);
});

test('the receipt contains payment, decision and the decision’s hash', async () => {
  const [started] = JOB_EVENTS;
  assert.ok(started?.type === 'JobStarted');
  const { payment, decisionId, decisionHash, mode } = await payloadOf();
  const { data } = started;
  assert.deepEqual(
    [payment, decisionId, decisionHash, mode],
    [data.payment, data.decisionId, data.decisionHash, 'x402'],
  );
});

test('every payload fits its schema; nothing else is a payload', async () => {
  assert.equal(isReceiptPayload(await payloadOf()), true);
  for (const value of [null, [], {}, { ...(await payloadOf()), log: {} }])
    assert.equal(isReceiptPayload(value), false);
});

test('a header that is no object is no JWS', () => {
  const part = (text: string) => Buffer.from(text).toString('base64url');
  for (const head of ['null', '7', '"x"', 'true', ''])
    assert.equal(parseJws(`${part(head)}.${part('{}')}.AAAA`), null, head);
  assert.notEqual(parseJws(`${part('{}')}.${part('{}')}.AAAA`), null);
});
