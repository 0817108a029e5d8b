// Operators that return what is due: they begin refunds, cancel some, send the money on the chain and complete them, each
// command a process of its own that may end at any call. Several may record one transfer. They also rotate the signing keys.

import type { KeyStore } from '#src/ports/key-store.ts';
import { beginPaymentRefund, cancelPaymentRefund } from '#src/usecases/payments/begin-refund.ts';
import { completeRefunds } from '#src/usecases/payments/complete-refund.ts';
import { openPaymentRows } from '#src/usecases/payments/list-payments.ts';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import { rotateKeys } from '#src/usecases/signing-keys/change-keys.ts';
import type { MemoryChain } from '#test/support/chain/memory-chain.ts';
import type { Random } from '#test/support/world/random.ts';
import { Host } from './host.ts';
import { type LogStore, logAccess } from './log.ts';
import { PAYEE, type PaymentWitness, simulatedPayments, simulatedTransfers } from './payments.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';
import type { Weather } from './weather.ts';

export type Office = {
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly chain: MemoryChain;
  readonly log: LogStore;
  readonly weather: Weather;
  readonly witness: PaymentWitness;
  isCalm(): boolean;
  commands: number;
  /** The transaction that returns the money of a payment, by the payment's stream. */
  readonly sent: Map<string, string>;
  /** A command has begun the refund: from now on the payment buys nothing. */
  onBegun(stream: string): void;
  onCancelled(stream: string): void;
};

/** One round: whatever is due is begun, some of it cancelled, the rest paid back and recorded. */
export async function refundDue(office: Office, random: Random, isLast: boolean): Promise<void> {
  const { chain, scheduler, trace } = office;
  const due = await command(office, random, async ({ log, host, payments, findTransfers }) => {
    const rows = openPaymentRows(await readLedger(log), host.clock.now());
    const begun: { readonly id: string; readonly payer: string; readonly amount: string }[] = [];
    for (const { id, state } of rows) {
      const isDue =
        state === 'refundable' ||
        state === 'refunding' ||
        (state === 'unserved' && (isLast || random.chance(0.4)));
      if (!isDue) continue;
      const { lookUp } = payments;
      const options = { includeServed: false, statement: null };
      const deps = { log, ...journalOf(host), lookUp, findTransfers };
      const result = await beginPaymentRefund(deps, id, options);
      trace.reached(`refund begin: ${result.outcome === 'refused' ? result.reason : result.outcome}`);
      if (result.outcome !== 'begun') continue;
      office.onBegun(id);
      begun.push({ id, payer: result.payment.payer, amount: result.payment.amount });
    }
    return begun;
  });
  if (due === null || due.length === 0) return;
  await scheduler.sleep(random.between(10, 5000));
  const paid: typeof due = [];
  for (const row of due) {
    if (office.sent.has(row.id)) continue;
    if (isLast || !random.chance(0.15)) paid.push(row);
    else
      await command(office, random, async ({ log, host }) => {
        office.onCancelled(row.id);
        const result = await cancelPaymentRefund({ log, ...journalOf(host) }, row.id);
        trace.reached(`refund cancel: ${result.outcome}`);
      });
  }
  // A transfer that was sent for one payment may have been recorded for another of its payer: what the others have left is tried.
  const wasSent = due.some(({ id }) => office.sent.has(id));
  const again = new Set(wasSent ? office.sent.values() : []);
  for (const hash of again) await complete(office, random, hash);
  if (paid.length === 0) return;
  const moves = paid.map(({ payer, amount }) => ({ from: PAYEE, to: payer, amount: BigInt(amount) }));
  const { hash } = chain.submit('transfer', moves, null, random.between(0, 3000));
  for (const { id } of paid) office.sent.set(id, hash);
  await scheduler.sleep(random.between(16_000, 30_000));
  const operators = random.chance(0.3) ? random.int(2, 4) : 1;
  await Promise.all(Array.from({ length: operators }, () => complete(office, random, hash)));
}

/** Repeats the command until it has ended well. */
async function complete(office: Office, random: Random, transaction: string): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const result = await command(office, random, ({ log, host, findTransfers }) =>
      completeRefunds({ log, ...journalOf(host) }, { transaction, refundFrom: null, findTransfers }),
    );
    office.trace.reached(`refund complete: ${result?.outcome ?? 'failed'}`);
    if (result?.outcome === 'completed') return;
    await office.scheduler.sleep(random.between(1000, 6000));
  }
}

/** Replaces the keys of a purpose: repeats the command until it has ended well. */
export async function rotate(office: Office, random: Random, store: KeyStore): Promise<void> {
  const purpose = random.pick(['receipt', 'receipt', 'checkpoint'] as const);
  for (let tries = 0; tries < 5; tries++) {
    const rotation = await command(office, random, ({ log, host }) => {
      // Between the key file and the event log.
      if (!office.isCalm() && random.chance(0.4)) host.killIn = 1;
      return rotateKeys({ log, ...journalOf(host), store }, purpose);
    });
    office.trace.reached(`rotation of the ${purpose} key${rotation === null ? ' that fails' : ''}`);
    if (rotation !== null) return;
    await office.scheduler.sleep(random.between(1000, 60_000));
  }
}

const journalOf = ({ clock, entropy, logger }: Host) => ({ clock, entropy, logger });

/** null: the command was ended, or failed. */
async function command<T>(
  office: Office,
  random: Random,
  work: (it: ReturnType<typeof toolsOf> & { readonly host: Host }) => Promise<T>,
): Promise<T | null> {
  const { scheduler, trace } = office;
  const host = new Host(`operator ${++office.commands}`, scheduler, random.fork(), trace);
  if (!office.isCalm() && random.chance(0.15)) host.killIn = random.int(1, 6);
  const killed = new Promise<null>((resolve) => host.whenKilled(() => resolve(null)));
  const working = work({ host, ...toolsOf(office, host) }).catch((error: unknown) => {
    trace.note(`${host.name} fails: ${error}`);
    return null;
  });
  return Promise.race([working, killed]);
}

const toolsOf = ({ log, chain, weather, witness }: Office, host: Host) => ({
  log: logAccess(log, host, weather.log).log,
  payments: simulatedPayments(chain, host, weather.payments, witness),
  findTransfers: simulatedTransfers(chain, host, weather.payments),
});
