// The types of the importable verifier, as one text without imports: each is taken from where it is defined, word for
// word, and the receipt's payload is printed from its schema.

/** Sources by path from `src`. `payload`: schema of the receipt's payload. */
export type Source = (path: string) => Promise<string>;

export async function declarations(source: Source, payload: object): Promise<string> {
  const parts = [
    `/** What a receipt's signature covers. */\nexport type ReceiptPayload = ${typeOf(payload, '')};`,
  ];
  for (const [path, names] of Object.entries(TYPES)) {
    const text = await source(path);
    parts.push(...names.map((name) => statement(text, `export type ${name} =`, TYPE)));
  }
  for (const [path, names] of Object.entries(FUNCTIONS)) {
    const text = await source(path);
    for (const name of names) {
      const head = statement(text, `export async function ${name}(`, HEAD_OF_FUNCTION);
      parts.push(`${head.replace('export async', 'export declare')};`);
    }
  }
  parts.push(CANNOT_VERIFY);
  return `${parts.join('\n\n')}\n`;
}

/** The types of the buyer's client, which imports those of the verifier. */
export async function clientDeclarations(source: Source): Promise<string> {
  const text = await source('client/client.ts');
  const names = ['RelayClientOptions', 'WebhookOrder', 'VerifiedPurchase', 'RelayErrorCode', 'RelayClient'];
  const types = names.map((name) => statement(text, `export type ${name} =`, TYPE));
  const relayClient = statement(text, 'export function relayClient(', /^[^{]*(?= \{\n)/);
  return `${[
    "import type { x402Client } from '@x402/fetch';\nimport type { Given, VerificationReport } from './verify.js';",
    ...types,
    `${relayClient.replace('export function', 'export declare function')};`,
    RELAY_ERROR,
  ].join('\n\n')}\n`;
}

const RELAY_ERROR = `/** \`member\`: path of what differs, as in \`offer.price\` or \`receipt.payment.payer\`. */
export declare class RelayError extends Error {
  override readonly name: 'RelayError';
  readonly code: RelayErrorCode;
  readonly member: string | null;
  readonly expected: string | null;
  readonly actual: string | null;
  /** The relay's own error: its code and its message. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  /** The header of the signed payment. Present it with the same request, and it returns the result, charged once. */
  readonly payment: { readonly name: string; readonly value: string } | null;
}`;

const TYPES: Readonly<Record<string, readonly string[]>> = {
  'domain/canonical-json.ts': ['Json'],
  'domain/receipt/report.ts': [
    'Check',
    'CheckName',
    'ComparedCheck',
    'KeyDetails',
    'VersionDetails',
    'LogCheck',
    'LogDetails',
    'WitnessCheck',
    'WitnessDetails',
    'WitnessProblem',
    'VerificationReport',
  ],
  'domain/receipt/disclosures.ts': ['OpenedDisclosure', 'DisclosureProblem'],
  'domain/transparency/tlog-proof.ts': ['ProofProblem'],
  'domain/transparency/growth.ts': ['ConsistencyProblem'],
  'domain/receipt/document.ts': ['ReceiptReport'],
  'verify/given.ts': ['Given'],
  'verify/verifier.ts': [
    'VerifyOptions',
    'ProofReport',
    'VerifiedCheckpoint',
    'CheckpointReport',
    'ConsistencyReport',
  ],
};

const FUNCTIONS: Readonly<Record<string, readonly string[]>> = {
  'verify/verifier.ts': ['verifyReceipt', 'verifyProof', 'verifyCheckpoint', 'verifyConsistency'],
};

const CANNOT_VERIFY = `/** The runtime cannot verify signatures, so nothing was checked. \`message\`: for people. */
export declare class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}`;

/** The first statement that begins so, with the comment before it. `whole`: from its beginning to its end. */
function statement(text: string, start: string, whole: RegExp): string {
  const at = text.indexOf(`\n${start}`) + 1;
  const [found] = (at > 0 && whole.exec(text.slice(at))) || [];
  if (found === undefined) throw new Error(`no such statement: ${start}`);
  const [comment = ''] = /(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?$/.exec(text.slice(0, at)) ?? [];
  return comment + found.trimEnd();
}

const TYPE = /^[\s\S]*?;\n(?![ }])/;
const HEAD_OF_FUNCTION = /^[\s\S]*?>(?= \{\n)/;

type Schema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
};

function typeOf(
  { type, const: literal, anyOf, items, properties, required = [] }: Schema,
  indent: string,
): string {
  if (literal !== undefined) return typeof literal === 'string' ? `'${literal}'` : String(literal);
  if (anyOf !== undefined) return anyOf.map((one) => typeOf(one, indent)).join(' | ');
  if (items?.anyOf !== undefined) return `readonly (${typeOf(items, indent)})[]`;
  if (items !== undefined) return `readonly ${typeOf(items, indent)}[]`;
  if (properties === undefined) return type === 'integer' ? 'number' : String(type);
  const members = Object.entries(properties).map(
    ([name, schema]) =>
      `${indent}  readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, `${indent}  `)};\n`,
  );
  return `{\n${members.join('')}${indent}}`;
}
