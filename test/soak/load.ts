// The load of a soak: paid calls by honest clients, reads of every kind, bad requests and MCP messages, at a fixed pace.

import { sleep } from '#src/lib/time.ts';
import { challenge, makePayment, newPayer, type Payer } from '#test/support/chain/payer.ts';
import { EXECUTE } from '#test/support/world/paid-call.ts';
import type { PaidWorld } from '#test/support/world/paid-world.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';

/** A paid call and the last answer to it. */
export type SoakCall = {
  readonly path: string;
  readonly nonce: string;
  readonly begunAt: number;
  /** null: no result within its time; it counts as unanswered, and its payment as the operator's. */
  readonly jobId: string | null;
  readonly receiptJws: string | null;
  readonly ms: number;
};

export type Counts = { calls: number; reads: number; bad: number; mcp: number };

export type Load = {
  readonly calls: readonly SoakCall[];
  readonly counts: Counts;
  /** Answers that no caller may get, in words. */
  readonly wrong: readonly string[];
  /** Answers that were no result, by status and code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Calls and reads as fast as they are answered, until `size` receipts were read: the bounded caches are full then. */
  warmUp(size: number): Promise<void>;
  /** The load at its pace, from now on. */
  begin(): void;
  /** No further request; resolves when those in flight have ended. */
  finish(): Promise<void>;
};

const PACE_MS = { call: 250, read: 50, bad: 500, mcp: 1000 } as const;
/** A caller repeats the same request with the same payment for so long. */
const PATIENCE_MS = 180_000;
const PAYERS = 40;
/** Warm-up: this many calls at once. */
const AT_ONCE = 16;
const HANGING = 7;

/** `urls`: of the processes that are asked in turn; one that does not answer is skipped. */
export async function startLoad(world: PaidWorld, urls: () => readonly string[]): Promise<Load> {
  const calls: SoakCall[] = [];
  const counts: Counts = { calls: 0, reads: 0, bad: 0, mcp: 0 };
  const wrong: string[] = [];
  const refusals = new Map<string, number>();
  const payers: readonly Payer[] = Array.from({ length: PAYERS }, newPayer);
  await world.chain.mint(
    payers.map(({ address }) => address),
    10n ** 12n,
  );
  const asked = await challenge(`${urls()[0]}${EXECUTE}`);
  world.target.answer(async ({ path }, socket) => {
    const n = Number(path.split('-').at(-1));
    // It hangs until its caller gives up, and the socket is closed.
    if (n % HANGING === 0) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    return { status: n % 11 === 0 ? 500 : 200, body: 'x'.repeat(n % 2000) };
  });

  let over = false;
  const inFlight = new Set<Promise<void>>();
  const every = (ms: number, work: (n: number) => Promise<void>) => {
    let n = 0;
    const timer = setInterval(() => {
      if (over || inFlight.size > 400) return;
      const one: Promise<void> = work(++n)
        .catch((error: unknown) => {
          wrong.push(String(error instanceof Error ? (error.stack ?? error) : error));
        })
        .finally(() => inFlight.delete(one));
      inFlight.add(one);
    }, ms);
    return timer;
  };

  async function callOnce(n: number, path = `/soak-${n}`): Promise<void> {
    const payer = payers[n % PAYERS] ?? newPayer();
    const payment = await makePayment(payer, asked);
    const request = {
      url: world.target.url(path),
      idempotencyKey: path,
      body: { n },
      timeoutMs: 1000,
      ...(n % 5 === 0 ? { retry: { attempts: 2, backoffMs: 100 } } : {}),
    };
    const begun = performance.now();
    const call = { path, nonce: payment.nonce, begunAt: Date.now() };
    for (let tries = 0; performance.now() - begun < PATIENCE_MS; tries++) {
      const all = urls();
      const base = all[(n + tries) % all.length];
      const answer = base === undefined ? null : await send(`${base}${EXECUTE}`, request, payment.headers[2]);
      if (answer !== null && (answer.status === 200 || answer.status === 502)) {
        const { job, receipt } = answer.body;
        calls.push({ ...call, jobId: job.id, receiptJws: receipt.jws, ms: performance.now() - begun });
        counts.calls++;
        return;
      }
      const code =
        answer === null ? 'no answer' : `${answer.status} ${answer.body?.error?.code ?? answer.body?.error}`;
      refusals.set(code, (refusals.get(code) ?? 0) + 1);
      if (answer !== null && answer.status === 500) wrong.push(`call ${path}: ${code}`);
      // The clock of the service was stepped: nothing is charged, and a payment of another time is needed.
      if (answer !== null && answer.status === 402) break;
      await sleep(500);
    }
    calls.push({ ...call, jobId: null, receiptJws: null, ms: performance.now() - begun });
  }

  async function readOnce(n: number): Promise<void> {
    const known = calls[Math.floor(Math.random() * calls.length)];
    const receiptId = known?.receiptJws ? payloadOf(known.receiptJws).receiptId : 'rcpt_none';
    const jobId = known?.jobId ?? 'job_none';
    const paths = [
      `/api/jobs/${jobId}`,
      `/api/receipts/${receiptId}`,
      `/api/verify/jobs/${jobId}`,
      `/api/verify/receipts/${receiptId}`,
      `/proof/${jobId}`,
      `/proof/${jobId}/badge.svg`,
      `/log/proof/${receiptId}`,
      '/log/checkpoint',
      '/api/proofs/recent?limit=20',
      '/api/decisions/recent',
      `/api/monitoring/executions?windowMs=${60_000 + (n % 5000) * 1000}`,
      '/api/trust',
      '/status',
      '/',
      '/openapi.json',
      '/health',
      '/metrics',
    ];
    const status = await statusOf(paths[n % paths.length] ?? '/', {});
    if (status === 500) wrong.push(`GET ${paths[n % paths.length]}: 500`);
    counts.reads++;
  }

  async function badOnce(n: number): Promise<void> {
    const bad = [
      () => statusOf(EXECUTE, { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }),
      () => statusOf(EXECUTE, { method: 'POST', body: '{}', headers: { 'X-PAYMENT': 'nonsense' } }),
      () =>
        statusOf('/api/policy/check', {
          method: 'POST',
          body: '[]',
          headers: { 'content-type': 'text/plain' },
        }),
      () => statusOf(`/api/jobs/${'x'.repeat(3000)}`, {}),
      () => statusOf('/no/such/path', { method: 'DELETE' }),
    ];
    const status = await (bad[n % bad.length] as () => Promise<number>)();
    if (status === 500 || (status >= 200 && status < 300))
      wrong.push(`bad request ${n % bad.length}: ${status}`);
    counts.bad++;
  }

  async function mcpOnce(n: number): Promise<void> {
    const message = { jsonrpc: '2.0', id: n, method: n % 2 === 0 ? 'tools/list' : 'no/such' };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const status = await statusOf('/mcp', { method: 'POST', body: JSON.stringify(message), headers });
    if (status === 500) wrong.push('mcp: 500');
    counts.mcp++;
  }

  /** 0: no answer. */
  async function statusOf(path: string, init: RequestInit): Promise<number> {
    const all = urls();
    const base = all[Math.floor(Math.random() * all.length)];
    return base === undefined ? 0 : fetchStatus(`${base}${path}`, init);
  }

  async function warmUp(size: number): Promise<void> {
    let n = 0;
    const next = async (): Promise<void> => {
      while (n < size) {
        const of = n++;
        await callOnce(of, `/warm-up-${of}-1`);
        const jws = calls.at(-1)?.receiptJws;
        if (jws)
          for (const base of urls())
            await fetchStatus(`${base}/api/verify/receipts/${payloadOf(jws).receiptId}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  const timers: NodeJS.Timeout[] = [];
  return {
    calls,
    counts,
    wrong,
    refusals,
    warmUp,
    begin() {
      timers.push(
        every(PACE_MS.call, callOnce),
        every(PACE_MS.read, readOnce),
        every(PACE_MS.bad, badOnce),
        every(PACE_MS.mcp, mcpOnce),
      );
    },
    async finish() {
      over = true;
      for (const timer of timers) clearInterval(timer);
      while (inFlight.size > 0) await Promise.allSettled(inFlight);
    },
  };
}

type Answer = {
  readonly status: number;
  readonly body: {
    readonly job: { readonly id: string };
    readonly receipt: { readonly jws: string };
    readonly error?: { readonly code?: string };
  };
};

/** 0: no answer. */
async function fetchStatus(url: string, init: RequestInit = {}): Promise<number> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** null: the connection broke, or nothing came. */
async function send(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Answer | null> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(120_000),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  } catch {
    return null;
  }
}
