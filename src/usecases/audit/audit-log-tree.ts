// The transparency log in an audit: the tree is rebuilt from the record and compared with every checkpoint.

import { type EventLocation, type Fault, type Found, fault } from '#src/domain/audit/finding.ts';
import {
  cosignedFault,
  fitFault,
  judgeCheckpoint,
  judgeCosigned,
  type KeptFacts,
} from '#src/domain/audit/judge-checkpoint.ts';
import { fromBase64, toBase64 } from '#src/domain/encoding.ts';
import { claimedTime, type DomainEvent, type EventOf } from '#src/domain/events.ts';
import { logOf, type ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { MAX_PENDING_SECONDS } from '#src/domain/receipt/verify.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import type { Hash } from '#src/domain/transparency/merkle.ts';
import { appendLeaf, EMPTY_TREE, leafData, rootOf, type Tree } from '#src/domain/transparency/tree.ts';
import type { StreamStates } from './stream-states.ts';

/** About how many characters the JSON of a leaf has. */
const LEAF_LENGTH = 256;

/**
 * `edge`: base64. `latest`, `second`: the latest times at which receipts after the last checkpoint that fits were issued,
 * Unix seconds: the second, so that one fast clock makes nothing late. `largest`: size of the largest checkpoint; `good`: of
 * the last that fits; `cosigned`: of the last cosigned one.
 */
export type TreeFold = {
  readonly size: number;
  readonly edge: readonly string[];
  readonly origin: string | null;
  readonly times: readonly [latest: number, second: number];
  readonly state: typeof NO_CHECKPOINTS;
};

const NO_CHECKPOINTS = { checkpoints: 0, largest: 0, good: 0, unfit: 0, fits: true, cosigned: 0 };

export function auditTree(states: StreamStates, primitives: Primitives, from: TreeFold | undefined) {
  let tree = treeOf(from);
  let origin = from?.origin ?? null;
  let [latest, second] = from?.times ?? [0, 0];
  const state = { ...(from?.state ?? NO_CHECKPOINTS) };

  /** `index`: from 0. */
  const leafAt = (index: number) =>
    index < 0 || index >= tree.size ? null : states.demand('leaf', `leaf ${index}`);

  const subtreeBefore = (end: number) => hashOf(leafAt(end - 1)?.subtree ?? '');
  /** Of the tree's first `size` leaves; null if there are fewer. */
  const rootAt = (size: number): Hash | null =>
    size > tree.size ? null : rootOf({ size, edge: subtreesOf(size).map(subtreeBefore) });

  /** The latest time that the first `size` leaves state, Unix seconds. */
  const latestIn = (size: number): number => leafAt(size - 1)?.latest ?? 0;

  /** Names the leaves that are new in a checkpoint of `size` leaves. */
  function newLeaves(size: number): string {
    const [first, last] = [leafAt(state.good), leafAt(Math.min(size, tree.size) - 1)];
    if (size <= state.good || first === null || last === null) return '';
    const [from, to] = [first, last].map(
      ({ location: { stream, revision } }) => `${stream} revision ${revision}`,
    );
    return ` After the last checkpoint that fits (${state.good} leaves), the record has ${from} to ${to}.`;
  }

  return {
    /** Adds the leaf, if the event is one. `payload`: of a receipt that can be read. */
    leaf(location: EventLocation, event: DomainEvent, payload: ReceiptPayload | null): readonly Fault[] {
      const data = leafData(event);
      if (data === null) return [];
      const promise = payload && logOf(payload);
      const due = payload && promise && payload.iat + Math.min(promise.mmdSeconds, MAX_PENDING_SECONDS);
      const stated = payload?.iat ?? Date.parse(claimedTime(event)) / 1000;
      const latestOfAll = Math.max(latestIn(tree.size), stated);
      tree = appendLeaf(tree, data).tree;
      const subtree = toBase64(tree.edge.at(-1) ?? new Uint8Array());
      const name = `leaf ${tree.size - 1}`;
      states.put('leaf', name, { location, due, subtree, latest: latestOfAll }, LEAF_LENGTH);
      if (payload !== null && payload.iat > second)
        [latest, second] = payload.iat > latest ? [payload.iat, latest] : [latest, payload.iat];
      return promise === null ? [] : promiseFaults(promise, origin);
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
        [latest, second] = [0, 0];
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
    async cosigned(
      { data }: EventOf<'CheckpointCosigned'>,
      keys: readonly KeyRecord[],
    ): Promise<readonly Fault[]> {
      const { head, faults } = await judgeCosigned(data, keys, primitives);
      if (head === null) return faults;
      const { largest, cosigned: last } = state;
      const unfit = cosignedFault(head, { origin, largest, last, root: rootAt(head.size) });
      state.cosigned = Math.max(last, head.size);
      // A record that does not fit its checkpoints is reported with them.
      return unfit === null || !state.fits ? faults : [...faults, unfit];
    },
    /** At the end: the first receipt that no checkpoint covers, although its promised time has passed. */
    late(): Found | null {
      // A record without checkpoints, and a wrong checkpoint that covers it, are reported elsewhere.
      if (origin === null) return null;
      for (let index = state.largest; index < tree.size; index++) {
        const { location, due = null } = leafAt(index) ?? {};
        if (location === undefined || due === null || due >= second) continue;
        const message =
          'No checkpoint covers the receipt, and later receipts were issued after its promised time: checkpoints are missing, or the relay could not sign any.';
        return { fault: fault('receipt_not_logged', message), location };
      }
      return null;
    },
    size: () => tree.size,
    /** At the end: what a kept checkpoint of `size` leaves is compared with. */
    factsOf: (size: number) => ({
      ...({ origin, leaves: tree.size, root: rootAt(size) } satisfies KeptFacts),
      latest: latestIn(size),
    }),
    fold: (): TreeFold => ({ ...treeText(tree), origin, times: [latest, second], state: { ...state } }),
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

const treeOf = (from: TreeFold | undefined): Tree =>
  from === undefined ? EMPTY_TREE : { size: from.size, edge: from.edge.map(hashOf) };

const treeText = ({ size, edge }: Tree): Pick<TreeFold, 'size' | 'edge'> => ({
  size,
  edge: edge.map(toBase64),
});

/** Where the complete subtrees of a size end, from the left: each has as many leaves as a bit says. */
const subtreesOf = (size: number): number[] =>
  size === 0 ? [] : [...subtreesOf(size - (size & -size)), size];

const hashOf = (base64: string): Hash => fromBase64(base64) ?? new Uint8Array();

/** `origin`: of the log that the record's checkpoints name; null: it has none so far. */
function promiseFaults(promise: NonNullable<ReturnType<typeof logOf>>, origin: string | null): Fault[] {
  const faults: Fault[] = [];
  if (promise.mmdSeconds > MAX_PENDING_SECONDS) {
    const message = `The receipt promises its inclusion within ${promise.mmdSeconds} s, but verifiers wait for at most ${MAX_PENDING_SECONDS} s.`;
    faults.push(fault('receipt_promise_late', message));
  }
  if (promise.origin === origin) return faults;
  const message = `The receipt promises to be in the transparency log ${promise.origin}, but the record ${origin === null ? 'has no checkpoint before it' : `is of ${origin}`}.`;
  return [...faults, fault('receipt_origin_mismatch', message)];
}
