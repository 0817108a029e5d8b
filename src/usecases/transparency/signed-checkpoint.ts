// A checkpoint as an event: made from the tree's head and the key at hand, and read again from what is stored.
import { fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import { decodeEvent } from '#src/domain/event-codec.ts';
import type { EventOf } from '#src/domain/events.ts';
import { checkpointText, parseCheckpoint, type TreeHead } from '#src/domain/transparency/checkpoint.ts';
import { signNote } from '#src/domain/transparency/note.ts';
import type { CheckpointSigner } from '#src/ports/signer.ts';

export type CheckpointEvent = EventOf<'CheckpointSigned'>;

/** `now`: Unix ms. */
export async function signedCheckpoint(
  head: TreeHead,
  key: NonNullable<ReturnType<CheckpointSigner['current']>>,
  now: number,
): Promise<CheckpointEvent> {
  const { origin, size, root } = head;
  const publicKey = fromBase64url(key.x);
  if (publicKey === null) throw new Error('the public checkpoint key is not base64url');
  const name = { name: origin, publicKey };
  const note = await signNote(checkpointText(head), name, (message) => key.sign(message));
  const { keyId } = key;
  const signedAt = new Date(now).toISOString();
  const data = { v: 1 as const, origin, size: String(size), root: toBase64(root), keyId, note, signedAt };
  return { type: 'CheckpointSigned', data };
}

export type StoredNote = TreeHead & { readonly note: string };

/** null where this version cannot read the event, or its note says something else than the event. */
export function storedNote(recorded: Parameters<typeof decodeEvent>[0]): StoredNote | null {
  const event = decodeEvent(recorded);
  if (event?.type !== 'CheckpointSigned') return null;
  const { note, origin, size, root } = event.data;
  const head = parseCheckpoint(note);
  if (head === null || head.origin !== origin) return null;
  return String(head.size) === size && toBase64(head.root) === root ? { ...head, note } : null;
}
