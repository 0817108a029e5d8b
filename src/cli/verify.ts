// relay verify: one receipt, checked offline against a key set. It asks the service nothing and opens no store.
import type { Command } from 'commander';
import { verifierPrimitives } from '#src/app/keys.ts';
import { fromJwkSet, type KeyRecord } from '#src/domain/signing-keys/keys.ts';
import { noProofIn } from '../domain/receipt/document.ts';
import type { LogFacts } from '../domain/receipt/log-check.ts';
import type { ReceiptPayload } from '../domain/receipt/payload.ts';
import { statementOf } from '../domain/receipt/statement.ts';
import { isVouchedFor, type ReceiptReport, verifyDocument } from '../domain/receipt/verify-document.ts';
import { checkLines } from './check-labels.ts';
import { disclosureLines, readDisclosures } from './disclosure-text.ts';
import { CannotRun, type End, EXIT } from './exit.ts';
import { isUrl, nameOf, readJsonSource, readSource } from './read-source.ts';
import { receiptDocumentIn } from './receipt-document.ts';
import { mark, paint, plain, print, printJson, shown } from './terminal.ts';

type Options = {
  readonly keys?: string;
  readonly proof?: string;
  readonly disclose?: string;
  readonly json?: true;
};

const HELP = `
The file holds the answer of GET /api/receipts/{id}, an execution response, or a bare JWS.
The keys are the relay's, from its /.well-known/jwks.json, got beforehand from whoever you trust for them:
  curl -s https://relay.example/.well-known/jwks.json > jwks.json
With a URL and no --keys, they are fetched from the same origin. A key inside a receipt is never used.
With --proof, got from /log/proof/{receiptId}, the receipt must stand in the relay's transparency log, too.
With --disclose, a payer's disclosures (a JSON array, or the whole execution response) are opened: each must be
one that the receipt commits to. Of a receipt that does not verify none is opened.`;

export function addVerify(program: Command, end: End): void {
  program
    .command('verify')
    .description('verify one receipt')
    .argument('<file|url>', 'the receipt; - for standard input')
    .option('--keys <jwks>', "the relay's key set: a file or a URL")
    .option(
      '--proof <file>',
      'its proof of inclusion in the transparency log (C2SP tlog-proof): a file or a URL',
    )
    .option('--disclose <file>', "disclosures that open the receipt's commitments: a file")
    .option('--json', 'the report for machines')
    .addHelpText('after', HELP)
    .action(async (source: string, options: Options) => {
      end((await verify(source, options)) ? EXIT.good : EXIT.foundWrong);
    });
}

async function verify(source: string, options: Options): Promise<boolean> {
  const keySource = options.keys ?? keysBeside(source);
  const document = receiptDocumentIn(await readSource(source), nameOf(source));
  const keys = await readKeys(keySource);
  const log = options.proof === undefined ? null : await readLogFacts(options.proof);
  const disclosures =
    options.disclose === undefined
      ? null
      : readDisclosures(await readJsonSource(options.disclose), nameOf(options.disclose));
  const asked = { keys, log, disclosures, receiptId: null, jobId: null };
  const report = await verifyDocument(document, asked, verifierPrimitives);
  if (options.json) {
    const { problem: _, payload: _signed, opened, ...judged } = report;
    printJson({ ...judged, ...(opened && { disclosures: opened }), keysFrom: keySource });
  } else tell(report, keys, keySource);
  return report.ok;
}

/** Throws `CannotRun` for what is no proof at all, as an error answer that was kept: it says nothing of the receipt. */
async function readLogFacts(source: string): Promise<LogFacts> {
  const proof = await readSource(source);
  const problem = noProofIn(proof);
  if (problem !== null) throw new CannotRun(`${nameOf(source)} ${problem}`);
  return { proof, now: Math.floor(Date.now() / 1000) };
}

/** Where the keys are when nobody says: at the origin that the user named. A file has none. */
function keysBeside(source: string): string {
  if (!isUrl(source)) {
    throw new CannotRun(
      `--keys is missing: name the relay's key set, from https://<relay>/.well-known/jwks.json, as a file or as that URL`,
    );
  }
  const origin = URL.parse(source)?.origin;
  if (origin === undefined) throw new CannotRun(`${source} is no URL`);
  return `${origin}/.well-known/jwks.json`;
}

/** Throws `CannotRun`. */
export async function readKeys(source: string): Promise<readonly KeyRecord[]> {
  const keys = fromJwkSet(await readJsonSource(source));
  if (keys === null) throw new CannotRun(`${nameOf(source)} is no JWK set (RFC 7517)`);
  if (keys.length === 0) throw new CannotRun(`${nameOf(source)} holds no Ed25519 key`);
  return keys;
}

function tell(report: ReceiptReport, keys: readonly KeyRecord[], keySource: string): void {
  const { ok, payload, opened } = report;
  print(paint('bold', `Receipt ${shown(report.receiptId ?? 'without a readable id')}`));
  if (ok && payload !== null) print(...statementLines(payload));
  print(`  key      ${shown(report.keyId ?? 'none named')}`, `  keys of  ${plain(nameOf(keySource))}`, '');
  print(...checkLines(report));
  if (!keys.some((key) => key.keyId === report.keyId)) {
    print('', 'The key set does not hold the key that the receipt names. It holds:');
    print(...keys.map((key) => `  ${shown(key.keyId)}`));
  }
  for (const { field, shown: text, signed } of report.differences) {
    print(`  ${mark(false)} The text around the signed receipt says something else: ${plain(field)}`);
    print(`      text: ${shown(text)}`, `      signed: ${shown(signed)}`);
  }
  if (opened !== null) print('', ...disclosureLines(opened, isVouchedFor(report)));
  print('', ok ? paint('green', 'Verified: every check holds.') : paint('red', 'NOT verified: see above.'));
}

/** Shown only where it is signed: unsigned words beside a failure would be read as facts. */
function statementLines(payload: ReceiptPayload): string[] {
  const { jobId, iat, request, attempts, outcome } = payload;
  const { answer, payment } = statementOf(payload);
  return [
    `  job      ${shown(jobId)}`,
    `  issued   ${issued(iat)}`,
    `  says     ${request.method} ${outcome.status}, ${answer}, attempts: ${attempts.length}`,
    `  payment  ${shown(payment)}`,
  ];
}

/** `iat`: Unix seconds. A signer may sign a time that no calendar has. */
function issued(iat: number): string {
  const date = new Date(iat * 1000);
  return Number.isNaN(date.getTime()) ? `${iat} seconds after 1970 began` : date.toISOString();
}
