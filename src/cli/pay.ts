// relay pay: buys one call from a relay within the buyer's limits, and verifies that the result is this purchase.
import { randomUUID } from 'node:crypto';
import { type Command, InvalidArgumentError } from 'commander';
import type { CallResult, Order } from '#src/app/buyer.ts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { microUsd } from '#src/domain/payment/price.ts';
import { readVariable } from '../config.ts';
import { isSpellableName, relayOrigin } from '../domain/destination/url.ts';
import { METHODS, PRICE } from '../domain/limits.ts';
import { SCHEDULE_LIMITS } from '../domain/schedule/limits.ts';
import { CannotRun, exiting } from './exit.ts';
import { readAddress } from './options.ts';
import { errorLine, type How, isGood, reportWait, resultJson, resultLines } from './pay-report.ts';
import { paySchedule } from './pay-schedule.ts';
import { readJsonSource } from './read-source.ts';
import { print, printError, printJson } from './terminal.ts';
import { readKeys } from './verify.ts';

type Options = {
  readonly relay: string;
  readonly method?: (typeof METHODS)[number];
  readonly header?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly bodyFile?: string;
  readonly key?: string;
  readonly keys?: string;
  readonly allowHost?: readonly string[];
  readonly maxPrice?: bigint;
  readonly budgetUsd?: bigint;
  readonly ledger?: string;
  readonly network: string;
  readonly payTo?: string;
  readonly schedule?: string;
  readonly runs?: number;
  readonly maxUsd?: bigint;
  readonly showResponse?: true;
  readonly dryRun?: true;
  readonly json?: true;
};

const HELP = `
The wallet's key is read from RELAY_BUYER_PRIVATE_KEY (0x and 64 hex digits), never from an argument. Before anything is
signed, the relay's 402 is compared with your limits: target host, network, USDC as the asset, price, payee and URL. One
payment is signed for an order. It can be charged for at most 5 minutes, whatever the 402 asks for, and is presented again
while the outcome is unknown.

Exit status 0: the target answered 2xx, and the signed receipt is of this very purchase: this payment, method, URL, header
names, body and idempotency key. 1: it is not, the target failed, or nothing was paid; one line names what differs. 2: the
command could not run, or the ledger cannot be used.

--keys pins the relay's signing keys; without it, those that the relay publishes before the payment are used.
--key makes the same command line repeatable with an honest relay, also after a crash: the relay returns the recorded result,
and charges no second call. Without --ledger the repeat signs a second payment, which a relay that lies could charge too.
Without --key a key is made and printed.
--ledger records each payment before it is sent (no signature, no request). A repeat of an order with the same --key and
ledger presents the same payment, so that no relay can charge it twice. With --budget-usd, the payments that
were signed on one UTC day are limited; a payment counts from its record on, whatever became of it.
--show-response asks for what the target answers, at most 64 KiB of its body: the relay returns it in its first answer alone
and does not store it. Its bytes must be those that the receipt commits to.
relay verify reads the output of --json: the receipt, its disclosures and a checkpoint.

--schedule buys runs of a schedule, from a relay that sells them: the file is the JSON body {webhook, schedule,
catchUpSeconds?} of POST /api/schedules/webhook. Each run has a payment of its own, which cannot be charged earlier than
60 s before the run is due, nor later than 120 s after it may start: the wallet needs the money then, and not before. The
due times that the relay states are compared with the file. FILE.ledger records the payments, and FILE.bought the runs and
the token that cancels: keep both. The same command again, also after a crash, pays for no run twice, buys what is missing,
and shows the state of the runs; with more --runs it buys further ones. Exit status 0: all runs are paid for. 1: not all; a
line says how many are. 2: the command could not run.

Examples:
  Compare the offer with your limits, and pay nothing:
    relay pay https://target.example/hook --relay https://relay.example --dry-run
  Buy one call; a repeat of the line returns its result:
    relay pay https://target.example/hook --relay https://relay.example --pay-to 0x… --body '{"order":4711}' --key order-4711 \\
      --ledger ledger.ndjson
  For an unattended program: pinned keys, two hosts, at most $0.003 a call and $0.50 a day:
    relay pay https://hooks.target.example/x --relay https://relay.example --pay-to 0x… --keys jwks.json \\
      --allow-host target.example --allow-host '*.target.example' --max-price 0.003 --budget-usd 0.50 --ledger ledger.ndjson \\
      --key order-4711 --json
  Buy seven runs of a schedule, for $0.021 in all:
    relay pay --schedule daily.json --runs 7 --max-usd 0.021 --relay https://relay.example --pay-to 0x…

Example of a schedule's file (types: once, daily, weekly, interval), such as daily.json:
{
  "webhook": {"url": "https://target.example/hook", "body": {"event": "daily.report"}},
  "schedule": {"type": "daily", "timeOfDay": "09:00", "timezone": "Europe/Berlin"}
}`;

export function addPay(program: Command): void {
  program
    .command('pay')
    .description('Buy one call from a relay (x402), and verify that the receipt is of this purchase.')
    .argument('[url]', 'the target to call; not with --schedule')
    .requiredOption('--relay <origin>', 'the relay, as in https://relay.example', readRelay)
    .option('--method <method>', `${METHODS.join(', ')} (default: POST)`, readMethod)
    .option('--header <name: value>', 'for the target; may be repeated', readHeader)
    .option('--body <json>', 'for the target', readJson)
    .option('--body-file <file>', 'the same from a file')
    .option('--key <key>', 'idempotency key of the call: a repeat returns its result')
    .option('--keys <jwks>', "the relay's signing keys: a file or a URL; no other key is accepted")
    .option(
      '--allow-host <host>',
      'call this host only (*.host: every name under it); may be repeated',
      readHost,
    )
    .option(
      '--max-price <usd>',
      `pay no more than this many US dollars for the call (default: ${PRICE.usd})`,
      readPrice,
    )
    .option(
      '--budget-usd <usd>',
      'sign payments for no more than this on a UTC day; needs --ledger',
      readPrice,
    )
    .option('--ledger <file>', 'record each payment in this file before it is sent')
    .option('--network <id>', 'pay on this network (CAIP-2)', PRICE.network)
    .option('--schedule <file>', 'buy runs of the schedule in this file, in place of one call')
    .option('--runs <number>', 'with --schedule: how many runs', readRuns)
    .option('--max-usd <usd>', 'with --schedule: pay no more than this for all runs together', readPrice)
    .option('--pay-to <address>', 'the payee that you expect; no one else is paid', readAddress)
    .option('--show-response', 'print what the target answers, which the relay returns once')
    .option('--dry-run', 'show the offer and compare it with the limits; pay nothing')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(exiting(pay));
}

function readRelay(text: string): string {
  const origin = relayOrigin(text);
  if (origin === null)
    throw new InvalidArgumentError('It must be an https origin (or http on this machine).');
  return origin;
}

function readMethod(text: string): Options['method'] {
  const method = METHODS.find((one) => one === text.toUpperCase());
  if (method === undefined) throw new InvalidArgumentError(`It must be one of ${METHODS.join(', ')}.`);
  return method;
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

function readHost(text: string, before: readonly string[] = []): readonly string[] {
  const host = text.toLowerCase();
  const isAddress = /^[\d.]+$|^[\da-f:]*:[\da-f:]*$/.test(host);
  if (!isAddress && !isSpellableName(host.replace(/^\*\./, '')))
    throw new InvalidArgumentError('It must be a host name without port, or *. and a host name.');
  return [...before, host];
}

function readPrice(text: string): bigint {
  const price = microUsd(text);
  if (price === null) throw new InvalidArgumentError('It must be US dollars, as in 0.003.');
  return price;
}

function readRuns(text: string): number {
  const { max } = SCHEDULE_LIMITS.ticketsPerPayer;
  if (!/^[1-9]\d{0,3}$/.test(text) || Number(text) > max)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${max}.`);
  return Number(text);
}

async function pay(url: string | undefined, options: Options): Promise<boolean> {
  if (options.schedule !== undefined) return payRuns(url, options, options.schedule);
  if (url === undefined || options.runs !== undefined || options.maxUsd !== undefined)
    throw new CannotRun('name a URL to call, or a file by --schedule with --runs and --max-usd');
  const { dryRun, key = dryRun ? undefined : `pay-${randomUUID()}`, ledger: path, budgetUsd, json } = options;
  const request = await requestOf(url, options, key);
  if (budgetUsd !== undefined && path === undefined)
    throw new CannotRun('--budget-usd needs --ledger FILE, which records what was paid before');
  const keys = options.keys === undefined ? null : await readKeys(options.keys);
  const privateKey = readWallet(options);
  // Loaded on use: wallets and protocols are large for a command that pays nothing.
  const { keyPayer, limitedSend, openLedger, purchase, systemClock } = await import('#src/app/buyer.ts');
  const { verifierPrimitives: primitives } = await import('#src/app/keys.ts');
  const clock = systemClock();
  const secret = Buffer.from(privateKey?.slice(2) ?? '', 'hex');
  const ledger =
    path === undefined || privateKey === null
      ? null
      : openLedger({ path, secret, budgetMicroUsd: budgetUsd ?? null, clock });
  // On the screen before the payment is sent: after a crash it is what finds the result.
  if (options.key === undefined && key !== undefined) printError(`idempotency key: ${key}`);
  const order: Order = {
    relay: options.relay,
    request,
    limits: limitsOf(options),
    payer: privateKey === null ? null : keyPayer(privateKey),
    keys,
    repeatable: options.key !== undefined,
    returnResponse: options.showResponse ?? false,
  };
  const deps = { send: limitedSend(), clock, primitives, waiting: reportWait, ledger };
  const result = await purchase(deps, order);
  report(result, json === true, {
    key,
    hasPayee: options.payTo !== undefined,
    hasLedger: ledger !== null,
    showsResponse: options.showResponse ?? false,
  });
  return isGood(result);
}

/** null in a dry run. */
function readWallet({ dryRun }: Options) {
  const privateKey = dryRun ? null : readVariable('RELAY_BUYER_PRIVATE_KEY');
  if (!dryRun && privateKey === null)
    throw new CannotRun('RELAY_BUYER_PRIVATE_KEY is not set; only --dry-run needs no key');
  return privateKey;
}

function payRuns(url: string | undefined, options: Options, schedule: string): Promise<boolean> {
  const { method, header, body, bodyFile, keys, runs, maxUsd, relay, key, ledger, budgetUsd, json } = options;
  if ([url, method, header, body, bodyFile, keys, options.showResponse].some((one) => one !== undefined))
    throw new CannotRun(
      'with --schedule the file has the request: leave out the URL, --method, --header, --body, --body-file, --keys and --show-response',
    );
  if (runs === undefined || maxUsd === undefined)
    throw new CannotRun('--schedule needs --runs and --max-usd');
  return paySchedule({
    ...{ schedule, runs, maxUsd, relay, key, ledger, budgetUsd },
    limits: limitsOf({ ...options, maxPrice: options.maxPrice ?? maxUsd }),
    json: json === true,
    privateKey: readWallet(options),
  });
}

async function requestOf(
  url: string,
  options: Options,
  idempotencyKey: string | undefined,
): Promise<Order['request']> {
  const { method = 'POST', header: headers, bodyFile } = options;
  if (URL.parse(url)?.protocol !== 'https:')
    throw new CannotRun(`${url} is not an https URL: a relay calls https URLs only`);
  if (options.body !== undefined && bodyFile !== undefined)
    throw new CannotRun('use either --body or --body-file');
  const body = bodyFile === undefined ? options.body : await readJsonSource(bodyFile);
  return {
    url,
    method,
    ...(headers && { headers: { ...headers } }),
    ...(body !== undefined && { body }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

const limitsOf = ({ maxPrice, network, payTo, allowHost }: Options): Order['limits'] => ({
  maxPriceMicroUsd: maxPrice ?? readPrice(PRICE.usd),
  network,
  payTo: payTo ?? null,
  allowHosts: allowHost ?? null,
});

function report(result: CallResult, json: boolean, how: How): void {
  if (json) printJson(resultJson(result, how));
  else print(...resultLines(result, how));
  if (json && result.error !== null) printError(errorLine(result.error));
}
