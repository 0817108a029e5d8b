// The buyer's ledger: one line of JSON for each payment that was signed, on disk before the payment is sent. It limits
// what a day may cost and returns the payment of an order that is repeated, so that no order is paid for twice. It
// contains no signature, and of a request only a keyed hash.
import { createHmac } from 'node:crypto';
import { fstatSync, fsyncSync, ftruncateSync, readFileSync, realpathSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { Instant } from '#src/domain/event-fields.ts';
import { microUsd, showUsd } from '#src/domain/payment/price.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { flush, withFile } from '#src/lib/files/durable.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import { iso } from '#src/lib/iso.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { Clock } from '#src/ports/clock.ts';
import { UnsignedPayment } from './payment.ts';
import { type Mismatch, PurchaseError } from './purchase-error.ts';

/** What was ordered, and by which wallet. */
export type LedgerOrder = {
  /** Origin. */
  readonly relay: string;
  /** Lower case. */
  readonly payer: string;
  readonly idempotencyKey: string;
  /** The request as it is sent; only its keyed hash is stored. */
  readonly request: string;
};

export type PurchaseLedger = {
  /** null: no payment was signed for this order. Throws `LedgerUnusable`, and `PurchaseError` if the key names another order. */
  find(order: LedgerOrder): Promise<LedgerRecord | null>;
  /**
   * Returns the payment that another process has recorded for this order meanwhile; else records the one that `sign`
   * returns, on disk when this resolves. Throws `PurchaseError` (`budget_usd`) before signing if the day's sum would exceed
   * the budget, and `LedgerUnusable`.
   */
  claim<P extends UnsignedPayment>(
    order: LedgerOrder,
    price: bigint,
    sign: () => Promise<P>,
  ): Promise<Claimed<P>>;
};

export type Claimed<P> =
  | { readonly kind: 'signed'; readonly payment: P }
  | { readonly kind: 'recorded'; readonly record: LedgerRecord };

/** Nothing may be paid with this ledger. The message is for a person. */
export class LedgerUnusable extends OperatorError {}

const LedgerRecord = Type.Object(
  {
    v: Type.Literal(1),
    /** Number of the line, from 1: a missing line is noticed. */
    n: Type.Integer({ minimum: 1 }),
    at: Instant,
    /** US dollars, decimal. */
    usd: Type.String({ pattern: '^\\d+(\\.\\d{1,6})?$' }),
    relay: Type.String(),
    payer: Type.String(),
    key: Type.String(),
    /** HMAC-SHA-256 of the request, hex. Its key is derived from the wallet's. */
    order: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    ...UnsignedPayment.properties,
  },
  { additionalProperties: false },
);
export type LedgerRecord = Static<typeof LedgerRecord>;
const isRecord = shapeCheck(LedgerRecord);

export type LedgerOptions = {
  readonly path: string;
  /** Of the wallet: keys the hash of the requests. */
  readonly secret: Uint8Array;
  /** Millionths of a US dollar that payments of one UTC day may cost; null: unlimited. */
  readonly budgetMicroUsd: bigint | null;
  readonly clock: Clock;
};

const LOCK_WAIT_MS = 10_000;
const LOCK_PAUSE_MS = 20;

/** Throws `LedgerUnusable`. */
export function openLedger(options: LedgerOptions): PurchaseLedger {
  const { secret, budgetMicroUsd, clock } = options;
  const path = createdFile(resolve(options.path));
  const orderHash = ({ request }: LedgerOrder) =>
    createHmac('sha256', createHmac('sha256', secret).update('relay buyer ledger').digest())
      .update(request)
      .digest('hex');

  function recordOf(records: readonly LedgerRecord[], order: LedgerOrder): LedgerRecord | null {
    const { relay, payer, idempotencyKey } = order;
    const found = records.find(
      (one) => one.relay === relay && one.payer === payer && one.key === idempotencyKey,
    );
    if (found === undefined || found.order === orderHash(order)) return found ?? null;
    throw new PurchaseError({
      member: 'idempotency_key',
      expected: 'a key of this order',
      actual: `${idempotencyKey}, which names another order since ${found.at}`,
    });
  }

  /** Waits without blocking: the owner may be another purchase of this process. */
  async function taken() {
    const until = clock.monotonic() + LOCK_WAIT_MS;
    for (;;) {
      const held = usable(path, () => acquireFileLock(path));
      if (held !== null) return held;
      if (clock.monotonic() > until)
        throw new LedgerUnusable(
          `ledger ${path} is in use by another process, and nothing is paid: try again`,
        );
      await clock.sleep(LOCK_PAUSE_MS);
    }
  }

  async function locked<T>(work: (records: readonly LedgerRecord[]) => Promise<T>): Promise<T> {
    const held = await taken();
    try {
      return await work(readLedger(path));
    } finally {
      held.release();
    }
  }

  return {
    find: (order) => locked(async (records) => recordOf(records, order)),
    claim: (order, price, sign) =>
      locked(async (records) => {
        const record = recordOf(records, order);
        if (record !== null) return { kind: 'recorded', record };
        const at = iso(clock.now());
        const over = overBudget(records, at, price, budgetMicroUsd);
        if (over !== null) throw new PurchaseError(over);
        const payment = await sign();
        const { relay, payer, idempotencyKey: key } = order;
        const { terms, authorization, payloadHash } = payment;
        const facts = {
          v: 1,
          n: records.length + 1,
          at,
          usd: showUsd(price).slice(1),
          relay,
          payer,
          key,
        } as const;
        append(path, { ...facts, order: orderHash(order), terms, authorization, payloadHash });
        return { kind: 'signed', payment };
      }),
  };
}

/** Null if the payments of the day of `at` (UTC) and this price are within the budget. Later days count too: a clock was set back. */
function overBudget(
  records: readonly LedgerRecord[],
  at: string,
  price: bigint,
  budget: bigint | null,
): Mismatch | null {
  if (budget === null) return null;
  const day = at.slice(0, 10);
  const spent = records
    .filter((one) => one.at.slice(0, 10) >= day)
    .reduce((sum, { usd }) => sum + (microUsd(usd) ?? 0n), 0n);
  if (spent + price <= budget) return null;
  return {
    member: 'budget_usd',
    expected: `at most ${showUsd(budget)} on ${day} (UTC)`,
    actual: `${showUsd(spent)} signed before, and ${showUsd(price)} now`,
  };
}

/** Creates the file, for its owner only, if it is missing. Returns its path without symbolic links: the lock is beside it. */
function createdFile(path: string): string {
  return usable(path, () => {
    withFile(path, 'a', (file) => {
      if (!fstatSync(file).isFile()) throw new LedgerUnusable(`ledger ${path} is not a regular file`);
      fsyncSync(file);
    });
    const real = realpathSync(path);
    flush(dirname(real));
    return real;
  });
}

function readLedger(path: string): readonly LedgerRecord[] {
  const text = usable(path, () => readFileSync(path, 'utf8'));
  const lines = text.split('\n');
  // A complete file ends with a line break.
  const rest = lines.pop();
  const records = lines.map((line, index) => readLine(path, line, index + 1));
  if (rest !== '') throw damaged(path, lines.length + 1, 'is cut off');
  return records;
}

function readLine(path: string, line: string, number: number): LedgerRecord {
  const value = parsedJson(line);
  if (!isRecord(value)) throw damaged(path, number, 'is no record of a payment');
  if (value.n !== number)
    throw damaged(path, number, `is numbered ${value.n}: lines are missing or repeated`);
  return value;
}

const damaged = (path: string, line: number, problem: string) =>
  new LedgerUnusable(
    `ledger ${path} is damaged, and nothing is paid: line ${line} ${problem}. ` +
      'If it is the last line and cut off, its payment was never sent: remove the line. ' +
      'Otherwise restore the file from a backup; or begin a new ledger, which does not count what was spent today and does not remember any order',
  );

/** On disk when it returns. A record that could not be written completely is removed again. */
function append(path: string, record: LedgerRecord): void {
  usable(path, () => {
    withFile(path, 'a', (file) => {
      const { size } = fstatSync(file);
      try {
        const line = Buffer.from(`${JSON.stringify(record)}\n`);
        if (writeSync(file, line) !== line.length) throw new Error('the record was not written completely');
        fsyncSync(file);
      } catch (error) {
        ftruncateSync(file, size);
        throw error;
      }
    });
  });
}

/** Throws `LedgerUnusable` for every fault of the file. */
function usable<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (cause instanceof LedgerUnusable) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new LedgerUnusable(`ledger ${path} cannot be used, and nothing is paid: ${problem}`, { cause });
  }
}
