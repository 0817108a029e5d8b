// 0 broken links: everything that can be read is read, and every address in it leads where it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathTemplate, ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { lab } from '#test/adapters/payments/lab.ts';
import { publicLog } from '#test/support/log/public-log.ts';
import {
  appOf,
  BASE,
  DECISION,
  fakeWorld,
  type HttpWorld,
  JOB,
  JWS,
  RECEIPT,
} from '#test/support/world/http-deps.ts';
import { linksOf, type Named, namedInHtml, namedInJson, namedInText } from './addresses.ts';

/** The value of a parameter or placeholder in an address, by the text before it. */
const KNOWN_IDS = [
  ['/jobs/', JOB],
  ['/receipts/', RECEIPT],
  ['/decisions/', DECISION],
  ['/log/proof/', RECEIPT],
  ['/proof/', JOB],
] as const;

/** Documented as planned: there is no such route yet. */
const PLANNED = 'POST /api/schedules/webhook';

/** Standards, and the names that RFC 2606 keeps for examples. */
const OUTSIDE = [
  /^https:\/\/www\.rfc-editor\.org\//,
  /^https:\/\/json-schema\.org\//,
  /^https?:\/\/www\.w3\.org\//,
  /^https:\/\/w3id\.org\//,
  /^https:\/\/([a-z]+\.)?example\.com\//,
];

type Crawled = {
  /** Everything under the base address that was called: `GET /path`. */
  readonly called: ReadonlySet<string>;
  readonly broken: readonly string[];
  readonly outside: readonly string[];
};

async function crawl(deps: HttpWorld): Promise<Crawled> {
  const app = appOf(deps);
  const answered = (path: string, init?: RequestInit) =>
    app.fetch(new Request(`http://localhost${path}`, init), { clientAddress: '127.0.0.1' });
  const called = new Set<string>();
  const broken: string[] = [];
  const outside = new Set<string>();
  const pages = new Map<string, string>();
  const waiting: { readonly named: Named; readonly from: string }[] = starts.map((address) => ({
    named: { address, method: 'GET' },
    from: 'the start',
  }));

  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { named, from } = next;
    const path = pathOf(named.address.startsWith('#') ? `${from}${named.address}` : named.address);
    if (path === null) {
      outside.add(named.address);
      continue;
    }
    const [bare = '', fragment] = path.split('#');
    const found = await look(bare, named.method);
    if (found !== null) broken.push(`${named.method ?? ''} ${named.address} in ${from}: ${found}`);
    else if (fragment !== undefined && !pages.get(bare)?.includes(` id="${fragment}"`))
      broken.push(`${named.address} in ${from}: no such place`);
  }
  assert.ok(called.delete(PLANNED), 'what is planned is documented');
  return { called, broken: broken.filter((one) => !one.startsWith(PLANNED)), outside: [...outside] };

  /** Why it is broken; null where it is not. */
  async function look(path: string, method: Named['method']): Promise<string | null> {
    const name = `${method ?? 'any'} ${path}`;
    if (called.has(name)) return null;
    called.add(name);
    if (method === 'POST') return empty(await answered(path, { method: 'POST' }));
    const response = await answered(path);
    if (method === null && response.status === 405) return empty(await answered(path, { method: 'POST' }));
    if (response.status !== 200) return `GET answers ${response.status}`;
    const text = await response.text();
    pages.set(path, text);
    const named = [...linksOf(response.headers.get('link')), ...read(response, text)];
    for (const one of named) waiting.push({ named: one, from: path });
    return null;
  }
}

/** What an empty POST may be answered with: anything but that there is no such thing. */
const empty = ({ status }: Response) =>
  status === 404 || status === 405 || status >= 500 ? `an empty POST answers ${status}` : null;

function read(response: Response, text: string): Named[] {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('json')) return namedInJson(JSON.parse(text));
  if (type.startsWith('text/html')) return namedInHtml(text);
  return type.startsWith('text/') ? namedInText(text) : [];
}

/** The path below the base address, with parameters filled in; null where it leads outside. */
function pathOf(address: string): string | null {
  const under = address === BASE || address.startsWith(`${BASE}/`);
  if (!under && !address.startsWith('/')) return null;
  const whole = under ? address.slice(BASE.length) || '/' : address;
  // Code puts the id behind it.
  const given = whole
    .replace('{+path}', '0/000.p/2')
    .replace(/^(\/log\/consistency)(\{\?.*)?$/, '$1?from=1&to=2');
  const path = KNOWN_IDS.some(([before]) => given.endsWith(before)) ? `${given}{id}` : given;
  return path.replace(/\{[A-Za-z]+\}|\$.*$/g, (_placeholder, at: number) => {
    const id = KNOWN_IDS.find(([before]) => path.slice(0, at).endsWith(before))?.[1];
    return id ?? 'unknown-parameter';
  });
}

const starts = Object.values<RouteFacts>(ROUTES)
  .filter(({ method }) => method === 'GET')
  .map(({ path }) => pathTemplate(path));

async function loggedWorld(changes: Parameters<typeof fakeWorld>[0] = {}): Promise<HttpWorld> {
  const log = await publicLog(1);
  await log.add(RECEIPT, JWS);
  await log.signAt(2);
  return fakeWorld({ ...changes, transparency: log.asked });
}

const paidWorld = async () => loggedWorld({ payments: (await lab()).protocol, settings: { mode: 'x402' } });

for (const [mode, world] of [
  ['x402', paidWorld],
  ['demo', () => loggedWorld()],
] as const) {
  test(`${mode} mode: no address in any document, page or header is broken`, async () => {
    const { called, broken } = await crawl(await world());
    assert.deepEqual(broken, []);
    assert.ok(called.size > 90, `${called.size}`);
  });

  test(`${mode} mode: nothing leads outside but to standards and examples`, async () => {
    const { outside } = await crawl(await world());
    assert.deepEqual(
      outside.filter((address) => !OUTSIDE.some((allowed) => allowed.test(address))),
      [],
    );
    assert.ok(outside.length > 3, outside.join());
  });
}
