// A light load for a change of releases: keyed calls and reads of what they made, in turn over the processes in rotation.
import assert from 'node:assert/strict';
import { sleep } from '#src/lib/time.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import type { TlsTarget } from '#test/support/process/tls-target.ts';
import { type ErrorBody, type Executed, execute, get, type Report } from './service-world.ts';

export type Answered = { readonly request: Readonly<Record<string, unknown>>; readonly body: Executed };

/** The processes that take calls, in turn. */
export type Rotation = {
  readonly members: readonly Service[];
  /** Passes the next process to `work`. */
  run(work: (service: Service) => Promise<unknown>): Promise<void>;
  /** Adds it once it is live, as a load balancer does. */
  add(service: Service): Promise<void>;
  /** Sends it no more; resolves when its open requests are answered. */
  remove(service: Service): Promise<void>;
};

export function rotation(): Rotation {
  let members: readonly Service[] = [];
  let turn = 0;
  const open = new Map<Service, number>();
  return {
    get members() {
      return members;
    },
    async run(work) {
      const service = members[turn++ % members.length] ?? assert.fail('no process is in rotation');
      open.set(service, (open.get(service) ?? 0) + 1);
      await work(service)
        .catch((error: unknown) => {
          throw new Error(`at ${service.url}: ${error}`);
        })
        .finally(() => open.set(service, (open.get(service) ?? 0) - 1));
    },
    async add(service) {
      await waitFor('it is live', async () => (await get(`${service.url}/health/live`)).status === 200);
      members = [...members, service];
    },
    async remove(service) {
      members = members.filter((member) => member !== service);
      await waitFor('its requests are answered', () => (open.get(service) ?? 0) === 0);
    },
  };
}

export type ReleaseLoad = {
  /** Calls that were answered, in order. */
  readonly answered: readonly Answered[];
  /** Everything that was not answered as it must be. */
  readonly failures: readonly string[];
  /** Resolves when so many more rounds have begun and ended. */
  rounds(count: number): Promise<void>;
  /** Begins no more; resolves when all have ended. */
  stop(): Promise<void>;
};

const CALLERS = 2;
const PAUSE_MS = 20;

export function startReleaseLoad(target: TlsTarget, over: Rotation): ReleaseLoad {
  const answered: Answered[] = [];
  const failures: string[] = [];
  let begun = 0;
  let ended = 0;
  let stopped = false;

  async function expecting(what: string, work: (service: Service) => Promise<unknown>): Promise<void> {
    await over.run(work).catch((error: unknown) => failures.push(`${what} ${error}`));
  }

  async function round(n: number): Promise<void> {
    const path = `/load/${n}`;
    const request = { url: target.url(path), body: path, idempotencyKey: path };
    let made: Executed | null = null;
    await expecting(path, async (service) => {
      const { status, body } = await execute(service, request);
      assert.deepEqual([status, body.idempotentReplay, body.job?.status], [200, false, 'succeeded']);
      made = body;
      answered.push({ request, body });
    });
    if (made !== null)
      await expecting(`links of ${path}`, (service) => readLinks(service, made ?? assert.fail()));
    const earlier = answered[Math.floor(answered.length / 2)];
    if (earlier !== undefined) {
      await expecting('an earlier call', (service) => readLinks(service, earlier.body));
      await expecting('a replay', (service) => replays(service, earlier));
    }
    for (const list of ['/api/proofs/recent', '/api/monitoring/executions', '/api/trust'])
      await expecting(list, (service) => found(`${service.url}${list}`));
  }

  async function caller(): Promise<void> {
    while (!stopped) {
      await round(begun++);
      ended++;
      await sleep(PAUSE_MS);
    }
  }

  const running = Promise.all(Array.from({ length: CALLERS }, caller));
  return {
    answered,
    failures,
    async rounds(count) {
      const wanted = begun + count;
      await waitFor(`${count} rounds`, () => ended >= wanted);
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}

async function found<T>(url: string): Promise<T> {
  const { status, body } = await get<T & Partial<ErrorBody>>(url);
  assert.equal(status, 200, `${url}: ${body.error?.code}`);
  return body;
}

/** The job, its receipt, both verifications and the proof page are read from this process. */
export async function readLinks(service: Service, { job, receipt, links }: Executed): Promise<void> {
  const at = (name: string) => `${service.url}${new URL(links[name] ?? '').pathname}`;
  const row = await found<Executed['job']>(at('job'));
  assert.deepEqual([row.id, row.status, row.attempts], [job.id, job.status, job.attempts]);
  assert.equal((await found<{ jws: string }>(at('receipt'))).jws, receipt.jws);
  for (const name of ['verifyJob', 'verifyReceipt']) {
    const report = await found<Report>(at(name));
    assert.deepEqual([report.ok, report.jobId, report.receiptId], [true, job.id, receipt.id]);
  }
  await found(at('proof'));
}

/** The same call again returns the recorded result. */
export async function replays(service: Service, { request, body }: Answered): Promise<void> {
  const again = await execute(service, request);
  assert.deepEqual(
    [again.status, again.body.idempotentReplay, again.body.job, again.body.receipt],
    [200, true, body.job, { ...body.receipt, replay: true }],
  );
}
