// Clients that pay for calls, or make free ones: they repeat with the same payment, sign again, send copies in parallel,
// give up waiting, and cancel authorizations. Each remembers what it was answered.
import { sha256, toHex, utf8 } from '#src/domain/encoding.ts';
import { identityText } from '#src/domain/events/payment.ts';
import { ALLOWED, Fault, isRefused, type Refused } from '#src/domain/refusal.ts';
import type { PresentedPayment } from '#src/ports/payments.ts';
import type { ExecuteInput, Execution } from '#src/usecases/execution/execution-call.ts';
import type { MemoryChain } from '#test/support/chain/memory-chain.ts';
import type { Random } from '#test/support/world/random.ts';
import { EPOCH } from './host.ts';
import { ASSET, NETWORK, PAYEE, PRICE } from './payments.ts';
import type { Relay } from './relay.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

/** What one call was answered. */
export type Answer =
  | { readonly kind: 'executed'; readonly execution: Execution }
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly jobId: string | null;
      readonly retryMs: number;
    }
  | { readonly kind: 'fault'; readonly code: string; readonly jobId: string | null; readonly retryMs: number }
  /** The process ended, or took no calls, or the client gave up. */
  | { readonly kind: 'none' };

export type Made = {
  readonly intent: Intent;
  readonly payment: PresentedPayment | null;
  /** Another request than the intent's, with its payment or key. */
  readonly isOther: boolean;
  readonly relay: string;
  readonly at: number;
  /** As the client has it. */
  answer: Answer | null;
  answeredAt: number;
  /** The process has answered, whether the client waited or not. */
  isResolved: boolean;
};

/** One thing that a buyer wants to have done. */
export type Intent = {
  readonly id: number;
  readonly payer: string;
  readonly client: string;
  readonly path: string;
  /** null: none. */
  readonly key: string | null;
  readonly attempts: number;
  readonly timeoutMs: number;
  readonly method: 'POST' | 'PUT';
  readonly payments: PresentedPayment[];
  readonly calls: Made[];
  /** Until it has a final answer. */
  isOpen: boolean;
};

/** A buyer stops after so many rounds. */
const ROUNDS_MAX = 12;

export type Market = {
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly chain: MemoryChain;
  readonly isPaid: boolean;
  /** Processes that can be reached now. */
  relays(): readonly Relay[];
  onMade(made: Made): void;
  onAnswer(made: Made, answer: Answer): void;
  /** The faults have ended. */
  isCalm(): boolean;
};

export function signPayment(
  random: Random,
  payer: string,
  now: number,
  lifeSeconds: number,
): PresentedPayment {
  const nonce = `0x${toHex(random.bytes(32))}`;
  const validBefore = String(Math.floor((EPOCH + now) / 1000) + lifeSeconds);
  const facts = {
    scheme: 'exact',
    network: NETWORK,
    asset: ASSET,
    amount: PRICE,
    payTo: PAYEE,
    payer,
    nonce,
    validBefore,
  };
  return {
    ...facts,
    hash: toHex(sha256(utf8(identityText(facts)))),
    signer: 'recovered',
    payloadHash: toHex(sha256(utf8(`signed ${nonce}`))),
    x402Version: random.chance(0.5) ? 1 : 2,
    identifier: null,
    carried: null,
  };
}

export function drawIntent(random: Random, id: number, isPaid: boolean): Intent {
  const payer = isPaid
    ? `0x${(id % 3 === 0 ? 'a' : 'b').repeat(38)}${String(Math.floor(id / 2) % 10).padStart(2, '0')}`
    : 'demo';
  return {
    id,
    payer,
    client: `client ${id % 3}`,
    path: `/hook/${id}`,
    key: random.chance(0.5) ? `key-${id}` : null,
    attempts: random.pick([1, 1, 1, 2, 3]),
    timeoutMs: random.pick([1000, 2000, 5000]),
    method: random.pick(['POST', 'PUT']),
    payments: [],
    calls: [],
    isOpen: true,
  };
}

const inputOf = (intent: Intent, presented: PresentedPayment | null, isOther: boolean): ExecuteInput => ({
  request: {
    url: `https://target.example${intent.path}`,
    method: intent.method,
    body: { intent: isOther ? -intent.id : intent.id },
    timeoutMs: intent.timeoutMs,
    retry: { attempts: intent.attempts, backoffMs: 250 },
    ...(intent.key !== null && { idempotencyKey: intent.key }),
  },
  route: 'execute/webhook',
  decisionId: null,
  decisionHash: null,
  approval: ALLOWED,
  presented,
  payer: intent.payer,
  client: intent.client,
  via: null,
});

/** Runs until the intent has a final answer, or the buyer gives up. */
export async function buy(market: Market, random: Random, intent: Intent): Promise<void> {
  const { scheduler } = market;
  const lifeSeconds = random.pick([30, 60, 110]);
  const signsAgain = random.chance(intent.key === null ? 0.15 : 0.4);
  const cancels = market.isPaid && random.chance(0.12);
  await scheduler.sleep(random.between(0, 25_000));
  for (let round = 0; round < ROUNDS_MAX && intent.isOpen; round++) {
    const payment = paymentFor(market, random, intent, lifeSeconds, signsAgain && round > 0);
    if (cancels && payment !== null && round === 0) void cancelPayment(market, random, payment, 3000);
    const copies = random.chance(0.75) ? 1 : random.int(2, 4);
    const answers = await Promise.all(
      Array.from({ length: copies }, () => present(market, random, intent, payment)),
    );
    const executed = answers.find(({ kind }) => kind === 'executed');
    if (executed !== undefined) {
      intent.isOpen = false;
      if (random.chance(0.4)) await repeatServed(market, random, intent, payment);
      return;
    }
    if (market.isCalm() && answers.every(isFinal))
      intent.isOpen = round < ROUNDS_MAX - 1 && needsNewPayment(answers);
    const retryMs = Math.max(0, ...answers.map((answer) => ('retryMs' in answer ? answer.retryMs : 0)));
    await scheduler.sleep(
      random.chance(0.5) ? retryMs + random.between(0, 2000) : random.between(50, 20_000),
    );
  }
  intent.isOpen = false;
}

const needsNewPayment = (answers: readonly Answer[]) =>
  answers.some((answer) => answer.kind === 'refused' && answer.code === 'payment_required');

const isFinal = (answer: Answer): boolean =>
  answer.kind === 'refused' &&
  ['payment_reused', 'idempotency_conflict', 'payment_required', 'invalid_request'].includes(answer.code);

/** The last one, or a new one after it was refused, or where this client signs each repeat. */
function paymentFor(
  { isPaid, scheduler }: Market,
  random: Random,
  intent: Intent,
  lifeSeconds: number,
  signsAgain: boolean,
): PresentedPayment | null {
  if (!isPaid) return null;
  const last = intent.payments.at(-1);
  const isRefusedNow = intent.calls.some(
    ({ payment, answer }) =>
      payment === last && answer?.kind === 'refused' && answer.code === 'payment_required',
  );
  if (last !== undefined && !isRefusedNow && !signsAgain) return last;
  const made = signPayment(random, intent.payer, scheduler.now, lifeSeconds);
  intent.payments.push(made);
  return made;
}

/** After its answer: the same call again, and sometimes another request with its payment. */
async function repeatServed(
  market: Market,
  random: Random,
  intent: Intent,
  payment: PresentedPayment | null,
): Promise<void> {
  await market.scheduler.sleep(random.between(10, 60_000));
  const isOther = (payment !== null || intent.key !== null) && random.chance(0.3);
  await present(market, random, intent, payment, isOther);
}

/** The payer cancels the authorization on the chain, within so many ms. */
export async function cancelPayment(
  { chain, scheduler }: Pick<Market, 'chain' | 'scheduler'>,
  random: Random,
  payment: PresentedPayment,
  withinMs: number,
): Promise<void> {
  await scheduler.sleep(random.between(0, withinMs));
  const { payer, nonce, validBefore } = payment;
  chain.submit('cancel', [], { payer, nonce, validBefore: Number(validBefore) }, random.between(0, 2000));
}

/** One call. `isOther`: with another body. */
export async function present(
  market: Market,
  random: Random,
  intent: Intent,
  payment: PresentedPayment | null,
  isOther = false,
): Promise<Answer> {
  const { scheduler, trace } = market;
  await scheduler.sleep(random.between(0, 40));
  const relays = market.relays();
  if (relays.length === 0) return { kind: 'none' };
  const relay = random.pick(relays);
  const made: Made = {
    intent,
    payment,
    isOther,
    relay: relay.host.name,
    at: scheduler.now,
    answer: null,
    answeredAt: 0,
    isResolved: false,
  };
  const executing = relay.execute(inputOf(intent, payment, isOther));
  if (executing === null) return { kind: 'none' };
  trace.note(
    `client ${intent.id} calls ${relay.host.name}${isOther ? ' with another request' : ''}, ${payment === null ? 'free' : `payment ${payment.nonce.slice(2, 8)}`}${intent.key === null ? '' : ', with its key'}`,
  );
  market.onMade(made);
  if (!isOther) intent.calls.push(made);
  const answered = executing.then(answerOf, faultOf);
  const gone = new Promise<Answer>((resolve) => {
    relay.host.whenKilled(() => resolve({ kind: 'none' }));
    if (random.chance(0.1))
      void scheduler.sleep(random.between(500, 60_000)).then(() => resolve({ kind: 'none' }));
    // A server that is stopped closes its connections at last.
    void scheduler.sleep(130_000).then(() => resolve({ kind: 'none' }));
  });
  void answered.then((answer) => {
    made.isResolved = true;
    market.onAnswer(made, answer);
  });
  const answer = await Promise.race([answered, gone]);
  made.answer = answer;
  made.answeredAt = scheduler.now;
  trace.note(`client ${intent.id} gets ${textOf(answer)}`);
  trace.reached(
    `answer: ${answer.kind === 'executed' ? (answer.execution.replay ? 'replay' : answer.execution.job.status) : 'code' in answer ? answer.code : 'none'}`,
  );
  return answer;
}

export const textOf = (answer: Answer): string =>
  answer.kind === 'executed'
    ? `${answer.execution.replay ? 'the replay' : 'the result'} of ${answer.execution.job.id.slice(0, 12)} (${answer.execution.job.errorCategory ?? answer.execution.job.responseStatus})`
    : 'code' in answer
      ? answer.code
      : 'no answer';

function answerOf(result: Execution | Refused): Answer {
  if (!isRefused(result)) return { kind: 'executed', execution: result };
  const { refused: code, details, retryAfterSeconds = 0 } = result;
  return { kind: 'refused', code, jobId: jobIn(details), retryMs: retryAfterSeconds * 1000 };
}

/** `internal`: a defect of the program, which no caller may see. */
function faultOf(error: unknown): Answer {
  if (!(error instanceof Fault))
    return { kind: 'fault', code: `internal: ${error}`, jobId: null, retryMs: 1000 };
  const { code, details, retryAfterSeconds } = error;
  return { kind: 'fault', code, jobId: jobIn(details), retryMs: (retryAfterSeconds ?? 1) * 1000 };
}

const jobIn = (details: unknown): string | null =>
  typeof details === 'object' && details !== null && 'jobId' in details ? String(details.jobId) : null;
