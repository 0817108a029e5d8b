// A buyer of runs in front of a relay that may lie: what is signed, what it is limited to, and that no run is paid for twice.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  buySchedule,
  keyPayer,
  openLedger,
  openScheduleFile,
  orderKey,
  readScheduleBody,
  type ScheduleOrder,
  temporalCalendar,
} from '#src/app/buyer.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { changed, PAY_TO, type Tree } from '#test/support/witness/lying-relay.ts';
import { letPass, manualClock } from '#test/support/world/fakes.ts';
import { CANCEL_TOKEN, HOUR, SCHEDULE, type SellingLies, sellingRelay } from './selling-relay.ts';

const folder = testFolder('schedule');
const calendar = temporalCalendar();
const WALLET = `0x${'a1'.repeat(32)}` as const;
const secret = Buffer.from(WALLET.slice(2), 'hex');
const RUN = { 'scheduled-run': { info: {} } };
let files = 0;

type Bodies = { readonly schedule?: unknown; readonly catchUpSeconds?: number; readonly webhook?: unknown };

function world(skewMs = 0) {
  const clock = manualClock(Date.UTC(2026, 2, 1, 12));
  const startMs = clock.now() + HOUR;
  const relay = sellingRelay('https://relay.example', () => clock.now(), startMs);
  const buyers = { ...clock, now: () => clock.now() + skewMs };
  const path = join(folder, `order-${++files}.json`);
  const startAt = new Date(startMs).toISOString();
  const given = {
    webhook: { url: 'https://target.example/hook', body: { order: 1 } },
    schedule: { type: 'interval', everyMinutes: 60, startAt },
  };
  writeFileSync(path, JSON.stringify(given));
  async function buy(runs: number, change: Partial<ScheduleOrder> & { given?: Bodies } = {}) {
    const body = readScheduleBody({ ...given, ...change.given }, calendar);
    const file = openScheduleFile(path);
    const ledger = openLedger({ path: `${path}.ledger`, secret, budgetMicroUsd: null, clock: buyers });
    const paying = { payer: keyPayer(WALLET), key: orderKey(secret, body), ledger, file };
    const limits = { maxPriceMicroUsd: 3000n, network: 'eip155:8453', payTo: PAY_TO, allowHosts: null };
    const order = { relay: relay.origin, body, runs, maxMicroUsd: 3000n * BigInt(runs), limits, paying };
    const deps = { send: relay.send, clock: buyers, waiting: () => undefined, calendar };
    try {
      return await letPass(clock, buySchedule(deps, { ...order, ...change }));
    } finally {
      file.release();
    }
  }
  const signedAuthorizations = () => new Set(relay.presented.map(({ nonce }) => nonce)).size;
  return { clock, relay, buy, path, startMs, signed: signedAuthorizations };
}

describe('a buyer of runs', () => {
  test('signs one authorization a run, none of which is valid earlier than 60 s before its run, and records them', async () => {
    const it = world();
    const { outcome, bought, signedMicroUsd, error } = await it.buy(3);
    assert.deepEqual([outcome, signedMicroUsd, error], ['funded', 9000n, null]);
    assert.deepEqual(
      it.relay.presented.map(({ validAfter, validBefore, value, to }) => [
        validAfter,
        validBefore,
        value,
        to,
      ]),
      [0, 1, 2].map((n) => {
        const due = (it.startMs + n * HOUR) / 1000;
        return [String(due - 60), String(due + 420), '3000', PAY_TO];
      }),
    );
    assert.deepEqual(
      bought?.runs.map(({ n }) => n),
      [1, 2, 3],
    );
    const saved = JSON.parse(readFileSync(`${it.path}.bought`, 'utf8'));
    assert.deepEqual([saved.scheduleId, saved.cancelToken], [SCHEDULE, CANCEL_TOKEN]);
    assert.equal(statSync(`${it.path}.bought`).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(`${it.path}.ledger`, 'utf8'), /signature|target\.example/);
  });

  test('the same command again buys nothing, presents nothing; with more runs it buys the missing ones', async () => {
    const it = world();
    await it.buy(2);
    const same = await it.buy(2);
    assert.deepEqual([same.outcome, same.signedMicroUsd], ['funded', 6000n]);
    assert.equal(it.relay.presented.length, 2);
    const more = await it.buy(4);
    assert.deepEqual([more.outcome, more.signedMicroUsd, it.relay.presented.length], ['funded', 12_000n, 4]);
  });

  test('some runs are over unpaid: the next one to come is bought', async () => {
    const it = world();
    await it.buy(1);
    it.clock.advance(3.5 * HOUR);
    const { outcome, bought } = await it.buy(2);
    assert.equal(outcome, 'funded');
    assert.equal(Date.parse(bought?.runs.at(-1)?.dueAt ?? ''), it.startMs + 3 * HOUR);
  });

  for (const lost of [1, 2, 3])
    test(`the answer of run ${lost} is lost, and the buyer ends: the same payment is presented again`, async () => {
      const it = world();
      let answers = 0;
      it.relay.lie({
        async respond(request, honest) {
          const answer = await honest();
          const isPaid = request.headers.has('payment-signature');
          return isPaid && ++answers >= lost ? null : answer;
        },
      });
      const first = await it.buy(3);
      assert.deepEqual([first.outcome, first.bought?.runs.length ?? 0], ['unfinished', lost - 1]);
      it.relay.lie({});
      // Also if what was bought is lost: the ledger knows the payments.
      if (lost === 2) rmSync(`${it.path}.bought`);
      const again = await it.buy(3);
      assert.deepEqual([again.outcome, again.bought?.runs.length], ['funded', 3]);
      assert.deepEqual([it.signed(), it.relay.sold.size], [3, 3]);
    });

  test('a recorded payment whose run is over and that the relay refuses is replaced, and counts against the limit', async () => {
    const it = world();
    it.relay.lie({
      respond: async (request, honest) => (request.headers.has('payment-signature') ? null : honest()),
    });
    assert.equal((await it.buy(1)).outcome, 'unfinished');
    it.relay.lie({});
    it.clock.advance(2 * HOUR);
    const refused = await it.buy(1);
    assert.deepEqual([refused.outcome, refused.error?.member], ['policy_refused', 'offer.price']);
    const { outcome, signedMicroUsd } = await it.buy(1, { maxMicroUsd: 6000n });
    assert.deepEqual([outcome, signedMicroUsd, it.relay.sold.size], ['funded', 6000n, 1]);
  });

  test('exactly N times the price is enough; a unit less pays for nothing', async () => {
    const it = world();
    const refused = await it.buy(3, { maxMicroUsd: 8999n });
    assert.deepEqual([refused.outcome, refused.error?.member], ['policy_refused', 'offer.price']);
    assert.equal(it.relay.presented.length, 0);
    assert.equal((await it.buy(3, { maxMicroUsd: 9000n })).outcome, 'funded');
  });

  test('a target that the relay refuses is found before anything is signed, and before the relay is asked for a run', async () => {
    const it = world();
    const error = { code: 'unsafe_target', message: 'The target is not a public HTTPS address.' };
    const asked: string[] = [];
    it.relay.lie({
      async respond(request) {
        asked.push(new URL(request.url).pathname);
        return Response.json({ ok: false, allowed: false, error });
      },
    });
    const refused = await it.buy(2);
    assert.deepEqual([refused.outcome, refused.error?.member], ['policy_refused', 'target']);
    assert.deepEqual([asked, it.relay.presented.length], [['/api/policy/check'], 0]);
  });

  test('the relay is cut off after the first run: the next offer is asked for again', async () => {
    const it = world();
    let cut = 2;
    it.relay.lie({
      respond: async (request, honest) =>
        request.url.endsWith('/runs') && !request.headers.has('payment-signature') && cut-- > 0
          ? null
          : honest(),
    });
    assert.deepEqual([(await it.buy(2)).outcome, cut, it.signed()], ['funded', -1, 2]);
  });

  test('a dry run compares the offer, and signs nothing', async () => {
    const it = world();
    const { outcome, policy } = await it.buy(3, { paying: null });
    assert.deepEqual([outcome, policy.every(({ ok }) => ok)], ['not_paid', true]);
    assert.equal(it.relay.presented.length, 0);
  });
});

const terms = (name: string, value: unknown) => (required: Tree, n: number) =>
  n === 2 ? changed(required, `accepts.0.${name}`, value) : required;
const run = (name: string, change: (dueAt: string, n: number) => unknown) => (required: Tree, n: number) => {
  if (n !== 2) return required;
  const { info } = (required.extensions as typeof RUN)['scheduled-run'] as {
    info: { dueAt: string; n: number };
  };
  return changed(required, `extensions.scheduled-run.info.${name}`, change(info.dueAt, n));
};
const later = (ms: number) => (dueAt: string) => new Date(Date.parse(dueAt) + ms).toISOString();

/** Of run 2: run 1 was bought before. */
const OFFERS: readonly (readonly [string, string, NonNullable<SellingLies['offer']>])[] = [
  ['a due time later than the schedule has it', 'offer.scheduled_run', run('dueAt', later(60_000))],
  ['a run that leaves one out', 'offer.scheduled_run', run('dueAt', later(HOUR))],
  ['the run that was bought before', 'offer.scheduled_run', run('dueAt', later(-HOUR))],
  ['a number that was bought before', 'offer.scheduled_run', run('n', () => 1)],
  ['a due time that is none', 'offer.scheduled_run', run('dueAt', () => 'soon')],
  [
    'no due time',
    'offer.scheduled_run',
    (required, n) => (n === 2 ? changed(required, 'extensions', {}) : required),
  ],
  ['a longer life', 'offer.max_timeout_seconds', terms('maxTimeoutSeconds', 2 * 3600 + 420 + 61)],
  ['more money', 'offer.price', terms('amount', '3001')],
  ['another payee', 'offer.pay_to', terms('payTo', `0x${'4'.repeat(40)}`)],
  ['another network', 'offer.network', terms('network', 'eip155:1')],
  ['another asset', 'offer.asset', terms('asset', `0x${'5'.repeat(40)}`)],
  [
    'another resource',
    'offer.resource',
    (required, n) =>
      n === 2 ? changed(required, 'resource.url', 'https://relay.example/api/execute/webhook') : required,
  ],
];

describe('a relay that lies midway', () => {
  for (const [name, member, offer] of OFFERS)
    test(`${name}: refused, and nothing is signed for it`, async () => {
      const it = world();
      it.relay.lie({ offer });
      const { outcome, error, bought } = await it.buy(3);
      assert.deepEqual([outcome, error?.member], ['policy_refused', member]);
      assert.deepEqual([it.relay.presented.length, bought?.runs.length], [1, 1]);
    });

  for (const [name, member, path, value] of [
    ['another schedule', 'answer.scheduleId', 'scheduleId', `sch_${'1'.repeat(26)}`],
    ['another run', 'answer.run', 'run.n', 1],
    ['another due time', 'answer.run', 'run.dueAt', '2026-03-01T14:00:01.000Z'],
    ['a due time that the payment does not cover', 'answer.run', 'run.dueAt', '2026-03-01T15:00:00.000Z'],
  ] as const)
    test(`${name} in the answer: reported, and the run does not count as paid for`, async () => {
      const it = world();
      it.relay.lie({ answer: (body, n) => (n === 2 ? changed(body, path, value) : body) });
      const { outcome, error, bought } = await it.buy(3);
      assert.deepEqual([outcome, error?.member, bought?.runs.length], ['unverified', member, 1]);
    });

  test('a token or an id that could be a command is no answer', async () => {
    const it = world();
    it.relay.lie({ answer: (body) => changed(body, 'cancelToken', "x'; rm -rf ~; '".padEnd(43, 'x')) });
    const { outcome, bought } = await it.buy(1);
    assert.deepEqual([outcome, bought], ['unfinished', null]);
  });

  test('the run of the offer has passed when the payment arrives: the next run that it covers is accepted', async () => {
    const it = world();
    const given = {
      schedule: { type: 'interval', everyMinutes: 1, startAt: new Date(it.startMs).toISOString() },
    };
    it.relay.lie({
      answer: (body) => changed(body, 'run.dueAt', new Date(it.startMs + 60_000).toISOString()),
    });
    const { outcome, bought } = await it.buy(1, { given });
    assert.deepEqual(
      [outcome, bought?.runs[0]?.dueAt],
      ['funded', new Date(it.startMs + 60_000).toISOString()],
    );
  });
});

test('a relay that answers anything but a 402 is not asked again: it could define a schedule each time', async () => {
  const it = world();
  let asked = 0;
  it.relay.lie({
    async respond(request, honest) {
      if (request.method === 'GET') return honest();
      return ++asked < 2 ? honest() : Response.json({ scheduleId: SCHEDULE }, { status: 201 });
    },
  });
  const { outcome, error } = await it.buy(1);
  assert.deepEqual([outcome, error?.member, asked], ['policy_refused', 'offer', 2]);
});

describe('what the buyer has to mend', () => {
  const once = (ms: number) => ({ schedule: { type: 'once', runAt: new Date(ms).toISOString() } });
  const refuses = async (work: Promise<unknown>, message: RegExp) =>
    assert.rejects(work, (error) => error instanceof OperatorError && message.test(error.message));

  test('too few runs to come, or runs past what the relay plans: nothing is asked for or paid', async () => {
    const it = world();
    await refuses(it.buy(2, { given: once(it.startMs) }), /has only 1 runs to come/);
    await refuses(it.buy(1, { given: once(it.startMs - 2 * HOUR) }), /has only 0 runs to come/);
    const rare = { type: 'interval', everyMinutes: 10_080, startAt: new Date(it.startMs).toISOString() };
    await refuses(
      it.buy(6, { given: { schedule: rare } }),
      /next 30 days, of which the schedule has 5, and --runs needs 6/,
    );
    assert.equal(it.relay.presented.length, 0);
  });

  for (const [name, given, message] of [
    ['no schedule', { schedule: undefined }, /does not fit \{webhook/],
    ['an unknown member', { every: 1 } as Bodies, /does not fit \{webhook/],
    [
      'a time zone that is none',
      { schedule: { type: 'daily', timeOfDay: '09:00', timezone: 'Mars/Base' } },
      /zone/,
    ],
    [
      'a header that is none',
      { webhook: { url: 'https://target.example/', headers: { 'a b': '1' } } },
      /header/i,
    ],
    [
      'a key of one call',
      { webhook: { url: 'https://target.example/', idempotencyKey: 'k' } },
      /idempotencyKey/,
    ],
    ['a catch-up of a day', { catchUpSeconds: 86_400 }, /does not fit \{webhook/],
  ] as const satisfies readonly (readonly [string, Bodies, RegExp])[])
    test(`${name}: refused before the relay is asked`, async () => {
      const it = world();
      await refuses(it.buy(1, { given }), message);
      assert.equal(it.relay.presented.length, 0);
    });

  test('the file was changed since: nothing is paid for the other order', async () => {
    const it = world();
    await it.buy(1);
    await refuses(it.buy(2, { given: { catchUpSeconds: 60 } }), /another purchase/);
    assert.equal(it.relay.presented.length, 1);
  });

  test('a record that is missing or damaged: nothing is paid', async () => {
    const it = world();
    await it.buy(1);
    rmSync(`${it.path}.ledger`);
    await refuses(it.buy(2), /no record of payment 1/);
    writeFileSync(`${it.path}.bought`, '{"v":1');
    await refuses(it.buy(2), /is damaged/);
    assert.equal(it.relay.presented.length, 1);
  });

  test('two buyers of one file at the same time: the second one pays nothing', async () => {
    const it = world();
    const file = openScheduleFile(it.path);
    await refuses(it.buy(1), /in use by another process/);
    file.release();
    assert.equal(it.relay.presented.length, 0);
  });
});

describe('a clock that is wrong by an hour', () => {
  test('ahead: the relay asks for a longer life than the schedule needs; refused, and the clock is named', async () => {
    const it = world(HOUR / 2);
    const { outcome, error } = await it.buy(1);
    assert.deepEqual(
      [outcome, error?.member, it.relay.presented.length],
      ['policy_refused', 'offer.max_timeout_seconds', 0],
    );
    assert.match(error?.expected ?? '', /clock of this machine/);
  });

  test('behind: what is signed is bound to the run, whatever the clock says', async () => {
    const it = world(-HOUR);
    assert.equal((await it.buy(2)).outcome, 'funded');
    assert.equal(it.relay.presented[0]?.validBefore, String(it.startMs / 1000 + 420));
  });

  test('behind, and a run lies between the two clocks: refused', async () => {
    const it = world(-2 * HOUR);
    it.clock.advance(1.5 * HOUR);
    const { outcome, error } = await it.buy(1);
    assert.deepEqual(
      [outcome, error?.member, it.relay.presented.length],
      ['policy_refused', 'offer.scheduled_run', 0],
    );
  });
});
