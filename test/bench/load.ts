// A closed-loop load: `concurrency` callers, each sends its next request when the last one was answered.
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

/**
 * Sends `count` requests. `send` throws if the response is not what it should be: no figure is made of failures.
 */
export async function load(
  pid: number,
  concurrency: number,
  count: number,
  send: (n: number) => Promise<void>,
): Promise<Turn> {
  const latencies: number[] = [];
  let next = 0;
  const caller = async () => {
    for (let n = next++; n < count; n = next++) {
      const begun = performance.now();
      await send(n);
      latencies.push(performance.now() - begun);
    }
  };
  const cpuBefore = cpuMs(pid);
  const begun = performance.now();
  await Promise.all(Array.from({ length: concurrency }, caller));
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

/** Sends one request and discards the body, for reads whose status is all that counts. */
export async function demand(url: string, status = 200): Promise<void> {
  const response = await fetch(url);
  await response.arrayBuffer();
  if (response.status !== status) throw new Error(`${url}: ${response.status}`);
}
