// Keys are rotated, retired and compromised while the service runs: it switches without a restart, and a receipt is valid
// according to when it was signed.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/cli.ts';
import { type Service, waitFor } from '#test/support/service.ts';
import { payloadOf } from '#test/support/service-receipts.ts';
import {
  type Executed,
  execute,
  get,
  makeWorld,
  post,
  type Report,
  type World,
} from '#test/support/service-world.ts';

type Jwk = { kid: string; purpose: string; nbf: number; exp?: number; revokedAt?: number };
type Signed = Executed['receipt'] & { readonly iat: number };
type Rotated = { readonly keyId: string; readonly retiring: readonly { readonly effectiveAt: string }[] };

let world: World;
let service: Service;
/** Receipts by the first key in two different seconds and after the rotation, and by the fresh one. */
let early: Signed;
let late: Signed;
let during: Signed;
let fresh: Signed;
let rotated: Rotated;

async function signed(): Promise<Signed> {
  const receipt = await signedOrNone();
  assert.ok(receipt);
  return receipt;
}

/** null: no key is valid at that moment. */
async function signedOrNone(): Promise<Signed | null> {
  const { status, body } = await execute(service, { url: world.target.url('/hook'), method: 'POST' });
  return status === 200 ? { ...body.receipt, iat: payloadOf(body.receipt.jws).iat } : null;
}

async function relay(...args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runCli(args, { env: { DATA_DIR: world.dataDir } });
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

const jwks = async (): Promise<readonly Jwk[]> =>
  (await get<{ keys: readonly Jwk[] }>(`${service.url}/.well-known/jwks.json`)).body.keys;

type Proofs = {
  readonly proofs: readonly { readonly receiptId: string; readonly receiptVerified: boolean }[];
};
type Decision = { readonly facts: { readonly trustScore: number } };
type Trust = {
  readonly trustScore: number;
  readonly trustSignals: readonly string[];
  readonly trustComponents: readonly { readonly name: string; readonly value: unknown }[];
};
type Monitoring = { readonly status: string; readonly attention: readonly string[] };

const holds = async ({ id }: Pick<Signed, 'id'>): Promise<boolean> =>
  (await get<Report>(`${service.url}/api/verify/receipts/${id}`)).body.ok;

/** Verifies with the command line, offline, from the receipt and the current key set. */
async function exitsOffline(...receipts: readonly Signed[]): Promise<readonly (number | null)[]> {
  const keys = join(world.folder, 'jwks.json');
  writeFileSync(keys, JSON.stringify({ keys: await jwks() }));
  return Promise.all(
    receipts.map(async ({ id, jws }) => {
      const file = join(world.folder, `${id}.jws`);
      writeFileSync(file, jws);
      return (await runCli(['verify', file, '--keys', keys])).code;
    }),
  );
}

describe('key changes while the service runs', () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
    early = await signed();
    late = await waitFor(
      'the next second',
      async () => {
        const next = await signed();
        return next.iat > early.iat && next;
      },
      { everyMs: 100 },
    );
    rotated = (await relay('keys', 'rotate', '--json')) as Rotated;
    during = await signed();
  });
  after(() => world.end());

  test('after a rotation the old key signs on, while caches of the key set lack the fresh one', async () => {
    assert.deepEqual([late.keyId, during.keyId], [early.keyId, early.keyId]);
    assert.deepEqual([await holds(early), await holds(late), await holds(during)], [true, true, true]);
    assert.deepEqual(await exitsOffline(early, during), [0, 0]);
  });

  test('the key set has the window of the old key, and the purpose of each key', async () => {
    const keys = await waitFor('the fresh key', async () => {
      const found = await jwks();
      return found.length === 3 && found;
    });
    const [old, checkpoint, successor] = keys;
    assert.deepEqual(
      keys.map(({ kid, purpose }) => [kid, purpose]),
      [
        [early.keyId, 'receipt'],
        [checkpoint?.kid, 'checkpoint'],
        [rotated.keyId, 'receipt'],
      ],
    );
    const effectiveAt = Date.parse(rotated.retiring[0]?.effectiveAt ?? '');
    assert.deepEqual([old?.exp, old?.revokedAt], [Math.floor(effectiveAt / 1000), undefined]);
    assert.deepEqual([checkpoint?.exp, successor?.exp], [undefined, undefined]);
    assert.ok((old?.nbf ?? 0) <= early.iat && (successor?.nbf ?? 0) <= during.iat);
  });

  test('a compromise: receipts issued since then are invalid, those before it are valid', async () => {
    const since = new Date(late.iat * 1000).toISOString();
    await relay('keys', 'retire', '--json', '--compromised', '--since', since, early.keyId);
    fresh = await waitFor(
      'a receipt of the fresh key, at once',
      async () => {
        const next = await signedOrNone();
        return next?.keyId === rotated.keyId && next;
      },
      { everyMs: 500 },
    );
    await waitFor('the compromise to be known', async () => !(await holds(late)), { everyMs: 200 });
    assert.deepEqual([await holds(early), await holds(fresh)], [true, true]);
    assert.equal((await jwks()).find(({ kid }) => kid === early.keyId)?.revokedAt, late.iat);
    assert.deepEqual(await exitsOffline(early, late, fresh), [0, 1, 0]);
  });

  test('lists, trust, decisions, monitoring and the front page agree with each receipt’s verification', async () => {
    const { proofs } = await waitFor('the lists to know', async () => {
      const { body } = await get<Proofs>(`${service.url}/api/proofs/recent?limit=50`);
      return body.proofs.some(({ receiptVerified }) => !receiptVerified) && body;
    });
    const said = proofs.map(({ receiptId, receiptVerified }) => [receiptId, receiptVerified] as const);
    assert.deepEqual(said, await Promise.all(said.map(async ([id]) => [id, await holds({ id })])));
    const fallen = said.filter(([, verified]) => !verified).length;
    const signal = `${fallen} of ${said.length} receipts signed so far do not verify.`;
    const trust = await waitFor('trust to know', async () => {
      const { body } = await get<Trust>(`${service.url}/api/trust`);
      const value = body.trustComponents.find(({ name }) => name === 'receipts_verified')?.value;
      return body.trustSignals.includes(signal) && value === (said.length - fallen) / said.length && body;
    });
    const action = { url: world.target.url('/hook'), method: 'POST' };
    const decision = await post<Decision>(`${service.url}/api/decide/webhook`, { action });
    assert.equal(decision.body.facts.trustScore, trust.trustScore);
    const { body } = await get<Monitoring>(`${service.url}/api/monitoring/executions`);
    assert.deepEqual([body.status, body.attention], ['attention', ['unverified_receipt']]);
    const page = await (await fetch(service.url)).text();
    const shown = said.slice(0, 10).filter(([, verified]) => verified).length;
    assert.equal(page.split(', receipt verified').length - 1, shown);
  });

  test('only the fresh key makes assertions in the DID document now', async () => {
    const { body } = await get<{ assertionMethod: readonly string[] }>(`${service.url}/.well-known/did.json`);
    assert.deepEqual(
      body.assertionMethod.map((id) => id.split('#')[1]),
      [fresh.keyId],
    );
  });
});
