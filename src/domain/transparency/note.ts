// Signed notes (C2SP signed-note): text, an empty line, a line for each signature; key ids and verifier keys of all types, and
// signatures of type 0x01 (Ed25519). `cosignature.ts` has the types 0x04 and 0x06.
import { concatBytes, fromBase64, sha256, toBase64, toHex, utf8 } from '#src/domain/encoding.ts';
import type { Primitives } from '../signing-keys/keys.ts';
import { sameHash } from './merkle.ts';

/** The signature type byte of Ed25519 over the text of a note (C2SP signed-note). */
export const ED25519 = 0x01;
/**
 * In UTF-16 code units, of which a text never has more than UTF-8 bytes: no note of up to 256 KiB is refused. Post-quantum
 * signatures have nearly 5 kB, and C2SP signed-note requires that 16 of them can be read.
 */
const MAX_NOTE_LENGTH = 256 * 1024;

export type NoteKey = {
  /** Schema-less URL, without a blank or a plus. */
  readonly name: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
};

/** A name, a signature type byte and a public key: what a verifier key contains. */
export type TypedKey = NoteKey & { readonly type: number };

/** C2SP signed-note: the first 4 bytes of SHA-256(name ‖ 0x0A ‖ type ‖ public key). */
export function noteKeyId({ name, type, publicKey }: TypedKey): Uint8Array {
  return sha256(concatBytes(utf8(`${name}\n`), Uint8Array.of(type), publicKey)).slice(0, 4);
}

const keyIdOf = (key: NoteKey): Uint8Array => noteKeyId({ ...key, type: ED25519 });

/** The verifier key (C2SP signed-note): `<name>+<key id, hex>+<base64(type ‖ public key)>`. */
export function typedKeyText(key: TypedKey): string {
  const bytes = concatBytes(Uint8Array.of(key.type), key.publicKey);
  return `${key.name}+${toHex(noteKeyId(key))}+${toBase64(bytes)}`;
}

/** The same for type 0x01, as Go's `note` package writes it. */
export const verifierKeyText = (key: NoteKey): string => typedKeyText({ ...key, type: ED25519 });

/**
 * The parts of a verifier key; null for anything else. Any type is read; the key id must be the one that C2SP signed-note
 * derives from the rest.
 */
export function parseTypedKey(text: string): TypedKey | null {
  const [, name = '', id, base64 = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/u.exec(text) ?? [];
  const [type, ...bytes] = fromBase64(base64) ?? [];
  if (name === '' || type === undefined) return null;
  const key = { name, type, publicKey: Uint8Array.from(bytes) };
  return toHex(noteKeyId(key)) === id ? key : null;
}

/** `text` ends with a newline; `sign`: over its UTF-8 bytes. */
export async function signNote(
  text: string,
  key: NoteKey,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<string> {
  const signature = await sign(utf8(text));
  return `${text}\n${signatureLine({ name: key.name, keyId: keyIdOf(key), signature })}\n`;
}

export type NoteSignature = {
  readonly name: string;
  readonly keyId: Uint8Array;
  readonly signature: Uint8Array;
};

/** Without its line end. */
export const signatureLine = ({ name, keyId, signature }: NoteSignature): string =>
  `— ${name} ${toBase64(concatBytes(keyId, signature))}`;

export type Note = { readonly text: string; readonly signatures: readonly NoteSignature[] };

/** The parts of a note; null for anything else. Does not verify signatures. */
export function parseNote(note: string): Note | null {
  if (note.length > MAX_NOTE_LENGTH || hasControl(note)) return null;
  const border = note.lastIndexOf('\n\n');
  if (border < 0 || !note.endsWith('\n')) return null;
  const signatures = signaturesOf(note.slice(border + 2));
  return signatures && { text: note.slice(0, border + 1), signatures };
}

/** One or more signature lines, as a witness answers them (C2SP tlog-witness); null for anything else. */
export const parseSignatureLines = (lines: string): readonly NoteSignature[] | null =>
  lines.length > MAX_NOTE_LENGTH || hasControl(lines) || !lines.endsWith('\n') ? null : signaturesOf(lines);

/** `lines`: the last one ends with a newline, too. */
function signaturesOf(lines: string): readonly NoteSignature[] | null {
  const signatures: NoteSignature[] = [];
  for (const line of lines.slice(0, -1).split('\n')) {
    const [, name = '', base64 = ''] = /^— ([^\s+]+) (\S+)$/u.exec(line) ?? [];
    const bytes = fromBase64(base64);
    if (name === '' || bytes === null || bytes.length < 5) return null;
    signatures.push({ name, keyId: bytes.slice(0, 4), signature: bytes.slice(4) });
  }
  return signatures;
}

/** The note with these signatures after its own, each once. */
export function withSignatures(note: Note, more: readonly NoteSignature[]): string {
  const lines = new Set([...note.signatures, ...more].map(signatureLine));
  return `${note.text}\n${[...lines].join('\n')}\n`;
}

/** Any ASCII control character but the newline. */
function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 32 && code !== 10) return true;
  }
  return false;
}

/**
 * The first of the known keys that has signed the note; null if there is none, or if the signature of a known key does not
 * verify. Signatures of unknown keys are ignored.
 */
export async function verifyNote<K extends NoteKey>(
  note: Note,
  keys: readonly K[],
  primitives: Primitives,
): Promise<K | null> {
  let signedBy: K | null = null;
  for (const { name, keyId, signature } of note.signatures) {
    for (const key of keys) {
      if (key.name !== name || !sameHash(keyIdOf(key), keyId)) continue;
      if (!(await primitives.ed25519Verify(key.publicKey, utf8(note.text), signature))) return null;
      signedBy ??= key;
    }
  }
  return signedBy;
}
