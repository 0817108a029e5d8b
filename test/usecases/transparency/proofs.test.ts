// What the transparency log answers, over a tree of 600 leaves (three tiles of the lowest level): all that a client
// gets is checked by the client's own means, from the signed checkpoint.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBase64 } from '#src/domain/encoding.ts';
import { Fault, type Refused } from '#src/domain/refusal.ts';
import { parseCheckpoint, verifySignedCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { leafHash, verifyConsistencyProof } from '#src/domain/transparency/merkle.ts';
import {
  HASH_BYTES,
  inclusionProof,
  TILE_WIDTH,
  tileWidth,
  treeReader,
} from '#src/domain/transparency/tiles.ts';
import { verifyTlogProof } from '#src/domain/transparency/tlog-proof.ts';
import { type TransparencyDeps, transparency } from '#src/usecases/transparency/proofs.ts';
import { primitives, sha256, testKey } from '#test/support/given/primitives.ts';
import { publicLog, receiptIdAt } from '#test/support/log/public-log.ts';
import { ORIGIN } from '#test/support/log/small-log.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const SIZE = 600;
const world = await publicLog(SIZE);
const { asked, log, leaves, deps } = world;
const keys = [log.key.record];

const hex = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString('hex'));
const refusalOf = (answer: object | string | null): Refused => {
  assert.ok(answer !== null && typeof answer === 'object' && 'refused' in answer);
  return answer as Refused;
};

test('a client with nothing but tiles and checkpoint recomputes the signed root', async () => {
  const head = await verifySignedCheckpoint((await asked.checkpoint()) ?? '', keys, primitives);
  assert.ok(head !== null);
  assert.deepEqual([head.origin, head.size], [ORIGIN, SIZE]);
  // As it asks: each tile in the width that a tree of this size has.
  const reader = treeReader((level, n) => asked.tile({ level, n, width: tileWidth(level, n, head.size) }));
  assert.equal(hex(await reader.root(0, SIZE)), hex(head.root));
  const path = await inclusionProof(reader, 599, SIZE);
  assert.equal(path.length, 6);
});

test('the tiles are those of tlog-tiles: full ones of 8192 bytes, partial ones as wide as asked', async () => {
  const level0 = await asked.tile({ level: 0, n: 0, width: TILE_WIDTH });
  assert.equal(level0?.length, 8192);
  for (const [index, leaf] of leaves.slice(0, TILE_WIDTH).entries()) {
    const hash: Uint8Array | null = level0?.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES) ?? null;
    assert.equal(hex(hash), hex(leafHash(leaf)));
  }
  const level1 = await asked.tile({ level: 1, n: 0, width: 2 });
  assert.equal(hex(level1), hex(await log.root(256)) + (hex(await treeRoot(256, 512)) ?? ''));
  const last = await asked.tile({ level: 0, n: 2, width: 88 });
  assert.equal(last?.length, 88 * HASH_BYTES);
  const narrower = await asked.tile({ level: 0, n: 2, width: 17 });
  assert.equal(hex(narrower), hex(last?.slice(0, 17 * HASH_BYTES) ?? null));
});

const treeRoot = (from: number, to: number) => treeReader(log.readTile).root(from, to);

test('each entry of a bundle hashes to its place in the tile of level 0', async () => {
  for (const [n, width] of [
    [0, 256],
    [1, 256],
    [2, 88],
    [2, 1],
  ] as const) {
    const bundle = await asked.tile({ level: 'entries', n, width });
    const tile = await asked.tile({ level: 0, n, width });
    assert.ok(bundle !== null && tile !== null);
    const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
    const entries: Uint8Array[] = [];
    for (let at = 0; at < bundle.length; at += 2 + view.getUint16(at)) {
      entries.push(bundle.slice(at + 2, at + 2 + view.getUint16(at)));
    }
    assert.equal(entries.length, width);
    const hashes = await Promise.all(entries.map(async (entry) => hex(leafHash(entry))));
    assert.equal(hashes.join(''), hex(tile));
  }
});

test('no tile is wider than the newest checkpoint, though the tree has grown since', async () => {
  const growing = await publicLog(300);
  await growing.signAt(258);
  const tile = (level: number | 'entries', n: number, width: number) =>
    growing.asked.tile({ level, n, width });
  for (const level of [0, 'entries'] as const) {
    assert.notEqual(await tile(level, 1, 2), null);
    assert.equal(await tile(level, 1, 3), null);
    assert.equal(await tile(level, 1, 256), null);
    assert.equal(await tile(level, 2, 1), null);
  }
  assert.notEqual(await tile(1, 0, 1), null);
  assert.equal(await tile(1, 0, 2), null);
  assert.equal(await tile(2, 0, 1), null);
  assert.equal(await tile(63, 0, 1), null);
  await growing.signAt(300);
  assert.notEqual(await tile(0, 1, 3), null);
});

test('a tile that is shorter than its checkpoint says is no tile', async () => {
  const rows = { ...deps.rows, tile: async () => new Uint8Array(3 * HASH_BYTES) };
  const cut = transparency({ ...deps, rows });
  assert.equal(await cut.tile({ level: 0, n: 0, width: 256 }), null);
  assert.equal((await cut.tile({ level: 0, n: 0, width: 3 }))?.length, 3 * HASH_BYTES);
});

test('every receipt is proved up to the newest checkpoint', async () => {
  for (const index of [0, 1, 255, 256, 511, 512, 598, 599]) {
    const text = await asked.prove(receiptIdAt(index));
    assert.ok(typeof text === 'string');
    const leafData = leaves[index] ?? new Uint8Array();
    const verdict = await verifyTlogProof(text, { leafData, origin: ORIGIN }, keys, primitives);
    assert.ok(verdict.ok);
    assert.deepEqual([verdict.index, verdict.checkpoint.size], [index, SIZE]);
  }
});

test('a proof reads few tiles: each once', async () => {
  const read: string[] = [];
  const tile: TransparencyDeps['rows']['tile'] = (level, n) => {
    read.push(`${level}/${n}`);
    return deps.rows.tile(level, n);
  };
  const counted = transparency({ ...deps, rows: { ...deps.rows, tile } });
  await counted.prove(receiptIdAt(300));
  assert.deepEqual(read.sort(), ['0/1', '0/2', '1/0']);
});

test('receipt_not_found: an id that no leaf has; receipt_not_ready: a leaf that no checkpoint has yet', async () => {
  const growing = await publicLog(4);
  await growing.signAt(2);
  assert.equal(refusalOf(await growing.asked.prove(receiptIdAt(9))).refused, 'receipt_not_found');
  const notReady = refusalOf(await growing.asked.prove(receiptIdAt(2)));
  assert.deepEqual([notReady.refused, notReady.retryAfterSeconds], ['receipt_not_ready', 5]);
  await growing.signAt(3);
  assert.equal(typeof (await growing.asked.prove(receiptIdAt(2))), 'string');
  assert.equal(refusalOf(await growing.asked.prove(receiptIdAt(3))).refused, 'receipt_not_ready');
});

test('any two sizes up to the newest checkpoint are proved consistent, with their true roots', async () => {
  for (const [from, to] of [
    [0, 0],
    [0, 600],
    [1, 600],
    [256, 600],
    [257, 513],
    [599, 600],
    [600, 600],
  ] as const) {
    const answer = await asked.consistency(from, to);
    assert.ok(answer !== null && 'proof' in answer);
    const bytes = (text: string) => fromBase64(text) ?? new Uint8Array();
    assert.equal(hex(bytes(answer.fromRoot)), hex(await log.root(from)));
    assert.equal(hex(bytes(answer.toRoot)), hex(await log.root(to)));
    const claim = {
      from,
      to,
      fromRoot: bytes(answer.fromRoot),
      toRoot: bytes(answer.toRoot),
      proof: answer.proof.map(bytes),
    };
    assert.equal(verifyConsistencyProof(claim), true, `${from} ${to}`);
  }
});

for (const [from, to, paths] of [
  [0, 601, ['/to']],
  [5, 4, ['/from']],
  [601, 600, ['/from']],
  [601, 601, ['/to', '/from']],
  [-1, 600, ['/from']],
  [0.5, 600, ['/from']],
] as const) {
  test(`invalid_request: consistency from ${from} to ${to} says which is wrong, and the sizes there are`, async () => {
    const { refused, message, details } = refusalOf(await asked.consistency(from, to));
    assert.equal(refused, 'invalid_request');
    assert.match(message, /0 <= from <= to <= 600/);
    assert.deepEqual(
      (details as { path: string }[]).map(({ path }) => path),
      paths,
    );
  });
}

test('tiles that are gone while the rows are replaced: read_models_unavailable, no wrong proof', async () => {
  const gone = transparency({ ...deps, rows: { ...deps.rows, tile: async () => null } });
  for (const answer of [gone.prove(receiptIdAt(1)), gone.consistency(1, 600)]) {
    await assert.rejects(answer, (thrown: unknown) => {
      assert.ok(thrown instanceof Fault);
      return thrown.code === 'read_models_unavailable';
    });
  }
  const failing = async () => Promise.reject(new TypeError('of ours'));
  const broken = transparency({ ...deps, rows: { ...deps.rows, tile: failing } });
  await assert.rejects(broken.prove(receiptIdAt(1)), TypeError);
});

test('the key is that of the newest checkpoint, under the name of its origin', async () => {
  const [, name, id, key] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec((await asked.key()) ?? '') ?? [];
  assert.equal(name, ORIGIN);
  const publicKey = Buffer.from(key ?? '', 'base64');
  assert.deepEqual([publicKey[0], publicKey.subarray(1).toString('base64url')], [1, log.key.x]);
  const hashed = sha256(Buffer.concat([Buffer.from(`${ORIGIN}\n`), publicKey]));
  assert.equal(id, hex(hashed.slice(0, 4)));
});

test('a key that was just announced is read from the log; an unannounced or revoked key does not count', async () => {
  const of = (list: typeof keys, fresh: typeof keys) =>
    transparency({ ...deps, keys: { list: () => list, refresh: async () => fresh } }).key();
  assert.equal(await of([], keys), await asked.key());
  const other = testKey({ purpose: 'checkpoint' }).record;
  assert.equal(await of([other], [other]), null);
  const revoked = [{ ...log.key.record, compromisedAt: 5 }];
  assert.equal(await of(revoked, revoked), null);
});

test('before the first checkpoint, and without a log, every answer is null', async () => {
  const none = transparency({
    ...deps,
    rows: { ...deps.rows, checkpoint: async () => null },
    latest: () => null,
  });
  for (const transparency of [none, noTransparency]) {
    assert.equal(transparency.latest(), null);
    assert.equal(await transparency.checkpoint(), null);
    assert.equal(await transparency.key(), null);
    assert.equal(await transparency.tile({ level: 0, n: 0, width: 1 }), null);
    assert.equal(await transparency.prove(receiptIdAt(0)), null);
    assert.equal(await transparency.consistency(0, 0), null);
  }
});

test('a checkpoint of no leaves: no tile, nothing to prove, and one consistency', async () => {
  const empty = await publicLog(0);
  assert.equal(parseCheckpoint((await empty.asked.checkpoint()) ?? '')?.size, 0);
  assert.equal(await empty.asked.tile({ level: 0, n: 0, width: 1 }), null);
  assert.equal(refusalOf(await empty.asked.prove(receiptIdAt(0))).refused, 'receipt_not_found');
  const answer = await empty.asked.consistency(0, 0);
  assert.ok(answer !== null && 'proof' in answer);
  assert.deepEqual([answer.proof, answer.fromRoot], [[], answer.toRoot]);
});

test('a tree that is not the signed one: no tile and no consistency proof of it, and an inclusion proof that fails', async () => {
  const log = await publicLog(5);
  const asked = transparency({ ...log.deps, stands: () => false });
  const unavailable = (error: unknown) => error instanceof Fault && error.code === 'read_models_unavailable';
  await assert.rejects(asked.tile({ level: 0, n: 0, width: 5 }), unavailable);
  await assert.rejects(asked.consistency(1, 5), unavailable);
  assert.equal(typeof (await asked.prove(receiptIdAt(2))), 'string');
  assert.ok(await asked.checkpoint());
});
