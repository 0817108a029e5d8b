// The leaves of the transparency log: every receipt and every event of the signing keys, in the event log's order. The log
// contains their hashes only, so that public tiles do not reveal who paid for what.
import { sha256, utf8 } from '#src/domain/encoding.ts';
import { canonicalJson, type Json } from '../canonical-json.ts';
import type { DomainEvent } from '../events.ts';

export const isLeaf = ({ type }: DomainEvent): boolean =>
  type === 'ReceiptSigned' || type === 'SigningKeyActivated' || type === 'SigningKeyRetired';

/** 32 bytes; null for an event that is no leaf. */
export function leafData(event: DomainEvent): Uint8Array | null {
  switch (event.type) {
    case 'ReceiptSigned':
      return receiptLeafData(event.data.jws);
    case 'SigningKeyActivated':
    case 'SigningKeyRetired': {
      const { type, data } = event;
      return sha256(utf8(canonicalJson({ type, data: { ...data } as Json })));
    }
    default:
      return null;
  }
}

/** SHA-256 of the compact JWS. */
export const receiptLeafData = (jws: string): Uint8Array => sha256(utf8(jws));
