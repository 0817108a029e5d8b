// The transparency log in an audit: the tree is rebuilt from the record and compared with every checkpoint.

import type { KeptCheckpoint } from '#src/domain/audit/evidence.ts';
import type { EventLocation, Fault, Found } from '#src/domain/audit/finding.ts';
import { fitFault, judgeCheckpoint, orderFaults } from '#src/domain/audit/judge-checkpoint.ts';
import { concatBytes, fromBase64, toBase64 } from '#src/domain/encoding.ts';
import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { logOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { TRANSPARENCY } from '#src/domain/transparency/checkpoint.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { TILE_WIDTH, treeReader } from '#src/domain/transparency/tiles.ts';
import {
  appendLeaf,
  EMPTY_TREE,
  leafData,
  rootOf,
  type TileEntry,
  type Tree,
} from '#src/domain/transparency/tree.ts';
import type { AuditScratch } from '#src/ports/audit-scratch.ts';

/** `due`: Unix seconds by which a checkpoint has to cover it; null: no time was promised. */
type Leaf = EventLocation & {
  readonly due: number | null;
  /** Of a receipt that can be read: its key and time, Unix seconds. */
  readonly issued: { readonly keyId: string; readonly iat: number } | null;
};

/** `kept`: the checkpoints for which `factsFor` is called at the end. */
export function auditTree(scratch: AuditScratch, primitives: Primitives, kept: readonly KeptCheckpoint[]) {
  /** Those of the kept checkpoints that the record has. */
  const recorded = new Set<KeptCheckpoint>();
  const tree = hashTree(scratch);
  const leaves = leafList(scratch);
  let origin: string | null = null;
  /** Unix ms, of the first and of the last checkpoint. */
  const times = { first: 0, last: 0 };
  /** `largest`: size of the largest checkpoint; `good`: of the last that fits; `judged`: leaves whose promise is checked. */
  const state = { checkpoints: 0, largest: 0, good: 0, judged: 0, unfit: 0, fits: true, missed: false };

  /** Receipts that a checkpoint of that time covers late, or still does not cover after the promised time. */
  function* overdue(size: number, atSeconds: number): Generator<Found> {
    for (; state.judged < tree.size; state.judged++) {
      const leaf = leaves.at(state.judged);
      if (leaf === null) return;
      const late = leaf.due !== null && atSeconds > leaf.due;
      if (state.judged >= size && leaf.due !== null && !late) return;
      if (!late) continue;
      const { due: _, issued: __, ...location } = leaf;
      const message = `no checkpoint had covered it (leaf ${state.judged}) by the promised time${CAUSES}`;
      yield { fault: { kind: 'receipt_not_logged', message }, location };
    }
  }

  function promiseFaults(payload: ReceiptPayload): readonly Fault[] {
    const { iat } = payload;
    const promised = logOf(payload)?.origin ?? null;
    if (promised === origin) return [];
    if (promised === null) {
      // A process reads within seconds that there is a log, unless it is of an older version during an upgrade.
      if (iat * 1000 <= times.first + TRANSPARENCY.mmdSeconds * 1000) return [];
      const message = `the receipt does not promise to be in ${origin}, which had long begun`;
      return [{ kind: 'receipt_log_missing', message }];
    }
    if (origin !== null) {
      const message = `the receipt promises to be in ${promised}, and the log is ${origin}`;
      return [{ kind: 'receipt_origin_mismatch', message }];
    }
    // Reported once: it is true of every receipt.
    if (state.missed) return [];
    state.missed = true;
    const message = `receipts promise to be in ${promised}, and no checkpoint of it was recorded before them`;
    return [{ kind: 'checkpoint_missing', message }];
  }

  /** The fault of a checkpoint that does not fit; null if an earlier one is the cause. */
  function unfitFault(fault: Fault, size: number): Fault | null {
    if (fault.kind !== 'checkpoint_ahead' && fault.kind !== 'checkpoint_root_mismatch') return fault;
    if (!state.fits) {
      state.unfit++;
      return null;
    }
    state.fits = false;
    return {
      ...fault,
      message: `${fault.message}${leavesSince(leaves, state.good, Math.min(size, tree.size))}`,
    };
  }

  return {
    /** Adds the leaf, if the event is one. `payload`: of a receipt that can be read. */
    leaf(location: EventLocation, event: DomainEvent, payload: ReceiptPayload | null): readonly Fault[] {
      const data = leafData(event);
      if (data === null) return [];
      const promise = payload && logOf(payload);
      const due = promise === null || payload === null ? null : payload.iat + promise.mmdSeconds;
      const issued =
        payload === null || event.type !== 'ReceiptSigned'
          ? null
          : { keyId: event.data.keyId, iat: payload.iat };
      leaves.push({ ...location, due, issued });
      tree.append(data);
      return payload === null ? [] : promiseFaults(payload);
    },
    /** The receipts so far that name the key. `iat`: Unix seconds. */
    *receiptsOf(keyId: string) {
      for (let index = 0; index < leaves.size; index++) {
        const leaf = leaves.at(index);
        if (leaf?.issued?.keyId !== keyId) continue;
        const { due: _, issued, ...location } = leaf;
        yield { iat: issued.iat, location };
      }
    },
    async checkpoint(
      location: EventLocation,
      { data }: EventOf<'CheckpointSigned'>,
      keys: readonly KeyRecord[],
    ): Promise<readonly Found[]> {
      state.checkpoints++;
      for (const one of kept)
        if (data.size === String(one.size) && data.root === toBase64(one.root)) recorded.add(one);
      const { head, faults } = await judgeCheckpoint(data, keys, primitives);
      const found = faults.map((fault) => ({ fault, location }));
      if (head === null) return found;
      const last = origin === null ? null : { origin, size: state.largest };
      const signedAt = Date.parse(data.signedAt);
      if (last === null) times.first = signedAt;
      const unfit = fitFault(head, { last, leaves: tree.size, root: await tree.rootAt(head.size) });
      origin ??= head.origin;
      state.largest = Math.max(state.largest, head.size);
      if (unfit === null) {
        state.fits = true;
        state.good = head.size;
        if (faults.length > 0) return found;
        const misordered = orderFaults(head, signedAt, last && { size: last.size, signedAt: times.last });
        times.last = signedAt;
        const outOfOrder = misordered.map((fault) => ({ fault, location }));
        return [...outOfOrder, ...overdue(head.size, Math.floor(signedAt / 1000))];
      }
      const fault = unfitFault(unfit, head.size);
      return fault === null ? found : [...found, { fault, location }];
    },
    /** The first receipt whose promised time has passed and that no checkpoint covers; the message counts the others. */
    broken(atSeconds: number): Found | null {
      // A record without checkpoints, and a wrong checkpoint that covers it, are reported elsewhere.
      if (origin === null) return null;
      let first: EventLocation | null = null;
      let count = 0;
      for (let index = Math.max(state.judged, state.largest); index < tree.size; index++) {
        const leaf = leaves.at(index);
        if (leaf === null || leaf.due === null || leaf.due >= atSeconds) continue;
        const { due: _, issued: __, ...location } = leaf;
        first ??= location;
        count++;
      }
      if (first === null) return null;
      const all = count === 1 ? '' : `, nor ${count - 1} more after it`;
      const message = `no checkpoint covers it${all}, and the record continues beyond the promised time${CAUSES}`;
      return { fault: { kind: 'receipt_not_logged', message }, location: first };
    },
    factsFor: async (one: KeptCheckpoint) => ({
      origin,
      leaves: tree.size,
      root: await tree.rootAt(one.size),
      recorded: recorded.has(one),
      largest: origin === null ? null : state.largest,
    }),
    summary: () => ({
      checkpoints: state.checkpoints,
      treeSize: tree.size,
      /** RFC 6962 root over all leaves, base64. */
      root: toBase64(tree.root()),
      /** From the first checkpoint; null if there is none. */
      origin,
      /** Leaves after the last checkpoint that fits; 0 if there is no checkpoint. */
      uncoveredLeaves: state.checkpoints === 0 ? 0 : tree.size - state.good,
      /** Checkpoints after the first one that does not fit: it is the cause that they do not fit either. */
      unfitCheckpoints: state.unfit,
    }),
  };
}

/** Causes at an honest relay. */
const CAUSES = ': checkpoints are missing, or the relay, its event log or its database was unavailable then';

/** Up to this many leaves are named individually. */
const NAMED = 5;

/** Names the leaves in question: those since the last checkpoint that fits, of `good` leaves, up to `to`. */
function leavesSince(leaves: LeafList, good: number, to: number): string {
  const count = to - good;
  const since = `since the last checkpoint that fits (${good} leaves)`;
  if (count <= 0) return `; the record has no leaf ${since}`;
  const nameOf = (index: number) => {
    const leaf = leaves.at(index);
    return `${leaf?.stream} revision ${leaf?.revision}`;
  };
  const leavesHere = count === 1 ? '1 leaf' : `${count} leaves`;
  if (count > NAMED) return `; ${leavesHere} ${since}: ${nameOf(good)} to ${nameOf(to - 1)}`;
  const names = Array.from({ length: count }, (_, i) => nameOf(good + i));
  return `; ${leavesHere} ${since}: ${names.join(', ')}`;
}

type LeafList = ReturnType<typeof leafList>;

/** Leaves in one row of the scratch table. */
const BLOCK = 256;

/** The leaves in order. Reading them in order costs a look-up for each block. */
function leafList(scratch: AuditScratch) {
  const blocks = scratch.table<readonly Leaf[]>('leaf');
  let last: Leaf[] = [];
  let size = 0;
  let read: { readonly block: number; readonly leaves: readonly Leaf[] } | null = null;
  return {
    push(leaf: Leaf): void {
      last.push(leaf);
      size++;
      if (last.length < BLOCK) return;
      blocks.put(String(size / BLOCK - 1), last);
      last = [];
    },
    at(index: number): Leaf | null {
      const block = Math.floor(index / BLOCK);
      if (block === Math.floor(size / BLOCK)) return last[index % BLOCK] ?? null;
      if (read?.block !== block) read = { block, leaves: blocks.get(String(block)) ?? [] };
      return read.leaves[index % BLOCK] ?? null;
    },
    get size() {
      return size;
    },
  };
}

/** The tree of the leaves read so far, and the root of any size that it has had. */
function hashTree(scratch: AuditScratch) {
  /** Full tiles by `<level>/<n>`, base64. */
  const full = scratch.table<string>('tile');
  /** Of each level, the tile that is not full yet: its number and hashes. */
  const partial: { n: number; hashes: Hash[] }[] = [];
  let tree: Tree = EMPTY_TREE;

  function add({ level, index, hash }: TileEntry): void {
    const n = Math.floor(index / TILE_WIDTH);
    const hashes = partial[level]?.n === n ? partial[level].hashes : [];
    hashes.push(hash);
    partial[level] = { n, hashes };
    if (hashes.length === TILE_WIDTH) full.put(`${level}/${n}`, toBase64(concatBytes(...hashes)));
  }

  async function readTile(level: number, n: number): Promise<Uint8Array | null> {
    const last = partial[level];
    return last?.n === n ? concatBytes(...last.hashes) : fromBase64(full.get(`${level}/${n}`) ?? '');
  }

  return {
    append(data: Uint8Array): void {
      const appended = appendLeaf(tree, data);
      for (const entry of appended.entries) add(entry);
      tree = appended.tree;
    },
    /** Of the first `size` leaves; null if there are fewer. */
    async rootAt(size: number): Promise<Hash | null> {
      if (size > tree.size) return null;
      return size === tree.size ? rootOf(tree) : treeReader(readTile).root(0, size);
    },
    root: () => rootOf(tree),
    get size() {
      return tree.size;
    },
  };
}
