// The limits of a witness's HTTP interface, by a clock that the test moves: how slow a body may be, and how often a client may ask.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WITNESS_SERVER_LIMITS } from '#src/domain/transparency/witness.ts';
import { witnessApp } from '#src/http/witness.ts';
import type { AddCheckpoint, Witness } from '#src/usecases/witness/add-checkpoint.ts';
import { collectingLogger, letPass, manualClock } from '#test/support/world/fakes.ts';

const witness: Witness = {
  addCheckpoint: async () => ({ kind: 'cosigned', lines: '— w AAAAAAAA\n' }),
  findCheckpoint: async () => null,
};
const hash = 'ab'.repeat(32);

test('a body that takes longer than 5 s is answered with 408, and the connection is closed', async () => {
  const clock = manualClock();
  const app = witnessApp(witness, { clock, logger: collectingLogger() });
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('old 0')),
  });
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
  const request = new Request('http://w.example/add-checkpoint', init);
  const from = clock.monotonic();
  const answer = await letPass(clock, app(request, { clientAddress: '192.0.2.1' }));
  assert.deepEqual([answer.status, answer.headers.get('connection')], [408, 'close']);
  assert.equal(clock.monotonic() - from, WITNESS_SERVER_LIMITS.bodyMs);
});

test('a client has 200 requests at once and 20 a second, counted by address or /64; a proxy of this machine names it', async () => {
  const clock = manualClock();
  const app = witnessApp(witness, { clock, logger: collectingLogger() });
  const ask = async (clientAddress: string, forwarded?: string) => {
    const headers: Record<string, string> = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const answer = await app(new Request(`http://w.example/${hash}/checkpoint`, { headers }), {
      clientAddress,
    });
    return answer.status;
  };
  for (let n = 0; n < WITNESS_SERVER_LIMITS.requestsAtOnce; n++) assert.equal(await ask('2001:db8::1'), 404);
  const refused = await app(new Request(`http://w.example/${hash}/checkpoint`), {
    clientAddress: '2001:db8::2',
  });
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1']);
  assert.equal(await ask('127.0.0.1', '2001:db8::3'), 429);
  assert.equal(await ask('192.0.2.1', '2001:db8::3'), 404);
  assert.equal(await ask('2001:db8:0:1::1'), 404);
  clock.advance(1000);
  for (let n = 0; n < WITNESS_SERVER_LIMITS.requestsPerSecond; n++)
    assert.equal(await ask('2001:db8::1'), 404);
  assert.equal(await ask('2001:db8::1'), 429);
});

test('a fault is answered with 500 and logged, and its reason is not shown', async () => {
  const logger = collectingLogger();
  const failing = async () => {
    throw new Error('the disk is full');
  };
  const app = witnessApp(
    { addCheckpoint: failing, findCheckpoint: failing },
    { clock: manualClock(), logger },
  );
  const request = new Request('http://w.example/add-checkpoint', { method: 'POST', body: 'old 0\n' });
  const answer = await app(request, { clientAddress: '192.0.2.1' });
  assert.deepEqual([answer.status, await answer.text()], [500, 'The witness cannot answer now.\n']);
  assert.equal(logger.lines.length, 1);
});

test('every answer forbids guesses of its content type, also the size after a conflict', async () => {
  let outcome: AddCheckpoint = { kind: 'conflict', size: 21 };
  const logger = collectingLogger();
  const app = witnessApp(
    { ...witness, addCheckpoint: async () => outcome },
    { clock: manualClock(), logger },
  );
  const ask = async (path: string, method: string) => {
    const body = method === 'POST' ? 'old 0\n' : null;
    const request = new Request(`http://w.example${path}`, { method, body });
    const { status, headers } = await app(request, { clientAddress: '192.0.2.1' });
    assert.equal(headers.get('x-content-type-options'), 'nosniff', `${status}`);
    return [status, headers.get('content-type')];
  };
  const plain = 'text/plain; charset=utf-8';
  assert.deepEqual(await ask('/add-checkpoint', 'POST'), [409, 'text/x.tlog.size']);
  outcome = { kind: 'cosigned', lines: '— w AAAAAAAA\n' };
  assert.deepEqual(await ask('/add-checkpoint', 'POST'), [200, plain]);
  assert.deepEqual(await ask('/add-checkpoint', 'GET'), [405, plain]);
  assert.deepEqual(await ask('/other', 'GET'), [404, plain]);
});
