// The transparency log in an audit: the tree is rebuilt from the record and compared with every checkpoint.

import type { Fault, Place } from '#src/domain/audit/finding.ts';
import { fitFault, judgeCheckpoint, orderFaults } from '#src/domain/audit/judge-checkpoint.ts';
import { fromBase64, toBase64 } from '#src/domain/encoding.ts';
import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { TRANSPARENCY } from '#src/domain/limits.ts';
import { logOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/verify.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { leafData } from '#src/domain/transparency/leaves.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { HASH_BYTES, TILE_WIDTH, treeReader } from '#src/domain/transparency/tiles.ts';
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { AuditScratch, ScratchTable } from '#src/ports/audit-scratch.ts';

/** `due`: Unix seconds until which a checkpoint has to cover it; null: nothing was promised. */
type Leaf = Place & { readonly due: number | null };

/** A fault and its event. */
export type Found = { readonly fault: Fault; readonly place: Place };

export type TreeAudit = {
  /** Adds the leaf, if the event is one. `payload`: of a receipt that can be read. */
  leaf(place: Place, event: DomainEvent, payload: ReceiptPayload | null): readonly Fault[];
  checkpoint(
    place: Place,
    event: EventOf<'CheckpointSigned'>,
    keys: readonly KeyRecord[],
  ): Promise<readonly Found[]>;
  /** The first receipt whose promised time is over by then and that no checkpoint covers; it counts the others. */
  broken(atSeconds: number): Found | null;
  root(): Hash;
  readonly size: number;
  readonly checkpoints: number;
  /** As the first checkpoint fixed it. */
  readonly origin: string | null;
  /** Leaves behind the last checkpoint that fits; 0 where there is no checkpoint at all. */
  readonly uncovered: number;
  /** Checkpoints that do not fit because one before them does not. */
  readonly unfit: number;
};

export function auditTree(scratch: AuditScratch, primitives: Primitives): TreeAudit {
  const tree = hashTree(scratch);
  /** By their index. */
  const leaves = scratch.table<Leaf>('leaf');
  let origin: string | null = null;
  /** Unix ms; of the first checkpoint, and of the one before. */
  const times = { first: 0, last: 0 };
  /** `largest`: of any checkpoint; `good`: of the last that fits; `judged`: leaves whose promise is settled. */
  const so = { checkpoints: 0, largest: 0, good: 0, judged: 0, unfit: 0, fits: true, missed: false };

  /** Receipts that a checkpoint of that time covers too late, or still leaves out after the promised time. */
  function* overdue(size: number, atSeconds: number): Generator<Found> {
    for (; so.judged < tree.size; so.judged++) {
      const leaf = leaves.get(String(so.judged));
      if (leaf === null) return;
      const late = leaf.due !== null && atSeconds > leaf.due;
      if (so.judged >= size && leaf.due !== null && !late) return;
      if (!late) continue;
      const { due: _, ...place } = leaf;
      const message = `no checkpoint had covered it (leaf ${so.judged}) by the promised time${CAUSES}`;
      yield { fault: { kind: 'receipt_not_logged', message }, place };
    }
  }

  function promiseFaults(payload: ReceiptPayload): readonly Fault[] {
    const { iat } = payload;
    const promised = logOf(payload)?.origin ?? null;
    if (promised === origin) return [];
    if (promised === null) {
      // Whoever signs learns within seconds that there is a log, unless it is of an older version that is on its way out.
      if (iat * 1000 <= times.first + TRANSPARENCY.mmdSeconds * 1000) return [];
      const message = `the receipt does not promise to be in ${origin}, which had long begun`;
      return [{ kind: 'receipt_log_missing', message }];
    }
    if (origin !== null) {
      const message = `the receipt promises to be in ${promised}, and the log is ${origin}`;
      return [{ kind: 'receipt_origin_mismatch', message }];
    }
    // Once: without its checkpoints every receipt lacks them.
    if (so.missed) return [];
    so.missed = true;
    const message = `receipts promise to be in ${promised}, and no checkpoint of it was recorded before them`;
    return [{ kind: 'checkpoint_missing', message }];
  }

  /** Of a checkpoint that does not fit; null where one before it is why. */
  function unfitFault(fault: Fault, size: number): Fault | null {
    if (fault.kind !== 'checkpoint_ahead' && fault.kind !== 'checkpoint_root_mismatch') return fault;
    if (!so.fits) {
      so.unfit++;
      return null;
    }
    so.fits = false;
    return { ...fault, message: `${fault.message}${narrowed(leaves, so.good, Math.min(size, tree.size))}` };
  }

  return {
    leaf(place, event, payload) {
      const data = leafData(event);
      if (data === null) return [];
      const promise = payload && logOf(payload);
      const due = promise === null || payload === null ? null : payload.iat + promise.mmdSeconds;
      leaves.put(String(tree.size), { ...place, due });
      tree.append(data);
      return payload === null ? [] : promiseFaults(payload);
    },
    async checkpoint(place, { data }, keys) {
      so.checkpoints++;
      const { head, faults } = await judgeCheckpoint(data, keys, primitives);
      const found = faults.map((fault) => ({ fault, place }));
      if (head === null) return found;
      const last = origin === null ? null : { origin, size: so.largest };
      const signedAt = Date.parse(data.signedAt);
      if (last === null) times.first = signedAt;
      const unfit = fitFault(head, { last, leaves: tree.size, root: await tree.rootAt(head.size) });
      origin ??= head.origin;
      so.largest = Math.max(so.largest, head.size);
      if (unfit === null) {
        so.fits = true;
        so.good = head.size;
        if (faults.length > 0) return found;
        const misordered = orderFaults(head, signedAt, last && { size: last.size, signedAt: times.last });
        times.last = signedAt;
        const outOfOrder = misordered.map((fault) => ({ fault, place }));
        return [...outOfOrder, ...overdue(head.size, Math.floor(signedAt / 1000))];
      }
      const fault = unfitFault(unfit, head.size);
      return fault === null ? found : [...found, { fault, place }];
    },
    broken(atSeconds) {
      // A record without checkpoints, and a wrong checkpoint that covers it, are reported elsewhere.
      if (origin === null) return null;
      let first: Place | null = null;
      let count = 0;
      for (let index = Math.max(so.judged, so.largest); index < tree.size; index++) {
        const leaf = leaves.get(String(index));
        if (leaf === null || leaf.due === null || leaf.due >= atSeconds) continue;
        const { due: _, ...place } = leaf;
        first ??= place;
        count++;
      }
      if (first === null) return null;
      const all = count === 1 ? '' : `, nor ${count - 1} more behind it`;
      const message = `no checkpoint covers it${all}, and the record continues beyond the promised time${CAUSES}`;
      return { fault: { kind: 'receipt_not_logged', message }, place: first };
    },
    root: tree.root,
    get size() {
      return tree.size;
    },
    get checkpoints() {
      return so.checkpoints;
    },
    get origin() {
      return origin;
    },
    get uncovered() {
      return so.checkpoints === 0 ? 0 : tree.size - so.good;
    },
    get unfit() {
      return so.unfit;
    },
  };
}

/** The causes that an honest relay may have. */
const CAUSES = ': checkpoints are missing, or the relay, its event log or its database was unavailable then';

/** So many leaves are named one by one. */
const NAMED = 5;

/** Where to look for what does not fit: the leaves since the last checkpoint that does, of `good` leaves, up to `to`. */
function narrowed(leaves: ScratchTable<Leaf>, good: number, to: number): string {
  const count = to - good;
  const since = `since the last checkpoint that fits (${good} leaves)`;
  if (count <= 0) return `; the record has no leaf ${since}`;
  const nameOf = (index: number) => {
    const leaf = leaves.get(String(index));
    return `${leaf?.stream} revision ${leaf?.revision}`;
  };
  const leavesHere = count === 1 ? '1 leaf' : `${count} leaves`;
  if (count > NAMED) return `; ${leavesHere} ${since}: ${nameOf(good)} to ${nameOf(to - 1)}`;
  const names = Array.from({ length: count }, (_, i) => nameOf(good + i));
  return `; ${leavesHere} ${since}: ${names.join(', ')}`;
}

/** The tree of the leaves read so far, and the root of any size that it has had. */
type HashTree = {
  append(data: Uint8Array): void;
  /** Of the first `size` leaves; null where there are not as many. */
  rootAt(size: number): Promise<Hash | null>;
  root(): Hash;
  readonly size: number;
};

function hashTree(scratch: AuditScratch): HashTree {
  /** Hashes by `<level>/<index>`, base64. */
  const hashes = scratch.table<string>('hash');
  let tree: Tree = EMPTY_TREE;

  async function readTile(level: number, n: number): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(TILE_WIDTH * HASH_BYTES);
    let width = 0;
    for (; width < TILE_WIDTH; width++) {
      const hash = fromBase64(hashes.get(`${level}/${n * TILE_WIDTH + width}`) ?? '');
      if (hash?.length !== HASH_BYTES) break;
      bytes.set(hash, width * HASH_BYTES);
    }
    return width === 0 ? null : bytes.subarray(0, width * HASH_BYTES);
  }

  return {
    append(data) {
      const appended = appendLeaf(tree, data);
      for (const { level, index, hash } of appended.entries) hashes.put(`${level}/${index}`, toBase64(hash));
      tree = appended.tree;
    },
    async rootAt(size) {
      if (size > tree.size) return null;
      return size === tree.size ? rootOf(tree) : treeReader(readTile).root(0, size);
    },
    root: () => rootOf(tree),
    get size() {
      return tree.size;
    },
  };
}
