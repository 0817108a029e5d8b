// One state of a running service in which something does not work, seen as an operator, a load balancer, an alert and a
// caller see it: health and its reason, the metrics, the alert rule, the log with the cause, what a call is answered, that
// SIGTERM ends the process, and that the repaired state recovers.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { HealthReport } from '#src/domain/monitoring/health.ts';
import { withTimeout } from '#src/lib/time.ts';
import { ALERT_RULES, firing, isEvaluated } from '#test/support/given/alert-rules.ts';
import { type Figures, readFigures } from '#test/support/given/figures.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { type LogLine, logLines, type Service, waitFor } from '#test/support/process/service.ts';
import { type Answered, type ErrorBody, get } from './service-world.ts';

/** For `makeWorld`: the service with another clock, or with a defect. */
export const ALTERED_MAIN = fileURLToPath(new URL('./altered-main.ts', import.meta.url));

export type Part = keyof HealthReport['checks'];

export type HealthState = {
  readonly name: string;
  /**
   * `running`: made while the service runs, and made twice if it is also repaired so: the second time, the service is
   * stopped in it. `stopped`: the service is stopped, and started again in this state.
   */
  readonly made: 'running' | 'stopped';
  make(): unknown;
  readonly seen: Seen;
  readonly repaired: 'running' | 'stopped';
  repair(): unknown;
  /** Only in the full set: another state of the same row of the table is in the fast one. */
  readonly isFullOnly?: true;
};

/** Those of this run's set. */
export const inSet = (states: readonly HealthState[]): readonly HealthState[] =>
  states.filter(({ isFullOnly = false }) => LONG || !isFullOnly);

export type Seen = {
  /** Of `/health`, with the one part that is not ok. */
  readonly status: 200 | 503;
  readonly part: Part;
  readonly reason: string;
  readonly message: RegExp;
  /** By its name in the runbook. */
  readonly alert: string;
  readonly logged: Logged;
  /** What a call is answered: a status, and a code unless it is 200. */
  readonly call: readonly [status: number, code?: string, message?: RegExp];
};

export type Logged = { readonly level: 'warn' | 'error'; readonly msg: RegExp; readonly cause?: RegExp };

/** The service under test, which is stopped and started again. */
export type Watched = {
  service: Service;
  /** Starts it again; resolves when it listens. */
  start(): Promise<Service>;
  /** A new call, which is answered 200 while all is well. */
  call(service: Service): Promise<Answered<Partial<ErrorBody>>>;
  /** A state that it did not leave: those after it fail at once. */
  leftIn?: string;
};

export async function passThrough(it: Watched, state: HealthState): Promise<void> {
  assert.equal(it.leftIn, undefined, 'the service is still in another state');
  it.leftIn = state.name;
  await passed(it, state);
  delete it.leftIn;
}

async function passed(it: Watched, state: HealthState): Promise<void> {
  const { made, repaired, seen } = state;
  const begin = async () => {
    if (made === 'running') return void (await state.make());
    await assertStops(it.service);
    await state.make();
    it.service = await it.start();
  };
  await assertWell(it, seen);
  const before = await scrape(it.service);
  const from = made === 'running' ? it.service.stdout().length : 0;
  await begin();
  await assertSeen(it, state, before, from);
  if (made === 'running' && repaired === 'running') {
    await state.repair();
    await assertWell(it, seen);
    await begin();
    await notOk(it.service, seen);
  }
  await assertStops(it.service);
  if (repaired === 'running' && made === 'stopped') {
    it.service = await it.start();
    await notOk(it.service, seen);
    await state.repair();
  } else {
    await state.repair();
    it.service = await it.start();
  }
  await assertWell(it, seen);
}

type Health = Pick<HealthReport, 'ok' | 'checks'>;

export async function scrape({ url }: Service): Promise<Figures> {
  const { status, body } = await get<string>(`${url}/metrics`);
  assert.equal(status, 200);
  return readFigures(body);
}

/** Waits until exactly this part is not ok, for this reason. */
async function notOk({ url }: Service, { part, reason, status }: Seen): Promise<Answered<Health>> {
  let last = '';
  return waitFor(`${part} is not ok: ${reason}`, async () => {
    const health = await get<Health>(`${url}/health`);
    const wrong = Object.entries(health.body.checks).flatMap(([name, check]) =>
      check === null || check.ok ? [] : [`${name} ${check.reason}`],
    );
    last = `${health.status} ${wrong.join()}`;
    return last === `${status} ${part} ${reason}` && health;
  }).catch((error: unknown) => assert.fail(`${error}; health is ${last}`));
}

async function assertSeen(
  it: Watched,
  { name, seen }: HealthState,
  before: Figures,
  from: number,
): Promise<void> {
  const { part, reason, message, alert, logged, call } = seen;
  const { service } = it;
  const answering = it.call(service);
  const { body: health } = await notOk(service, seen);
  const check = health.checks[part];
  assert.ok(check !== null && !check.ok && message.test(check.message), `${name}: ${JSON.stringify(check)}`);
  assert.equal(health.ok, false);
  assert.equal((await get(`${service.url}/health/live`)).status, 200);

  const [status, code, text = /./] = call;
  const answered = await answering;
  const { error } = answered.body;
  assert.deepEqual(
    [answered.status, error?.code],
    [status, code],
    `${name}: ${JSON.stringify(answered.body)}`,
  );
  if (code !== undefined) assert.match(error?.message ?? '', text, name);
  if (status === 503) assert.match(answered.headers.get('retry-after') ?? '', /^[1-9]\d*$/, name);

  const figures = await scrape(service);
  assert.deepEqual(partFigures(figures, seen), [0, 1], `${name}: the metrics of ${part} ${reason}`);
  const rule = ALERT_RULES.find((one) => one.name === alert) ?? assert.fail(`no rule ${alert}`);
  assert.ok(isEvaluated(rule), `${alert} is not evaluated: ${rule.expression}`);
  assert.ok(firing(figures, before).includes(alert), `${name}: ${alert} does not fire`);
  await assertLogged(service, logged, from);
}

/** Waits for one line since `from` that matches. Returns it. */
export async function assertLogged(
  service: Service,
  { level, msg, cause }: Logged,
  from = 0,
): Promise<LogLine> {
  const lines = () => logLines(service.stdout().slice(from)).filter((line) => line.level === level);
  return waitFor(`a line: ${level} ${msg} ${cause ?? ''}`, () =>
    lines().find(
      (line) =>
        msg.test(String(line.msg)) &&
        (cause?.test(JSON.stringify([line.cause, line.code, line.why])) ?? true),
    ),
  ).catch((error: unknown) => assert.fail(`${error}: ${JSON.stringify(lines())}`));
}

/** Waits until every part is ok, with metrics and alerts that agree, and a call is answered 200. */
async function assertWell(it: Watched, seen: Seen): Promise<void> {
  const { service } = it;
  // A caller repeats; some parts are known to work only when a call has worked.
  await waitFor('a call is executed', async () => (await it.call(service)).status === 200);
  await waitFor('every part is ok', async () => (await get<Health>(`${service.url}/health`)).body.ok);
  const figures = await scrape(service);
  assert.deepEqual(partFigures(figures, seen), [1, null]);
  assert.ok(!firing(figures, figures).includes(seen.alert), `${seen.alert} still fires`);
}

const partFigures = (figures: Figures, { part, reason }: Seen) => {
  const label = part.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return [
    figures.of('relay_part_up', { part: label }),
    figures.of('relay_part_problem', { part: label, reason }),
  ];
};

/** ms: 10 s of a log that takes nothing, one call's limit and the closing of the parts. */
export const STOP_LIMIT_MS = 40_000;

/** SIGTERM ends it within its bound, with code 0 and nothing on standard error. */
export async function assertStops(service: Service): Promise<void> {
  const { code, signal, stderr } = await withTimeout(
    service.stop(),
    STOP_LIMIT_MS,
    () => new Error(`SIGTERM did not end it within ${STOP_LIMIT_MS} ms`),
  );
  assert.deepEqual([code, signal, stderr], [0, null, '']);
}

/** A defect of the program since then: logged with its stack, counted, and an alert. Returns the line. */
export async function assertDefect(
  service: Service,
  msg: RegExp,
  { before, from }: { readonly before: Figures; readonly from: number },
): Promise<LogLine> {
  const line = await assertLogged(service, { level: 'error', msg, cause: /TypeError.*\\n\s+at / }, from);
  assert.equal(line.code, 'internal_error');
  const figures = await scrape(service);
  const counted = figures.of('relay_internal_errors_total') ?? 0;
  assert.ok(counted > (before.of('relay_internal_errors_total') ?? 0), 'counted');
  assert.ok(firing(figures, before).includes('RelayDefect'), 'RelayDefect fires');
  return line;
}
