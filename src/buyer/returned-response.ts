// The answer of the target, where the buyer asked for it: the bytes that the receipt commits to, or none.
import { type Static, Type } from '@sinclair/typebox';
import { fromBase64, sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { oneOf, Truncated } from '#src/domain/event-fields.ts';
import type { OpenedDisclosure } from '#src/domain/receipt/disclosures.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { isObject } from '#src/lib/is-object.ts';
import { compare, type Mismatch } from './purchase-error.ts';

const Response = Type.Object({
  status: Type.Integer(),
  headers: Type.Record(Type.String(), Type.String()),
  encoding: oneOf('utf8', 'base64'),
  body: Type.String(),
  truncated: Truncated,
});
const isResponse = shapeCheck(Response);

export type ReturnedResponse = Pick<Static<typeof Response>, 'status' | 'truncated'> & {
  /** Content-Type, Retry-After and others that the relay shows, as it states them: no receipt commits to them. */
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that were read, at most 64 KiB. */
  readonly body: Uint8Array;
};

/** null: the answer has none. */
export function readResponse(answer: unknown): ReturnedResponse | 'unreadable' | null {
  const response = isObject(answer) ? answer.response : undefined;
  if (response === undefined) return null;
  if (!isResponse(response)) return 'unreadable';
  const { status, headers, encoding, body: text, truncated } = response;
  const body = encoding === 'utf8' ? utf8(text) : fromBase64(text);
  return body === null ? 'unreadable' : { status, headers, body, truncated };
}

/** Its body has the hash that opens the commitment of the receipt, whose outcome states its status, size and cut. */
export function faultsOfResponse(
  response: ReturnedResponse | 'unreadable',
  { outcome }: ReceiptPayload,
  opened: readonly OpenedDisclosure[],
  { idempotentReplay }: { readonly idempotentReplay: boolean },
): readonly Mismatch[] {
  if (response === 'unreadable') return compare('response', 'as in an execution response', 'another form');
  if (idempotentReplay) return compare('response', 'none in a replay', 'one');
  const hash = opened.find((one) => one.ok && one.name === 'response_body_sha256');
  const committed = hash?.ok ? hash.value : null;
  return [
    ...compare('response.body', committed ?? 'the hash of a disclosure', toHex(sha256(response.body))),
    ...compare('response.status', outcome.responseStatus, response.status),
    ...compare('response.truncated', outcome.truncated, response.truncated),
    ...compare('response.bytes', outcome.responseBytes, response.body.length),
  ];
}
