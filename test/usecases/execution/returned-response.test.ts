// The answer of the target: the caller whose call is sent gets it if it asks; no event, no log line and no replay has it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { TargetResponse } from '#src/ports/outbound.ts';
import { type CallChanges, execute } from '#test/support/given/given-call.ts';
import { failing, letPass, succeeding } from '#test/support/world/fakes.ts';
import { world } from '#test/support/world/fakes-world.ts';

const CANARY = 'a canary of the target';

/** As the adapter reports it. */
function returned(status: number, text: string) {
  const body = Buffer.from(text);
  const headers = { 'content-type': `text/${text.replaceAll(' ', '-')}` };
  const response: TargetResponse = { status, headers, body, truncated: false };
  const responseBodySha256 = createHash('sha256').update(body).digest('hex');
  return { status, responseBytes: body.length, responseBodySha256, response };
}

async function executed(it: ReturnType<typeof world>, changes: CallChanges = {}) {
  const answer = await letPass(it.clock, execute(it, changes));
  assert.ok(answer.kind !== 'refused');
  return answer.execution;
}

const storedIn = (it: ReturnType<typeof world>): string =>
  JSON.stringify([
    it.log.events.map(({ stream, data, metadata }) => [stream, data, metadata]),
    it.logger.lines,
  ]);

test('the last attempt’s answer is returned, once, and opens the receipt; a replay that asks has none', async () => {
  const it = world();
  it.outbound.script(failing(returned(503, 'come later')), succeeding(returned(200, CANARY)));
  const asks = { returnsResponse: true, request: { retry: { attempts: 2, backoffMs: 0 } } } as const;
  const first = await executed(it, asks);
  assert.deepEqual(
    it.outbound.sent.map(({ keepsResponse }) => keepsResponse),
    [true, true],
  );
  const { response } = first;
  assert.deepEqual(
    [first.replay, response?.status, Buffer.from(response?.body ?? []).toString()],
    [false, 200, CANARY],
  );
  const opened = first.disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()));
  const [, , hash] = opened.find(([, name]) => name === 'response_body_sha256') ?? assert.fail();
  assert.equal(
    hash,
    createHash('sha256')
      .update(response?.body ?? '')
      .digest('hex'),
  );
  const again = await executed(it, asks);
  assert.deepEqual([again.replay, again.response, it.outbound.sent.length], [true, null, 2]);
  assert.doesNotMatch(storedIn(it), /canary|come.later/);
});

test('a target that fails: its answer is returned too', async () => {
  const it = world();
  it.outbound.script(failing(returned(500, CANARY)));
  const { job, response } = await executed(it, { returnsResponse: true });
  assert.deepEqual([job.status, response?.status], ['failed', 500]);
});

test('a caller that does not ask: nothing is kept, and the repeat that asks gets nothing', async () => {
  const it = world();
  const first = await executed(it);
  assert.deepEqual([first.response, it.outbound.sent[0]?.keepsResponse], [null, false]);
  const again = await executed(it, { returnsResponse: true });
  assert.deepEqual([again.replay, again.response, it.outbound.sent.length], [true, null, 1]);
});

test('asking is no part of the request: one that asks and one that does not are the same, and share a job', async () => {
  const it = world();
  const first = await executed(it, { returnsResponse: true });
  const again = await executed(it);
  assert.deepEqual([again.replay, again.job.id], [true, first.job.id]);
});
