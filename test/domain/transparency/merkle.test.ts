// The tree of RFC 6962: reference roots, every proof up to 130 leaves, and none that was tampered with.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { toHex } from '#src/domain/encoding.ts';
import {
  type Hash,
  leafHash,
  verifyConsistencyProof,
  verifyInclusion,
} from '#src/domain/transparency/merkle.ts';
import { consistencyProof, inclusionProof, treeReader } from '#src/domain/transparency/tiles.ts';
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { type SmallLog, smallLog } from '#test/support/log/small-log.ts';
import { MTH, PATH, PROOF } from '#test/support/witness/rfc6962.ts';

/** The test data of Certificate Transparency's reference implementation, and the root after each leaf. */
const CT_LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const CT_ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

test('the roots are those of the Certificate Transparency reference', async () => {
  let tree: Tree = EMPTY_TREE;
  const roots = [toHex(rootOf(tree))];
  for (const leaf of CT_LEAVES) {
    const data = new Uint8Array(Buffer.from(leaf, 'hex'));
    ({ tree } = appendLeaf(tree, data));
    roots.push(toHex(rootOf(tree)));
  }
  assert.deepEqual(roots, CT_ROOTS);
});

const MOST = 130;
const DATA = Array.from({ length: MOST }, (_, n) => sha256(`leaf ${n}`));
const hex = (hashes: readonly Uint8Array[]) => hashes.map(toHex);
let log: SmallLog;
const roots: Hash[] = [];
const leaves: Hash[] = [];
before(async () => {
  log = smallLog();
  roots.push(await log.root());
  for (const data of DATA) {
    leaves.push(leafHash(data));
    await log.append(data);
    roots.push(rootOf(log.tree()));
  }
});
const rootAt = (size: number): Hash => roots[size] ?? assert.fail();

test('root, inclusion and consistency of every size up to 130 are word for word those of the RFC', async () => {
  const reader = treeReader(log.readTile);
  for (const size of [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130]) {
    const data = DATA.slice(0, size);
    assert.deepEqual(rootAt(size), MTH(data), `${size}`);
    for (let n = 0; n < size; n++)
      assert.deepEqual(hex(await inclusionProof(reader, n, size)), hex(PATH(n, data)), `${n} in ${size}`);
    for (let from = 1; from < size; from++)
      assert.deepEqual(
        hex(await consistencyProof(reader, from, size)),
        hex(PROOF(from, data)),
        `${from} to ${size}`,
      );
  }
});

test('every inclusion and consistency proof up to 130 leaves holds', async () => {
  const reader = treeReader(log.readTile);
  let held = 0;
  for (let size = 1; size <= MOST; size++) {
    for (let index = 0; index < size; index++) {
      const proof = await inclusionProof(reader, index, size);
      const leaf = leaves[index] ?? assert.fail();
      assert.ok(verifyInclusion({ index, size, leaf, proof, root: rootAt(size) }));
      held++;
    }
    for (let from = 0; from <= size; from++) {
      const proof = await consistencyProof(reader, from, size);
      const claim = { from, to: size, fromRoot: rootAt(from), toRoot: rootAt(size), proof };
      assert.ok(verifyConsistencyProof(claim), `${from} to ${size}`);
      held++;
    }
  }
  assert.equal(held, (MOST * (MOST + 1)) / 2 + (MOST * (MOST + 3)) / 2);
});

const flipped = (hash: Hash): Hash => hash.map((byte, at) => (at === 31 ? byte ^ 1 : byte));

/** Every way to spoil a list of hashes by one step. */
function* spoilt(proof: readonly Hash[]): Generator<readonly Hash[]> {
  for (let at = 0; at < proof.length; at++) {
    yield proof.map((hash, n) => (n === at ? flipped(hash) : hash));
    yield proof.filter((_, n) => n !== at);
    yield [...proof.slice(0, at), proof[at] ?? assert.fail(), ...proof.slice(at)];
  }
  yield [...proof, sha256('more')];
  if (proof.length > 1) yield [...proof].reverse();
  if (proof.length > 0) yield [];
}

describe('refused', () => {
  const SIZES = [1, 2, 3, 5, 7, 8, 11, 16, 21];
  test('an inclusion proof that was changed in any step, or is checked with another leaf, index, size or root', async () => {
    const reader = treeReader(log.readTile);
    for (const size of SIZES) {
      for (let index = 0; index < size; index++) {
        const proof = await inclusionProof(reader, index, size);
        const good = { index, size, leaf: leaves[index] ?? assert.fail(), proof, root: rootAt(size) };
        const claims = [
          ...[...spoilt(proof)].map((bad) => ({ ...good, proof: bad })),
          { ...good, leaf: flipped(good.leaf) },
          { ...good, root: flipped(good.root) },
          { ...good, root: new Uint8Array(0) },
          ...[index + 1, index - 1, size, -1, 0.5, Number.NaN].map((other) => ({ ...good, index: other })),
        ];
        for (const claim of claims)
          assert.equal(verifyInclusion(claim), false, JSON.stringify([index, size]));
      }
    }
  });

  test('a consistency proof that was changed in any step, or is checked with other sizes or roots', async () => {
    const reader = treeReader(log.readTile);
    for (const to of SIZES) {
      for (let from = 0; from <= to; from++) {
        const proof = await consistencyProof(reader, from, to);
        const good = { from, to, fromRoot: rootAt(from), toRoot: rootAt(to), proof };
        const claims = [
          ...[...spoilt(proof)].map((bad) => ({ ...good, proof: bad })),
          { ...good, fromRoot: flipped(good.fromRoot) },
          // Nothing is claimed of the larger tree where the smaller one is empty.
          ...(from === 0 ? [] : [{ ...good, toRoot: flipped(good.toRoot) }]),
          { ...good, to: from - 1 },
          { ...good, from: to + 1 },
          { ...good, from: from + 0.5 },
        ];
        for (const claim of claims)
          assert.equal(verifyConsistencyProof(claim), false, JSON.stringify([from, to]));
      }
    }
  });

  test('the tree without one of its leaves: it is consistent with no tree that had it', async () => {
    for (const dropped of [0, 3, 9]) {
      const without = smallLog();
      for (const [n, data] of DATA.slice(0, 20).entries()) if (n !== dropped) await without.append(data);
      const reader = treeReader(without.readTile);
      const to = without.tree().size;
      for (let from = dropped + 1; from <= to; from++) {
        const proof = await consistencyProof(reader, from, to);
        const claim = { from, to, fromRoot: rootAt(from), toRoot: await without.root(), proof };
        assert.equal(verifyConsistencyProof(claim), false, `${dropped}: ${from}`);
      }
    }
  });
});
