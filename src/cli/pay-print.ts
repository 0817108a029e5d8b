// A purchase as a person reads it, and as a machine does.
import { checkLines } from './check-labels.ts';
import type { Evidence } from './pay-evidence.ts';
import type { Bought, Order } from './pay-purchase.ts';
import { complain, mark, paint, shown } from './terminal.ts';

const POLICY_WORDS = {
  network: 'network',
  scheme: 'scheme',
  resource: 'for this URL',
  asset: 'asset',
  price: 'price',
  pay_to: 'payee',
  window: 'valid for',
  signed_offer: 'signed offer',
} as const;

const ENDS: Readonly<Record<Bought['outcome'], string>> = {
  delivered: 'Delivered.',
  target_failed: 'The target failed. The attempt was paid for; its receipt says what happened.',
  policy_refused: 'Not paid: the offer is not what your policy allows.',
  not_paid: 'The offer is what your policy allows. Nothing was paid.',
  relay_refused: 'The relay refused: this call was neither sent to the target nor charged.',
  unfinished: 'No final answer yet. The payment may be spent: present the SAME one again, never a new one.',
};

export function noteWait(why: string, ms: number): void {
  complain(`${why}; the same payment is presented again in ${Math.ceil(ms / 1000)} s`);
}

/** A payment's header only where it is still of use: who has it and the request gets what they bought. */
export function boughtJson(bought: Bought) {
  const { evidence, payment, ...rest } = bought;
  const { outcome } = bought;
  return {
    ok: outcome === 'not_paid' || (outcome === 'delivered' && evidence?.ok === true),
    ...rest,
    payment:
      payment === null
        ? null
        : {
            payer: payment.payer,
            ...(outcome === 'unfinished' ? { header: { [payment.name]: payment.value } } : {}),
          },
    settlement: evidence?.settlement ?? null,
    job: evidence?.execution.job ?? null,
    receipt: evidence?.execution.receipt ?? null,
    idempotentReplay: evidence?.execution.idempotentReplay ?? null,
    verification: evidence?.verification ?? null,
    facts: evidence?.facts ?? [],
    links: evidence?.execution.links ?? {},
  };
}

export function boughtLines(bought: Bought, order: Order): readonly string[] {
  const { relay, policy, evidence, problem, outcome, payment, resumed } = bought;
  const good = outcome === 'not_paid' || (outcome === 'delivered' && evidence?.ok === true);
  return [
    paint('bold', resumed ? `Going on with the payment saved in ${order.save}` : `What ${relay} asks for`),
    ...policy.flatMap(({ name, ok, expected, offered }) => [
      `  ${mark(ok)} ${paint('dim', POLICY_WORDS[name].padEnd(14))}${shown(offered)}`,
      ...(ok ? [] : [`      expected: ${shown(expected)}`]),
    ]),
    ...payeeHint(bought, order),
    ...(evidence === null ? [] : evidenceLines(evidence)),
    ...(problem === null ? [] : ['', `  ${shown(problem.code)}: ${shown(problem.message)}`]),
    ...(outcome === 'unfinished' && payment !== null ? keepLines(payment, order) : []),
    '',
    paint(good ? 'green' : 'red', ENDS[outcome]),
  ];
}

function payeeHint({ terms }: Bought, { limits }: Order): readonly string[] {
  if (limits.payTo !== null || terms === null) return [];
  return ['', `  Nobody is paid without --pay-to. If ${shown(terms.payTo)} is whom you mean to pay, say so.`];
}

function evidenceLines({ execution, settlement, verification, facts }: Evidence): readonly string[] {
  const { job, receipt, idempotentReplay } = execution;
  const answer =
    job.responseStatus === null ? (job.errorCategory ?? 'no answer') : `answer ${job.responseStatus}`;
  return [
    '',
    paint('bold', 'What came'),
    row(
      'payment',
      `${settlement?.payer ?? 'unknown'}, transaction ${settlement?.transaction ?? 'not named'}`,
    ),
    row('job', `${job.id}, ${job.status}, ${answer}, attempts: ${job.attempts}`),
    row('receipt', `${receipt.id}${idempotentReplay ? ', replayed: nothing was sent or charged again' : ''}`),
    '',
    paint('bold', 'Verified offline'),
    ...checkLines(verification),
    ...facts.map(({ ok, words }) => `  ${mark(ok)} ${shown(words)}`),
  ];
}

function keepLines(
  payment: { readonly name: string; readonly value: string },
  { save }: Order,
): readonly string[] {
  if (save !== null) return ['', `  The payment is in ${save}: the same command line goes on from it.`];
  return [
    '',
    '  Keep this payment header, it is all that brings you what you paid for:',
    `  ${payment.name}: ${payment.value}`,
  ];
}

const row = (name: string, value: string): string => `  ${paint('dim', name.padEnd(16))}${shown(value)}`;
