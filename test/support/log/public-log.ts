// The transparency log as its read model has it, over a tree in memory: n receipts, one leaf each, and a checkpoint.
import { concatBytes } from '#src/domain/encoding.ts';
import { TILE_WIDTH } from '#src/domain/transparency/tiles.ts';
import { receiptLeafData } from '#src/domain/transparency/tree.ts';
import { type Transparency, type TransparencyDeps, transparency } from '#src/usecases/transparency/proofs.ts';
import { primitives } from '#test/support/given/primitives.ts';
import { type SmallLog, smallLog } from './small-log.ts';

export const receiptIdAt = (index: number): string => `rcpt_${String(index).padStart(26, '0')}`;
export const jwsAt = (index: number): string => `receipt-${index}.of.test`;

export type PublicLog = {
  readonly log: SmallLog;
  /** Leaf data, in order. */
  readonly leaves: readonly Uint8Array[];
  readonly deps: TransparencyDeps;
  readonly asked: Transparency;
  /** The newest checkpoint is of so many leaves from now on. */
  signAt(size: number): Promise<void>;
  /** A leaf of its own id. */
  add(receiptId: string, jws: string): Promise<void>;
};

/** Its newest checkpoint is over all of it. `add` and `signAt` extend it. */
export async function publicLog(size: number, log = smallLog()): Promise<PublicLog> {
  const leaves: Uint8Array[] = [];
  const indexOf = new Map<string, number>();
  let newest: { readonly size: number; readonly note: string } | null = null;
  async function add(receiptId: string, jws: string): Promise<void> {
    const data = receiptLeafData(jws);
    indexOf.set(receiptId, leaves.length);
    leaves.push(data);
    await log.append(data);
  }
  async function signAt(at: number): Promise<void> {
    newest = { size: at, note: await log.checkpoint(at) };
  }
  for (let index = 0; index < size; index++) await add(receiptIdAt(index), jwsAt(index));
  await signAt(size);
  const keys = [log.key.record];
  const deps: TransparencyDeps = {
    rows: {
      checkpoint: async () => newest,
      cosigned: async () => null,
      leafIndex: async (receiptId) => indexOf.get(receiptId) ?? null,
      async tile(level, n) {
        if (level !== 'entries') return log.readTile(level, n);
        const bundle = leaves.slice(n * TILE_WIDTH, (n + 1) * TILE_WIDTH);
        return bundle.length === 0 ? null : concatBytes(...bundle);
      },
    },
    keys: { list: () => keys, refresh: async () => keys },
    primitives,
    latest: () => newest?.note ?? null,
    clock: { monotonic: () => 0 },
    stands: () => true,
  };
  return { log, leaves, deps, asked: transparency(deps), signAt, add };
}
