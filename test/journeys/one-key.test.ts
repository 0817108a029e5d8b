// Many callers at once, with one idempotency key and with many: how often the target is called, and each caller's answer.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Service } from '#test/support/service.ts';
import { type Executed, execute, makeWorld, type World } from '#test/support/service-world.ts';

const CALLS = 100;

let world: World;
let service: Service;

const call = (path: string, idempotencyKey: string, body: unknown = { n: 1 }) =>
  execute(service, { url: world.target.url(path), idempotencyKey, body });
const calls = (one: (n: number) => ReturnType<typeof call>) =>
  Promise.all(Array.from({ length: CALLS }, (_, n) => one(n)));
const requestsTo = (path: string) => world.target.requests.filter((request) => request.path === path);

describe('parallel calls', () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
  });
  after(() => world.end());

  for (const [name, status] of [
    ['succeeds', 200],
    ['fails', 502],
  ] as const) {
    test(`${CALLS} on one key, the target ${name}: one request; the rest replay or get 409`, async () => {
      const path = `/one-key-${name}`;
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      world.target.answer(async () => {
        await held;
        return { status: status === 200 ? 200 : 500 };
      });
      const all = calls(async () => {
        const answered = await call(path, path);
        // The first call is held at the target, so the first answer is a 409.
        release();
        return answered;
      });
      const answers = await all;
      const [original, ...more] = answers.filter(
        (answer) => answer.status === status && !answer.body.idempotentReplay,
      );
      assert.ok(original);
      assert.equal(more.length, 0);
      for (const { status: answered, headers, body } of answers) {
        if (answered === status) {
          assert.deepEqual(
            [body.job, body.receipt.jws, body.receipt.id],
            [original.body.job, original.body.receipt.jws, original.body.receipt.id],
          );
        } else {
          assert.deepEqual([answered, body.error.code], [409, 'idempotency_in_progress']);
          assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
          // Without a job id if the key is claimed and the job's stream does not exist yet.
          const { job, links }: Executed = original.body;
          const known: unknown = { jobId: job.id, links: { job: links.job } };
          assert.deepEqual(body.error.details ?? known, known);
        }
      }
      assert.ok(answers.some((answer) => answer.status === 409));
      const replayed = await call(path, path);
      assert.equal(replayed.status, status);
      assert.deepEqual(replayed.body.job, original.body.job);
      assert.deepEqual(replayed.body.receipt, { ...original.body.receipt, replay: true });
      assert.equal(replayed.body.idempotentReplay, true);
      assert.equal(requestsTo(path).length, 1);
    });
  }

  test(`${CALLS} keys: ${CALLS} requests, ${CALLS} jobs, each its own receipt`, async () => {
    const path = '/many-keys';
    world.target.answer(() => ({}));
    const answers = await calls((n) => call(path, `key ${n}`, { n }));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    assert.equal(new Set(answers.map(({ body }) => body.receipt.jws)).size, CALLS);
    const sent = requestsTo(path);
    assert.equal(sent.length, CALLS);
    // Every job sent its own caller's body, once.
    assert.deepEqual(
      new Map(sent.map(({ headers, body }) => [headers['webhook-id'], JSON.parse(body.toString()).n])),
      new Map(answers.map(({ body }, n) => [body.job.id, n])),
    );
  });
});
