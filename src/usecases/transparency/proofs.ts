// Public reads of the transparency log: its newest checkpoint, its tiles, and proofs over them. They are computed from the
// rows and not verified here: clients verify them against the signed checkpoint.
import { concatBytes, fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import { ALLOWED, type Allowed, Fault, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { KeyRecord, Primitives } from '#src/domain/signing-keys/keys.ts';
import {
  isByCompromisedKeys,
  TRANSPARENCY,
  verifySignedCheckpoint,
} from '#src/domain/transparency/checkpoint.ts';
import { isCount } from '#src/domain/transparency/merkle.ts';
import { verifierKeyText } from '#src/domain/transparency/note.ts';
import {
  consistencyProof,
  HASH_BYTES,
  inclusionProof,
  type TileLevel,
  TileMissing,
  type TileName,
  type TreeReader,
  tileWidth,
  treeReader,
} from '#src/domain/transparency/tiles.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-ring.ts';

export type NotedCheckpoint = { readonly size: number; readonly note: string };

export type TransparencyDeps = {
  readonly rows: {
    checkpoint(): Promise<NotedCheckpoint | null>;
    /** The newest that a quorum of witnesses has cosigned, with its cosignatures. */
    cosigned(): Promise<NotedCheckpoint | null>;
    tile(level: TileLevel, n: number): Promise<Uint8Array | null>;
    leafIndex(receiptId: string): Promise<number | null>;
  };
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
  /** The newest checkpoint that this process has seen, a signed note, at most some seconds old. */
  readonly latest: () => string | null;
  /** The newest that a quorum of witnesses has cosigned, with its cosignatures; null: none. Absent: the log has no witnesses. */
  readonly latestCosigned?: (() => string | null) | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** false: the last checkpoint does not match these rows. */
  readonly stands: () => boolean;
};

export type Transparency = ReturnType<typeof transparency>;

/** How long the tiles read for one checkpoint are kept: briefly, since the rows may be replaced. */
const TILES_MS = 1000;

/**
 * Each call returns null if this relay has no transparency log, and throws `Fault('read_models_unavailable')` if the read
 * models are unavailable.
 */
export function transparency(deps: TransparencyDeps) {
  const { rows, keys, primitives, latest, latestCosigned, clock, stands } = deps;
  let kept: { readonly note: string; readonly until: number; readonly reader: TreeReader } | null = null;

  async function signerOf(note: string, known: readonly KeyRecord[]): Promise<string | null> {
    const checkpoint = await verifySignedCheckpoint(note, known, primitives);
    const x = known.find(({ keyId }) => keyId === checkpoint?.keyId)?.x;
    const publicKey = fromBase64url(x ?? '');
    if (checkpoint === null || publicKey === null) return null;
    return verifierKeyText({ name: checkpoint.origin, publicKey });
  }

  /** Until witnesses have cosigned one by the new key, a cosigned checkpoint by a compromised one would fail every proof. */
  const isUsable = (note: string): boolean => !isByCompromisedKeys(note, keys.list());

  /** The newest with a quorum; null: none, or the log has no witnesses. */
  async function cosigned(): Promise<NotedCheckpoint | null> {
    const found = latestCosigned === undefined ? null : await rows.cosigned();
    return found !== null && isUsable(found.note) ? found : null;
  }

  /** The newest with a quorum that contains this leaf; the newest of all, if there is none. */
  async function covering(index: number, newest: NotedCheckpoint): Promise<NotedCheckpoint> {
    const witnessed = await cosigned();
    return witnessed !== null && index < witnessed.size ? witnessed : newest;
  }

  return {
    /** The newest that witnesses have cosigned, or of all if none is; of those that this process has seen. Never throws. */
    latest(): string | null {
      const found = latestCosigned?.() ?? null;
      return found !== null && isUsable(found) ? found : latest();
    },
    /** The newest that a quorum of witnesses has cosigned, with the cosignatures; the newest of all, if there is none. */
    async checkpoint(): Promise<string | null> {
      return ((await cosigned()) ?? (await rows.checkpoint()))?.note ?? null;
    },
    /** The newest that was signed. */
    async newest(): Promise<string | null> {
      return (await rows.checkpoint())?.note ?? null;
    },
    /** The newest with a quorum that contains the leaf at `index`; the newest of all, if there is none. */
    async covering(index: number): Promise<string | null> {
      const newest = await rows.checkpoint();
      return newest && (await covering(index, newest)).note;
    },
    /** The verifier key of the newest checkpoint, without an end of line; null also if no key of the log signed it. */
    async key(): Promise<string | null> {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      // The list is seconds old: the key that signed may have been announced since.
      return (await signerOf(newest.note, keys.list())) ?? signerOf(newest.note, await keys.refresh());
    },
    /** null also for a tile that the tree of the newest checkpoint does not have, or not in this width. */
    async tile({ level, n, width }: TileName): Promise<Uint8Array | null> {
      const newest = await rows.checkpoint();
      if (newest === null || width > tileWidth(level, n, newest.size)) return null;
      demandStanding();
      const hashes = await rows.tile(level, n);
      if (hashes === null || hashes.length < width * HASH_BYTES) return null;
      const requested = hashes.slice(0, width * HASH_BYTES);
      return level === 'entries' ? entryBundle(requested) : requested;
    },
    /** A tlog-proof up to the newest cosigned checkpoint that contains the receipt, or the newest. `receipt_not_ready`: no checkpoint contains the receipt yet. */
    async prove(
      receiptId: string,
    ): Promise<string | Refused<'receipt_not_found' | 'receipt_not_ready'> | null> {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      const index = await rows.leafIndex(receiptId);
      if (index === null) return refused('receipt_not_found', 'There is no such receipt in the log.');
      if (index >= newest.size) return NOT_YET;
      const { note: checkpoint, size } = await covering(index, newest);
      return read(newest.note, async (reader) => {
        const path = await inclusionProof(reader, index, size);
        return tlogProofText({ index, path, checkpoint });
      });
    },
    /** Hashes in base64. Refused unless 0 <= from <= to <= the size of the newest checkpoint. */
    async consistency(from: number, to: number) {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      const range = checkRange(from, to, newest.size);
      if (isRefused(range)) return range;
      demandStanding();
      return read(newest.note, async (reader) => ({
        from,
        to,
        fromRoot: toBase64(await reader.root(0, from)),
        toRoot: toBase64(await reader.root(0, to)),
        proof: (await consistencyProof(reader, from, to)).map(toBase64),
      }));
    },
  };

  /** Clients keep tiles and roots, so those of another tree are not served. A proof of another tree fails verification. */
  function demandStanding(): void {
    if (stands()) return;
    throw new Fault('read_models_unavailable', 'The stored tree is not the one that was signed.');
  }

  /** The leaves of a checkpoint were projected before it was signed: if they are missing, the rows are being replaced. */
  async function read<T>(note: string, answer: (reader: TreeReader) => Promise<T>): Promise<T> {
    const now = clock.monotonic();
    if (kept === null || kept.note !== note || kept.until <= now)
      kept = { note, until: now + TILES_MS, reader: treeReader(rows.tile) };
    try {
      return await answer(kept.reader);
    } catch (cause) {
      kept = null;
      if (!(cause instanceof TileMissing)) throw cause;
      throw new Fault('read_models_unavailable', 'The transparency log cannot be read now.', { cause });
    }
  }
}

const NOT_YET = refused('receipt_not_ready', 'No checkpoint of the log contains this receipt yet.', {
  retryAfterSeconds: Math.ceil(TRANSPARENCY.checkpointMs / 1000),
});

/** C2SP tlog-tiles: each entry after its length, a big-endian uint16. */
function entryBundle(entries: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < entries.length; at += HASH_BYTES) {
    parts.push(Uint8Array.of(0, HASH_BYTES), entries.slice(at, at + HASH_BYTES));
  }
  return concatBytes(...parts);
}

/** `details` as of every refused input. */
function checkRange(from: number, to: number, size: number): Allowed | Refused<'invalid_request'> {
  const faults = [
    { path: '/to', value: to, max: size },
    { path: '/from', value: from, max: Math.min(to, size) },
  ].filter(({ value, max }) => !isCount(value) || value > max);
  if (faults.length === 0) return ALLOWED;
  const message = `Expected 0 <= from <= to <= ${size}, the size of the newest checkpoint.`;
  return refused('invalid_request', message, { details: faults.map(({ path }) => ({ path, message })) });
}
