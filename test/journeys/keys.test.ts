// Keys are rotated, retired and compromised while the service runs: it switches without a restart, and a receipt is valid
// according to when it was signed.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCli } from '#test/support/process/cli.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';
import {
  type Executed,
  execute,
  get,
  makeWorld,
  post,
  type Report,
  type World,
} from '#test/support/world/service-world.ts';

type Jwk = { kid: string; revokedAt?: number };
type Signed = Executed['receipt'] & { readonly iat: number };
type Rotated = { readonly keyId: string };

let world: World;
let service: Service;
/** Receipts by the first key in two different seconds, and by the fresh one. */
let early: Signed;
let late: Signed;
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
  });
  after(() => world.end());

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
});
