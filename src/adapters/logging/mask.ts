// What a log line must not show, by the name of a field and by the look of a text.

const MASK = '[masked]';
const DEPTH_MAX = 6;
const ITEMS_MAX = 50;

/** Names compared in lower case, without `-` and `_`. */
const SECRET_NAMES = new Set(
  (
    'authorization proxyauthorization cookie setcookie password passwd pass secret token apikey xapikey privatekey ' +
    'hmacsecret signature jws d xpayment paymentsignature url href uri origin host hostname path query search ' +
    'headers body payload idempotencykey key address ip remoteaddress parameters params detail where connectionstring databaseurl ' +
    'eventstoreurl'
  ).split(' '),
);

const isSecretName = (name: string): boolean => SECRET_NAMES.has(name.toLowerCase().replace(/[-_]/g, ''));

/**
 * Masks URLs that contain more than an origin (the service's own origin may be logged; a webhook's path is its
 * secret), credentials, and secrets of connection strings.
 */
export function maskedText(text: string): string {
  return maskedSecrets(text.replace(URL_TEXT, (url) => (ORIGIN_ONLY.test(url) ? url : maskedUrl(url))));
}

/** A stranger's text, as in an error's message: every URL goes, save `file:` and the like of a stack. */
function maskedStrangeText(text: string): string {
  return maskedSecrets(text.replace(URL_TEXT, maskedUrl));
}

const URL_TEXT = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>`]*/gi;
const ORIGIN_ONLY = /^https?:\/\/[^/?#@\\]+\/?$/i;

function maskedUrl(url: string): string {
  const scheme = url.slice(0, url.indexOf(':'));
  return scheme.toLowerCase() === 'file' ? url : `${scheme}://${MASK}`;
}

/** Where the values begin in the message of a failed drizzle query. The values may contain line breaks. */
const VALUES_FROM = '\nparams:';

const withoutValues = (text: string): string => {
  const at = text.indexOf(VALUES_FROM);
  return at === -1 ? text : `${text.slice(0, at)}${VALUES_FROM} ${MASK}`;
};

/** Postgres quotes the value that does not fit its type. */
const QUOTED_VALUE = /(invalid input (?:syntax|value) for [^"\n]*: )"[\s\S]*"/g;

const maskedSecrets = (text: string): string =>
  withoutValues(text)
    .replace(QUOTED_VALUE, `$1${MASK}`)
    .replace(/\b(bearer|basic)\s+[\w.~+/=-]+/gi, `$1 ${MASK}`)
    .replace(
      /\b(password|passwd|pwd|secret|token|api_?key)(\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s;&,]+)/gi,
      `$1$2${MASK}`,
    );

/** Never throws. */
export function maskedFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return orUnreadable(() => maskedObject(fields, maskedText, 0), { fields: UNREADABLE });
}

/** Name, message, stack, code and causes of whatever was thrown. Never throws. */
export function maskedCause(cause: unknown): unknown {
  return orUnreadable(() => masked(cause, maskedStrangeText, 0), UNREADABLE);
}

const UNREADABLE = '[unreadable]';

/** A value can lie about anything, a member may be a getter that throws: the line is still written. */
function orUnreadable<T>(read: () => T, unreadable: T): T {
  try {
    return read();
  } catch {
    return unreadable;
  }
}

type MaskText = (text: string) => string;

function masked(value: unknown, maskText: MaskText, depth: number): unknown {
  if (typeof value === 'string') return maskText(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`;
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (depth >= DEPTH_MAX) return '[deeper]';
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map((item) => masked(item, maskText, depth + 1));
  return maskedObject(value, maskText, depth);
}

function maskedObject(value: object, maskText: MaskText, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  if (value instanceof Error) {
    const { name, message, stack, cause } = value;
    Object.assign(shown, { name, message: maskText(message) });
    if (typeof stack === 'string') shown.stack = maskedStack(stack, message, maskText);
    if (cause !== undefined) shown.cause = masked(cause, maskText, depth + 1);
    if (value instanceof AggregateError) shown.errors = masked(value.errors, maskText, depth + 1);
  }
  for (const name of Object.keys(value)) {
    const read = () => masked(Reflect.get(value, name), maskText, depth + 1);
    shown[name] = isSecretName(name) ? MASK : orUnreadable(read, UNREADABLE);
  }
  return shown;
}

/** The stack frames follow the message; masking the values at the end of the message must keep them. */
function maskedStack(stack: string, message: string, maskText: MaskText): string {
  const at = stack.indexOf(message);
  const end = at === -1 ? 0 : at + message.length;
  return maskText(stack.slice(0, end)) + maskText(stack.slice(end));
}
