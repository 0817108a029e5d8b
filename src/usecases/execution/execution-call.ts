// One call of an execution: what it asks, as what the log may know it, and how far it has come.
import { toHex, utf8 } from '#src/domain/encoding.ts';
import type { Route } from '#src/domain/event-fields.ts';
import { STREAM } from '#src/domain/events.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import type { Refused } from '#src/domain/refusal.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { KeyedHash } from '#src/ports/signer.ts';
import { fingerprint, type ReadRequest } from '#src/usecases/decisions/judge-request.ts';
import type { Authorized, Lookup } from './idempotency.ts';
import type { Patience } from './response-deadline.ts';

export type ExecuteInput = {
  /** Valid by its schema. */
  readonly request: WebhookRequest;
  readonly route: Route;
  readonly decisionId: string | null;
  /** SHA-256 of JCS of DecisionRecorded's data, hex. */
  readonly decisionHash: string | null;
  /** Why the decision does not approve this call; judged for new calls only. null: it does, or none is asked for. */
  readonly notApproved: Refused | null;
  /** Decoded and locally checked; null in demo mode. */
  readonly presented: PresentedPayment | null;
  /** The payer's address, or `demo`. */
  readonly payer: string;
  /** The Via header of the caller's request. */
  readonly via: string | null;
};

export type Call = ExecuteInput & {
  readonly read: ReadRequest;
  readonly lookup: Lookup;
  /** Whose slots, pace and open payments this call counts among. */
  readonly account: string;
  readonly patience: Patience;
  /** Exact bytes on the wire; null: no body. */
  readonly body: Uint8Array | null;
  /** The facilitator has found the payment valid in this very call. */
  verified: boolean;
  /** Judged and verified: not again, however often another moves a stream first. */
  accepted: boolean;
  /** The job whose payment this call reserved, so that its settle call is the first. */
  reservedFor: string | null;
  /** The job that this call has begun to start. */
  startedJobId: string | null;
  /** Its JobStarted is stored: its request may be on its way. */
  acknowledged: boolean;
};

const authorized = ({ amount, payTo, validBefore }: PresentedPayment): Authorized => ({
  amount,
  payTo,
  validBefore,
});

export function newCall(
  deps: { readonly keyedHash: KeyedHash },
  input: ExecuteInput,
  read: ReadRequest,
): Omit<Call, 'patience'> {
  const { request } = read;
  // One decision approves one execution per payer: without a key of its own the decision is the key.
  const key = request.idempotencyKey === null ? input.decisionId : `key:${request.idempotencyKey}`;
  const { presented, payer } = input;
  const contract = presented?.signer === 'contract';
  const scope = key === null ? null : toHex(deps.keyedHash.mac('claim', JSON.stringify([payer, key])));
  return {
    ...input,
    read,
    lookup: {
      paymentStream: presented === null ? null : STREAM.payment(presented.hash),
      claimStream: scope === null ? null : STREAM.claim(scope),
      fingerprint: fingerprint(deps.keyedHash, request, input.route, input.decisionId),
      authorization: presented === null ? null : authorized(presented),
      payloadHash: contract ? presented.payloadHash : null,
    },
    // Anybody can name a contract wallet that did not sign: that must not use up what the address has by its own key.
    account: contract ? `contract ${payer}` : payer,
    body: request.body === undefined ? null : utf8(JSON.stringify(request.body)),
    verified: false,
    accepted: false,
    reservedFor: null,
    startedJobId: null,
    acknowledged: false,
  };
}
