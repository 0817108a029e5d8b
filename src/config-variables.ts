// The variables that config.ts reads, for people: the help of `relay serve`, and the table in OPERATING.md.
import { PRICE } from './domain/limits.ts';

export type Variable = {
  readonly name: string;
  /** The text that has the same effect as no text; null if there is none, and `unset` describes the effect. */
  readonly standard: string | null;
  readonly unset?: string;
  /** Markdown. */
  readonly meaning: string;
};

const variable = (name: string, standard: string, meaning: string): Variable => ({ name, standard, meaning });
const optional = (name: string, unset: string, meaning: string): Variable => ({
  name,
  standard: null,
  unset,
  meaning,
});

export const VARIABLES: readonly Variable[] = [
  variable('HOST', '127.0.0.1', 'address to listen on'),
  variable('PORT', '3402', 'port to listen on; 0 is any free one'),
  optional(
    'PUBLIC_BASE_URL',
    '`http://HOST:PORT`',
    'an origin: base of all links, and of did:web; the same for all processes',
  ),
  variable('DATA_DIR', './data', 'embedded event log, embedded read models, generated signing keys'),
  optional(
    'EVENTSTORE_URL',
    'embedded event log',
    '`esdb://…` or `kurrentdb://…`; needs `DATABASE_URL` and `SIGNING_KEYS_FILE`',
  ),
  optional('DATABASE_URL', 'embedded read models', '`postgres://…`'),
  variable('X402_ENABLED', 'false', 'payment enforcement'),
  optional('X402_PAY_TO', 'none', 'payee, of this deployment only; required with `X402_ENABLED`'),
  optional('X402_FACILITATOR_URL', 'none', 'the facilitator; required with `X402_ENABLED`'),
  variable('X402_NETWORK', PRICE.network, 'network of the payment (CAIP-2)'),
  variable('X402_PRICE', `$${PRICE.usd}`, 'price of a call'),
  optional('X402_ASSET', 'the network’s USDC', 'contract of the token'),
  optional(
    'X402_RPC_URL',
    'none',
    'a node of the network: resolves unconfirmed settlements by the chain; strongly recommended',
  ),
  variable(
    'X402_FACILITATOR_TIMEOUT_MS',
    '20000',
    'time limit of each call of the facilitator; at most 40000, below the time after which another process recovers a settlement',
  ),
  optional(
    'SIGNING_KEYS_FILE',
    '`DATA_DIR/keys.json`',
    'private keys and the HMAC secret, mode 0600; a file named here must exist; required with `EVENTSTORE_URL`',
  ),
  variable('ALLOW_FREE_RELAY', 'false', 'lets demo mode (`X402_ENABLED` off) listen beyond loopback'),
  variable('POLICY_MODE', 'open', '`open`, `blocklist-quota` or `allowlist`'),
  optional('POLICY_BLOCK_HOSTS', 'none', 'comma list of `example.com` or `*.example.com`'),
  optional('POLICY_ALLOW_HOSTS', 'none', 'the same'),
  variable(
    'TARGET_QUOTA_PER_MINUTE',
    '20',
    'calls to one target host by one payer; ten times that by all payers together',
  ),
  variable(
    'RATE_LIMIT_PER_MINUTE',
    '60',
    'calls by one client address, of each kind; ten times as many messages to `/mcp` and calls of the canary',
  ),
  variable('MAX_IN_FLIGHT', '512', 'executions at the same time, in each process'),
  optional('TRUSTED_PROXIES', 'none', 'comma list of address ranges whose `X-Forwarded-For` is used'),
  optional('EGRESS_DNS_SERVERS', 'the system’s', 'comma list of `ip` or `ip:port`, IPv6 in brackets'),
  optional('EGRESS_CA_FILE', 'the system’s roots only', 'PEM certificates to trust in addition'),
  optional(
    'EGRESS_ALLOW_CIDRS',
    'none',
    'development only: non-public ranges that may be called, by address: the name `localhost` stays refused',
  ),
  optional('EGRESS_DENY_CIDRS', 'none', 'further ranges that may not be called'),
  optional(
    'EGRESS_PORTS',
    'all except the Fetch standard’s bad ports',
    'comma list of ports that may be called',
  ),
  variable('RETENTION_JOBS_DAYS', '7', 'days that jobs stay in the read models'),
  variable('RETENTION_RECEIPTS_DAYS', '30', 'days that receipts and decisions stay in the read models'),
  variable('LOG_LEVEL', 'info', '`debug`, `info`, `warn`, `error` or `silent`'),
  optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'no traces',
    'an OpenTelemetry collector: traces go to `/v1/traces` below it, as OTLP over HTTP',
  ),
  variable('METRICS_PUBLIC', 'false', 'serves `/metrics` to other machines too'),
  optional('RELAY_BUYER_PRIVATE_KEY', 'none', '`relay pay` only: the wallet key that pays'),
];

/** Markdown. */
export function variableTable(): string {
  const rows = VARIABLES.map(
    ({ name, standard, unset = '', meaning }) =>
      `| \`${name}\` | ${standard === null ? unset : `\`${standard}\``} | ${meaning} |`,
  );
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** For a terminal: a line a variable. */
export function variableList(): string {
  const width = Math.max(...VARIABLES.map(({ name }) => name.length)) + 2;
  const lines = VARIABLES.map(
    ({ name, standard, unset = '', meaning }) =>
      `  ${name.padEnd(width)}${meaning} (default: ${standard ?? unset})`,
  );
  return lines.join('\n').replaceAll('`', '');
}
