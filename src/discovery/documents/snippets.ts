// The code snippets, by group. Each is a file in ../snippets that begins with its title and its description; a test runs
// every one as it is served.
import { type Static, Type } from '@sinclair/typebox';
import { assetText } from '#src/assets.ts';
import {
  document,
  LinksShown,
  Path,
  serviceLinks,
  shownTerms,
  Text,
  termsSchema,
} from '#src/discovery/document.ts';
import { type Facts, networkName, usd } from '#src/discovery/facts.ts';
import { DONE_WHEN, FAILED_VERIFIES } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import { Closed, OneOf } from '#src/domain/schema-parts.ts';
import { mcpTools } from './mcp.ts';

/** `shell` is for POSIX sh with curl, `json` a configuration file. */
const LANGUAGES: Readonly<Record<string, Snippet['language']>> = {
  sh: 'shell',
  mjs: 'javascript',
  py: 'python',
  json: 'json',
};

export const Snippet = Closed({
  id: Text,
  title: Text,
  language: OneOf('shell', 'javascript', 'python', 'json'),
  description: Text,
  code: Text,
});
export type Snippet = Static<typeof Snippet>;

const Group = Closed({ id: Text, title: Text, description: Text, snippets: Type.Array(Snippet) });

const fileText = (name: string) => assetText(`src/discovery/snippets/${name}`);

function snippetOf(facts: Facts, file: string): Snippet {
  const [id = '', extension = ''] = file.split('.');
  const language = LANGUAGES[extension];
  if (language === undefined) throw new Error(`${file} is in no known language`);
  const { title, description, code } = language === 'json' ? configuration(file, facts) : described(file);
  const whole = [description, ...(code.includes('BUYER_PRIVATE_KEY') ? [paying(facts)] : [])].join(' ');
  return { id, title, language, description: withFacts(whole, facts), code: withFacts(code, facts) };
}

/** The title and the description are the first two lines, comments both. */
function described(file: string) {
  const [title = '', description = '', ...code] = fileText(file).split('\n');
  const text = (line: string) => line.replace(/^(?:#|\/\/) /, '');
  return { title: text(title), description: text(description), code: assembled(code.join('\n')) };
}

/** JSON has no comments. */
const configuration = (file: string, facts: Facts) => ({
  title: 'Configuration of an MCP client',
  description: `Adds this service to a client that supports MCP over streamable HTTP: ${mcpTools(facts).length} tools, no account. The client must be able to pay for the paid ones.`,
  code: fileText(file),
});

/** What several snippets share is a module that they import: it is served as a part of each, with every import once. */
function assembled(code: string): string {
  const whole = code.replace(/^import .* from '\.\/(.*)';$/gm, (_, part) => fileText(part));
  if (whole === code) return code;
  const lines = whole.split('\n');
  const isImport = (line: string) => line.startsWith('import ');
  const before = lines.slice(0, lines.findIndex(isImport));
  const after = lines.slice(before.length).filter((line) => !isImport(line));
  const body = after
    .join('\n')
    .replace(/^export /gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  return [...before, ...new Set(lines.filter(isImport)), '', body, ''].join('\n');
}

/** The values in the files, which make each a valid program, and what replaces them. */
const SAMPLES = /https:\/\/relay\.example|\$0\.003|\b0\.003\b|eip155:8453|0x1{40}|0x2{40}|\b3000\b/g;

function withFacts(code: string, facts: Facts): string {
  const { asset, payTo, network, maxAmount } = termsOf(facts);
  const values: Readonly<Record<string, string>> = {
    'https://relay.example': facts.baseUrl,
    '$0.003': facts.offer.price,
    '0.003': usd(facts.offer),
    'eip155:8453': network,
    [`0x${'1'.repeat(40)}`]: asset,
    [`0x${'2'.repeat(40)}`]: payTo,
    '3000': maxAmount,
  };
  return code.replace(SAMPLES, (sample) => values[sample] ?? sample);
}

/** The terms that a buyer configures before it signs. In demo mode there is no payee: the zero address, to be replaced. */
function termsOf({ offer, askedFor }: Facts) {
  const [asked = {}] = askedFor?.['execute/webhook'].accepts ?? [];
  const text = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise);
  const noAddress = `0x${'0'.repeat(40)}`;
  return {
    network: text(asked.network, offer.network),
    asset: text(asked.asset, noAddress),
    payTo: text(asked.payTo, noAddress),
    /** Atomic units of `asset`. */
    maxAmount: text(asked.amount, String(microUsd(offer.price) ?? 0n)),
  };
}

function paying({ mode, offer }: Facts): string {
  const price = `${offer.price} on ${networkName(offer.network)}`;
  const charge =
    mode === 'demo'
      ? `This service runs in demo mode: the call is executed without payment. Where payment is enforced it costs ${price}.`
      : `Costs ${price}. On a service in demo mode the same code runs without payment.`;
  return `The key comes from BUYER_PRIVATE_KEY (0x…, a wallet with a little USDC and nothing else). ${charge}`;
}

const GROUPS = [
  {
    id: 'discovery',
    title: 'Discover',
    description: 'Machine-readable documents: purpose, price and calls. All free, no account.',
    files: ['curl-discovery.sh', 'mcp-config.json', 'mcp-tools.mjs'],
  },
  {
    id: 'paid-call',
    title: 'One paid call',
    description:
      'Execute one webhook and get a signed receipt. A repeat with the same idempotencyKey returns the first result and is not charged. In demo mode all callers are one payer: use a key of your own.',
    files: ['curl-execute.sh', 'javascript-execute.mjs', 'mcp-execute.mjs'],
  },
  {
    id: 'decision-first',
    title: 'Decide, then pay',
    description:
      'A free, recorded decision on an action and a buyer policy. If it recommends pay_and_execute, the guided route executes exactly that action, once per payer.',
    files: ['curl-decide.sh', 'python-decide.py', 'javascript-guided.mjs'],
  },
  {
    id: 'verification',
    title: 'Verify',
    description: `An action is done only when ${DONE_WHEN}. ${FAILED_VERIFIES} Each receipt snippet checks both, for the given receipt id or for the newest public proof. The delivery verifiers are for the owner of a target.`,
    files: [
      'curl-verify.sh',
      'python-verify.py',
      'javascript-verify-offline.mjs',
      'python-verify-offline.py',
      'javascript-verify-webhook.mjs',
      'python-verify-webhook.py',
    ],
  },
  {
    id: 'advanced-surfaces',
    title: 'Free surfaces',
    description:
      'Check a target before paying, package steps for a browser agent, preview a schedule, call the canary. Nothing here is charged, and nothing is sent to your target.',
    files: ['curl-policy-check.sh', 'curl-handoff.sh', 'curl-schedule-preview.sh', 'curl-canary.sh'],
  },
  {
    id: 'buyer-policy',
    title: 'Pay on your own terms',
    description:
      'A 402 is a request, not an order: price, network, payee and resource are compared with the buyer’s configuration before anything is signed. In JavaScript, javascript-execute does it.',
    files: ['curl-terms.sh', 'python-buyer-policy.py'],
  },
];

/** In the group of one paid call: what a deployment may have switched off. */
const optionalFiles = ({ returnsResponses, schedules }: Facts): readonly string[] => [
  ...(returnsResponses ? ['javascript-response.mjs'] : []),
  ...(schedules === undefined ? [] : ['javascript-schedule.mjs']),
];

const groupsOf = (facts: Facts): typeof GROUPS =>
  GROUPS.map((group) =>
    group.id === 'paid-call' ? { ...group, files: [...group.files, ...optionalFiles(facts)] } : group,
  );

export const snippetGroups = (facts: Facts): Static<typeof Group>[] =>
  groupsOf(facts).map(({ files, ...group }) => ({
    ...group,
    snippets: files.map((file) => snippetOf(facts, file)),
  }));

export function snippet(facts: Facts, id: string): Snippet {
  const found = groupsOf(facts)
    .flatMap(({ files }) => files)
    .find((file) => file.split('.')[0] === id);
  if (found === undefined) throw new Error(`there is no snippet ${id}`);
  return snippetOf(facts, found);
}

export const snippets = document([ROUTES.snippets], {
  purpose: Text,
  payment: Closed({ ...termsSchema, route: Path }),
  groups: Type.Array(Group),
  links: LinksShown,
})((facts) => ({
  purpose:
    'Code to discover, decide, pay, execute and verify: each snippet is complete. Save it under its id and run it: shell with sh (curl), JavaScript as .mjs with Node 20 or newer, Bun or Deno (its comment `Run` has the packages), Python with python3. Replace https://example.com/hook with your own target first: a call that the target fails is charged, too.',
  payment: { ...shownTerms(facts), route: ROUTES.execute.path },
  groups: snippetGroups(facts),
  links: serviceLinks(facts),
}));
