// The results of the demo as text.
import { join } from 'node:path';
import type { Balances, PaidStory } from '#src/demo/paid.ts';
import type { Story } from '#src/demo/story.ts';
import { heading, mark, paint, row, shown } from './terminal.ts';
import { checkLines } from './verify.ts';

/** A title, and the lines below it. */
type Section = readonly [title: string, ...lines: readonly string[]];

export function storyLines(story: Story | PaidStory): readonly string[] {
  const sections = 'balances' in story ? paidSections(story) : freeSections(story);
  return [
    ...sections.flatMap(([title, ...lines], at) => [heading(`${at + 1}. ${title}`), ...lines, '']),
    heading('Checked in this run'),
    ...story.facts.map(({ ok, words }) => `  ${mark(ok)} ${shown(words)}`),
    '',
    story.ok
      ? paint('green', 'Everything is as expected.')
      : paint('red', 'Something is NOT as expected: see above.'),
  ];
}

function freeSections(story: Story): readonly Section[] {
  const { sent, receipt } = story;
  return [
    [
      'An agent asks the relay for one outbound request',
      row('POST', `${story.service}/api/execute/webhook`),
      row('url', sent.url),
      row('headers', shown(sent.headers)),
      row('body', shown(sent.body)),
    ],
    ['The target, a webhook endpoint on this machine, receives the request', ...receivedLines(story)],
    [
      'The relay answers with a job and a signed receipt',
      jobLine(story),
      row('receipt', receipt.id),
      row('signed by', receipt.keyId),
    ],
    verified(story),
    ['The same call is repeated, as after a lost response', ...replayLines(story)],
  ];
}

function paidSections(story: PaidStory): readonly Section[] {
  const { terms, policy, balances, sent, receipt, payment } = story;
  return [
    [
      'A buyer asks the relay for one outbound request, and receives a 402',
      row('POST', `${story.service}/api/execute/webhook`),
      row('price', `${shown(terms.amount)} units of ${shown(terms.asset)}`),
      row('network', shown(terms.network)),
      row('payee', shown(terms.payTo)),
      row('compared', policy.map(({ name, ok }) => `${name} ${ok ? 'ok' : 'NOT OK'}`).join(', ')),
    ],
    [
      'The buyer signs one payment; the relay settles it on the local chain before the call',
      row('buyer', balanceText(balances.buyer)),
      row('payee', balanceText(balances.payee)),
    ],
    [
      'The target, a webhook endpoint on this machine, receives the request',
      row('url', sent.url),
      ...receivedLines(story),
    ],
    [
      'The relay answers with a job and a signed receipt that names the payment',
      jobLine(story),
      row('receipt', receipt.id),
      row('payer', shown(payment?.payer ?? 'none')),
      row('transaction', shown(payment?.transaction ?? 'none')),
    ],
    verified(story),
    [
      'The same payment is presented again, as after a lost response',
      ...replayLines(story),
      row('buyer', `${balances.buyer.afterReplay} units`),
    ],
  ];
}

const verified = ({ files, verification }: Story): Section => [
  'The receipt is verified offline, with three saved files only',
  row('receipt', files.receipt),
  row('keys', files.keys),
  row('proof', files.proof),
  ...checkLines(verification),
];

const jobLine = ({ job }: Story): string =>
  row('job', `${job.id}, ${job.status}, target answered ${job.responseStatus}, attempts: ${job.attempts}`);

const balanceText = ({ before, after }: Balances): string => `${before} units before, ${after} after`;

const replayLines = ({ replay }: Story): readonly string[] => [
  row('receipt', `${replay.receiptId}${replay.idempotentReplay ? ', replayed' : ''}`),
  row('at target', `${replay.requestsAtTarget} request in total`),
];

/** The headers by which a target authenticates the call. */
const SHOWN_HEADERS = [
  'x-order-source',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
];

const receivedLines = ({ received }: Story): readonly string[] => [
  row(received.method, received.path),
  row('body', shown(received.body)),
  ...SHOWN_HEADERS.filter((name) => name in received.headers).map((name) =>
    row(name, shown(received.headers[name])),
  ),
];

const LINKS = [
  ['job', 'job'],
  ['receipt', 'receipt'],
  ['verifyReceipt', 'verify'],
  ['proof', 'proof page'],
] as const;

/** What a reader needs to use the running demo. */
export type Running = {
  readonly dataDir: string;
  /** null: nothing is paid in this demo. */
  readonly buyerKey: `0x${string}` | null;
};

/** Shown while the service runs. Prints the key of a wallet with worthless coins of a chain that ends with the demo. */
export const linkLines = (story: Story | PaidStory, { dataDir, buyerKey }: Running): readonly string[] => {
  const { service, links, files } = story;
  const exported = `DATA_DIR=${word(dataDir)} ${RELAY} export --out ${word(join(dataDir, 'log.ndjson'))}`;
  return [
    heading('Try it yourself'),
    row('front page', `${service}/`),
    ...LINKS.filter(([name]) => name in links).map(([name, label]) => row(label, links[name] ?? '')),
    row(
      'offline',
      `${RELAY} verify ${word(files.receipt)} --keys ${word(files.keys)} --proof ${word(files.proof)}`,
    ),
    row('event log', exported),
    ...(buyerKey !== null && 'balances' in story ? buyLines(story, dataDir, buyerKey) : []),
  ];
};

const RELAY = 'npx bun src/cli/relay.ts';

function buyLines(
  { service, sent, terms, balances }: PaidStory,
  dataDir: string,
  buyerKey: string,
): readonly string[] {
  const calls = BigInt(balances.buyer.afterReplay) / BigInt(terms.amount);
  const [payTo, save] = [word(terms.payTo), word(join(dataDir, 'order'))];
  return [
    row(
      'buy one more call',
      `RELAY_BUYER_PRIVATE_KEY=${buyerKey} ${RELAY} pay ${word(sent.url)} --relay ${service} --pay-to ${payTo} --body '{"order":1}' --save ${save}`,
    ),
    row('', `The coins are worthless, and the key is of this demo only. Calls left: ${calls}.`),
    row('', 'Run again, the line returns the same result. For another call change the name after --save.'),
  ];
}

/** One word of a POSIX shell. */
const word = (text: string): string =>
  /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
