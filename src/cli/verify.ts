// relay verify: verifies one receipt offline against a key set. It opens no store and makes no call to the service.
import type { Command } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import type { OpenedDisclosure } from '../domain/receipt/disclosures.ts';
import {
  allChecksHold,
  disclosuresOf,
  noProofIn,
  RECEIPT_FORMS,
  type ReceiptReport,
  readReceiptDocument,
  verifyDocument,
} from '../domain/receipt/document.ts';
import type { ReceiptPayload } from '../domain/receipt/payload.ts';
import type { Check, VerificationReport } from '../domain/receipt/report.ts';
import {
  CHECK_LABELS,
  DISCLOSURE_PROBLEMS,
  NOT_OPENED,
  runText,
  statementOf,
  witnessText,
} from '../domain/receipt/texts.ts';
import type { LogFacts } from '../domain/receipt/verify.ts';
import { CannotRun, exiting } from './exit.ts';
import { readPolicy } from './read-policy.ts';
import { isUrl, nameOf, readJsonSource, readSource } from './read-source.ts';
import { mark, paint, plain, print, printJson, shown } from './terminal.ts';

type Options = {
  readonly keys?: string;
  readonly proof?: string;
  readonly policy?: string;
  readonly disclose?: string;
  readonly json?: true;
};

const HELP = `
The file contains the answer of GET /api/receipts/{id}, an execution response, or a bare JWS.
The keys are those of the relay's /.well-known/jwks.json, obtained beforehand from a source that you trust:
  curl -s https://relay.example/.well-known/jwks.json > jwks.json
With a URL and no --keys, they are fetched from the same origin. A key inside a receipt is never used.
With --proof, obtained from /log/proof/{receiptId}, the receipt must be included in the relay's transparency log.
With --policy, a quorum of the witnesses that the file names must have cosigned the checkpoint of the proof, or the receipt
does not verify; the result names who has cosigned, when, and who has not. A proof obtained at once has no quorum yet:
  relay verify receipt.json --keys jwks.json --proof receipt.tlog-proof --policy witnesses.policy
With --disclose, each disclosure (a JSON array, or the complete execution response) must match a commitment of the
receipt. Disclosures of a receipt that does not verify are not opened.`;

export function addVerify(program: Command): void {
  program
    .command('verify')
    .description('Verify one receipt offline.')
    .argument('<file|url>', 'the receipt; - for standard input')
    .option('--keys <jwks>', "the relay's key set: a file or a URL")
    .option('--proof <file>', 'its inclusion proof (C2SP tlog-proof): a file or a URL')
    .option('--policy <file>', 'witnesses that must have cosigned (C2SP tlog-policy); needs --proof')
    .option('--disclose <file>', "disclosures that open the receipt's commitments: a file")
    .option('--json', 'print the report as JSON')
    .addHelpText('after', HELP)
    .action(exiting(verify));
}

async function verify(source: string, options: Options): Promise<boolean> {
  const keySource = options.keys ?? keysOfOrigin(source);
  const document = readReceiptDocument(await readSource(source));
  if (document.kind === null) throw new CannotRun(`${nameOf(source)} ${document.problem}: ${RECEIPT_FORMS}`);
  const keys = await readKeys(keySource);
  const log = await readLogFacts(options);
  const disclosures =
    options.disclose === undefined
      ? null
      : readDisclosures(await readJsonSource(options.disclose), nameOf(options.disclose));
  const expected = { keys, log, disclosures, receiptId: null, jobId: null };
  const report = await verifyDocument(document, expected, verifierPrimitives);
  if (options.json) {
    const { problem: _, payload: _signed, opened, ...judged } = report;
    printJson({ ...judged, ...(opened && { disclosures: opened }), keysFrom: keySource });
  } else printReport(report, keys, keySource);
  return report.ok;
}

/** null: no proof was given. Throws `CannotRun` for a text that is not a proof, such as a stored error answer. */
async function readLogFacts({ proof: source, policy: file }: Options): Promise<LogFacts | null> {
  const policy = file === undefined ? null : await readPolicy(file);
  if (source === undefined) {
    if (policy === null) return null;
    throw new CannotRun('--policy needs --proof: the cosignatures are in the inclusion proof');
  }
  const proof = await readSource(source);
  const problem = noProofIn(proof);
  if (problem !== null) throw new CannotRun(`${nameOf(source)} ${problem}`);
  return { proof, now: Math.floor(Date.now() / 1000), policy };
}

/** Without --keys: the key set at the origin of the URL. Throws `CannotRun` for a file. */
export function keysOfOrigin(source: string): string {
  if (!isUrl(source)) {
    throw new CannotRun(
      `--keys is missing: name the relay's key set, from https://<relay>/.well-known/jwks.json, as a file or as that URL`,
    );
  }
  return `${originFrom(source)}/.well-known/jwks.json`;
}

/** Throws `CannotRun`. */
export function originFrom(url: string): string {
  const origin = URL.parse(url)?.origin;
  if (origin === undefined) throw new CannotRun(`${url} is not a URL`);
  return origin;
}

/** Throws `CannotRun`. */
export async function readKeys(source: string): Promise<readonly KeyRecord[]> {
  const keys = fromJwkSet(await readJsonSource(source));
  if (keys === null) throw new CannotRun(`${nameOf(source)} is not a JWK set (RFC 7517)`);
  if (keys.length === 0) throw new CannotRun(`${nameOf(source)} contains no Ed25519 key`);
  return keys;
}

function printReport(report: ReceiptReport, keys: readonly KeyRecord[], keySource: string): void {
  const { ok, payload, opened } = report;
  print(paint('bold', `Receipt ${shown(report.receiptId ?? 'without a readable id')}`));
  if (ok && payload !== null) print(...statementLines(payload));
  print(`  key      ${shown(report.keyId ?? 'none named')}`, `  keys     ${plain(nameOf(keySource))}`, '');
  print(...checkLines(report));
  if (!keys.some((key) => key.keyId === report.keyId)) {
    print('', 'The key set does not contain the key that the receipt names. It contains:');
    print(...keys.map((key) => `  ${shown(key.keyId)}`));
  }
  for (const field of report.differences)
    print(`  ${mark(false)} The text around the signed receipt differs from it: ${field}`);
  if (opened !== null) print('', ...disclosureLines(opened, allChecksHold(report)));
  const made = `Verified: ${report.checks.length} of ${report.checks.length} checks hold.`;
  print('', ok ? paint('green', made) : paint('red', 'NOT verified: see above.'));
  if (ok && !report.checks.some(({ name }) => name === 'receipt_logged'))
    print('Not checked: whether the transparency log contains this receipt (--proof).');
  else if (ok && !report.checks.some(({ name }) => name === 'receipt_witnessed'))
    print('Not checked: whether witnesses have cosigned that log (--policy).');
}

/** Only for a receipt that verifies: readers could take unsigned text for fact. */
function statementLines(payload: ReceiptPayload): string[] {
  const { jobId, iat, request, attempts, outcome } = payload;
  const { answer, payment } = statementOf(payload);
  const run = runText(payload);
  return [
    `  job      ${shown(jobId)}`,
    `  issued   ${issued(iat)}`,
    `  outcome  ${request.method} ${outcome.status}, ${answer}, attempts: ${attempts.length}`,
    `  payment  ${shown(payment)}`,
    ...(run === null ? [] : [`  schedule ${shown(run)}`]),
  ];
}

/** `iat`: Unix seconds, possibly beyond the range of a Date. */
function issued(iat: number): string {
  const date = new Date(iat * 1000);
  return Number.isNaN(date.getTime()) ? `${iat} seconds after 1970-01-01T00:00:00Z` : date.toISOString();
}

/** A line for each check; below a failed one, the two values that were compared. */
export function checkLines(report: VerificationReport): readonly string[] {
  return report.checks.flatMap((check) => [
    `  ${mark(check.ok)} ${labelOf(check)} ${paint('dim', `(${check.name})`)}`,
    ...(check.ok ? [] : comparedLines(check)),
  ]);
}

/** A line for each fact of a purchase or of the demo. */
export const factLines = (facts: readonly { readonly ok: boolean; readonly words: string }[]): string[] =>
  facts.map(({ ok, words }) => `  ${mark(ok)} ${shown(words)}`);

/** With an inclusion proof, the leaf's index (from 0) and the size of the log. */
function labelOf(check: Check): string {
  if (check.name === 'receipt_logged' && check.details !== undefined && 'index' in check.details)
    return `It is in the transparency log, index ${check.details.index} of ${check.details.size}`;
  if (check.name === 'receipt_witnessed' && check.ok) return plain(witnessText(check));
  return CHECK_LABELS[check.name];
}

function comparedLines({ details }: Check): readonly string[] {
  return Object.entries(details ?? {}).map(([name, value]) => `      ${plain(name)}: ${shown(value)}`);
}

/** `value`: a JSON array of disclosures, or an execution response that has them. Throws `CannotRun` for anything else. */
function readDisclosures(value: unknown, name: string): readonly string[] {
  const list = disclosuresOf(value);
  if (list !== null) return list;
  throw new CannotRun(
    `${name} contains no disclosures: it must be a JSON array of them, or an execution response with its \`disclosures\``,
  );
}

/** `verified`: the receipt verifies; otherwise no disclosure was opened. */
function disclosureLines(opened: readonly OpenedDisclosure[], verified: boolean): readonly string[] {
  if (!verified) return [NOT_OPENED];
  if (opened.length === 0) return ['No disclosures to open.'];
  const lines = opened.map((disclosure) => {
    if (!disclosure.ok)
      return `  ${mark(false)} ${shown(disclosure.name ?? 'a text')} ${DISCLOSURE_PROBLEMS[disclosure.problem]}`;
    return `  ${mark(true)} ${shown(disclosure.name)}: ${shown(disclosure.value)}`;
  });
  const all = opened.every(({ ok }) => ok);
  return [
    all ? 'Disclosed, and committed to by the receipt:' : 'Disclosed (✓: the receipt commits to it):',
    ...lines,
  ];
}
