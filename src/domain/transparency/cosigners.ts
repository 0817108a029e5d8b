// Who has cosigned a checkpoint and when, as its lines state it: for readers of a page. Nothing is verified here.
import { isCount } from './merkle.ts';
import { parseNote } from './note.ts';

/** Bytes of a time and a signature (C2SP tlog-cosignature): Ed25519 and ML-DSA-44. */
const COSIGNATURE_BYTES = [8 + 64, 8 + 2420];

/** `time`: Unix seconds, by the clock of the witness. */
export type StatedCosigner = { readonly name: string; readonly time: number };

/** In the order of the lines; lines of the log itself have another size and are left out. */
export function statedCosigners(checkpoint: string): readonly StatedCosigner[] {
  const { signatures = [] } = parseNote(checkpoint) ?? {};
  return signatures.flatMap(({ name, signature }) => {
    if (!COSIGNATURE_BYTES.includes(signature.length)) return [];
    const { buffer, byteOffset } = signature;
    const time = Number(new DataView(buffer, byteOffset, 8).getBigUint64(0));
    return isCount(time) ? [{ name, time }] : [];
  });
}
