// A supervisor stops the service: calls in flight are answered, and no new ones are accepted. Long calls are not cut off.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { sleep } from '#src/lib/time.ts';
import { logLines, type Service, waitFor } from '#test/support/process/service.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';
import {
  type Answered,
  type Executed,
  execute,
  get,
  makeWorld,
  type Report,
  type World,
} from '#test/support/world/service-world.ts';

const hang = () => new Promise<undefined>(() => undefined);

describe('the longest job', () => {
  let world: World;
  let answered: Promise<Answered<Executed>>;
  before(async () => {
    world = await makeWorld({ handler: hang });
    const service = await world.start();
    // Runs concurrently with the tests below; checked in the last one.
    answered = execute(service, {
      url: world.target.url(),
      timeoutMs: 12_000,
      retry: { attempts: 3, backoffMs: 5000 },
    });
    answered.catch(() => undefined);
  });
  after(() => world.end());

  describe('SIGTERM with calls in flight', () => {
    const CALLS = 10;
    let other: World;
    before(async () => {
      other = await makeWorld();
    });
    after(() => other.end());

    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      test(`${signal}: ${CALLS} calls are answered, no connection is accepted, exit code 0, no error is logged`, async () => {
        const service = await other.start();
        const held = Promise.withResolvers<object>();
        other.target.answer(() => held.promise);
        const before = other.target.requests.length;
        const calls = Array.from({ length: CALLS }, () => execute(service, { url: other.target.url() }));
        await waitFor('all are at the target', () => other.target.requests.length === before + CALLS);
        service.signal(signal);
        await waitFor('it accepts nothing more', async () => !(await accepts(service)));
        // Longer than a server's grace period before it closes connections.
        await sleep(1500);
        held.resolve({});
        const answers = await Promise.all(calls);
        assert.deepEqual(
          answers.map(({ status }) => status),
          Array(CALLS).fill(200),
        );
        const { code, stdout, stderr } = await service.ended;
        assert.deepEqual([code, stderr], [0, '']);
        const lines = logLines(stdout);
        assert.deepEqual(
          lines.filter(({ level }) => level === 'error'),
          [],
        );
        // A condition may begin and end on a slow machine.
        const said = lines.filter(({ level, condition }) => level === 'info' && condition === undefined);
        assert.deepEqual(
          said.map(({ msg }) => msg),
          ['listening', 'the service stops: it finishes what is in flight', 'the service has ended'],
        );
        assert.equal(other.target.requests.length, before + CALLS);
        await assertAllThere(answers.map(({ body }) => body));
      });
    }

    async function assertAllThere(answers: readonly Executed[]): Promise<void> {
      const next = await other.start();
      for (const { job, links } of answers) {
        const path = new URL(links.verifyJob ?? '').pathname;
        const body = await waitFor('the read models have the job', async () => {
          const answer = await get<Report>(`${next.url}${path}`);
          assert.ok([200, 503].includes(answer.status), `${answer.status}`);
          return answer.status === 200 && answer.body;
        });
        assert.deepEqual([body.ok, body.jobId], [true, job.id]);
      }
      assert.equal((await next.stop()).code, 0);
    }
  });

  test('three attempts of 12 s and the waits between: answered, not cut', async () => {
    const { status, body } = await answered;
    assert.equal(status, 502);
    const { job, receipt } = body;
    assert.deepEqual([job.status, job.attempts, job.errorCategory], ['failed', 3, 'timeout']);
    const took = Date.parse(job.completedAt) - Date.parse(job.createdAt);
    assert.ok(took >= 36_000, `it took ${took} ms`);
    assert.deepEqual(
      payloadOf(receipt.jws).attempts.map(({ errorCategory, sent }) => [errorCategory, sent]),
      Array(3).fill(['timeout', 'maybe']),
    );
    const { requests } = world.target;
    assert.deepEqual(
      requests.map(({ headers }) => headers['webhook-id']),
      Array(3).fill(job.id),
    );
  });
});

/** Whether a new connection is accepted. */
function accepts({ url }: Service): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const end = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
