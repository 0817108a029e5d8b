// A relay that sells runs every hour and executes none: it answers as an honest relay would, and changes what a test
// specifies. Due times are computed here, apart from the source.
import { PAY_TO, type Tree, USDC } from '#test/support/witness/lying-relay.ts';

export const HOUR = 3_600_000;
export const SCHEDULE = `sch_${'7'.repeat(26)}`;
export const CANCEL_TOKEN = 'q1Zr8t5cXc2mF0bV7yJ3kP9sLdW6uHnE4aGoTiRxQvA';

export type SoldRun = { readonly n: number; readonly dueAt: string };
export type SellingLies = {
  /** PAYMENT-REQUIRED of run `n`, decoded. */
  readonly offer?: (required: Tree, n: number) => Tree;
  /** Of a purchase, before it is sent. */
  readonly answer?: (body: Tree, n: number) => Tree;
  /** null: no answer comes; the relay has done its part. */
  readonly respond?: (request: Request, honest: () => Promise<Response>) => Promise<Response | null>;
};

type Authorization = Readonly<
  Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>
>;

/** `now`: Unix ms, of the relay. `startMs`: of run 1. */
export function sellingRelay(origin: string, now: () => number, startMs: number, catchUpSeconds = 300) {
  const sold = new Map<string, SoldRun>();
  const presented: Authorization[] = [];
  let lies: SellingLies = {};

  /** The first run without a payment that is still to come. */
  function nextRun(): SoldRun {
    const [last] = [...sold.values()].slice(-1);
    let due = last === undefined ? startMs : Date.parse(last.dueAt) + HOUR;
    let n = (last?.n ?? 0) + 1;
    for (; due <= now(); due += HOUR) if (last !== undefined) n++;
    return { n, dueAt: new Date(due).toISOString() };
  }

  function unpaid(url: string): Response {
    const run = nextRun();
    const required = {
      x402Version: 2,
      error: 'payment_required',
      resource: { url, description: `run ${run.n}`, mimeType: 'application/json' },
      accepts: [
        {
          scheme: 'exact',
          network: 'eip155:8453',
          amount: '3000',
          asset: USDC,
          payTo: PAY_TO,
          maxTimeoutSeconds: Math.ceil((Date.parse(run.dueAt) - now()) / 1000) + catchUpSeconds + 120,
          extra: { name: 'USD Coin', version: '2' },
        },
      ],
      extensions: { 'scheduled-run': { info: run, schema: {} } },
    };
    const header = JSON.stringify(lies.offer?.(required, run.n) ?? required);
    return Response.json(
      { x402Version: 1, error: 'payment_required', accepts: [] },
      { status: 402, headers: { 'PAYMENT-REQUIRED': Buffer.from(header).toString('base64') } },
    );
  }

  function paid(header: string): Response {
    const { authorization } = JSON.parse(Buffer.from(header, 'base64').toString()).payload as {
      authorization: Authorization;
    };
    presented.push(authorization);
    const { nonce, validBefore } = authorization;
    const run = sold.get(nonce) ?? nextRun();
    if (!sold.has(nonce) && Number(validBefore) < Date.parse(run.dueAt) / 1000 + 60)
      return Response.json(
        { x402Version: 1, error: 'payment_required: authorization_expired', accepts: [] },
        { status: 402 },
      );
    const isFirst = run.n === 1;
    sold.set(nonce, run);
    const body = { scheduleId: SCHEDULE, cancelToken: isFirst ? CANCEL_TOKEN : null, status: 'active', run };
    return Response.json(lies.answer?.(body, run.n) ?? body, { status: 201 });
  }

  async function honest(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/api/schedules/capabilities') return Response.json({ horizonDays: 30 });
    if (request.method === 'GET') {
      const runs = [...sold.values()].map((run) => ({ ...run, state: 'funded', reason: null }));
      return Response.json({ status: 'active', runs });
    }
    const payment = request.headers.get('PAYMENT-SIGNATURE');
    return payment === null ? unpaid(request.url) : paid(payment);
  }

  return {
    origin,
    /** By nonce. */
    sold,
    /** Of every payment that came, in order. */
    presented,
    lie: (next: SellingLies) => {
      lies = next;
    },
    async send(request: Request): Promise<Response> {
      const answer = () => honest(request);
      const response = lies.respond === undefined ? await answer() : await lies.respond(request, answer);
      if (response === null) throw new Error('the connection was cut');
      return response;
    },
  };
}
