// The results of the demo as text.
import type { Fact } from '#src/app/buyer.ts';
import type { Balances, PaidStory } from '#src/demo/paid.ts';
import type { Story } from '#src/demo/story.ts';
import { heading, mark, paint, row, shown } from './terminal.ts';
import { checkLines } from './verify.ts';

export function storyLines(story: Story): readonly string[] {
  const { sent, receipt } = story;
  return [
    heading('1. An agent asks the relay for one outbound request'),
    row('POST', `${story.service}/api/execute/webhook`),
    row('url', sent.url),
    row('headers', shown(sent.headers)),
    row('body', shown(sent.body)),
    '',
    heading('2. The target, a webhook endpoint on this machine, receives the request'),
    ...receivedLines(story),
    '',
    heading('3. The relay answers with a job and a signed receipt'),
    jobLine(story),
    row('receipt', receipt.id),
    row('signed by', receipt.keyId),
    '',
    heading('4. The receipt is verified offline, with three saved files only'),
    ...verifiedLines(story),
    '',
    heading('5. The same call is repeated, as after a lost response'),
    ...replayLines(story),
    '',
    ...conclusionLines(story),
  ];
}

const jobLine = ({ job }: Pick<Story, 'job'>): string =>
  row('job', `${job.id}, ${job.status}, target answered ${job.responseStatus}, attempts: ${job.attempts}`);

const verifiedLines = ({ files, verification }: Pick<Story, 'files' | 'verification'>) => [
  row('receipt', files.receipt),
  row('keys', files.keys),
  row('proof', files.proof),
  ...checkLines(verification),
];

const replayLines = ({ replay }: Pick<Story, 'replay'>): readonly string[] => [
  row('receipt', `${replay.receiptId}${replay.idempotentReplay ? ', replayed' : ''}`),
  row('at target', `${replay.requestsAtTarget} request in total`),
];

const conclusionLines = (story: Pick<Story, 'facts' | 'ok'>): readonly string[] => [
  heading('Checked in this run'),
  ...story.facts.map(factLine),
  '',
  story.ok
    ? paint('green', 'Everything is as expected.')
    : paint('red', 'Something is NOT as expected: see above.'),
];

const receivedLines = ({ received }: Pick<Story, 'received'>): readonly string[] => [
  row(received.method, received.path),
  row('body', shown(received.body)),
  ...SHOWN_HEADERS.filter((name) => name in received.headers).map((name) =>
    row(name, shown(received.headers[name])),
  ),
];

/** Shown while the service runs. */
export const linkLines = ({
  service,
  links,
  files,
}: Pick<Story, 'service' | 'links' | 'files'>): readonly string[] => [
  heading('Try it yourself'),
  row('front page', `${service}/`),
  ...LINKS.filter(([name]) => name in links).map(([name, label]) => row(label, links[name] ?? '')),
  row(
    'offline',
    `npx bun src/cli/relay.ts verify ${files.receipt} --keys ${files.keys} --proof ${files.proof}`,
  ),
];

/** The headers by which a target authenticates the call. */
const SHOWN_HEADERS = [
  'x-order-source',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
];

const LINKS = [
  ['job', 'job'],
  ['receipt', 'receipt'],
  ['verifyReceipt', 'verify'],
  ['proof', 'proof page'],
] as const;

const factLine = ({ ok, words }: Fact): string => `  ${mark(ok)} ${shown(words)}`;

export function paidStoryLines(story: PaidStory): readonly string[] {
  const { terms, policy, balances, sent, receipt, payment } = story;
  return [
    heading('1. A buyer asks the relay for one outbound request, and receives a 402'),
    row('POST', `${story.service}/api/execute/webhook`),
    row('price', `${shown(terms.amount)} units of ${shown(terms.asset)}`),
    row('network', shown(terms.network)),
    row('payee', shown(terms.payTo)),
    row('compared', policy.map(({ name, ok }) => `${name} ${ok ? 'ok' : 'NOT OK'}`).join(', ')),
    '',
    heading('2. The buyer signs one payment; the relay settles it on the local chain before the call'),
    row('buyer', balanceText(balances.buyer)),
    row('payee', balanceText(balances.payee)),
    '',
    heading('3. The target, a webhook endpoint on this machine, receives the request'),
    row('url', sent.url),
    ...receivedLines(story),
    '',
    heading('4. The relay answers with a job and a signed receipt that names the payment'),
    jobLine(story),
    row('receipt', receipt.id),
    row('payer', shown(payment?.payer ?? 'none')),
    row('transaction', shown(payment?.transaction ?? 'none')),
    '',
    heading('5. The receipt is verified offline, with three saved files only'),
    ...verifiedLines(story),
    '',
    heading('6. The same payment is presented again, as after a lost response'),
    ...replayLines(story),
    row('buyer', `${balances.buyer.afterReplay} units`),
    '',
    ...conclusionLines(story),
  ];
}

const balanceText = ({ before, after }: Balances): string => `${before} units before, ${after} after`;
