// One signed receipt over one recorded job, made from the domain alone, as a test wants it.

import { utf8 } from '#src/domain/encoding.ts';
import type { JobEvent } from '#src/domain/events.ts';
import type { CompletedJob } from '#src/domain/job/state.ts';
import {
  type ChainedEvent,
  compactJws,
  eventChain,
  type ReceiptPayload,
  receiptPayload,
  signingInput,
} from '#src/domain/receipt/payload.ts';
import type { JobFacts, VerifyFacts } from '#src/domain/receipt/verify.ts';
import { givenJob } from './given.ts';
import {
  attemptRetried,
  attemptSucceeded,
  JOB_ID,
  jobCompleted,
  jobStarted,
  receiptSigned,
  T0,
} from './given-events.ts';
import type { TestKey } from './primitives.ts';

const payment = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: '0xasset',
  amount: '3000',
  payTo: '0xpayee',
  payer: '0xpayer',
  transaction: '0xtransaction',
  payloadHash: '6'.repeat(64),
};

/** A paid, decided job of two attempts, up to its completion. */
export const JOB_EVENTS: readonly JobEvent[] = [
  jobStarted({
    mode: 'x402',
    payment,
    decisionId: 'dec_0000000000000000000000000d',
    decisionHash: 'd'.repeat(64),
  }),
  attemptRetried(),
  attemptSucceeded({ number: 2, exempted: true }),
  jobCompleted({ attempts: 2, decisionId: 'dec_0000000000000000000000000d' }),
];

/** Events as a log would return them, with distinct ids. */
export function recorded(events: readonly JobEvent[], stream = `job-${JOB_ID}`): ChainedEvent[] {
  return events.map(({ type, data }, i) => {
    const id = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
    return { stream, revision: BigInt(i), id, type, data: JSON.parse(JSON.stringify(data)) };
  });
}

/** Names no transparency log. */
export type UnloggedPayload = Extract<ReceiptPayload, { readonly v: 1 }>;

export async function payloadOf(events: readonly JobEvent[] = JOB_EVENTS): Promise<UnloggedPayload> {
  const { state } = givenJob(...events, receiptSigned());
  if (state.status !== 'completed') throw new Error('a receipt needs a completed job');
  const stored = recorded(events);
  const chain = eventChain(stored);
  const stream = { id: `job-${JOB_ID}`, revision: String(stored.length - 1), chain };
  const { receiptId } = receiptSigned().data;
  const payload = receiptPayload(state as CompletedJob, { receiptId, iat: T0 / 1000, stream, log: null });
  if (payload.v !== 1) throw new Error('a job without a transparency log has a receipt of version 1');
  return payload;
}

export async function signed(payload: ReceiptPayload, key: TestKey): Promise<string> {
  const input = signingInput(payload, key.keyId);
  return compactJws(input, await key.sign(utf8(input)));
}

/** A JWS of any header and payload, truly signed by the key. */
export async function forged(header: object, payload: unknown, key: TestKey): Promise<string> {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${part(header)}.${part(payload)}`;
  return compactJws(input, await key.sign(utf8(input)));
}

export function jobFactsOf(events: readonly JobEvent[] = JOB_EVENTS, stored = recorded(events)): JobFacts {
  const { state } = givenJob(...events, receiptSigned());
  if (state.status !== 'completed') throw new Error('a receipt needs a completed job');
  return factsOfJob(state, stored);
}

/** `events`: those that the receipt's chain covers. */
export const factsOfJob = (job: CompletedJob, events: JobFacts['events']): JobFacts => ({
  ...rowOfJob(job),
  events,
});

/** As the read models have it. */
export const rowOfJob = ({ started, completed, receipt }: CompletedJob): Omit<JobFacts, 'events'> => ({
  jobId: started.jobId,
  receiptId: receipt?.receiptId ?? null,
  status: completed.status,
  responseStatus: completed.responseStatus,
  method: started.method,
  attempts: completed.attempts,
  decisionId: started.decisionId,
  targetCommitment: started.commitments.target_url,
  payment: started.payment,
});

/** Facts that verify in every check; a test changes the one it speaks of. */
export async function goodFacts(key: TestKey, changes: Partial<VerifyFacts> = {}): Promise<VerifyFacts> {
  const { receiptId } = receiptSigned().data;
  const jws = await signed(await payloadOf(), key);
  return { jws, receiptId, jobId: JOB_ID, keys: [key.record], job: jobFactsOf(), log: null, ...changes };
}
