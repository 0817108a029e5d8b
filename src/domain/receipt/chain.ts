// The event chain: binds a receipt to every recorded event of its job, so that an edited history is caught.
import { concatBytes, sha256, toBase64url, utf8 } from '#src/domain/encoding.ts';
import type { RecordedEvent } from '#src/domain/event-codec.ts';
import { canonicalJson } from '../canonical-json.ts';

export type ChainedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'type' | 'id' | 'data'>;

/**
 * chain₀ = 32 zero bytes; chainₙ = SHA-256(chainₙ₋₁ ‖ JCS{stream, revision, type, id, data}), over events as they were
 * recorded, revision as a decimal string. Metadata, position and time of storage are left out. base64url.
 */
export function eventChain(events: readonly ChainedEvent[]): string {
  let link: Uint8Array = new Uint8Array(32);
  for (const { stream, revision, type, id, data } of events) {
    const json = canonicalJson({ stream, revision: String(revision), type, id, data });
    link = sha256(concatBytes(link, utf8(json)));
  }
  return toBase64url(link);
}
