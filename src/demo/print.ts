// The demo's story as a person reads it.
import { checkLines } from '#src/cli/check-labels.ts';
import { mark, paint, shown } from '#src/cli/terminal.ts';
import type { Fact } from './facts.ts';
import type { Story } from './story.ts';

export function storyLines(story: Story): readonly string[] {
  const { sent, receipt } = story;
  return [
    heading('1. An agent asks the relay for one outbound request'),
    row('POST', `${story.service}/api/execute/webhook`),
    row('url', sent.url),
    row('headers', shown(sent.headers)),
    row('body', shown(sent.body)),
    '',
    heading('2. The target, a webhook endpoint on this machine, receives'),
    ...receivedLines(story),
    '',
    heading('3. The relay answers with a job and a signed receipt'),
    jobLine(story),
    row('receipt', receipt.id),
    row('signed by', receipt.keyId),
    '',
    heading('4. The receipt is verified offline, by three saved files alone'),
    ...verifiedLines(story),
    '',
    heading('5. The same call again, as after a lost answer'),
    ...replayLines(story),
    '',
    ...conclusionLines(story),
  ];
}

export const jobLine = ({ job }: Pick<Story, 'job'>): string =>
  row('job', `${job.id}, ${job.status}, target answered ${job.responseStatus}, attempts: ${job.attempts}`);

export const verifiedLines = ({ files, verification }: Pick<Story, 'files' | 'verification'>) => [
  row('receipt', files.receipt),
  row('keys', files.keys),
  row('proof', files.proof),
  ...checkLines(verification),
];

export const replayLines = ({ replay }: Pick<Story, 'replay'>): readonly string[] => [
  row('receipt', `${replay.receiptId}${replay.idempotentReplay ? ', replayed' : ''}`),
  row('at target', `${replay.requestsAtTarget} request in all`),
];

export const conclusionLines = (story: Pick<Story, 'facts' | 'ok'>): readonly string[] => [
  heading('What this run has shown'),
  ...story.facts.map(factLine),
  '',
  story.ok
    ? paint('green', 'All is as it should be.')
    : paint('red', 'Something is NOT as it should be: see above.'),
];

export const receivedLines = ({ received }: Pick<Story, 'received'>): readonly string[] => [
  row(received.method, received.path),
  row('body', shown(received.body)),
  ...INTERESTING.filter((name) => name in received.headers).map((name) =>
    row(name, shown(received.headers[name])),
  ),
];

/** While the service is up. */
export const lookLines = ({
  service,
  links,
  files,
}: Pick<Story, 'service' | 'links' | 'files'>): readonly string[] => [
  heading('Look for yourself'),
  row('front page', `${service}/`),
  ...LINKS.filter(([name]) => name in links).map(([name, words]) => row(words, links[name] ?? '')),
  row(
    'offline',
    `npx bun src/cli/relay.ts verify ${files.receipt} --keys ${files.keys} --proof ${files.proof}`,
  ),
];

/** What tells a target who calls, and that it may believe it. */
const INTERESTING = ['x-order-source', 'user-agent', 'webhook-id', 'webhook-timestamp', 'webhook-signature'];

const LINKS = [
  ['job', 'job'],
  ['receipt', 'receipt'],
  ['verifyReceipt', 'verify'],
  ['proof', 'proof page'],
] as const;

export const heading = (text: string): string => paint('bold', text);

export const row = (name: string, value: string): string => `  ${paint('dim', name.padEnd(18))}${value}`;

export const factLine = ({ ok, words }: Fact): string => `  ${mark(ok)} ${shown(words)}`;
