// The paid execution, in the order that loses nothing: what is known first, then judgement, then money, then the call.

import { buildOutboundHeaders } from '#src/domain/destination/outbound-headers.ts';
import { makeId } from '#src/domain/ids.ts';
import { isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';
import { readRequest } from '#src/usecases/decisions/judge-request.ts';
import { demandSigningKey } from '#src/usecases/signing-keys/active-keys.ts';
import { type AdmissionDeps, accept, admit, paceContract, provePayer, validateNew } from './admission.ts';
import { type CollectDeps, collectPayment } from './collect-payment.ts';
import { discloseRequest, type RequestDisclosures } from './disclosures.ts';
import { type Execution, executionOf } from './execution.ts';
import { type Call, type ExecuteInput, newCall } from './execution-call.ts';
import { findKnown, type Known } from './idempotency.ts';
import { logUnavailable, startPatience } from './response-deadline.ts';
import { type JobPlan, type RunDeps, runJob } from './run-job.ts';

export type ExecuteDeps = RunDeps &
  CollectDeps &
  AdmissionDeps & {
    readonly baseUrl: string;
  };

/** Throws `Fault` for what is ours: never charged twice, never sent twice. */
export async function executeWebhook(deps: ExecuteDeps, input: ExecuteInput): Promise<Execution | Refused> {
  const read = readRequest(deps, input.request);
  if (isRefused(read)) return read;
  const call: Call = { ...newCall(deps, input, read), patience: startPatience(deps.clock) };
  const answered = answer(deps, call);
  answered.catch(() => undefined);
  try {
    return await Promise.race([answered, call.patience.over]);
  } catch (cause) {
    if (cause instanceof EventLogUnavailable) throw logUnavailable(call, cause);
    throw cause;
  } finally {
    call.patience.end();
  }
}

/** Every round reads the streams anew: whoever lost a race answers by what the winner wrote. */
const MAX_ROUNDS = 10;

/** Keeps its slot until all that it has begun is known, also behind a caller that was answered before. */
async function answer(deps: ExecuteDeps, call: Call): Promise<Execution | Refused> {
  let release: (() => void) | null = null;
  try {
    const tooFast = await paceContract(deps, call);
    if (tooFast !== null) return tooFast;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const known = await findKnown(deps, call.lookup);
      const unproven = await provePayer(deps, call, known);
      if (unproven === 'again') continue;
      if (unproven !== null) return unproven;
      if (known.kind === 'refused') return known.refusal;
      if (known.kind === 'completed') return replay(deps, call, known);
      if (known.kind === 'new' && !call.accepted) {
        const refusal = await validateNew(deps, call);
        if (refusal !== null) return refusal;
      }
      if (release === null) {
        const slot = await admit(deps, call, known);
        if (typeof slot !== 'function') return slot;
        release = slot;
      }
      const done = await proceed(deps, call, known);
      if (done !== 'again') return done;
    }
    return refused('idempotency_in_progress', 'Others use this key or payment right now.', {
      retryAfterSeconds: 1,
    });
  } finally {
    release?.();
  }
}

type Open = Extract<Known, { kind: 'new' | 'resume' }>;

async function proceed(deps: ExecuteDeps, call: Call, known: Open): Promise<Execution | Refused | 'again'> {
  demandSigningKey(deps);
  if (known.kind === 'new' && !call.accepted) {
    const refusal = await accept(deps, call);
    if (refusal !== null) return refusal === 'again' ? 'again' : refusal;
  }
  const jobId = known.kind === 'resume' ? known.jobId : makeId('job', deps.entropy.bytes(16));
  const reservedHere = known.kind === 'resume' && call.reservedFor === jobId;
  if (known.kind === 'new') call.reservedFor = jobId;
  const collected = await collectPayment(deps, {
    jobId,
    fingerprint: call.lookup.fingerprint,
    claimStream: call.lookup.claimStream,
    account: call.account,
    presented: call.presented,
    paymentStream: call.lookup.paymentStream,
    streams: known.streams,
    reservedHere,
    patiently: call.patience.forAppend,
  });
  if (collected.kind === 'again') return 'again';
  if (collected.kind === 'refused') return collected.refusal;
  return start(deps, call, jobId, collected.payment);
}

async function start(
  deps: ExecuteDeps,
  call: Call,
  jobId: string,
  payment: JobPlan['facts']['payment'],
): Promise<Execution | 'again'> {
  const { request } = call.read;
  const opened = await openRequest(deps, call, jobId);
  call.startedJobId = jobId;
  const known = call.patience.begin();
  const ran = await runJob(deps, {
    facts: {
      jobId,
      mode: deps.payments.mode,
      route: call.route,
      method: request.method,
      fingerprint: call.lookup.fingerprint,
      payment,
      paymentStream: call.lookup.paymentStream,
      claimStream: call.lookup.claimStream,
      decisionId: call.decisionId,
      decisionHash: call.decisionHash,
      attemptsAllowed: request.retry.attempts,
      backoffMs: request.retry.backoffMs,
      timeoutMs: request.timeoutMs,
      owner: deps.owner,
      commitments: opened.commitments,
    },
    started() {
      known();
      call.acknowledged = true;
    },
    request: () => outboundRequest(deps, call, jobId),
  }).finally(known);
  if (ran === null) {
    // Another started it first, so its JobStarted is stored: the result will be found there.
    call.acknowledged = true;
    return 'again';
  }
  const disclosures = [...opened.disclosures, ...ran.disclosures].map((disclosure) => disclosure.text);
  return executionOf(ran.job, { replay: false, disclosures, position: ran.position });
}

async function outboundRequest(deps: ExecuteDeps, call: Call, jobId: string) {
  const { read, body } = call;
  const { baseUrl, pseudonym, clock, signer } = deps;
  const timestampSeconds = Math.floor(clock.now() / 1000);
  const facts = { jobId, baseUrl, pseudonym, timestampSeconds, body };
  const headers = await buildOutboundHeaders(read.headers, facts, (message) =>
    signer.current().sign(message),
  );
  const { method, timeoutMs } = read.request;
  return { target: read.target, method, headers, body, timeoutMs };
}

/**
 * Only the requester, who has just sent the same request again, can be shown its disclosures again: those that open
 * what was recorded. The same JSON with its keys in another order is the same request, yet not the bytes that went out.
 */
async function replay(
  deps: ExecuteDeps,
  call: Call,
  { closed }: Extract<Known, { kind: 'completed' }>,
): Promise<Execution> {
  const { jobId, commitments } = closed.job.started;
  const { disclosures } = await openRequest(deps, call, jobId);
  const recorded = new Set(Object.values(commitments));
  return executionOf(closed.job, {
    replay: true,
    disclosures: disclosures.filter(({ commitment }) => recorded.has(commitment)).map(({ text }) => text),
    position: closed.position,
  });
}

const openRequest = (deps: ExecuteDeps, { read, body }: Call, jobId: string): Promise<RequestDisclosures> =>
  discloseRequest(deps, jobId, read.request, read.target, body);
