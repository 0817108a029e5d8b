// The paid demo's story as a person reads it.
import { checkLines } from './check-words.ts';
import type { Balances, PaidStory } from './demo-paid-story.ts';
import { factLine, heading, lookLines, receivedLines, row } from './demo-print.ts';
import { paint, shown } from './terminal.ts';

export function paidStoryLines(story: PaidStory): readonly string[] {
  const { terms, policy, balances, sent, job, receipt, payment, replay, files } = story;
  return [
    heading('1. A buyer asks the relay for one outbound request, and gets a bill (402)'),
    row('POST', `${story.service}/api/execute/webhook`),
    row('price', `${shown(terms.amount)} units of ${shown(terms.asset)}`),
    row('network', shown(terms.network)),
    row('payee', shown(terms.payTo)),
    row('judged', policy.map(({ name, ok }) => `${name} ${ok ? 'good' : 'BAD'}`).join(', ')),
    '',
    heading('2. It signs one payment, and the relay settles it on the local chain, before it calls'),
    row('buyer', balanceWords(balances.buyer)),
    row('payee', balanceWords(balances.payee)),
    '',
    heading('3. The target, a webhook endpoint on this machine, receives'),
    row('url', sent.url),
    ...receivedLines(story),
    '',
    heading('4. The relay answers with a job and a signed receipt that names the payment'),
    row('job', `${job.id}, ${job.status}, target answered ${job.responseStatus}, attempts: ${job.attempts}`),
    row('receipt', receipt.id),
    row('payer', shown(payment?.payer ?? 'none')),
    row('transaction', shown(payment?.transaction ?? 'none')),
    '',
    heading('5. The receipt is verified offline, by two saved files alone'),
    row('receipt', files.receipt),
    row('keys', files.keys),
    ...checkLines(story.verification),
    '',
    heading('6. The same payment again, as after a lost answer'),
    row('receipt', `${replay.receiptId}${replay.idempotentReplay ? ', replayed' : ''}`),
    row('at target', `${replay.requestsAtTarget} request in all`),
    row('buyer', `${balances.buyer.afterReplay} units`),
    '',
    heading('What this run has shown'),
    ...story.facts.map(factLine),
    '',
    ...lookLines(story),
    '',
    story.ok
      ? paint('green', 'All is as it should be.')
      : paint('red', 'Something is NOT as it should be: see above.'),
  ];
}

const balanceWords = ({ before, after }: Balances): string => `${before} units before, ${after} after`;
