// relay pay: buys one call from a relay as any client would, by a policy of its own, and verifies what came.
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { microUsd } from '#src/domain/payment/money.ts';
import { readBuyerKey } from '../config.ts';
import { PRICE } from '../domain/limits.ts';
import { CannotRun, type End, EXIT, systemCode } from './exit.ts';
import { boughtJson, boughtLines, noteWait } from './pay-print.ts';
import type { Bought, Order } from './pay-purchase.ts';
import { sendByFetch } from './pay-transport.ts';
import { print, printJson } from './terminal.ts';

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
  readonly save?: string;
  readonly dryRun?: true;
  readonly json?: true;
};

const HELP = `
The wallet's key comes from RELAY_BUYER_PRIVATE_KEY (0x and 64 hex digits), never from an argument. Before anything is
signed, the relay's 402 is judged: network, USDC as the asset, price, payee, URL, and the offer's signature by the
relay's own published key. One payment is made at most: while the outcome is unknown the same one is presented again.

With --save the payment is kept before it is sent; the same command line goes on from it, also after a crash, and shows
the stored result when it is done. Remove the file to buy anew.

  relay pay https://target.example/hook --relay https://relay.example --dry-run
  relay pay https://target.example/hook --relay https://relay.example --pay-to 0x… --body '{"order":4711}' --save order`;

export function addPay(program: Command, end: End): void {
  program
    .command('pay')
    .description('buy one call from a relay (x402), and verify its receipt')
    .argument('<url>', 'the target to call')
    .requiredOption('--relay <origin>', 'the relay, as in https://relay.example', readRelay)
    .option('--method <method>', 'POST, PUT, PATCH or DELETE', 'POST')
    .option('--header <name: value>', 'for the target; may be repeated', readHeader)
    .option('--body <json>', 'for the target', readJson)
    .option('--body-file <file>', 'the same from a file')
    .option('--key <key>', 'idempotency key of the call (a payment is one in itself)')
    .option('--max-price <usd>', `pay no more than this (default: ${PRICE.usd})`, readPrice)
    .option('--network <id>', 'pay on this network (CAIP-2)', PRICE.network)
    .option('--pay-to <address>', 'the payee that you expect; nobody else is paid', readAddress)
    .option('--save <file>', 'keep the payment there before it is sent, and go on from it')
    .option('--dry-run', 'show the offer and what is thought of it; pay nothing')
    .option('--json', 'for machines')
    .addHelpText('after', HELP)
    .action(async (url: string, options: Options) => {
      end((await pay(url, options)) ? EXIT.good : EXIT.foundWrong);
    });
}

/** A payment is only sent where nobody can read it on the way. */
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
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON.');
  }
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
  const order = orderOf(url, options);
  // Loaded where it is needed: wallets and protocols are much to read for a command that pays nothing.
  const { purchase } = await import('./pay-purchase.ts');
  const { systemClock } = await import('#src/app/buyer.ts');
  const { verifierPrimitives } = await import('#src/app/keys.ts');
  const deps = { send: sendByFetch, clock: systemClock(), primitives: verifierPrimitives, waiting: noteWait };
  const bought = await purchase(deps, order);
  if (options.json) printJson(boughtJson(bought));
  else print(...boughtLines(bought, order));
  return isGood(bought);
}

export const isGood = ({ outcome, evidence }: Bought): boolean =>
  outcome === 'not_paid' || (outcome === 'delivered' && evidence?.ok === true);

function orderOf(url: string, options: Options): Order {
  const {
    relay,
    method,
    header,
    key,
    maxPrice = readPrice(PRICE.usd),
    network,
    payTo = null,
    save = null,
    dryRun,
  } = options;
  if (URL.parse(url)?.protocol !== 'https:')
    throw new CannotRun(`${url} is no https URL: a relay calls nothing else`);
  const body = bodyOf(options);
  const request = {
    url,
    method: method.toUpperCase(),
    ...(header === undefined ? {} : { headers: header }),
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { idempotencyKey: key }),
  };
  const privateKey = dryRun ? null : readBuyerKey();
  if (!dryRun && privateKey === null)
    throw new CannotRun(
      'RELAY_BUYER_PRIVATE_KEY is not set: with --dry-run nothing is paid and no key is needed',
    );
  return { relay, request, limits: { maxPriceMicroUsd: maxPrice, network, payTo }, privateKey, save };
}

function bodyOf({ body, bodyFile }: Options): unknown {
  if (bodyFile === undefined) return body;
  if (body !== undefined) throw new CannotRun('say either --body or --body-file');
  try {
    return JSON.parse(readFileSync(bodyFile, 'utf8'));
  } catch (error) {
    const problem =
      error instanceof SyntaxError ? 'is not JSON' : `cannot be read (${systemCode(error) ?? 'unknown'})`;
    throw new CannotRun(`${bodyFile} ${problem}`, { cause: error });
  }
}
