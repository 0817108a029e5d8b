// Cosignatures of checkpoints (C2SP tlog-cosignature): Ed25519 (signature type 0x04) and ML-DSA-44 (0x06). Also verifies the
// signatures of a log, which are of one of these types or of type 0x01.
import { concatBytes, toHex, utf8 } from '#src/domain/encoding.ts';
import { iso } from '#src/lib/iso.ts';
import type { Primitives } from '../signing-keys/keys.ts';
import { type TreeHead, treeHeadOf } from './checkpoint.ts';
import { isCount, sameHash } from './merkle.ts';
import {
  ED25519,
  type Note,
  type NoteSignature,
  noteKeyId,
  parseNote,
  parseTypedKey,
  signatureLine,
  type TypedKey,
  typedKeyText,
} from './note.ts';

/** The signature type bytes of C2SP signed-note that this relay supports. */
export const SIGNATURE_TYPES = {
  /** Over the text of the note: only of logs. */
  ed25519: ED25519,
  /** A cosignature with a time, over the text of the checkpoint. */
  cosignatureEd25519: 0x04,
  /** A cosignature with a time, over the tree head and the name of the cosigner. */
  cosignatureMlDsa44: 0x06,
} as const;

type SignatureType = (typeof SIGNATURE_TYPES)[keyof typeof SIGNATURE_TYPES];
export type CosignatureType = Exclude<SignatureType, typeof ED25519>;

/** A verifier key of a supported type, with a public key of its size. */
export type VerifierKey = TypedKey & { readonly type: SignatureType };
export type CosignerKey = TypedKey & { readonly type: CosignatureType };

type Sizes = { readonly publicKey: number; readonly signature: number };
const ED25519_SIZES: Sizes = { publicKey: 32, signature: 64 };
const ML_DSA_44_SIZES: Sizes = { publicKey: 1312, signature: 2420 };
const sizesOf = (type: SignatureType): Sizes =>
  type === SIGNATURE_TYPES.cosignatureMlDsa44 ? ML_DSA_44_SIZES : ED25519_SIZES;

/** The time before the signature: a big-endian 64-bit number. */
const TIME_BYTES = 8;

const TYPES: readonly number[] = Object.values(SIGNATURE_TYPES);
const isType = (type: number): type is SignatureType => TYPES.includes(type);
const isSupported = (key: TypedKey): key is VerifierKey =>
  isType(key.type) && key.publicKey.length === sizesOf(key.type).publicKey;

/** Whether the key is of a type that a witness may have (C2SP tlog-cosignature). */
export const isCosignerKey = (key: VerifierKey): key is CosignerKey => key.type !== ED25519;

/** The key of a verifier key text `<name>+<key id>+<base64>`; null for anything else or an unsupported type. */
export function parseVerifierKey(text: string): VerifierKey | null {
  const key = parseTypedKey(text);
  return key !== null && isSupported(key) ? key : null;
}

/** `<name>+<key id, hex>+<base64(type ‖ public key)>` (C2SP signed-note). */
export const vkeyText = (key: VerifierKey): string => typedKeyText(key);

/** The 4 bytes that identify the key beside its name, in lower-case hex. */
export const keyIdText = (key: VerifierKey): string => toHex(noteKeyId(key));

/** `text`: of the checkpoint's note, with its extension lines. `time`: Unix seconds. */
type Cosigned = { readonly text: string; readonly head: TreeHead; readonly time: number };

/**
 * What a cosigner signs (C2SP tlog-cosignature). Ed25519: `cosignature/v1`, `time <t>` and the checkpoint's text, each line
 * with its end. ML-DSA-44: the structure `cosigned_message` for the whole tree, without extension lines.
 */
function cosignedMessage({ name, type }: CosignerKey, { text, head, time }: Cosigned): Uint8Array {
  if (type === SIGNATURE_TYPES.cosignatureEd25519) return utf8(`cosignature/v1\ntime ${time}\n${text}`);
  const { origin, size, root } = head;
  return concatBytes(
    utf8('subtree/v1\n\0'),
    withLength(name),
    uint64(time),
    withLength(origin),
    uint64(0),
    uint64(size),
    root,
  );
}

/** The length in one byte, then the text (RFC 8446 §3.4). A RangeError for a text that is empty or over 255 bytes. */
function withLength(text: string): Uint8Array {
  const bytes = utf8(text);
  if (bytes.length === 0 || bytes.length > 255) throw new RangeError(`a name of ${bytes.length} bytes`);
  return concatBytes(Uint8Array.of(bytes.length), bytes);
}

function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}

/**
 * The time that a cosignature states, Unix seconds; null: it has none, or one beyond what a double represents exactly, in more
 * than 285 million years. Verifies nothing.
 */
export function statedTime({ buffer, byteOffset, length }: Uint8Array): number | null {
  if (length < TIME_BYTES) return null;
  const time = Number(new DataView(buffer, byteOffset, TIME_BYTES).getBigUint64(0));
  return isCount(time) ? time : null;
}

/** `time`: Unix seconds, by the clock of the witness. */
export type StatedCosigner = { readonly name: string; readonly time: number };

/**
 * Who has cosigned a checkpoint and when, as its lines state it, in their order: for readers of a page. Lines of the log itself
 * have another size and are left out. Verifies nothing.
 */
export function statedCosigners(checkpoint: string): readonly StatedCosigner[] {
  const sizes = [ED25519_SIZES, ML_DSA_44_SIZES].map((sizes) => TIME_BYTES + sizes.signature);
  const { signatures = [] } = parseNote(checkpoint) ?? {};
  return signatures.flatMap(({ name, signature }) => {
    const time = sizes.includes(signature.length) ? statedTime(signature) : null;
    return time === null || time > LAST_SECOND ? [] : [{ name, time }];
  });
}

/** Of a Date, Unix seconds. */
const LAST_SECOND = 8.64e12;

/** The same as a sentence. */
export function cosignersText(checkpoint: string): string {
  const stated = statedCosigners(checkpoint).map(({ name, time }) => `${name} at ${iso(time * 1000)}`);
  if (stated.length === 0) return 'No witness has cosigned this checkpoint.';
  return `Cosigned, as this checkpoint states, by ${stated.join(', ')}: a policy of yours verifies that (relay verify --policy).`;
}

/**
 * A witness's signature of the checkpoint. `time`: Unix seconds. `sign`: over the given message, with the private key of `key`.
 * Throws a RangeError if the checkpoint's text is none, or a name is too long for ML-DSA-44 (255 bytes).
 */
export async function cosign(
  { text }: Pick<Note, 'text'>,
  key: CosignerKey,
  time: number,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<NoteSignature> {
  const head = treeHeadOf({ text });
  if (head === null || !isCount(time)) throw new RangeError('no checkpoint and time to cosign');
  const signature = await sign(cosignedMessage(key, { text, head, time }));
  return { name: key.name, keyId: noteKeyId(key), signature: concatBytes(uint64(time), signature) };
}

/** `unsupported`: the runtime cannot verify this type, so nothing is known. */
export type SignatureVerdict<K extends VerifierKey = VerifierKey> = {
  readonly key: K;
  readonly state: 'valid' | 'invalid' | 'unsupported';
  /** Unix seconds; null: the type has none, or it cannot be read. A time is proven only by a valid signature. */
  readonly time: number | null;
  /** The signature line, without its end. */
  readonly line: string;
};

/**
 * Verifies each signature of a checkpoint whose name and key id are those of a given key, and ignores all others, as C2SP
 * signed-note requires. A verifier should reject a note with an `invalid` one.
 */
export async function judgeSignatures<K extends VerifierKey>(
  note: Note,
  keys: readonly K[],
  primitives: Primitives,
): Promise<readonly SignatureVerdict<K>[]> {
  const head = treeHeadOf(note);
  const known = keys.map((key) => ({ key, keyId: noteKeyId(key) }));
  const verdicts: SignatureVerdict<K>[] = [];
  for (const signature of note.signatures) {
    for (const { key, keyId } of known) {
      if (key.name !== signature.name || !sameHash(keyId, signature.keyId)) continue;
      verdicts.push(await judged({ text: note.text, head }, key, signature, primitives));
    }
  }
  return verdicts;
}

async function judged<K extends VerifierKey>(
  { text, head }: { readonly text: string; readonly head: TreeHead | null },
  key: K,
  { name, keyId, signature }: NoteSignature,
  primitives: Primitives,
): Promise<SignatureVerdict<K>> {
  const line = signatureLine({ name, keyId, signature });
  const sized = (bytes: Uint8Array) => bytes.length === sizesOf(key.type).signature;
  const { ed25519Verify } = primitives;
  if (!isCosignerKey(key)) {
    const valid = sized(signature) && (await ed25519Verify(key.publicKey, utf8(text), signature));
    return { key, state: valid ? 'valid' : 'invalid', time: null, line };
  }
  const bytes = signature.subarray(TIME_BYTES);
  const time = sized(bytes) ? statedTime(signature) : null;
  if (head === null || time === null || !canCosign(key, head)) return { key, state: 'invalid', time, line };
  const message = cosignedMessage(key, { text, head, time });
  const valid =
    key.type === SIGNATURE_TYPES.cosignatureEd25519
      ? await ed25519Verify(key.publicKey, message, bytes)
      : ((await primitives.mlDsa44Verify?.(key.publicKey, message, bytes)) ?? null);
  return { key, state: valid === null ? 'unsupported' : valid ? 'valid' : 'invalid', time, line };
}

/** The names fit into the message of ML-DSA-44; Ed25519 has no limit. */
const canCosign = ({ name, type }: CosignerKey, { origin }: TreeHead): boolean =>
  type === SIGNATURE_TYPES.cosignatureEd25519 || (utf8(name).length <= 255 && utf8(origin).length <= 255);
