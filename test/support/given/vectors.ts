// The files of the published test vectors for verifiers of receipts, checkpoints and deliveries.
import { Buffer } from 'node:buffer';
import { deliveryVectors } from './vector-deliveries.ts';
import { type KeyedVector, SEED_TEXT, seedOf, type Vector } from './vector-keys.ts';
import { logVectors } from './vector-log.ts';
import { receiptVectors } from './vector-receipts.ts';

export type VectorFile = {
  readonly format: 'relay-vectors/1';
  readonly note: string;
  /** By name: JWK sets. */
  readonly keySets: Readonly<Record<string, object>>;
  /** `input.keys` is the name of a key set. */
  readonly vectors: readonly (Omit<Vector, 'input'> & { readonly input: { readonly keys: string } })[];
};

const lines = (values: readonly string[]) => values.map((one) => `  ${one}`).join(',\n');

/** One line for each key set and vector. */
function fileOf(vectors: readonly KeyedVector[]): string {
  const texts = [...new Set(vectors.map(({ input }) => JSON.stringify(input.keys)))];
  const keySets = texts.map((text, at) => `"keys-${at + 1}": ${text}`);
  const named = vectors.map((one) => {
    const keys = `keys-${texts.indexOf(JSON.stringify(one.input.keys)) + 1}`;
    return JSON.stringify({ ...one, input: { ...one.input, keys } });
  });
  const seed = Buffer.from(seedOf('receipt key')).toString('hex');
  const note = `The private keys are public: each seed is the SHA-256 of "${SEED_TEXT}" and a label, as of "receipt key": ${seed}. The format is described in src/IMPLEMENTING.md.`;
  const head = `{\n "format": "relay-vectors/1",\n "note": ${JSON.stringify(note)},`;
  return `${head}\n "keySets": {\n${lines(keySets)}\n },\n "vectors": [\n${lines(named)}\n ]\n}\n`;
}

/** By name, as text: one line for each vector. */
export const vectorFiles = async (): Promise<Readonly<Record<string, string>>> => ({
  'receipts.json': fileOf(await receiptVectors()),
  'transparency.json': fileOf(await logVectors()),
  'deliveries.json': fileOf(await deliveryVectors()),
});
