// The parameters of a PostgreSQL URL, as hosts and other clients write them. What this service honours is read; what only
// another client understands is named, to be left out with a warning; anything else is a problem.

export type PostgresUrl = {
  /** Without its parameters. */
  readonly bare: string;
  /** The folder of a socket, in place of the host. */
  readonly host: string | null;
  /** As libpq has them, `no-verify` as `require`; null: the URL states none. */
  readonly tls: (typeof TLS_MODES)[number] | null;
  /** Paths of PEM files: of the CA, and of a client certificate and its key. */
  readonly rootCert: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly applicationName: string | null;
  readonly connectTimeoutS: number | null;
  readonly targetSessionAttrs: (typeof SESSION_ATTRS)[number] | null;
  /** Startup parameter `options`, by which some hosts select the database. */
  readonly options: string | null;
  /** Names of the parameters that mean nothing here. */
  readonly leftOut: readonly string[];
};

const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
const SESSION_ATTRS = ['read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const;

const HONOURED = [
  'host',
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'connect_timeout',
  'target_session_attrs',
  'options',
];

/** Of libpq, Prisma, node-postgres, JDBC, SQLAlchemy, Rails, Symfony, pgx, hosts; what they set is set here, or has no use. */
const LEFT_OUT =
  `channel_binding gssencmode gsslib gssdelegation krbsrvname keepalives keepalives_idle keepalives_interval
  keepalives_count tcp_user_timeout sslcompression sslsni sslnegotiation ssl_min_protocol_version
  ssl_max_protocol_version load_balance_hosts fallback_application_name client_encoding
  pgbouncer schema connection_limit pool_timeout socket_timeout statement_cache_size sslaccept sslidentity
  uselibpqcompat currentSchema ApplicationName prepareThreshold reWriteBatchedInserts binary_parameters prepare
  prepared_statements prepared_statement_cache_size max idle_timeout max_lifetime pool pool_size pool_mode max_pool_size
  min_pool_size pool_max_conns pool_min_conns pool_max_conn_lifetime pool_max_conn_idle_time default_query_exec_mode
  serverVersion charset encoding reconnect timeout statement_timeout lock_timeout
  idle_in_transaction_session_timeout search_path TimeZone timezone supa`.split(/\s+/);

/** The URL, or what is wrong with it as a predicate, without any value of it. */
export function readPostgresUrl(text: string): PostgresUrl | { readonly problem: string } {
  const [bare = '', query = ''] = text.split(/\?(.*)/s);
  if (query.includes('@') && !bare.includes('@'))
    return { problem: 'must have user and password percent-encoded' };
  const given = new URLSearchParams(query);
  const names = [...new Set(given.keys())];
  const unknown = names.find((name) => !HONOURED.includes(name) && !LEFT_OUT.includes(name));
  if (unknown !== undefined)
    return { problem: `has the parameter ${shown(unknown)}, which this service does not know: leave it out` };
  const value = (name: string): string | null => given.get(name) || null;
  const tls = tlsOf(value('sslmode'), value('ssl'), value('sslrootcert'));
  if (tls === undefined) return { problem: `must have one of ${TLS_MODES.join(', ')} as its sslmode` };
  const seconds = value('connect_timeout');
  if (seconds !== null && !/^\d{1,4}$/.test(seconds))
    return { problem: 'must have whole seconds as its connect_timeout' };
  const attrs = value('target_session_attrs') ?? 'any';
  const targetSessionAttrs = SESSION_ATTRS.find((name) => name === attrs) ?? null;
  if (targetSessionAttrs === null && attrs !== 'any')
    return { problem: `must have one of any, ${SESSION_ATTRS.join(', ')} as its target_session_attrs` };
  return {
    bare,
    host: value('host'),
    tls,
    rootCert: value('sslrootcert') === 'system' ? null : value('sslrootcert'),
    cert: value('sslcert'),
    key: value('sslkey'),
    applicationName: value('application_name'),
    connectTimeoutS: Number(seconds ?? 0) || null,
    targetSessionAttrs,
    options: value('options'),
    leftOut: names.filter((name) => LEFT_OUT.includes(name)),
  };
}

/** As libpq: a CA is compared with `require` too, and that of the system needs the name as well. undefined: no such mode. */
function tlsOf(
  sslmode: string | null,
  ssl: string | null,
  rootCert: string | null,
): PostgresUrl['tls'] | undefined {
  if (rootCert === 'system') return 'verify-full';
  const mode = OTHER_NAMES[sslmode ?? ssl ?? ''] ?? sslmode ?? ssl;
  if (mode === null) return rootCert === null ? null : 'verify-ca';
  const found = TLS_MODES.find((name) => name === mode);
  return found === 'require' && rootCert !== null && sslmode !== 'no-verify' ? 'verify-ca' : found;
}

const OTHER_NAMES: Readonly<Record<string, (typeof TLS_MODES)[number]>> = {
  allow: 'prefer',
  'no-verify': 'require',
  true: 'require',
  '1': 'require',
  false: 'disable',
  '0': 'disable',
};

/** A name that is none may be part of a password. */
const shown = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_.-]{0,40}$/.test(name) ? name : 'that is no name';
