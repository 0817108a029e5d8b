// A facilitator that demands a login: paid calls with static headers and with an API key; a login that is refused while the
// service runs is named by the log, health and metrics, and nothing is charged.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { canaryFor, filesBelow, wordsIn } from '#test/support/canaries.ts';
import { cdpGuard, environmentOf, headersGuard, newApiKey } from '#test/support/facilitator-login.ts';
import { readFigures } from '#test/support/figures.ts';
import { needsAnvil } from '#test/support/local-payments.ts';
import { assertAskedToPay, assertDelivered, assertSaid, send } from '#test/support/paid-call.ts';
import { makePaidWorld, type PaidWorld, type Sample } from '#test/support/paid-world.ts';
import { startSecretFront } from '#test/support/secret-front.ts';
import { logLines, type Service, waitFor } from '#test/support/service.ts';
import { get } from '#test/support/service-world.ts';
import { startTraceCollector } from '#test/support/trace-collector.ts';

const needs = needsAnvil();
/** One call and one charge for this one, none for the others. */
const once = (one: Sample) => (sample: Sample) =>
  sample === one ? { calls: 1, charges: 1 } : { calls: 0, charges: 0 };
const KEY = canaryFor('statickey');
const REFUSED = 'The facilitator refuses our login';
const REFUSED_HEALTH = {
  ok: false,
  reason: 'login_refused',
  message: 'The facilitator refuses our login: paid calls answer 503, nothing is charged.',
};

describe('a facilitator with a login', needs, () => {
  let paid: PaidWorld;
  before(async () => {
    paid = await makePaidWorld();
  });
  after(() => paid.end());

  const sampleOf = async (service: Service, row: string): Promise<Sample> =>
    (await paid.samples(service, row, { count: 1 }))[0] ?? assert.fail();

  /** As operators see it: health, then both gauges; waits for what is cached. */
  async function assertSeen(service: Service, health: object, ...gauges: readonly number[]): Promise<void> {
    const expected = [200, health, ...gauges];
    await waitFor(JSON.stringify(expected), async () => isDeepStrictEqual(await seen(service), expected));
  }
  async function seen({ url }: Service) {
    type Health = { readonly ok: boolean; readonly checks: { readonly facilitator: unknown } };
    const health = await get<Health>(`${url}/health`);
    const figures = readFigures((await get<string>(`${url}/metrics`)).body);
    const refused = { part: 'facilitator', reason: 'login_refused' };
    return [
      health.status,
      health.body.checks.facilitator,
      figures.of('relay_part_up', { part: 'facilitator' }),
      figures.of('relay_part_problem', refused) ?? 0,
    ];
  }

  test('static headers; refused while it runs, accepted again, repeated as a reason; the key is nowhere', async () => {
    let demanded = KEY;
    const guard = headersGuard(() => ({ 'x-api-key': demanded }));
    const front = await startSecretFront(paid.proxy.url, { path: 'x402', guard });
    const collector = await startTraceCollector();
    const file = join(paid.folder, 'headers');
    writeFileSync(file, `# the facilitator's key\nX-Api-Key: ${KEY}\n`, { mode: 0o600 });
    const service = await paid.start({
      X402_FACILITATOR_URL: front.url,
      X402_FACILITATOR_HEADERS_FILE: file,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      LOG_LEVEL: 'debug',
    });
    const [served, later] = [await sampleOf(service, 'served'), await sampleOf(service, 'later')];
    assertDelivered(await send(service, served), served);
    await assertSeen(service, { ok: true }, 1, 0);

    demanded = 'another';
    for (let n = 0; n < 3; n++) assertSaid(await send(service, later), 503, 'facilitator_unavailable');
    await assertSeen(service, REFUSED_HEALTH, 0, 1);
    assertDelivered(await send(service, served), served, { replay: true });
    await paid.assertBooks([served, later], once(served));

    demanded = KEY;
    assertDelivered(await send(service, later), later);
    await assertSeen(service, { ok: true }, 1, 0);
    await paid.assertBooks([served, later], { calls: 1, charges: 1 });

    const named = await sampleOf(service, 'named');
    front.mode('name_login');
    const refused = await send(service, named);
    assertAskedToPay(refused);
    // The verify passes; the settle call that follows it does not.
    front.mode('pass');
    paid.proxy.rule(({ kind }) => {
      if (kind === 'verify') front.mode('name_login');
      return 'pass';
    });
    const unknown = await send(service, named);
    assertSaid(unknown, 503, 'payment_unconfirmed');
    paid.proxy.rule(() => 'pass');
    front.mode('pass');
    assertDelivered(await send(service, named), named);
    await paid.assertBooks([named], { calls: 1, charges: 1 });
    for (const { headers, body } of [refused, unknown])
      assert.deepEqual(wordsIn([KEY], JSON.stringify([[...headers], body])), []);
    assert.deepEqual(wordsIn([KEY], JSON.stringify(await seen(service))), []);

    const { code, stdout, stderr } = await service.stop();
    assert.deepEqual([code, stderr], [0, '']);
    const lines = logLines(stdout).filter(({ condition }) => condition === 'login_refused');
    assert.deepEqual(
      lines.map(({ level, operation, code: cause }) => [level, operation, cause]),
      [
        ['error', 'verify', 'status_401'],
        ['info', undefined, undefined],
      ],
    );
    assert.deepEqual(wordsIn([KEY], guard.seen.join('\n')), [KEY]);
    const written = filesBelow(paid.dataDir).map(([, bytes]) => bytes);
    for (const bytes of [stdout, collector.bytes(), ...written]) assert.deepEqual(wordsIn([KEY], bytes), []);
    assert.ok(collector.spans().some(({ name }) => name === 'payment.verify'));
    await Promise.all([front.down(), collector.close()]);
  });

  test('an API key (ES256, line breaks as \\n): each request has its own token; a wrong one is named at the start', async () => {
    const key = newApiKey('sec1');
    const guard = cdpGuard(() => [key]);
    const front = await startSecretFront(paid.proxy.url, { path: 'platform/v2/x402', guard });
    const env = { X402_FACILITATOR_URL: front.url, ...environmentOf(key) };
    const service = await paid.start({ ...env, CDP_API_KEY_SECRET: key.secret.replaceAll('\n', '\\n') });
    const sample = await sampleOf(service, 'token');
    assertDelivered(await send(service, sample), sample);
    await assertSeen(service, { ok: true }, 1, 0);
    assert.ok(guard.seen.length >= 3);
    assert.equal((await service.stop()).code, 0);

    const other = await paid.start({ ...env, CDP_API_KEY_SECRET: newApiKey('ed25519').secret });
    await assertSeen(other, REFUSED_HEALTH, 0, 1);
    const unpaid = await sampleOf(other, 'wrong-token');
    assertSaid(await send(other, unpaid), 503, 'facilitator_unavailable');
    await paid.assertBooks([sample, unpaid], once(sample));
    const { code, stdout } = await other.stop();
    assert.equal(code, 0);
    assert.equal(logLines(stdout).filter(({ msg }) => String(msg).startsWith(REFUSED)).length, 1);
    await front.down();
  });
});
