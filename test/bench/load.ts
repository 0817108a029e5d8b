// A load: of callers, each of which sends its next request when the last one was answered, or at a rate.
import { sleep } from '#src/lib/time.ts';
import { cpuMs } from './processes.ts';
import { quantile } from './rounds.ts';

export type Turn = {
  readonly perSecond: number;
  /** ms from request to the end of the response. */
  readonly p50: number;
  readonly p99: number;
  /** CPU ms of the measured process per request. */
  readonly cpu: number;
};

/** How many callers; or at which rate requests begin, however long the ones before take. */
export type Pace = number | { readonly perSecond: number };

type Send = (n: number) => Promise<void>;

/**
 * Sends `count` requests. `send` throws if the response is not what it should be: no figure is made of failures.
 */
export async function load(pid: number, pace: Pace, count: number, send: Send): Promise<Turn> {
  const latencies: number[] = [];
  const timedSend = async (n: number) => {
    const begun = performance.now();
    await send(n);
    latencies.push(performance.now() - begun);
  };
  const cpuBefore = cpuMs(pid);
  const begun = performance.now();
  await (typeof pace === 'number' ? byCallers(pace, count, timedSend) : atRate(pace, count, timedSend));
  const ms = performance.now() - begun;
  const cpu = (cpuMs(pid) - cpuBefore) / count;
  if (latencies.length !== count) throw new Error(`${latencies.length} of ${count} were answered`);
  latencies.sort((a, b) => a - b);
  return {
    perSecond: count / (ms / 1000),
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    cpu,
  };
}

async function byCallers(callers: number, count: number, send: Send): Promise<void> {
  let next = 0;
  const caller = async () => {
    for (let n = next++; n < count; n = next++) await send(n);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

/** Ends when a further request would begin: what is done between two requests belongs to them. */
async function atRate({ perSecond }: Exclude<Pace, number>, count: number, send: Send): Promise<void> {
  const msOf = (n: number) => (1000 * n) / perSecond;
  const sent = Array.from({ length: count }, (_, n) => sleep(msOf(n)).then(() => send(n)));
  await Promise.all([...sent, sleep(msOf(count))]);
}

/** Sends one request and discards the body, for reads whose status is all that counts. */
export async function demand(url: string, status = 200): Promise<void> {
  const response = await fetch(url);
  await response.arrayBuffer();
  if (response.status !== status) throw new Error(`${url}: ${response.status}`);
}
