// The books of a log, from one read of all of it.
import type { Clock } from '#src/ports/clock.ts';
import type { EventLog } from '#src/ports/event-log.ts';
import { openPaymentRows } from '#src/usecases/payments/list-payments.ts';
import { readLedger } from '#src/usecases/payments/read-ledger.ts';
import { balanceOf } from '#src/usecases/payments/sum-payments.ts';

type Deps = { readonly log: EventLog; readonly clock: Pick<Clock, 'now'> };

export const listOpenPayments = async ({ log, clock }: Deps) =>
  openPaymentRows(await readLedger(log), clock.now());

export const balancePayments = async (log: EventLog) => balanceOf(await readLedger(log));
