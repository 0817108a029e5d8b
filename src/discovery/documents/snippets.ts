// The code snippets, by group. Each is a complete file in ../snippets that runs as served; a test runs every one.
import { type Static, Type } from '@sinclair/typebox';
import {
  document,
  Path,
  paymentTerms,
  serviceLinks,
  Text,
  termsSchema,
  textFile,
} from '#src/discovery/document.ts';
import { type Facts, networkName, usd } from '#src/discovery/facts.ts';
import { DONE_WHEN, FAILED_VERIFIES } from '#src/discovery/guidance.ts';
import { ACTION } from '#src/discovery/paid-routes.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { microUsd } from '#src/domain/payment/money.ts';
import { Closed, Link } from '#src/domain/schema-parts.ts';
import { MCP_TOOLS } from './mcp.ts';

/** `shell` is for POSIX sh with curl, `json` a configuration file. */
const EXTENSIONS = { shell: 'sh', typescript: 'ts', python: 'py', json: 'json' } as const;
type Language = keyof typeof EXTENSIONS;

export const Snippet = Closed({
  id: Text,
  title: Text,
  language: Type.Unsafe<Language>(Type.Union(Object.keys(EXTENSIONS).map((name) => Type.Literal(name)))),
  description: Text,
  code: Text,
});
export type Snippet = Static<typeof Snippet>;

const Group = Closed({ id: Text, title: Text, description: Text, snippets: Type.Array(Snippet) });

type Described = { readonly title: string; readonly description: string };

/** `file`: without the extension of its language; the id if absent. */
const declare = (id: string, language: Language, describe: (facts: Facts) => Described, file = id) => {
  const url = new URL(`../snippets/${file}.${EXTENSIONS[language]}`, import.meta.url);
  return (facts: Facts): Snippet => {
    const { title, description } = describe(facts);
    return { id, title, language, description, code: withFacts(textFile(url), facts) };
  };
};

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

const NO_PYTHON_PAYMENT = 'Standard library only: it does not pay; to pay from Python, use any x402 client.';

/** Describes the key and the price of a call. */
function paying({ mode, offer }: Facts): string {
  const price = `${offer.price} on ${networkName(offer.network)}`;
  const charge =
    mode === 'demo'
      ? `This service runs in demo mode: the call is executed without payment. Where payment is enforced it costs ${price}.`
      : `Costs ${price}. On a service in demo mode the same code runs without payment.`;
  return `The key comes from BUYER_PRIVATE_KEY (0x…, a wallet with a little USDC and nothing else). ${charge}`;
}

/** In demo mode all callers are one payer, so they share the idempotency key of the examples. */
const sharedKey = ({ mode }: Facts): string =>
  mode === 'demo'
    ? ` In demo mode all callers are one payer: replace ${ACTION.idempotencyKey} with your own key: if another caller has used it, the answer is 409 idempotency_conflict.`
    : '';

const delivery = (language: string, needs: string): Described => ({
  title: `Verify a delivery at the target with ${language}`,
  description: `For the owner of a target: a function that verifies webhook-signature (Standard Webhooks, v1a) with the published keys, and that webhook-timestamp is at most 5 minutes from now. ${needs}`,
});

const GROUPS: readonly {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly snippets: readonly ((facts: Facts) => Snippet)[];
}[] = [
  {
    id: 'discovery',
    title: 'Discover',
    description: 'Machine-readable documents: purpose, price and calls. All free, no account.',
    snippets: [
      declare('curl-discovery', 'shell', () => ({
        title: 'Read the documents with curl',
        description: 'The guide for language models, the catalog of actions, and the interface description.',
      })),
      declare('python-discovery', 'python', () => ({
        title: 'Read the price and the order of calls with Python',
        description: 'Standard library only.',
      })),
      declare('mcp-config', 'json', () => ({
        title: 'Configuration of an MCP client',
        description: `Adds this service to a client that supports MCP over streamable HTTP: ${MCP_TOOLS.length} tools, no account. The client must be able to pay for the paid ones.`,
      })),
      declare('mcp-tools', 'typescript', () => ({
        title: 'List the tools over MCP and call a free one',
        description: 'Free. Uses the stock client of @modelcontextprotocol/sdk.',
      })),
    ],
  },
  {
    id: 'paid-call',
    title: 'One paid call',
    description:
      'Execute one webhook and get a signed receipt. A repeat with the same idempotencyKey returns the first result and is not charged.',
    snippets: [
      declare('curl-execute', 'shell', (facts) => ({
        title: 'Execute one webhook with curl',
        description:
          facts.mode === 'demo'
            ? `This service runs in demo mode: the call is executed without payment and answered with a receipt. Where payment is enforced it answers 402 with the terms (${facts.offer.price}).${sharedKey(facts)}`
            : `Without a payment it answers 402 with the terms (${facts.offer.price}), and nothing is sent to the target; an x402 client pays and repeats the call. On a service in demo mode it is executed without payment.`,
      })),
      declare('typescript-execute', 'typescript', (facts) => ({
        title: 'Pay and execute with @x402/fetch',
        description: `The stock client reads the 402, pays up to the price on one network, and repeats the call. ${paying(facts)}${sharedKey(facts)}`,
      })),
      declare('mcp-execute', 'typescript', (facts) => ({
        title: 'Pay and execute over MCP',
        description: `Calls execute_webhook; unpaid, the tool answers with the terms; the payment goes into _meta of the same call. ${paying(facts)}${sharedKey(facts)}`,
      })),
    ],
  },
  {
    id: 'decision-first',
    title: 'Decide, then pay',
    description:
      'A free, recorded decision on an action and a buyer policy. If it recommends pay_and_execute, the guided route executes exactly that action, once per payer.',
    snippets: [
      declare('curl-decide', 'shell', () => ({
        title: 'Decide before paying, with curl',
        description: 'Free: evaluates the action against a buyer policy and recommends whether to pay.',
      })),
      declare('python-decide', 'python', () => ({
        title: 'Decide before paying, with Python',
        description: `Free. ${NO_PYTHON_PAYMENT}`,
      })),
      declare('typescript-guided', 'typescript', (facts) => ({
        title: 'Decide, then pay and execute with @x402/fetch',
        description: `Price, network, payee and resource are compared with the buyer’s own terms before anything is signed. ${paying(facts)}`,
      })),
    ],
  },
  {
    id: 'verification',
    title: 'Verify',
    description: `An action is done only when ${DONE_WHEN}. ${FAILED_VERIFIES} Each receipt snippet checks both, for the given receipt id or for the newest public proof. The delivery verifiers are for the owner of a target.`,
    snippets: [
      declare('curl-verify', 'shell', () => ({
        title: 'Read the report of a receipt with curl',
        description:
          'Free. Takes the receipt id from RECEIPT_ID; prints the report, and fails if the action is not done.',
      })),
      declare('python-verify', 'python', () => ({
        title: 'Check a receipt with Python',
        description:
          'Free, standard library only. Takes the receipt id as its argument; exits with 1 if a check or the job failed.',
      })),
      declare('typescript-verify-offline', 'typescript', () => ({
        title: 'Verify the signature yourself with jose',
        description:
          'Needs no report: the receipt is a JWS, the keys are public. Keep both to verify the receipt without this service. Takes the receipt id as its argument; exits with 1 if the job failed.',
      })),
      declare(
        'typescript-verify-webhook',
        'typescript',
        () => delivery('TypeScript', 'No package is needed.'),
        'verify-webhook',
      ),
      declare(
        'python-verify-webhook',
        'python',
        () => delivery('Python', 'Needs the package cryptography.'),
        'verify-webhook',
      ),
    ],
  },
  {
    id: 'advanced-surfaces',
    title: 'Free surfaces',
    description:
      'Check a target before paying, package steps for a browser agent, preview a schedule, call the canary. Nothing here is charged, and nothing is sent to your target.',
    snippets: [
      declare('curl-policy-check', 'shell', () => ({
        title: 'Check a request before paying for it, with curl',
        description: 'Whether the target may be called, and what would be sent.',
      })),
      declare('python-policy-check', 'python', () => ({
        title: 'Check a request before paying for it, with Python',
        description: `Exits with 1 if the target is refused. ${NO_PYTHON_PAYMENT}`,
      })),
      declare('curl-handoff', 'shell', () => ({
        title: 'Package steps for a browser agent',
        description: 'No step is executed here, and there is no receipt.',
      })),
      declare('curl-schedule-preview', 'shell', () => ({
        title: 'Preview a schedule',
        description: 'The next runs, across daylight saving. Nothing is scheduled.',
      })),
      declare('curl-canary', 'shell', () => ({
        title: 'Send a request to the canary',
        description:
          'Free when called directly, as here: it answers with method, size and body hash of the request.',
      })),
    ],
  },
  {
    id: 'buyer-policy',
    title: 'Pay on your own terms',
    description:
      'A 402 is a request, not an order: price, network, payee and resource are compared with the buyer’s configuration before anything is signed.',
    snippets: [
      declare('curl-terms', 'shell', () => ({
        title: 'Read the terms with curl',
        description:
          'A call without body and payment executes nothing. Prints the challenge of x402 version 2, which is base64 in a header; in demo mode there is none, and it prints nothing.',
      })),
      declare('python-buyer-policy', 'python', () => ({
        title: 'Check the terms of a 402 with Python',
        description: `Exits with 1 if the buyer does not accept the terms. In demo mode there are no terms: the call needs no payment. ${NO_PYTHON_PAYMENT}`,
      })),
      declare('typescript-buyer-policy', 'typescript', (facts) => ({
        title: 'Pay on your own terms with @x402/fetch',
        description: `A hook of the stock client compares price, network, payee and resource before it signs. ${paying(facts)}${sharedKey(facts)}`,
      })),
    ],
  },
];

export const snippetGroups = (facts: Facts): Static<typeof Group>[] =>
  GROUPS.map(({ snippets, ...group }) => ({ ...group, snippets: snippets.map((snippet) => snippet(facts)) }));

/** Throws if no snippet has the id. */
export function snippet(facts: Facts, id: string): Snippet {
  const found = snippetGroups(facts)
    .flatMap(({ snippets }) => snippets)
    .find((one) => one.id === id);
  if (found === undefined) throw new Error(`there is no snippet ${id}`);
  return found;
}

export const snippets = document([ROUTES.snippets], {
  purpose: Text,
  payment: Closed({ ...termsSchema, route: Path }),
  groups: Type.Array(Group),
  links: Type.Record(Type.String(), Link),
})((facts) => {
  const { openapi, catalog, quickstart, pricing, mcpManifest, keys, docs } = serviceLinks(facts);
  return {
    purpose:
      'Code to discover, decide, pay, execute and verify: each snippet is complete and runs unchanged. Replace https://example.com/hook with your own target.',
    payment: { ...paymentTerms(facts), route: ROUTES.execute.path },
    groups: snippetGroups(facts),
    links: { openapi, catalog, quickstart, pricing, mcpManifest, keys, docs },
  };
});
