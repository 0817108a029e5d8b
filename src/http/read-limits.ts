// What keeps readers from the thread of paid calls: a rate limit of reads for each client address, and a pace of all reads
// together while calls are executed.
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { ALLOWED, type Allowed, isRefused, type Refused, refused } from '#src/domain/refusal.ts';
import type { Settings } from '#src/http/deps.ts';
import type { Endpoint, EndpointCall, Operation } from '#src/http/endpoint.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { TokenBuckets } from '#src/lib/token-bucket.ts';
import type { Clock } from '#src/ports/clock.ts';
import { contextOf, countedAs, isLoopbackClient, type RequestContext } from './request/request-context.ts';

export type ReadLimitDeps = Settings<'readsPerMinute'> & {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  executionsInFlight(): number;
};

type TooManyReads = Refused<'rate_limited'>;

/** A client that ignores Retry-After waits for each refusal: it takes no time of others. */
const REFUSED_AFTER_MS = 1000;
/** Refusals that wait at once; beyond it they are answered at once and their connection is closed. */
const WAITING_MAX = 1000;
/** Between two executions of one caller nothing is in flight for a moment. */
const PACED_FOR_MS = 1000;

export type ReadLimits = ReturnType<typeof readLimits>;

const BUSY = 'Too many reads while the relay executes calls.';
const COUNTED = `Too many reads from this address. ${BUSY}`;

export function readLimits({ settings: { readsPerMinute }, clock, executionsInFlight }: ReadLimitDeps) {
  const burst = Math.max(FACTORS.leastReadBurst, Math.ceil(readsPerMinute / FACTORS.readBurst));
  const byClient = new TokenBuckets(clock, { perSecond: readsPerMinute / 60, burst });
  const perSecond = LIMITS.readsBesideExecutions.max;
  const all = new TokenBuckets(clock, { perSecond, burst: perSecond / 10 });
  let pacedUntil = Number.NEGATIVE_INFINITY;
  let waiting = 0;

  /** No promise: the read may begin at once. */
  function pace(): Allowed | Promise<Allowed | TooManyReads> {
    const now = clock.monotonic();
    if (executionsInFlight() > 0) pacedUntil = now + PACED_FOR_MS;
    if (now >= pacedUntil) return ALLOWED;
    const { allowed, waitMs } = all.take('', LIMITS.readWaitMs.max);
    if (!allowed) return Promise.resolve(tooMany('This relay is busy with executions', waitMs));
    return waitMs === 0 ? ALLOWED : clock.sleep(waitMs).then(() => ALLOWED);
  }

  /** Callers on this machine are not counted. */
  function count({ client, headers }: RequestContext): Allowed | TooManyReads {
    if (isLoopbackClient(client)) return ALLOWED;
    const { allowed, remaining, waitMs, fullMs } = byClient.take(countedAs(client));
    headers.set('ratelimit-limit', String(burst));
    headers.set('ratelimit-remaining', String(remaining));
    headers.set('ratelimit-reset', String(seconds(fullMs)));
    headers.set('ratelimit-policy', `${burst};w=${seconds((burst * 60_000) / readsPerMinute)}`);
    return allowed ? ALLOWED : tooMany('Too many reads from this address', waitMs);
  }

  async function refuse(endpoint: Endpoint, call: EndpointCall, refusal: TooManyReads): Promise<Response> {
    if (waiting >= WAITING_MAX) contextOf(call.request).headers.set('connection', 'close');
    else {
      waiting += 1;
      await clock.sleep(REFUSED_AFTER_MS);
      waiting -= 1;
    }
    return endpoint.refused?.(call.request, refusal) ?? refusalAnswer(refusal);
  }

  function answerPaced(endpoint: Endpoint, call: EndpointCall): Response | Promise<Response> {
    const paced = pace();
    if (!(paced instanceof Promise)) return endpoint.answer(call);
    return paced.then((verdict) =>
      isRefused(verdict) ? refuse(endpoint, call, verdict) : endpoint.answer(call),
    );
  }

  const ofReads = (endpoints: readonly Endpoint[], described: string, answer: AnswerOf): Endpoint[] =>
    endpoints.map((endpoint) => {
      const { route, operation } = endpoint;
      if (route.method !== 'GET') return endpoint;
      const limited = operation && withRefusal(operation, described, endpoint.refused !== undefined);
      return { ...endpoint, operation: limited, answer: (call) => answer(endpoint, call) };
    });

  return {
    pace,
    /** What is answered from memory: at the pace of all reads. */
    paced: (endpoints: readonly Endpoint[]) => ofReads(endpoints, BUSY, answerPaced),
    /** What reads rows or the event log: also counted for the client's address. */
    counted: (endpoints: readonly Endpoint[]) =>
      ofReads(endpoints, COUNTED, (endpoint, call) => {
        const counting = count(contextOf(call.request));
        return isRefused(counting) ? refuse(endpoint, call, counting) : answerPaced(endpoint, call);
      }),
  };
}

type AnswerOf = (endpoint: Endpoint, call: EndpointCall) => Response | Promise<Response>;

function withRefusal(operation: Operation, described: string, isPage: boolean): Operation {
  const { errors = {}, pageErrors = [] } = operation;
  const refused = { ...operation, errors: { 429: described, ...errors } };
  return isPage ? { ...refused, pageErrors: [...pageErrors, 429] } : refused;
}

const tooMany = (why: string, waitMs: number): TooManyReads =>
  refused('rate_limited', `${why}. Come again later.`, { retryAfterSeconds: seconds(waitMs) });

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000));
