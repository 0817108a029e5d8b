// The doctor on the way from outside: the service's own 402, asked for at PUBLIC_BASE_URL. A proxy that passes on everything
// else may refuse or shorten it, since its header is longer than any other.
import { baseUrl, type Config } from '#src/config.ts';
import { PAID_ROUTES } from '#src/discovery/paid-routes.ts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { isObject } from '#src/lib/is-object.ts';
import { type Checked, fine, problem, skipped, warning } from './finding.ts';
import { noAnswer, unanswered } from './listen.ts';

const { path } = PAID_ROUTES['execute/webhook'];
const ANSWER_MS = 5000;
/** Of the status line and all headers; nginx passes on 4 kB, and other proxies more. */
const HEAD_MAX_BYTES = 3500;
const BUFFERS = 'of nginx: proxy_buffer_size 16k and proxy_buffers 8 16k, as in deploy/proxy/nginx.conf';

export async function checkPublicAddress(config: Config): Promise<Checked> {
  const { x402, publicBaseUrl, listen } = config;
  if (x402 === null) return skipped('not used in demo mode');
  if (publicBaseUrl === null)
    return warning('PUBLIC_BASE_URL is not set: links and payments name this machine only');
  const url = `${baseUrl(config, listen.port)}${path}`;
  const answer = await asked(url);
  return typeof answer === 'string' ? unanswered(url, answer, listen) : judged(url, answer, x402.payTo);
}

/** The reason if there is no answer. */
async function asked(url: string): Promise<Response | string> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    await response.body?.cancel();
    return response;
  } catch (error) {
    return noAnswer(error);
  }
}

function judged(url: string, { status, headers }: Response, payTo: string): Checked {
  if (status === 502 || status === 503 || status === 504)
    return problem(
      `${url} answers ${status} where a 402 is due: the proxy has no service behind it, or refuses the head of the 402 (raise its buffers; ${BUFFERS})`,
    );
  if (status >= 300 && status < 400)
    return problem(`${url} redirects (${status}): PUBLIC_BASE_URL must be the address that answers`);
  if (status !== 402)
    return problem(
      `${url} answers ${status}, not 402: compare PUBLIC_BASE_URL with what the proxy passes on, and to whom`,
    );
  const header = headers.get('payment-required');
  if (header === null)
    return problem(
      `${url} answers 402 without the header PAYMENT-REQUIRED: the proxy drops it (raise its buffers; ${BUFFERS})`,
    );
  const required = parsedJson(Buffer.from(header, 'base64').toString());
  const resource = isObject(required) && isObject(required.resource) ? required.resource.url : null;
  if (resource !== url)
    return problem(
      `${url} answers a 402 for ${typeof resource === 'string' ? resource : 'no resource'}: another service answers there, or it runs with another PUBLIC_BASE_URL`,
    );
  if (!JSON.stringify(required).toLowerCase().includes(payTo.toLowerCase()))
    return problem(
      `${url} asks for payments to another payee than X402_PAY_TO: another service answers there`,
    );
  const bytes = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 30);
  const text = `${url} answers 402 for X402_PAY_TO, in a head of about ${bytes} bytes`;
  return bytes > HEAD_MAX_BYTES
    ? warning(
        `${text}: proxies with their defaults pass on ${HEAD_MAX_BYTES} for sure, so raise their buffers (${BUFFERS})`,
      )
    : fine(text);
}
