// The transparency log of a real service: begun at the first start, signed only when it grows, and the same log
// after a restart under another host.
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { logOf } from '#src/domain/receipt/payload.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { type Checkpoint, verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { readFigures } from '#test/support/figures.ts';
import { primitives } from '#test/support/primitives.ts';
import { contradictionsOf, sizes } from '#test/support/receipt-log-world.ts';
import { logLines, type Service, waitFor } from '#test/support/service.ts';
import { recordedIn } from '#test/support/service-log.ts';
import { payloadOf } from '#test/support/service-receipts.ts';
import {
  type ErrorBody,
  type Executed,
  execute,
  get,
  makeWorld,
  post,
  type World,
} from '#test/support/service-world.ts';

type Receipt = { readonly id: string; readonly jws: string; readonly checkpoint: string | null };
type Health = {
  readonly ok: boolean;
  readonly checks: { readonly transparencyLog: { readonly ok: boolean; readonly reason?: string } };
};
type Trust = {
  readonly trustComponents: readonly { readonly name: string; readonly value: unknown }[];
};

describe('the transparency log', () => {
  let world: World;
  let service: Service;
  let origin: string;
  let keys: readonly KeyRecord[];

  const call = async (idempotencyKey: string, path = ''): Promise<Executed> =>
    (await execute(service, { url: world.target.url(`/hook${path}`), idempotencyKey })).body;

  async function verified(note: string | null): Promise<Checkpoint> {
    const checkpoint = note === null ? null : await verifySignedCheckpoint(note, keys, primitives);
    assert.ok(checkpoint, `signed by a published key: ${note}`);
    return checkpoint;
  }

  /** The receipt and the first checkpoint that covers it. */
  const logged = ({ receipt }: Executed): Promise<Receipt> =>
    waitFor('a checkpoint over the receipt', async () => {
      const { body } = await get<Receipt>(`${service.url}/api/receipts/${receipt.id}`);
      return typeof body.checkpoint === 'string' && body;
    });

  before(async () => {
    world = await makeWorld({
      embedded: true,
      handler: ({ path }) => ({ status: path.endsWith('gone') ? 500 : 200 }),
    });
    service = await world.start();
    origin = `${new URL(service.url).host}/receipts`;
    keys = fromJwkSet((await get(`${service.url}/.well-known/jwks.json`)).body) ?? [];
  });
  after(() => world.end());

  const backup = () => join(world.folder, 'events.db');

  test('every execution response carries the newest checkpoint: fresh, failed and replayed', async () => {
    const fresh = await call('one');
    assert.deepEqual(logOf(payloadOf(fresh.receipt.jws)), { origin, mmdSeconds: 3600 });
    const failed = await call('two', '/gone');
    assert.equal(failed.job.status, 'failed');
    for (const { checkpoint } of [fresh, failed, await call('one')])
      assert.equal((await verified(checkpoint)).origin, origin);
  });

  test('a checkpoint soon covers a receipt; /log/checkpoint and the next answers contain it', async () => {
    const receipt = await logged(await call('three'));
    const { size } = await verified(receipt.checkpoint);
    // Two keys and three receipts.
    assert.ok(size >= 5, String(size));
    const replayed = await verified((await call('three')).checkpoint);
    assert.ok(replayed.size >= size);
    const { body } = await get<Trust>(`${service.url}/api/trust`);
    const component = body.trustComponents.find(({ name }) => name === 'log_checkpoint');
    assert.equal(component?.value, true);
  });

  test('after a regular shutdown a checkpoint covers every receipt; none is signed without new leaves', async () => {
    await call('four');
    assert.equal((await service.stop()).code, 0);
    const events = await recordedIn(world.dataDir);
    assert.deepEqual(await contradictionsOf(events, keys, origin), []);
    assert.equal(sizes({ log: { events } }).at(-1), 6);
    cpSync(join(world.dataDir, 'events.db'), backup());
  });

  test('started again under another host it is the same log', async () => {
    service = await world.start({ PUBLIC_BASE_URL: 'https://later.example', ALLOW_FREE_RELAY: 'true' });
    const next = await call('five');
    assert.equal((await verified(next.checkpoint)).origin, origin);
    assert.equal(logOf(payloadOf(next.receipt.jws))?.origin, origin);
    assert.equal((await verified((await logged(next)).checkpoint)).size, 7);
    const warnings = logLines(service.stdout()).filter(({ named }) => named !== undefined);
    assert.deepEqual(
      warnings.map(({ level, named, here }) => [level, named, here]),
      [['warn', origin, 'later.example/receipts']],
    );
  });

  test('a log restored from before its last checkpoint: no new call, every view says why, what the log has is answered', async () => {
    await service.stop();
    for (const tail of ['', '-wal', '-shm']) rmSync(join(world.dataDir, `events.db${tail}`), { force: true });
    cpSync(backup(), join(world.dataDir, 'events.db'));
    service = await world.start();
    const hits = world.target.requests.length;
    // Its answer was lost with the end of the log: sent again, it would act twice.
    for (const idempotencyKey of ['five', 'six']) {
      const answer = await post<ErrorBody>(`${service.url}/api/execute/webhook`, {
        url: world.target.url('/hook'),
        idempotencyKey,
      });
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'event_log_unavailable']);
      assert.match(answer.body.error.message, /lacks events that this relay has acknowledged/);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    }
    const action = { url: world.target.url('/hook'), idempotencyKey: 'decided' };
    assert.equal((await post(`${service.url}/api/decide/webhook`, { action })).status, 503);
    const { idempotentReplay, checkpoint } = await call('one');
    assert.equal(idempotentReplay, true);
    assert.equal((await verified(checkpoint)).size, 7, 'a published checkpoint stays the newest');
    assert.equal(world.target.requests.length, hits);

    const health = await get<Health>(`${service.url}/health`);
    const { ok, reason } = health.body.checks.transparencyLog;
    assert.deepEqual(
      [health.status, health.body.ok, ok, reason],
      [503, false, false, 'checkpoint_forgotten'],
    );
    const figures = readFigures((await get<string>(`${service.url}/metrics`)).body);
    assert.equal(figures.of('relay_part_up', { part: 'transparency_log' }), 0);
    const problem = { part: 'transparency_log', reason: 'checkpoint_forgotten' };
    assert.equal(figures.of('relay_part_problem', problem), 1);
    assert.equal(figures.of('relay_checkpoint_size'), 7);
    const trust = await waitFor('rows without the lost end', async () => {
      const answer = await get<Trust & { readonly status: string }>(`${service.url}/api/trust`);
      return answer.status === 200 && answer;
    });
    assert.equal(trust.body.status, 'attention');
    assert.equal(trust.body.trustComponents.find(({ name }) => name === 'log_checkpoint')?.value, false);
    const page = await get<string>(`${service.url}/status`);
    assert.match(page.body, /No checkpoint of the transparency log is signed/);
    assert.doesNotMatch(page.body, /records are in order/);
    const errors = logLines(service.stdout()).filter(({ level }) => level === 'error');
    assert.deepEqual(
      errors.map(({ condition }) => condition),
      ['checkpoint_forgotten'],
    );
    assert.ok(
      String(errors[0]?.msg).includes(join(world.dataDir, 'checkpoint.note')),
      'and where it is kept',
    );
    assert.equal((await service.stop()).code, 0);
    const events = await recordedIn(world.dataDir);
    assert.equal(sizes({ log: { events } }).at(-1), 6, 'nothing was signed');
    assert.ok(!events.some(({ type }) => type === 'DecisionRecorded'));
  });

  test('the operator accepts the loss: calls are taken again, and checkpoints are signed', async () => {
    rmSync(join(world.dataDir, 'checkpoint.note'));
    service = await world.start();
    const health = await get<Health>(`${service.url}/health`);
    assert.deepEqual([health.status, health.body.ok], [200, true]);
    assert.equal((await verified((await logged(await call('five'))).checkpoint)).size, 7);
  });
});
