// The paid demo's story as a person reads it.

import { shown } from '#src/cli/terminal.ts';
import type { Balances, PaidStory } from './paid-story.ts';
import {
  conclusionLines,
  heading,
  jobLine,
  receivedLines,
  replayLines,
  row,
  verifiedLines,
} from './print.ts';

export function paidStoryLines(story: PaidStory): readonly string[] {
  const { terms, policy, balances, sent, receipt, payment } = story;
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
    jobLine(story),
    row('receipt', receipt.id),
    row('payer', shown(payment?.payer ?? 'none')),
    row('transaction', shown(payment?.transaction ?? 'none')),
    '',
    heading('5. The receipt is verified offline, by three saved files alone'),
    ...verifiedLines(story),
    '',
    heading('6. The same payment again, as after a lost answer'),
    ...replayLines(story),
    row('buyer', `${balances.buyer.afterReplay} units`),
    '',
    ...conclusionLines(story),
  ];
}

const balanceWords = ({ before, after }: Balances): string => `${before} units before, ${after} after`;
