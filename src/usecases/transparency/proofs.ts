// What anyone may ask of the transparency log: its head, its tiles, and proofs over them. It answers from the rows alone
// and proves nothing to itself: whoever asks checks the answers by the signed checkpoint.
import { concatBytes, fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import { TRANSPARENCY } from '#src/domain/limits.ts';
import type { Primitives } from '#src/domain/receipt/verify.ts';
import { Fault, type Refused, refused } from '#src/domain/refusal.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { verifyCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { isCount } from '#src/domain/transparency/merkle.ts';
import { verifierKeyText } from '#src/domain/transparency/note.ts';
import { consistencyProof, inclusionProof } from '#src/domain/transparency/proofs.ts';
import {
  HASH_BYTES,
  type TileLevel,
  TileMissing,
  type TileName,
  type TreeReader,
  tileWidth,
  treeReader,
} from '#src/domain/transparency/tiles.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import type { KeyDirectory } from '#src/usecases/signing-keys/key-directory.ts';

export type ConsistencyProof = {
  readonly from: number;
  readonly to: number;
  /** Base64. */
  readonly fromRoot: string;
  readonly toRoot: string;
  readonly proof: readonly string[];
};

/**
 * Each answers null where this relay keeps no transparency log, and throws `Fault('read_models_unavailable')` where the
 * read models are away.
 */
export type Transparency = {
  /** The newest checkpoint that this process knows of, at most some seconds old: a signed note. Never throws. */
  latest(): string | null;
  /** The newest checkpoint. */
  checkpoint(): Promise<string | null>;
  /** The verifier key of the newest checkpoint, without an end of line; null also where no key of the log signed it. */
  key(): Promise<string | null>;
  /** Null also for a tile that the newest checkpoint does not need, or that is not so wide in it. */
  tile(name: TileName): Promise<Uint8Array | null>;
  /** A proof file up to the newest checkpoint. `receipt_not_ready`: no checkpoint has it yet. */
  prove(receiptId: string): Promise<string | Refused<'receipt_not_found' | 'receipt_not_ready'> | null>;
  /** Refused but for 0 <= from <= to <= the size of the newest checkpoint. */
  consistency(from: number, to: number): Promise<ConsistencyProof | Refused<'invalid_request'> | null>;
};

export type TransparencyDeps = {
  /** Of the read model. */
  readonly rows: {
    checkpoint(): Promise<{ readonly size: number; readonly note: string } | null>;
    tile(level: TileLevel, n: number): Promise<Uint8Array | null>;
    leafIndex(receiptId: string): Promise<number | null>;
  };
  readonly keys: KeyDirectory;
  readonly primitives: Primitives;
  readonly latest: Transparency['latest'];
  /** false: what was signed is known not to be over these rows. */
  readonly stands: () => boolean;
};

export function transparency({ rows, keys, primitives, latest, stands }: TransparencyDeps): Transparency {
  async function signerOf(note: string, known: readonly KeyRecord[]): Promise<string | null> {
    const checkpoint = await verifyCheckpoint(note, known, primitives);
    const x = known.find(({ keyId }) => keyId === checkpoint?.keyId)?.x;
    const publicKey = fromBase64url(x ?? '');
    if (checkpoint === null || publicKey === null) return null;
    return verifierKeyText({ name: checkpoint.origin, publicKey });
  }

  return {
    latest,
    async checkpoint() {
      return (await rows.checkpoint())?.note ?? null;
    },
    async key() {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      // A checkpoint may be here before the key that signed it: that list is seconds old.
      return (await signerOf(newest.note, await keys.list())) ?? signerOf(newest.note, await keys.refresh());
    },
    async tile({ level, n, width }) {
      const newest = await rows.checkpoint();
      if (newest === null || width > tileWidth(level, n, newest.size)) return null;
      demandStanding();
      const hashes = await rows.tile(level, n);
      if (hashes === null || hashes.length < width * HASH_BYTES) return null;
      const asked = hashes.slice(0, width * HASH_BYTES);
      return level === 'entries' ? entryBundle(asked) : asked;
    },
    async prove(receiptId) {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      const index = await rows.leafIndex(receiptId);
      if (index === null) return refused('receipt_not_found', 'There is no such receipt in the log.');
      if (index >= newest.size) return NOT_YET;
      return read(async (reader) => {
        const path = await inclusionProof(reader, index, newest.size);
        return tlogProofText({ index, path, checkpoint: newest.note });
      });
    },
    async consistency(from, to) {
      const newest = await rows.checkpoint();
      if (newest === null) return null;
      const refusal = outside(from, to, newest.size);
      if (refusal !== null) return refusal;
      demandStanding();
      return read(async (reader) => ({
        from,
        to,
        fromRoot: toBase64(await reader.root(0, from)),
        toRoot: toBase64(await reader.root(0, to)),
        proof: (await consistencyProof(reader, from, to)).map(toBase64),
      }));
    },
  };

  /** What is kept for good by whoever reads it is not given out of another tree. A proof that fails tells of that one. */
  function demandStanding(): void {
    if (stands()) return;
    throw new Fault('read_models_unavailable', 'The tree at hand is not the one that was signed.');
  }

  /** The rows that a checkpoint is over were written before it was signed: without them they are being replaced. */
  async function read<T>(answer: (reader: TreeReader) => Promise<T>): Promise<T> {
    try {
      return await answer(treeReader(rows.tile));
    } catch (cause) {
      if (!(cause instanceof TileMissing)) throw cause;
      throw new Fault('read_models_unavailable', 'The transparency log cannot be read now.', { cause });
    }
  }
}

const NOT_YET = refused('receipt_not_ready', 'No checkpoint of the log has this receipt yet.', {
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
function outside(from: number, to: number, size: number): Refused<'invalid_request'> | null {
  const faults = [
    { path: '/to', value: to, max: size },
    { path: '/from', value: from, max: Math.min(to, size) },
  ].filter(({ value, max }) => !isCount(value) || value > max);
  if (faults.length === 0) return null;
  const message = `Expected 0 <= from <= to <= ${size}, the size of the newest checkpoint.`;
  return refused('invalid_request', message, { details: faults.map(({ path }) => ({ path, message })) });
}
