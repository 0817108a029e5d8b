// Commitments and the disclosures that open them. Salts are derived, so nothing is stored and a replay opens them again.

import type { Target } from '#src/domain/destination/url.ts';
import { sha256, toHex } from '#src/domain/encoding.ts';
import type { RequestCommitments } from '#src/domain/event-fields.ts';
import type { NormalRequest } from '#src/domain/job/webhook-request.ts';
import { type CommitmentName, type Disclosure, disclose } from '#src/domain/receipt/disclosures.ts';
import type { AttemptReport } from '#src/ports/outbound.ts';
import type { KeyedHash } from '#src/ports/signer.ts';

export type DiscloseDeps = { readonly keyedHash: KeyedHash };

function open(deps: DiscloseDeps, jobId: string, name: CommitmentName, value: string | readonly string[]) {
  const salt = deps.keyedHash.mac('commitment-salt', `${jobId}\0${name}`).slice(0, 16);
  return disclose(salt, name, value);
}

export type RequestDisclosures = {
  readonly commitments: RequestCommitments;
  readonly disclosures: readonly Disclosure[];
};

/** `body`: the exact bytes on the wire; an absent body is committed to as the empty string's hash. */
export function discloseRequest(
  deps: DiscloseDeps,
  jobId: string,
  request: NormalRequest,
  target: Pick<Target, 'href' | 'origin'>,
  body: Uint8Array | null,
): RequestDisclosures {
  const bodyHash = toHex(sha256(body ?? new Uint8Array(0)));
  const [url, origin, names, hash] = [
    open(deps, jobId, 'target_url', target.href),
    open(deps, jobId, 'target_origin', target.origin),
    open(deps, jobId, 'header_names', Object.keys(request.headers).sort()),
    open(deps, jobId, 'request_body_sha256', bodyHash),
  ] as const;
  const key =
    request.idempotencyKey === null ? null : open(deps, jobId, 'idempotency_key', request.idempotencyKey);
  return {
    commitments: {
      target_url: url.commitment,
      target_origin: origin.commitment,
      header_names: names.commitment,
      request_body_sha256: hash.commitment,
      idempotency_key: key?.commitment ?? null,
    },
    disclosures: [url, origin, names, hash, ...(key === null ? [] : [key])],
  };
}

export function discloseAttempt(deps: DiscloseDeps, jobId: string, number: number, report: AttemptReport) {
  const { leafSha256, address } = report;
  const leaf = leafSha256 === null ? null : open(deps, jobId, `attempt_${number}_leaf_sha256`, leafSha256);
  const dialled = address === null ? null : open(deps, jobId, `attempt_${number}_address`, address);
  return {
    commitments: {
      leafCommitment: leaf?.commitment ?? null,
      addressCommitment: dialled?.commitment ?? null,
    },
    disclosures: [leaf, dialled].filter((disclosure) => disclosure !== null),
  };
}

export function discloseResponse(deps: DiscloseDeps, jobId: string, report: AttemptReport) {
  const { responseBytes, truncated, responseBodySha256 } = report;
  if (responseBytes === null || responseBodySha256 === null) {
    return { facts: { responseBytes: null, truncated, responseCommitment: null }, disclosures: [] };
  }
  const body = open(deps, jobId, 'response_body_sha256', responseBodySha256);
  return { facts: { responseBytes, truncated, responseCommitment: body.commitment }, disclosures: [body] };
}
