// The variables of the environment. The help of `relay serve` and the table in DEPLOYING.md are made of this list.
import { resolve } from 'node:path';
import type { PolicyMode } from '#src/domain/destination/policy.ts';
import * as logins from './config-login.ts';
import * as values from './config-values.ts';
import * as witnesses from './config-witnesses.ts';
import { PRICE } from './domain/limits.ts';

/** `standard`: the text that an unset variable is read as. */
const variable = <T>(parse: values.Parse<T>, standard: string, meaning: string) => ({
  parse,
  standard,
  meaning,
});
/** `unset`: what happens if the variable is unset; its value is null then. Both texts are Markdown. */
const optional = <T>(parse: values.Parse<T>, unset: string, meaning: string) => ({ parse, unset, meaning });

const POLICY_MODES = {
  open: 'open-public-https',
  'open-public-https': 'open-public-https',
  'blocklist-quota': 'blocklist-quota',
  allowlist: 'allowlist',
} as const satisfies Record<string, PolicyMode>;
const LOG_LEVELS = { debug: 'debug', info: 'info', warn: 'warn', error: 'error', silent: 'silent' } as const;
const EVENTSTORE = values.connectionString(
  ['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover'],
  'esdb://host:2113?tls=true',
);

export const VARIABLES = {
  HOST: variable(values.listenHost, '127.0.0.1', 'address to listen on'),
  PORT: variable(values.wholeNumber(0, 65_535), '3402', 'port to listen on; 0 is any free one'),
  PUBLIC_BASE_URL: optional(
    values.origin,
    '`http://HOST:PORT`',
    'an origin: base of all links, and of did:web; the same for all processes',
  ),
  DATA_DIR: variable(
    resolve,
    './data',
    'embedded event log, embedded read models, generated signing keys; remembers the event log if the key file cannot be changed',
  ),
  EVENTSTORE_URL: optional(
    EVENTSTORE,
    'embedded event log',
    '`esdb://…` or `kurrentdb://…`; needs `DATABASE_URL` and `SIGNING_KEYS_FILE`',
  ),
  DATABASE_URL: optional(values.databaseUrl, 'embedded read models', '`postgres://…`'),
  X402_ENABLED: variable(values.boolean, 'false', 'payment enforcement'),
  X402_PAY_TO: optional(
    values.evmAddress,
    'none',
    'payee, of this deployment only; required with `X402_ENABLED`',
  ),
  X402_FACILITATOR_URL: optional(
    logins.facilitatorUrl,
    'none',
    'the facilitator; required with `X402_ENABLED`',
  ),
  X402_NETWORK: variable(values.evmNetwork, PRICE.network, 'network of the payment (CAIP-2)'),
  X402_PRICE: variable(values.usdPrice, `$${PRICE.usd}`, 'price of a call'),
  X402_ASSET: optional(
    values.evmAddress,
    'the network’s USDC',
    'contract of the token; required for a network whose USDC is not known; its decimals and EIP-712 domain are read from it',
  ),
  X402_RPC_URL: optional(
    values.serviceUrl,
    'none',
    'a node of the network, for what the facilitator leaves open; required with `X402_ENABLED`',
  ),
  X402_REFUND_FROM: optional(
    values.evmAddress,
    'the payee',
    'wallet that refunds are sent from, beside the payee of the payment',
  ),
  X402_CONFIRM_SECONDS: variable(
    values.wholeNumber(0, 60),
    '30',
    'how long a paid call polls the chain after a settlement without a conclusive answer, then it answers 503 `payment_unconfirmed`; 0 looks once',
  ),
  X402_FACILITATOR_TIMEOUT_MS: variable(
    values.wholeNumber(100, 40_000),
    '20000',
    'time limit of each call of the facilitator; at most 40000, below the time after which another process recovers a settlement',
  ),
  X402_RECONCILE_SECONDS: variable(
    values.wholeNumber(1, 3600),
    '60',
    'how often the books are compared with the chain',
  ),
  X402_CONFIRMATIONS: optional(
    values.wholeNumber(0, 100_000),
    'the node’s `safe` block',
    'the books are compared up to so many blocks before the last one; for a node without the tag `safe`',
  ),
  X402_FACILITATOR_AUTH: optional(
    values.oneOf({ cdp: 'cdp' } as const),
    'none',
    '`cdp`: log in at the facilitator with `CDP_API_KEY_ID` and `CDP_API_KEY_SECRET`',
  ),
  CDP_API_KEY_ID: optional(logins.apiKeyId, 'none', 'id of the API key'),
  CDP_API_KEY_SECRET: optional(
    logins.apiKeySecret,
    'none',
    'its secret: base64 of 64 bytes (Ed25519), or PEM with `\\n` for line breaks (ES256)',
  ),
  X402_FACILITATOR_HEADERS_FILE: optional(
    logins.headersFile,
    'none',
    'headers that log in at the facilitator: lines `name: value` or a JSON object; mode 0600',
  ),
  SIGNING_KEYS_FILE: optional(
    resolve,
    '`DATA_DIR/keys.json`',
    'private keys and the HMAC secret, mode 0600; a file named here must exist; required with `EVENTSTORE_URL`',
  ),
  ALLOW_FREE_RELAY: variable(
    values.boolean,
    'false',
    'lets demo mode (`X402_ENABLED` off) start with a `HOST` or a `PUBLIC_BASE_URL` beyond loopback, a payee or a facilitator',
  ),
  POLICY_MODE: variable(values.oneOf(POLICY_MODES), 'open', '`open`, `blocklist-quota` or `allowlist`'),
  POLICY_BLOCK_HOSTS: optional(
    values.list(values.hostPattern),
    'none',
    'comma list of `example.com` or `*.example.com`',
  ),
  POLICY_ALLOW_HOSTS: optional(values.list(values.hostPattern), 'none', 'the same'),
  TARGET_QUOTA_PER_MINUTE: variable(
    values.wholeNumber(1, 1_000_000),
    '20',
    'calls to one target host by one payer; ten times that by all payers together',
  ),
  RATE_LIMIT_PER_MINUTE: variable(
    values.wholeNumber(1, 1_000_000),
    '60',
    'calls by one client address, of each kind; ten times as many messages to `/mcp` and calls of the canary',
  ),
  RATE_LIMIT_READS_PER_MINUTE: variable(
    values.wholeNumber(1, 1_000_000),
    '600',
    'reads of records, figures, pages and the transparency log by one client address, in each process; not counted from loopback',
  ),
  MAX_IN_FLIGHT: variable(
    values.wholeNumber(1, 100_000),
    '512',
    'executions at the same time, in each process',
  ),
  TRUSTED_PROXIES: optional(
    values.list(values.cidr),
    'none',
    'comma list of address ranges whose `X-Forwarded-For` is used; without it all callers behind a proxy count as one client address',
  ),
  EGRESS_DNS_SERVERS: optional(
    values.list(values.dnsServer),
    'the system’s',
    'comma list of `ip` or `ip:port`, IPv6 in brackets',
  ),
  EGRESS_CA_FILE: optional(
    values.certificatesFile,
    'the system’s roots only',
    'PEM certificates to trust in addition',
  ),
  EGRESS_ALLOW_CIDRS: optional(
    values.list(values.cidr),
    'none',
    'development only: non-public ranges that may be called, by address: the name `localhost` stays refused',
  ),
  EGRESS_DENY_CIDRS: optional(values.list(values.cidr), 'none', 'further ranges that may not be called'),
  EGRESS_NAT64_PREFIX: optional(
    values.nat64Prefix,
    '64:ff9b::/96 only',
    'prefix of the network’s NAT64: of an address in it the IPv4 address inside is judged, and `EGRESS_ALLOW_CIDRS` exempts none',
  ),
  EGRESS_PORTS: optional(
    values.list(values.wholeNumber(1, 65_535)),
    'all except the Fetch standard’s bad ports',
    'comma list of ports that may be called',
  ),
  RETENTION_JOBS_DAYS: variable(values.wholeNumber(1, 36_500), '7', 'days that jobs stay in the read models'),
  RETENTION_RECEIPTS_DAYS: variable(
    values.wholeNumber(1, 36_500),
    '30',
    'days that receipts and decisions stay in the read models',
  ),
  WITNESS_POLICY_FILE: optional(
    witnesses.witnessPolicyFile,
    'no witnesses: the transparency log is unwitnessed',
    'a policy file (C2SP tlog-policy): the witnesses that this relay asks to cosign its checkpoints, each with its URL, and their quorum',
  ),
  WITNESS_INTERVAL_SECONDS: variable(
    values.wholeNumber(2, 60),
    '10',
    'how often the witnesses are asked, while the log grows',
  ),
  RETURN_RESPONSES: variable(
    values.oneOf({ on: true, off: false } as const),
    'on',
    '`off`: no caller gets what its target answers; otherwise one that asks for it does, once, and it is never stored',
  ),
  RETURN_RESPONSE_HEADERS: optional(
    values.list(values.returnedHeader),
    '`content-type`, `retry-after`',
    'comma list of further response headers that such a caller gets, of several lines with one name the first; never `set-cookie`',
  ),
  SCHEDULES: variable(
    values.oneOf({ on: true, off: false } as const),
    'off',
    '`on`: paid schedules, whose runs are charged when they run',
  ),
  SCHEDULE_HORIZON_DAYS: variable(
    values.wholeNumber(1, 366),
    '30',
    'days after its definition up to which runs of a schedule can be paid for',
  ),
  WEB_BOT_AUTH: optional(
    values.oneOf({ on: true, off: false } as const),
    '`on` where `PUBLIC_BASE_URL` is https',
    '`off`: outbound requests have no message signature (RFC 9421), by which bot filters recognise this relay',
  ),
  LOG_LEVEL: variable(values.oneOf(LOG_LEVELS), 'info', '`debug`, `info`, `warn`, `error` or `silent`'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    values.serviceUrl,
    'no traces',
    'an OpenTelemetry collector: traces go to `/v1/traces` below it, as OTLP over HTTP',
  ),
  METRICS_PUBLIC: variable(values.boolean, 'false', 'serves `/metrics` to other machines too'),
  RELAY_BUYER_PRIVATE_KEY: optional(values.privateKey, 'none', '`relay pay` only: the wallet key that pays'),
};

const ROWS = Object.entries(VARIABLES).map(([name, declared]) => ({
  name,
  meaning: declared.meaning,
  unset: 'standard' in declared ? `\`${declared.standard}\`` : declared.unset,
}));

/** Markdown. */
export function variableTable(): string {
  const rows = ROWS.map(({ name, unset, meaning }) => `| \`${name}\` | ${unset} | ${meaning} |`);
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** For a terminal: a line a variable. */
export function variableList(): string {
  const width = Math.max(...ROWS.map(({ name }) => name.length)) + 2;
  const lines = ROWS.map(
    ({ name, unset, meaning }) => `  ${name.padEnd(width)}${meaning} (default: ${unset})`,
  );
  return lines.join('\n').replaceAll('`', '');
}
