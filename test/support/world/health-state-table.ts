// The states of a service that every tier has, as a table: how each is made, what is seen of it, and how it is repaired; and
// the world in which a service passes through them, first in demo mode and then paid.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { headersGuard } from '#test/support/chain/facilitator-login.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { attemptsIn } from '#test/support/given/fault-words.ts';
import { runCli } from '#test/support/process/cli.ts';
import { type SecretFront, startSecretFront } from '#test/support/process/secret-front.ts';
import { type Environment, type Service, waitFor } from '#test/support/process/service.ts';
import {
  ALTERED_MAIN,
  assertDefect,
  assertStops,
  type HealthState,
  inSet,
  passThrough,
  type Seen,
  scrape,
  type Watched,
} from './health-states.ts';
import { assertDelivered, assertSaid, type Sent, send } from './paid-call.ts';
import type { PaidWorld, Sample } from './paid-world.ts';
import { type ErrorBody, type Executed, execute, get, type Report } from './service-world.ts';

const KEY = 'the-key';
const FREE = { X402_ENABLED: 'false', ALLOW_FREE_RELAY: 'true' };

const noSigningKey = (until: RegExp): Seen => ({
  status: 503,
  part: 'signingKey',
  reason: 'no_signing_key',
  message: until,
  alert: 'RelayNoSigningKey',
  logged: { level: 'error', msg: /no valid signing key.+no call is executed.+Correct the clock/ },
  call: [503, 'no_signing_key', /no call is executed. Nothing was sent/],
});
const LATER_KEY = noSigningKey(/a key is valid from \d{4}-.+Z: no call is executed/);
const EXPIRED_KEY = noSigningKey(/no valid signing key: no call is executed/);
export const LOG_DOWN: Omit<Seen, 'logged'> = {
  status: 503,
  part: 'eventLog',
  reason: 'unavailable',
  message: /no call is executed/,
  alert: 'RelayEventLogDown',
  call: [503, 'event_log_unavailable', /nothing was sent/],
};
export const FORGOTTEN: Seen = {
  status: 503,
  part: 'transparencyLog',
  reason: 'checkpoint_forgotten',
  message: /lacks events that this relay acknowledged.+until the operator decides/,
  alert: 'RelayEventsMissing',
  logged: { level: 'error', msg: /lacks events that this relay acknowledged/ },
  call: [503, 'event_log_unavailable', /lacks events that this relay has acknowledged/],
};
const NODE_DOWN: Seen = {
  status: 200,
  part: 'chain',
  reason: 'no_answer',
  message: /does not answer/,
  alert: 'RelayChainNodeDown',
  logged: { level: 'warn', msg: /X402_RPC_URL/, cause: /rpc_failed|unreachable/ },
  call: [200],
};
const NODE_DOWN_AT_START: Seen = {
  ...NODE_DOWN,
  logged: { level: 'warn', msg: /given no usable answer about the asset since the start/ },
  call: [503, 'facilitator_unavailable'],
};
const OTHER_CHAIN: Seen = {
  ...NODE_DOWN,
  reason: 'other_chain',
  message: /serves another chain/,
  alert: 'RelayChainNodeWrong',
  logged: { level: 'error', msg: /X402_RPC_URL/, cause: /other_chain/ },
};
const unpaid = { status: 200, part: 'facilitator', call: [503, 'facilitator_unavailable'] } as const;
const LOGIN_REFUSED: Seen = {
  ...unpaid,
  reason: 'login_refused',
  message: /refuses our login: paid calls answer 503, nothing is charged/,
  alert: 'RelayFacilitatorRefusesLogin',
  logged: { level: 'error', msg: /refuses our login.+Check X402_FACILITATOR_AUTH/, cause: /status_401/ },
};
const FACILITATOR_DOWN: Seen = {
  ...unpaid,
  reason: 'no_answer',
  message: /does not answer: paid calls answer 503, nothing is charged/,
  alert: 'RelayFacilitatorDown',
  logged: { level: 'warn', msg: /facilitator does not answer/, cause: /ECONNREFUSED/ },
};
/** What the tiers differ in. */
export type StatesTier = {
  readonly paid: PaidWorld;
  /** Starts the service, of which there is one; resolves when it listens. */
  start(env: Environment): Promise<Service>;
  readonly keyFile: string;
  /** For commands. */
  readonly env: Environment;
  end(): Promise<void>;
};

export type StatesWorld = Watched & {
  readonly target: PaidWorld['target'];
  /** A call that a checkpoint covers. Resolves with the checkpoint's note. */
  coveredCall(service: Service): Promise<string>;
};

type StatesOptions = {
  /** Of the tier. */
  readonly needs: { readonly skip: boolean };
  /** The service runs `script`, with `settings`. */
  makeTier(script: string, settings: Environment): Promise<StatesTier>;
  /** Of this tier's stores. The service passes through them in demo mode, after those of the keys. */
  states(it: StatesWorld): readonly HealthState[];
  /** No JobStarted can be appended until the function that it returns is called. Absent: the tier cannot do that. */
  readonly holdStarts?: () => () => void;
};

/** Declares the tests: the states of keys and stores in demo mode, then those of payments, then defects. */
export function testStates(name: string, { needs, makeTier, states, holdStarts }: StatesOptions): void {
  const skips = { skip: needsAnvil().skip || needs.skip };
  describe(name, () => {
    let tier: StatesTier;
    let front: SecretFront;
    let running: Service | null = null;
    let demanded = KEY;
    let isPaid = false;
    /** Signed while the clock was ahead. */
    let early: Executed;
    const setClock = (hoursAhead: number) => writeFileSync(inFolder('ahead'), String(hoursAhead * 3_600_000));
    /** By whether it was served. */
    const paidCalls = new Map<Sample, boolean>();
    const inFolder = (file: string) => join(tier.paid.folder, file);

    const it: StatesWorld = {
      get target() {
        return tier.paid.target;
      },
      get service() {
        return running ?? assert.fail('the service has not started');
      },
      set service(next) {
        running = next;
      },
      start() {
        const settings = {
          TEST_CLOCK_AHEAD: inFolder('ahead'),
          TEST_DEFECTS: inFolder('defects'),
          X402_FACILITATOR_URL: front.url,
          X402_FACILITATOR_HEADERS_FILE: inFolder('headers'),
        };
        return tier.start({ ...settings, ...(isPaid ? {} : FREE) });
      },
      call: (service) => (isPaid ? paidCall(service) : demoCall(service, '/state')),
      async coveredCall(service) {
        const { receipt } = (await demoCall(service, '/covered')).body;
        return waitFor('a checkpoint covers it', async () => {
          const stored = await get<{ checkpoint: unknown }>(`${service.url}/api/receipts/${receipt.id}`);
          return typeof stored.body.checkpoint === 'string' && stored.body.checkpoint;
        });
      },
    };
    const demoCall = (service: Service, path: string) =>
      execute(service, { url: tier.paid.target.url(path) });
    async function paidCall(service: Service): Promise<Sent> {
      const row = `state-${paidCalls.size}`;
      const [sample = assert.fail()] = await tier.paid.samples(service, row, { count: 1 });
      const sent = await send(service, sample);
      paidCalls.set(sample, sent.status !== 503);
      return sent;
    }
    async function restart(): Promise<void> {
      await assertStops(it.service);
      setClock(0);
      it.service = await it.start();
    }

    before(async () => {
      if (skips.skip) return;
      tier = await makeTier(ALTERED_MAIN, { X402_RECONCILE_SECONDS: '1' });
      const guard = headersGuard(() => ({ 'x-api-key': demanded }));
      front = await startSecretFront(tier.paid.proxy.url, { path: 'x402', guard });
      writeFileSync(inFolder('headers'), `x-api-key: ${KEY}\n`, { mode: 0o600 });
      mkdirSync(inFolder('defects'));
      setClock(2);
      // Its key is valid from a time that is yet to come.
      it.service = await it.start();
      early = (await demoCall(it.service, '/early')).body;
    });
    after(async () => {
      await tier?.end();
      await front?.down();
    });

    async function rotate(purposes: readonly string[], env: Environment = {}): Promise<void> {
      for (const purpose of purposes) {
        const options = { env: { ...tier.env, ...env } };
        const { code, stderr } = await runCli(['keys', 'rotate', '--purpose', purpose], options);
        assert.deepEqual([code, stderr], [0, '']);
      }
    }
    const KEYS: readonly HealthState[] = [
      {
        name: 'no signing key is valid yet: the clock was ahead at the first start',
        made: 'stopped',
        make: () => setClock(0),
        seen: LATER_KEY,
        repaired: 'running',
        repair: () => rotate(['receipt', 'checkpoint']),
      },
      {
        name: 'no signing key is valid any more: another machine rotated the keys, its key file was not copied',
        isFullOnly: true,
        made: 'running',
        async make() {
          cpSync(tier.keyFile, inFolder('other-keys.json'));
          await rotate(['receipt'], { SIGNING_KEYS_FILE: inFolder('other-keys.json') });
          setClock(3);
          const { url } = it.service;
          await waitFor('it follows the rotation', async () => (await get(`${url}/health`)).status === 503);
        },
        seen: EXPIRED_KEY,
        repaired: 'stopped',
        repair: () => cpSync(inFolder('other-keys.json'), tier.keyFile),
      },
    ];
    for (const state of inSet(KEYS)) test(state.name, skips, () => passThrough(it, state));

    test(
      'a rotation invalidates no receipt issued before it, not even one of a clock that was ahead',
      skips,
      async () => {
        await restart();
        const url = `${it.service.url}/api/verify/receipts/${early.receipt.id}`;
        const report = await waitFor('the rows are open', async () => {
          const { status, body } = await get<Report>(url);
          return status === 200 && body;
        });
        assert.equal(report.ok, true, JSON.stringify(report.checks));
      },
    );

    for (const state of inSet(states(it))) test(state.name, skips, () => passThrough(it, state));

    const PAYMENTS: readonly HealthState[] = [
      {
        name: 'the facilitator refuses our login',
        made: 'running',
        make: () => {
          demanded = 'another';
        },
        seen: LOGIN_REFUSED,
        repaired: 'running',
        repair: () => {
          demanded = KEY;
        },
      },
      {
        name: 'the facilitator does not answer',
        isFullOnly: true,
        made: 'running',
        make: () => front.down(),
        seen: FACILITATOR_DOWN,
        repaired: 'running',
        repair: () => front.up(),
      },
      {
        name: 'the node does not answer',
        isFullOnly: true,
        made: 'running',
        make: () => tier.paid.node.down(),
        seen: NODE_DOWN,
        repaired: 'running',
        repair: () => tier.paid.node.up(),
      },
      {
        name: 'the node changes to another chain',
        isFullOnly: true,
        made: 'running',
        make: () =>
          tier.paid.node.rule(({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : 'pass')),
        seen: OTHER_CHAIN,
        repaired: 'running',
        repair: () => tier.paid.node.blind(false),
      },
      {
        name: 'the node does not answer at the start',
        isFullOnly: true,
        made: 'stopped',
        make: () => tier.paid.node.down(),
        seen: NODE_DOWN_AT_START,
        repaired: 'running',
        repair: () => tier.paid.node.up(),
      },
    ];
    test('from here on calls are paid', skips, async () => {
      isPaid = true;
      await restart();
    });
    for (const state of inSet(PAYMENTS)) test(state.name, skips, () => passThrough(it, state));

    async function withDefect<T>(part: string, work: () => Promise<T>): Promise<T> {
      writeFileSync(join(inFolder('defects'), part), '');
      try {
        return await work();
      } finally {
        rmSync(join(inFolder('defects'), part));
      }
    }
    const since = async () => ({ before: await scrape(it.service), from: it.service.stdout().length });

    test(
      'a defect in a query: 500, logged with its stack, counted, an alert; reads work again',
      skips,
      async () => {
        const then = await since();
        const url = `${it.service.url}/api/jobs/${early.job.id}`;
        const { status, body } = await withDefect('query', () => get<ErrorBody>(url));
        assert.deepEqual([status, body.error.code], [500, 'internal_error']);
        await assertDefect(it.service, /a request failed/, then);
        assert.equal((await get(url)).status, 200);
      },
    );

    const lastSample = () => [...paidCalls.keys()].at(-1) ?? assert.fail('no paid call');
    async function assertRefundable(jobId: string): Promise<void> {
      const env = { ...tier.paid.env, ...tier.env };
      const { stdout, stderr } = await runCli(['payments', '--refundable', '--json'], { env });
      assert.ok(stdout.includes(jobId), stdout + stderr);
    }

    test(
      'a defect in a call of a target: not the target’s failure, refundable, logged, counted, an alert',
      skips,
      async () => {
        const then = await since();
        const { status, body } = await withDefect('outbound', () => paidCall(it.service));
        assert.deepEqual(
          [status, body.job?.errorCategory],
          [502, 'interrupted_unknown'],
          JSON.stringify(body),
        );
        assert.deepEqual(attemptsIn(body), [['maybe', 'interrupted_unknown']]);
        const line = await assertDefect(it.service, /an attempt failed in this program/, then);
        assert.equal(line.jobId, body.job.id);
        const figures = await scrape(it.service);
        assert.equal(figures.of('relay_attempts_total', { outcome: 'protocol_error' }), 0);
        await assertRefundable(body.job.id);
        assertDelivered(await paidCall(it.service), lastSample());
      },
    );

    if (holdStarts !== undefined)
      test(
        'a defect behind the answer of the deadline: the same; its caller repeats, and is answered',
        skips,
        async () => {
          const then = await since();
          const line = await withDefect('outbound', async () => {
            const release = holdStarts();
            const late = await paidCall(it.service);
            release();
            assertSaid(late, 503, 'event_log_unavailable');
            assert.match(late.body.error.message, /same payment header/);
            return assertDefect(it.service, /an attempt failed in this program/, then);
          });
          paidCalls.set(lastSample(), true);
          const { body } = await waitFor('the job is closed', async () => {
            const repeated = await send(it.service, lastSample());
            return repeated.status === 502 && repeated;
          });
          const { job, idempotentReplay } = body;
          assert.deepEqual(
            [job.id, job.errorCategory, idempotentReplay],
            [line.jobId, 'interrupted_unknown', true],
          );
          await assertRefundable(job.id);
        },
      );

    test('no call that was answered 503 was charged or sent; every other one once', skips, async () => {
      await assertStops(it.service);
      await tier.paid.assertBooks([...paidCalls.keys()], (sample) => {
        const calls = paidCalls.get(sample) === true ? 1 : 0;
        return { calls, charges: calls };
      });
    });
  });
}
