// One paid call as a test makes it, through the real execution, and the streams that it will be known by.
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { ALLOWED, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import { readRequest } from '#src/usecases/decisions/judge-request.ts';
import { executeWebhook } from '#src/usecases/execution/execute-webhook.ts';
import {
  type ExecuteInput,
  type Execution,
  lookupOf as lookupOfCall,
} from '#src/usecases/execution/execution-call.ts';
import type { Lookup } from '#src/usecases/execution/idempotency.ts';
import { presentedPayment } from '#test/support/chain/fakes-payments.ts';
import { keyedHash, type World } from '#test/support/world/fakes-world.ts';

export const webhook = (changes: Partial<WebhookRequest> = {}): WebhookRequest => ({
  url: 'https://target.example/hook',
  headers: { 'X-Secret': 'in memory only' },
  body: { text: 'hello' },
  idempotencyKey: 'k1',
  ...changes,
});

/** `null` as key: none. */
export type CallChanges = Partial<Omit<ExecuteInput, 'request'>> & {
  readonly request?: Partial<WebhookRequest>;
  readonly key?: string | null;
};

/** The sample payment for the sample request; `presented: null` is a call in demo mode. */
export function callInput({ request, key = 'k1', ...changes }: CallChanges = {}): ExecuteInput {
  const { idempotencyKey: _, ...rest } = webhook(request);
  const presented = changes.presented === undefined ? presentedPayment() : changes.presented;
  return {
    request: { ...rest, ...(key === null ? {} : { idempotencyKey: key }) },
    route: 'execute/webhook',
    decisionId: null,
    decisionHash: null,
    approval: ALLOWED,
    payer: presented?.payer ?? 'demo',
    client: '198.51.100.1',
    via: null,
    ...changes,
    presented,
  };
}

export const paidWith = (presented: PresentedPayment, more: CallChanges = {}): CallChanges => ({
  presented,
  ...more,
});
export const DEMO: CallChanges = { presented: null };

export type Answer =
  | { readonly kind: 'ran' | 'replayed'; readonly execution: Execution }
  | { readonly kind: 'refused'; readonly refusal: Refused };

export async function execute(it: Pick<World, 'deps'>, changes: CallChanges = {}): Promise<Answer> {
  const answer = await executeWebhook(it.deps, callInput(changes));
  if (isRefused(answer)) return { kind: 'refused', refusal: answer };
  return { kind: answer.replay ? 'replayed' : 'ran', execution: answer };
}

/** The streams that a call is found by, and its fingerprint, as the execution names them. */
export function lookupOf(changes: CallChanges = {}): Lookup {
  const input = callInput(changes);
  const read = readRequest(input.request);
  if (isRefused(read)) throw new Error(read.message);
  return lookupOfCall(keyedHash, input, read);
}

const sample = lookupOf();
/** Of the sample call. */
export const FINGERPRINT = sample.fingerprint;
export const KEY_STREAM = sample.claimStream ?? '';
