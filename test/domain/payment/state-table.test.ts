// What each event makes of a payment, by its status: the table in MONEY.md is that of the code.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type PaymentEvent, typesIn } from '#src/domain/events.ts';
import { absentPayment, evolvePayment, isMissing, type Payment } from '#src/domain/payment/state.ts';
import {
  paymentDeferred,
  paymentMissing,
  paymentRefunded,
  paymentRejected,
  paymentReleased,
  paymentReserved,
  paymentSettled,
  refundBegun,
  refundCancelled,
  settlementCorrected,
  settlementRetried,
  settlementUnknown,
} from '#test/support/given/given-events.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const jobId = paymentReserved().data.jobId;

const EVENTS: readonly PaymentEvent[] = [
  paymentDeferred({ jobId }),
  paymentReserved(),
  settlementUnknown(),
  settlementRetried(),
  paymentSettled(),
  paymentRejected(),
  paymentReleased(),
  paymentMissing(),
  settlementCorrected(),
  refundBegun(),
  refundCancelled(),
  paymentRefunded(),
];

const nameOf = (payment: Payment): string => {
  if (payment.status === 'absent') return payment.pledge === null ? 'absent' : 'deferred';
  return payment.status !== 'missing' && isMissing(payment) ? `${payment.status}, missing` : payment.status;
};

/** Every status that events can lead to, in the order in which it is reached first. */
function reached(): ReadonlyMap<string, Payment> {
  const found = new Map([[nameOf(absentPayment), absentPayment]]);
  for (const payment of found.values())
    for (const event of EVENTS) {
      const next = evolvePayment(payment, event);
      if (!found.has(nameOf(next))) found.set(nameOf(next), next);
    }
  return found;
}

function table(): string {
  const statuses = [...reached()];
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const cell = (payment: Payment, event: PaymentEvent): string => {
    const next = evolvePayment(payment, event);
    return next === payment ? '–' : nameOf(next);
  };
  return [
    row(['event', ...statuses.map(([name]) => name)]),
    row(Array(statuses.length + 1).fill('---')),
    ...EVENTS.map((event) =>
      row([`\`${event.type}\``, ...statuses.map(([, payment]) => cell(payment, event))]),
    ),
  ].join('\n');
}

test('the table has every event of a payment', () => {
  assert.deepEqual(EVENTS.map(({ type }) => type).sort(), [...typesIn('payment')].sort());
});

test('the table of statuses and events in MONEY.md is that of the code', () => {
  const document = readFileSync(`${rootPath}/src/MONEY.md`, 'utf8');
  const found = /(?:^\|.*\n)+/m.exec(document.slice(document.indexOf('\n| event | absent |')))?.[0];
  assert.equal(found, `${table()}\n`);
});
