// relay pay: buys one call from a relay within the buyer's limits, and verifies the result.
import { randomUUID } from 'node:crypto';
import { type Command, InvalidArgumentError } from 'commander';
import type { Evidence, Order, PurchaseResult, Send } from '#src/app/buyer.ts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import { readBuyerKey } from '../config.ts';
import { PRICE } from '../domain/limits.ts';
import { CannotRun, exiting } from './exit.ts';
import { collect, readJsonSource } from './read-source.ts';
import { heading, mark, paint, print, printError, printJson, row, shown } from './terminal.ts';
import { checkLines, factLines } from './verify.ts';

type Options = {
  readonly relay: string;
  readonly method: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly bodyFile?: string;
  readonly key?: string;
  readonly maxPrice?: bigint;
  readonly network: string;
  readonly payTo?: string;
  readonly dryRun?: true;
  readonly json?: true;
};

const HELP = `
The wallet's key is read from RELAY_BUYER_PRIVATE_KEY (0x and 64 hex digits), never from an argument. Before anything is
signed, the relay's 402 is compared with your limits: network, USDC as the asset, price, payee and URL. At most one payment
is made: while the outcome is unknown the same one is presented again.

With --key the same command line can be repeated, also after a crash: the relay returns the recorded result, and charges
no second call. Without it a key is made and printed. relay verify reads the output of --json: the receipt, its disclosures and a checkpoint.

  relay pay https://target.example/hook --relay https://relay.example --dry-run
  relay pay https://target.example/hook --relay https://relay.example --pay-to 0x… --body '{"order":4711}' --key order-4711`;

export function addPay(program: Command): void {
  program
    .command('pay')
    .description('Buy one call from a relay (x402), and verify its receipt.')
    .argument('<url>', 'the target to call')
    .requiredOption('--relay <origin>', 'the relay, as in https://relay.example', readRelay)
    .option('--method <method>', 'POST, PUT, PATCH or DELETE', 'POST')
    .option('--header <name: value>', 'for the target; may be repeated', readHeader)
    .option('--body <json>', 'for the target', readJson)
    .option('--body-file <file>', 'the same from a file')
    .option('--key <key>', 'idempotency key of the call: a repeat returns its result')
    .option('--max-price <usd>', `pay no more than this (default: ${PRICE.usd})`, readPrice)
    .option('--network <id>', 'pay on this network (CAIP-2)', PRICE.network)
    .option('--pay-to <address>', 'the payee that you expect; no one else is paid', readAddress)
    .option('--dry-run', 'show the offer and compare it with the limits; pay nothing')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(exiting(pay));
}

/** Payments are sent over TLS, or to this machine only. */
function readRelay(text: string): string {
  const url = URL.parse(text);
  const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url?.hostname ?? '');
  const safe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback);
  if (url === null || !safe || `${url.origin}/` !== url.href)
    throw new InvalidArgumentError('It must be an https origin (or http on this machine).');
  return url.origin;
}

function readHeader(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be Name: value.');
  return { ...before, [name]: value };
}

function readJson(text: string): unknown {
  const value = parsedJson(text);
  if (value === undefined) throw new InvalidArgumentError('It must be JSON.');
  return value;
}

function readPrice(text: string): bigint {
  const price = microUsd(text);
  if (price === null) throw new InvalidArgumentError('It must be US dollars, as in 0.003.');
  return price;
}

function readAddress(text: string): string {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new InvalidArgumentError('It must be 0x and 40 hex digits.');
  return text;
}

async function pay(url: string, options: Options): Promise<boolean> {
  const order = await orderOf(url, options);
  // Loaded on use: wallets and protocols are large for a command that pays nothing.
  const { purchase, systemClock } = await import('#src/app/buyer.ts');
  const { verifierPrimitives } = await import('#src/app/keys.ts');
  const deps = {
    send: sendByFetch,
    clock: systemClock(),
    primitives: verifierPrimitives,
    waiting: reportWait,
  };
  const result = await purchase(deps, order);
  if (options.json) printJson(resultJson(result));
  else print(...resultLines(result, order));
  return isGood(result);
}

const isGood = ({ outcome, evidence }: PurchaseResult): boolean =>
  outcome === 'not_paid' || (outcome === 'delivered' && evidence?.ok === true);

async function orderOf(url: string, options: Options): Promise<Order> {
  const { relay, method, header, bodyFile, key, network, dryRun } = options;
  const { maxPrice = readPrice(PRICE.usd), payTo = null } = options;
  if (URL.parse(url)?.protocol !== 'https:')
    throw new CannotRun(`${url} is not an https URL: a relay calls https URLs only`);
  if (options.body !== undefined && bodyFile !== undefined)
    throw new CannotRun('use either --body or --body-file');
  const body = bodyFile === undefined ? options.body : await readJsonSource(bodyFile);
  const idempotencyKey = key ?? (dryRun ? undefined : `pay-${randomUUID()}`);
  const request = { url, method: method.toUpperCase(), headers: header, body, idempotencyKey };
  const privateKey = dryRun ? null : readBuyerKey();
  if (!dryRun && privateKey === null)
    throw new CannotRun('RELAY_BUYER_PRIVATE_KEY is not set; only --dry-run needs no key');
  // On the screen before the payment is sent: after a crash it is what finds the result.
  if (key === undefined && !dryRun) printError(`idempotency key: ${idempotencyKey}`);
  return { relay, request, limits: { maxPriceMicroUsd: maxPrice, network, payTo }, privateKey };
}

/** Longer than the longest execution. */
const TIMEOUT_MS = 130_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Limited in size and time. Redirects are not followed: a payment goes to the address that was named and to no other. */
const sendByFetch: Send = async (request) => {
  const response = await fetch(request, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
  const body = await collect((response.body ?? []) as AsyncIterable<Uint8Array>, MAX_BYTES);
  if (body === null) throw new Error(`${request.url} answers over ${MAX_BYTES} bytes`);
  const { status, headers } = response;
  return new Response(body.length === 0 ? null : body, { status, headers });
};

const OUTCOME_TEXT: Readonly<Record<PurchaseResult['outcome'], string>> = {
  delivered: 'Delivered.',
  target_failed: 'The target failed. The attempt was paid for; its receipt states what happened.',
  policy_refused: 'Not paid: the offer is outside your limits.',
  not_paid: 'The offer is within your limits. Nothing was paid.',
  relay_refused:
    'The relay refused: this call was neither sent to the target nor charged. The signed payment may still be charged if it is presented again.',
  unfinished:
    'No final answer yet. The payment may be spent: present the SAME payment again, never a new one.',
};

function reportWait(why: string, ms: number): void {
  printError(`${why}; the same payment is presented again in ${Math.ceil(ms / 1000)} s`);
}

/** The payment header is included only while it can still return the result. */
function resultJson(result: PurchaseResult) {
  const { evidence, payment, ...rest } = result;
  const { job, receipt, disclosures, checkpoint, idempotentReplay, links } = evidence?.execution ?? NONE;
  const header = result.outcome === 'unfinished' && payment && { [payment.name]: payment.value };
  return {
    ok: isGood(result),
    ...rest,
    payment: payment && { payer: payment.payer, ...(header && { header }) },
    settlement: evidence?.settlement ?? null,
    job,
    receipt,
    disclosures,
    checkpoint,
    idempotentReplay,
    verification: evidence?.verification ?? null,
    facts: evidence?.facts ?? [],
    links,
  };
}

const NONE = {
  job: null,
  receipt: null,
  disclosures: null,
  checkpoint: null,
  idempotentReplay: null,
  links: {},
};

function resultLines(result: PurchaseResult, { limits }: Order): readonly string[] {
  const { relay, policy, evidence, problem, outcome, payment, terms } = result;
  const lines = [heading(`Offer of ${relay}`)];
  for (const { name, ok, expected, offered } of policy)
    lines.push(
      `  ${mark(ok)} ${name.padEnd(10)}${shown(offered)}${ok ? '' : `, expected ${shown(expected)}`}`,
    );
  if (limits.payTo === null && terms !== null)
    lines.push('', `  No one is paid without --pay-to. To pay ${shown(terms.payTo)}, name it with --pay-to.`);
  if (evidence !== null) lines.push(...evidenceLines(evidence));
  if (problem !== null) lines.push('', `  ${shown(`${problem.code}: ${problem.message}`)}`);
  if (outcome === 'unfinished' && payment !== null)
    lines.push(
      '',
      `  Only this header returns the result that you paid for: ${payment.name}: ${payment.value}`,
    );
  return [...lines, '', paint(isGood(result) ? 'green' : 'red', OUTCOME_TEXT[outcome])];
}

function evidenceLines({ execution, settlement, verification, facts }: Evidence): readonly string[] {
  const { job, receipt, idempotentReplay } = execution;
  return [
    '',
    heading('Result'),
    row('payment', `${settlement?.payer ?? 'unknown'}, transaction ${settlement?.transaction ?? 'unknown'}`),
    row(
      'job',
      `${job.id}, ${job.status}, answer ${job.responseStatus ?? job.errorCategory}, attempts: ${job.attempts}`,
    ),
    row('receipt', `${receipt.id}${idempotentReplay ? ', replayed: nothing was sent or charged again' : ''}`),
    '',
    heading('Verified offline'),
    ...checkLines(verification),
    ...factLines(facts),
  ];
}
