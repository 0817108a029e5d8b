// Signed notes (C2SP signed-note) with Ed25519 signatures: text, an empty line, a line for each signature.
import { concatBytes, fromBase64, sha256, toBase64, toHex, utf8 } from '#src/domain/encoding.ts';
import type { Primitives } from '../signing-keys/keys.ts';
import { sameHash } from './merkle.ts';

/** The signature type byte of Ed25519. */
const ED25519 = Uint8Array.of(1);
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

/** The first 4 bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key). */
function keyIdOf({ name, publicKey }: NoteKey): Uint8Array {
  return sha256(concatBytes(utf8(`${name}\n`), ED25519, publicKey)).slice(0, 4);
}

/** The verifier key as Go's `note` package writes it: `<name>+<key id, hex>+<base64(0x01 ‖ public key)>`. */
export function verifierKeyText(key: NoteKey): string {
  const id = toHex(keyIdOf(key));
  return `${key.name}+${id}+${toBase64(concatBytes(ED25519, key.publicKey))}`;
}

/** `text` ends with a newline; `sign`: over its UTF-8 bytes. */
export async function signNote(
  text: string,
  key: NoteKey,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<string> {
  const signature = concatBytes(keyIdOf(key), await sign(utf8(text)));
  return `${text}\n— ${key.name} ${toBase64(signature)}\n`;
}

export type NoteSignature = {
  readonly name: string;
  readonly keyId: Uint8Array;
  readonly signature: Uint8Array;
};
export type Note = { readonly text: string; readonly signatures: readonly NoteSignature[] };

/** The parts of a note; null for anything else. Does not verify signatures. */
export function parseNote(note: string): Note | null {
  if (note.length > MAX_NOTE_LENGTH || hasControl(note)) return null;
  const border = note.lastIndexOf('\n\n');
  if (border < 0 || !note.endsWith('\n')) return null;
  const lines = note.slice(border + 2, -1).split('\n');
  const signatures: NoteSignature[] = [];
  for (const line of lines) {
    const [, name = '', base64 = ''] = /^— ([^\s+]+) (\S+)$/u.exec(line) ?? [];
    const bytes = fromBase64(base64);
    if (name === '' || bytes === null || bytes.length < 5) return null;
    signatures.push({ name, keyId: bytes.slice(0, 4), signature: bytes.slice(4) });
  }
  return { text: note.slice(0, border + 1), signatures };
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
