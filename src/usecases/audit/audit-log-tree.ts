// The transparency log in an audit: the tree is rebuilt from the record and compared with every checkpoint.

import type { EventLocation, Fault, Found } from '#src/domain/audit/finding.ts';
import {
  fitFault,
  judgeCheckpoint,
  type KeptCheckpoint,
  keptFault,
} from '#src/domain/audit/judge-checkpoint.ts';
import { toBase64 } from '#src/domain/encoding.ts';
import type { DomainEvent, EventOf } from '#src/domain/events.ts';
import { logOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { Primitives } from '#src/domain/receipt/report.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { verifyOwnCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { appendLeaf, EMPTY_TREE, leafData, rootOf, type Tree } from '#src/domain/transparency/tree.ts';

/** `index`: from 0. `due`: Unix seconds by which a checkpoint has to cover it; null: no time was promised. */
type Leaf = { readonly location: EventLocation; readonly index: number; readonly due: number | null };

/** A checkpoint is recorded within seconds of the rows that it is over: the trees of so many leaves before it are kept. */
const RECENT_TREES = 8192;
/** Of the leaves that no checkpoint covers yet only so many are named: a record without checkpoints needs no memory. */
const UNCOVERED_LEAVES = 4096;

/** `kept`: checkpoints that the auditor kept; `keptFaults` compares them at the end. */
export function auditTree(primitives: Primitives, kept: readonly KeptCheckpoint[]) {
  let tree = EMPTY_TREE;
  /** Of consecutive sizes, up to the current one. */
  const recent: Tree[] = [tree];
  const keptRoots = new Map<number, Hash>([[0, rootOf(tree)]]);
  let uncovered: Leaf[] = [];
  let origin: string | null = null;
  /** Latest times at which receipts were issued, Unix seconds: the second, so that one fast clock makes nothing late. */
  let [latest, second] = [0, 0];
  /** `largest`: size of the largest checkpoint; `good`: of the last that fits. */
  const state = { checkpoints: 0, largest: 0, good: 0, unfit: 0, fits: true };

  function rootAt(size: number): Hash | null {
    // The first checkpoint is over no leaves, whatever precedes it.
    const found = size === 0 ? EMPTY_TREE : recent[size - (recent[0]?.size ?? 0)];
    return found === undefined ? null : rootOf(found);
  }

  /** Names the leaves that are new in a checkpoint of `size` leaves. */
  function newLeaves(size: number): string {
    const [first] = uncovered;
    const last = uncovered.findLast(({ index }) => index < size);
    if (first === undefined || last === undefined) return '';
    const [from, to] = [first, last].map(
      ({ location: { stream, revision } }) => `${stream} revision ${revision}`,
    );
    return `; after the last checkpoint that fits (${state.good} leaves) follow ${from} to ${to}`;
  }

  return {
    /** Adds the leaf, if the event is one. `payload`: of a receipt that can be read. */
    leaf(location: EventLocation, event: DomainEvent, payload: ReceiptPayload | null): Fault | null {
      const data = leafData(event);
      if (data === null) return null;
      const promise = payload && logOf(payload);
      const due = payload && promise && payload.iat + promise.mmdSeconds;
      if (uncovered.length < UNCOVERED_LEAVES) uncovered.push({ location, index: tree.size, due });
      tree = appendLeaf(tree, data).tree;
      recent.push(tree);
      if (recent.length > RECENT_TREES + 1024) recent.splice(0, 1024);
      if (kept.some(({ size }) => size === tree.size)) keptRoots.set(tree.size, rootOf(tree));
      if (payload !== null && payload.iat > second)
        [latest, second] = payload.iat > latest ? [payload.iat, latest] : [latest, payload.iat];
      if (promise === null || promise.origin === origin) return null;
      const message = `the receipt promises to be in ${promise.origin}, and the record ${origin === null ? 'has no checkpoint before it' : `is of ${origin}`}`;
      return { kind: 'receipt_origin_mismatch', message };
    },
    async checkpoint(
      { data }: EventOf<'CheckpointSigned'>,
      keys: readonly KeyRecord[],
    ): Promise<readonly Fault[]> {
      state.checkpoints++;
      const { head, faults } = await judgeCheckpoint(data, keys, primitives);
      if (head === null) return faults;
      const last = origin === null ? null : { origin, size: state.largest };
      const unfit = fitFault(head, { last, leaves: tree.size, root: rootAt(head.size) });
      origin ??= head.origin;
      state.largest = Math.max(state.largest, head.size);
      if (unfit === null) {
        uncovered = uncovered.filter(({ index }) => index >= head.size);
        state.fits = true;
        state.good = head.size;
        return faults;
      }
      if (unfit.kind !== 'checkpoint_ahead' && unfit.kind !== 'checkpoint_root_mismatch')
        return [...faults, unfit];
      if (!state.fits) {
        state.unfit++;
        return faults;
      }
      state.fits = false;
      return [...faults, { ...unfit, message: `${unfit.message}${newLeaves(head.size)}` }];
    },
    /** At the end: the first receipt that no checkpoint covers, although its promised time has passed. */
    late(): Found | null {
      // A record without checkpoints, and a wrong checkpoint that covers it, are reported elsewhere.
      const leaf = uncovered.find(({ index, due }) => index >= state.largest && due !== null && due < second);
      if (leaf === undefined || origin === null) return null;
      const message =
        'no checkpoint covers it, and later receipts were issued after its promised time: checkpoints are missing, or the relay could not sign any';
      return { fault: { kind: 'receipt_not_logged', message }, location: leaf.location };
    },
    /** At the end. `keys`: of the record. */
    async keptFaults(keys: readonly KeyRecord[]): Promise<readonly Fault[]> {
      const faults: Fault[] = [];
      for (const one of kept) {
        // Of a compromised key too: otherwise a relay could revoke its key and rewrite what the key has signed.
        if ((await verifyOwnCheckpoint(one.note, keys, primitives)) === null) {
          const message = `no checkpoint key of the record has signed the checkpoint of ${one.source}`;
          faults.push({ kind: 'kept_checkpoint_signature_invalid', message });
        }
        const unfit = keptFault(one, { origin, leaves: tree.size, root: keptRoots.get(one.size) ?? null });
        if (unfit !== null) faults.push(unfit);
      }
      return faults;
    },
    summary: () => ({
      checkpoints: state.checkpoints,
      treeSize: tree.size,
      /** RFC 6962 root over all leaves, base64. */
      root: toBase64(rootOf(tree)),
      /** From the first checkpoint; null if there is none. */
      origin,
      /** Leaves after the last checkpoint that fits; 0 if there is no checkpoint. */
      uncoveredLeaves: state.checkpoints === 0 ? 0 : tree.size - state.good,
      /** Checkpoints after the first one that does not fit: it is the cause that they do not fit either. */
      unfitCheckpoints: state.unfit,
    }),
  };
}
