// Three receipts of a real service in its transparency log, verified with plain HTTP and node:crypto only.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { recordedIn } from '#test/support/world/service-log.ts';
import {
  type Executed,
  execute,
  get,
  makeWorld,
  type Report,
  type World,
} from '#test/support/world/service-world.ts';
import {
  entriesOf,
  type Head,
  hashesOf,
  keyLeaf,
  leafHashes,
  openCheckpoint,
  openProof,
  receiptLeaf,
  rootOf,
  rootsOf,
} from './log-auditor.ts';

type Receipt = Executed['receipt'];

let world: World;
let service: Service;
let vkey: string;
let reportAtOnce: Report;
const receipts: Receipt[] = [];
const links: Executed['links'][] = [];
/** With the first receipt only, and with all. */
let older: Head;
let newer: Head;

const text = async (path: string): Promise<string> => {
  const response = await fetch(service.url + path);
  assert.equal(response.status, 200, path);
  return response.text();
};
const bytes = async (path: string) => Buffer.from(await (await fetch(service.url + path)).arrayBuffer());

const executed = async (order: number) => {
  const { status, body } = await execute(service, { url: world.target.url('/hook'), body: { order } });
  assert.equal(status, 200);
  receipts.push(body.receipt);
  links.push(body.links);
};

/** The newest checkpoint, once it has every receipt so far. */
async function everythingLogged(): Promise<Head> {
  for (const { id } of receipts) {
    await waitFor(`${id} in a checkpoint`, async () => {
      const { status } = await get(`${service.url}/log/proof/${id}`);
      assert.ok(status === 200 || status === 409, `${status}`);
      return status === 200;
    });
  }
  return openCheckpoint(await text('/log/checkpoint'), vkey);
}

describe('the transparency log', () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
    await waitFor('the first checkpoint is read', async () => (await fetch(`${service.url}/log/key`)).ok);
    vkey = await text('/log/key');
    await executed(1);
    reportAtOnce = (await get<Report>(links[0]?.verifyJob ?? '')).body;
    older = await everythingLogged();
    await executed(2);
    await executed(3);
    newer = await everythingLogged();
  });
  after(() => world.end());

  const hostOf = ({ url }: Service) => new URL(url).host;

  test('the verifier key is the checkpoint key of the key set, named after the host', async () => {
    const { body } = await get<{ keys: { purpose: string; x: string }[] }>(
      `${service.url}/.well-known/jwks.json`,
    );
    const x = body.keys.filter(({ purpose }) => purpose === 'checkpoint').map((key) => key.x);
    const [, name, key = ''] = /^(\S+?)\+[0-9a-f]{8}\+(\S+)\n$/.exec(vkey) ?? [];
    assert.equal(name, `${hostOf(service)}/receipts`);
    assert.deepEqual(x, [Buffer.from(key, 'base64').subarray(1).toString('base64url')]);
  });

  test('each receipt is proved by its proof file, up to a checkpoint that the key signed', async () => {
    const indexes: number[] = [];
    for (const { id, jws } of receipts) {
      const proof = openProof(await text(`/log/proof/${id}`), receiptLeaf(jws), vkey);
      assert.deepEqual([proof.origin, proof.size], [newer.origin, newer.size]);
      indexes.push(proof.index);
    }
    assert.deepEqual(indexes, [2, 3, 4]);
  });

  test('the tiles contain both key events and every receipt in the order of the log, and nothing else', async () => {
    const { size, root } = newer;
    assert.equal(size, 5);
    const hashes = hashesOf(await bytes(`/log/tile/0/000.p/${size}`));
    assert.equal(rootOf(hashes).toString('base64'), root);
    const entries = entriesOf(await bytes(`/log/tile/entries/000.p/${size}`));
    assert.deepEqual(leafHashes(entries), hashes);
    const expected: Buffer[] = [];
    for (const { type, data } of await recordedIn(world.dataDir)) {
      if (type === 'SigningKeyActivated') expected.push(keyLeaf(type, data as object));
    }
    assert.equal(expected.length, 2);
    expected.push(...receipts.map(({ jws }) => receiptLeaf(jws)));
    assert.deepEqual(entries, expected);
  });

  test('the newer checkpoint is consistent with the older one, which a buyer may have kept', async () => {
    assert.deepEqual([older.origin, older.size], [newer.origin, 3]);
    const { body } = await get<{ fromRoot: string; toRoot: string; proof: string[] }>(
      `${service.url}/log/consistency?from=${older.size}&to=${newer.size}`,
    );
    assert.deepEqual([body.fromRoot, body.toRoot], [older.root, newer.root]);
    assert.deepEqual(rootsOf(older.size, newer.size, body.proof, older.root), [older.root, newer.root]);
  });

  test('receipt_logged: ok at once, pending or not; in the end with origin, index and size', async () => {
    const logged = ({ checks }: Report) => checks.find(({ name }) => name === 'receipt_logged');
    assert.deepEqual([reportAtOnce.ok, logged(reportAtOnce)?.ok], [true, true]);
    for (const [at, { verifyJob = '', verifyReceipt = '', receipt = '' }] of links.entries()) {
      for (const url of [verifyJob, verifyReceipt]) {
        const { body } = await get<Report>(url);
        const details = { pending: false, origin: newer.origin, index: at + 2, size: newer.size };
        assert.deepEqual([body.ok, logged(body)], [true, { name: 'receipt_logged', ok: true, details }]);
      }
      assert.equal((await get<{ verified: boolean }>(receipt)).body.verified, true);
    }
  });

  test('after a regular shutdown a checkpoint covers every receipt; none is signed without new leaves', async () => {
    await executed(4);
    assert.equal((await service.stop()).code, 0);
    const signed = (await recordedIn(world.dataDir)).filter(({ type }) => type === 'CheckpointSigned');
    const sizes = signed.map(({ data }) => Number(data.size));
    assert.equal(sizes.at(-1), 6);
    assert.deepEqual(sizes, [...new Set(sizes)]);
  });

  test('receipts name their transparency log', () => {
    for (const { jws } of receipts) {
      const payload = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
      assert.deepEqual(payload.log, { origin: newer.origin, mmdSeconds: 3600 });
    }
  });
});
