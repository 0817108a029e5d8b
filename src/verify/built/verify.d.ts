// Made by src/verify/build.ts: not to be edited.
/** What a receipt's signature covers. */
export type ReceiptPayload = {
  readonly v: 1;
  readonly receiptId: string;
  readonly jobId: string;
  readonly decisionId: string | null;
  readonly decisionHash: string | null;
  readonly iat: number;
  readonly mode: 'demo' | 'x402';
  readonly payment: {
    readonly scheme: string;
    readonly network: string;
    readonly asset: string;
    readonly amount: string;
    readonly payTo: string;
    readonly payer: string;
    readonly transaction: string | null;
    readonly payloadHash: string;
  } | null;
  readonly request: {
    readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    readonly _sd: readonly string[];
  };
  readonly attempts: readonly {
    readonly n: number;
    readonly startedAt: string;
    readonly endedAt: string;
    readonly phase: 'dns' | 'connect' | 'tls' | 'request' | 'headers' | 'body';
    readonly sent: 'no' | 'maybe' | 'yes';
    readonly outcome: 'succeeded' | 'failed';
    readonly status: number | null;
    readonly errorCategory: 'timeout' | 'dns_error' | 'connect_error' | 'tls_error' | 'protocol_error' | 'truncated_response' | 'target_redirect' | 'target_rate_limited' | 'target_client_error' | 'target_server_error' | 'target_refused' | 'interrupted_unknown' | 'not_executed' | null;
    readonly tlsVersion: string | null;
    readonly exempted?: true;
    readonly _sd: readonly string[];
  }[];
  readonly outcome: {
    readonly status: 'succeeded' | 'failed';
    readonly responseStatus: number | null;
    readonly errorCategory: 'timeout' | 'dns_error' | 'connect_error' | 'tls_error' | 'protocol_error' | 'truncated_response' | 'target_redirect' | 'target_rate_limited' | 'target_client_error' | 'target_server_error' | 'target_refused' | 'interrupted_unknown' | 'not_executed' | null;
    readonly responseBytes: number | null;
    readonly truncated: boolean;
    readonly _sd: readonly string[];
  };
  readonly stream: {
    readonly id: string;
    readonly revision: string;
    readonly chain: string;
  };
} | {
  readonly v: 2;
  readonly receiptId: string;
  readonly jobId: string;
  readonly decisionId: string | null;
  readonly decisionHash: string | null;
  readonly iat: number;
  readonly mode: 'demo' | 'x402';
  readonly payment: {
    readonly scheme: string;
    readonly network: string;
    readonly asset: string;
    readonly amount: string;
    readonly payTo: string;
    readonly payer: string;
    readonly transaction: string | null;
    readonly payloadHash: string;
  } | null;
  readonly request: {
    readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    readonly _sd: readonly string[];
  };
  readonly attempts: readonly {
    readonly n: number;
    readonly startedAt: string;
    readonly endedAt: string;
    readonly phase: 'dns' | 'connect' | 'tls' | 'request' | 'headers' | 'body';
    readonly sent: 'no' | 'maybe' | 'yes';
    readonly outcome: 'succeeded' | 'failed';
    readonly status: number | null;
    readonly errorCategory: 'timeout' | 'dns_error' | 'connect_error' | 'tls_error' | 'protocol_error' | 'truncated_response' | 'target_redirect' | 'target_rate_limited' | 'target_client_error' | 'target_server_error' | 'target_refused' | 'interrupted_unknown' | 'not_executed' | null;
    readonly tlsVersion: string | null;
    readonly exempted?: true;
    readonly _sd: readonly string[];
  }[];
  readonly outcome: {
    readonly status: 'succeeded' | 'failed';
    readonly responseStatus: number | null;
    readonly errorCategory: 'timeout' | 'dns_error' | 'connect_error' | 'tls_error' | 'protocol_error' | 'truncated_response' | 'target_redirect' | 'target_rate_limited' | 'target_client_error' | 'target_server_error' | 'target_refused' | 'interrupted_unknown' | 'not_executed' | null;
    readonly responseBytes: number | null;
    readonly truncated: boolean;
    readonly _sd: readonly string[];
  };
  readonly stream: {
    readonly id: string;
    readonly revision: string;
    readonly chain: string;
  };
  readonly log: {
    readonly origin: string;
    readonly mmdSeconds: number;
  };
};

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export type CheckName =
  | 'receipt_present'
  | 'signature_valid'
  | 'key_valid_at_issue'
  | 'payload_version_supported'
  | 'payload_job_id'
  | 'request_commitment_present'
  | 'response_commitment_present'
  | 'job_present'
  | 'receipt_links_job'
  | 'job_links_receipt'
  | 'status_matches'
  | 'method_matches'
  | 'target_matches'
  | 'attempts_match'
  | 'decision_matches'
  | 'payment_matches'
  | 'event_chain_matches'
  | 'receipt_logged';

/** `details`: the values compared, where two were. */
export type Check = { readonly name: CheckName; readonly ok: boolean; readonly details?: Json };

export type VerificationReport = {
  readonly ok: boolean;
  readonly receiptId: string | null;
  readonly jobId: string | null;
  readonly keyId: string | null;
  readonly signatureVerified: boolean;
  readonly checks: readonly Check[];
};

/** A statement of the text around the JWS, and what the signed receipt says instead. */
export type Difference = { readonly field: string; readonly shown: unknown; readonly signed: Json };

export type OpenedDisclosure =
  | { readonly ok: true; readonly name: string; readonly value: string | readonly string[] }
  | {
      readonly ok: false;
      /** What it says it is; null where it cannot be read. */
      readonly name: string | null;
      readonly problem: DisclosureProblem;
    };

/**
 * `malformed`: not base64url(JSON [salt, name, value]). `not_committed`: its hash stands nowhere in the receipt: a changed
 * value, or of another receipt. `misplaced`: it stands in the receipt, but not where this name belongs. `repeated`: its
 * name was opened before; a receipt that commits to one name twice tells two people two things.
 */
export type DisclosureProblem = 'malformed' | 'not_committed' | 'misplaced' | 'repeated';

/**
 * `malformed`: no proof file. `checkpoint`: not signed by a checkpoint key of the key set. `origin`: of another log.
 * `inclusion`: the leaf is not where the proof says.
 */
export type ProofProblem = 'malformed' | 'checkpoint' | 'origin' | 'inclusion';

export type ReceiptReport = VerificationReport & {
  /** Why there is no receipt in what was given; null where there is one. */
  readonly problem: string | null;
  /** What was signed; null unless the signature verifies. */
  readonly payload: ReceiptPayload | null;
  /** Where readable words beside the signed receipt say something else than it. */
  readonly differences: readonly Difference[];
  /** null: none were given. Empty where the receipt does not verify: nothing vouches for them then. */
  readonly opened: readonly OpenedDisclosure[] | null;
};

/** As text, or as parsed JSON. */
export type Given = string | object;

export type VerifyOptions = {
  /** The relay's JWK set (RFC 7517), from its /.well-known/jwks.json, got from whoever you trust for it. */
  readonly keys: Given;
  /**
   * Proof of inclusion in the transparency log (C2SP tlog-proof), from /log/proof/{receiptId}. null: it was asked and
   * gave none; then the receipt must be so young that it need not be there yet. Absent: the log is not looked at.
   */
  readonly proof?: string | null;
  /** What opens the receipt's commitments: `disclosures` of an execution response, or the response itself. */
  readonly disclosures?: Given | readonly string[];
  /** Unix seconds; the machine's clock unless given. It decides nothing but whether a receipt is late in the log. */
  readonly now?: number;
  /** What was asked for, where the receipt must be that one. */
  readonly receiptId?: string;
  readonly jobId?: string;
};

export type ProofReport =
  | {
      readonly ok: true;
      /** Of the leaf, from 0. */
      readonly index: number;
      /** Leaves in the log when the checkpoint was signed. */
      readonly size: number;
      /** The log's name. */
      readonly origin: string;
      /** Root of the tree of that size: base64 of 32 bytes. */
      readonly root: string;
      /** The checkpoint key that signed. */
      readonly keyId: string;
    }
  | { readonly ok: false; readonly problem: ProofProblem | 'receipt' };

/**
 * `receipt`: a compact JWS, the answer of GET /api/receipts/{id}, or an execution response. `ok`: every check holds, no
 * readable word differs, and every disclosure opens what the receipt commits to. What cannot be read is a report that
 * says so. Throws a TypeError where `keys` is no key set with an Ed25519 key in it or an option is of a wrong type, and
 * `CannotVerify` where the runtime has no WebCrypto with Ed25519.
 */
export declare function verifyReceipt(receipt: Given, options: VerifyOptions): Promise<ReceiptReport>;

/**
 * That a receipt stands in the transparency log, by a proof file (C2SP tlog-proof). It says nothing of the receipt's own
 * signature. `problem`: `receipt` (there is none in what was given), `malformed` (no proof file), `checkpoint` (not
 * signed by a checkpoint key of the key set), `origin` (of another log than the receipt names), `inclusion` (the receipt
 * is not where the proof says). Throws as `verifyReceipt` does.
 */
export declare function verifyProof(
  proof: string,
  options: { readonly receipt: Given; readonly keys: Given },
): Promise<ProofReport>;

/** The runtime cannot check anything: not the receipt's fault. `message`: for people. */
export declare class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}
